"""The provider `folder`: files with our names of fields, one for each symbol, as CSV, JSON or JSON lines."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors.market.provider import Page, Provider, decoded, rows_page, usual_type
from penstock.jobs.failures import BadData, Permanent

if TYPE_CHECKING:
    from penstock.jobs.windows import Window

SYMBOLS, ACTIONS = "symbols.json", "actions.json"


class Folder(Provider):
    """`SYMBOL.csv` (or .json, .jsonl) has all history; `symbols.json` lists, `actions.json` has splits."""

    def historical(self, window: Window, symbol: str, page: str) -> str:
        return self._file(f"{_name(symbol)}.{self.keys.files}")

    def parse(self, body: bytes, symbol: str, page: str) -> Page:
        return rows_page(_rows(body, self.keys.files), symbol, usual_type(self.keys))

    def symbols(self, page: str) -> str:
        return self._file(SYMBOLS)

    def parse_symbols(self, body: bytes, page: str) -> tuple[list[str], str]:
        found = decoded(body)
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise BadData(f"{SYMBOLS} is no list of symbols", cause="bad listing")
        return found, ""

    def adjustments(self, symbol: str, page: str) -> str:
        return self._file(ACTIONS)

    def parse_adjustments(self, body: bytes, symbol: str, page: str) -> Page:
        found = decoded(body)
        if not isinstance(found, list):
            raise BadData(f"{ACTIONS} is no list of splits and dividends", cause="bad actions")
        own = [row for row in found if isinstance(row, dict) and row.get("symbol") == symbol]
        return rows_page(own, symbol, usual_type(self.keys))

    def _file(self, name: str) -> str:
        if self.keys.folder is None:
            raise Permanent("the provider folder needs folder: ./prices", cause="no folder")
        return f"{self.keys.folder.rstrip('/')}/{name}"


def _name(symbol: str) -> str:
    """A symbol as the name of a file in this very folder."""
    return "".join(each if each.isalnum() or each in "-_^=." else "_" for each in symbol).lstrip(
        "."
    )


def _rows(body: bytes, files: str) -> list[Any]:
    if files == "json":
        found = decoded(body)
        if not isinstance(found, list):
            raise BadData("the file is no list of rows", cause="no rows")
        return found
    if files == "jsonl":
        return [decoded(line) for line in body.splitlines() if line.strip()]
    try:
        return list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadData(f"the file is no CSV: {error}", cause="no CSV") from None


def symbols_file(symbols: list[str]) -> bytes:
    return msgspec.json.encode(symbols)
