"""The provider `json`: pages of JSON, described by the keys of the source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from penstock.connectors.market.keys import FIELDS
from penstock.connectors.market.provider import (
    Frame,
    Page,
    Provider,
    Subscription,
    decoded,
    event_of,
    rows_page,
    usual_type,
)
from penstock.jobs.failures import BadData, Permanent
from penstock.jobs.windows import written as written_moment

if TYPE_CHECKING:
    from penstock.connectors.market.keys import RowKeys
    from penstock.jobs.windows import Window

_PLACE = re.compile(r"\{(\w+)\}")
# Rows without fields of their own, under any of these names, in the order of OHLCV.
COLUMNS = ("timestamp", "open", "high", "low", "close", "volume")


class JsonPages(Provider):
    """Addresses are templates, and fields are found by their paths."""

    def historical(self, window: Window, symbol: str, page: str) -> str:
        if page.startswith(("http://", "https://")):
            return page
        places = {
            "start": written_moment(window.start),
            "end": written_moment(window.end),
            "start_s": str(int(window.start_at)),
            "end_s": str(int(window.end_at)),
            "start_ms": str(int(window.start_at * 1000)),
            "end_ms": str(int(window.end_at * 1000)),
            "start_day": f"{window.start:%Y-%m-%d}",
            "end_day": f"{window.end:%Y-%m-%d}",
            "interval": f"{self.keys.interval:g}",
        }
        return self._filled(self.keys.url or "", symbol, page, places)

    def parse(self, body: bytes, symbol: str, page: str) -> Page:
        return self._page(body, symbol, page, self.keys.format, self.keys.url or "")

    def symbols(self, page: str) -> str:
        about = self.keys.listing
        if about is None:
            raise Permanent(
                "without listing: {url: …} there is no list of symbols; name them: symbols: [ACME]",
                cause="no listing",
            )
        return page if _is_address(page) else self._filled(about.url, "", page, {})

    def parse_symbols(self, body: bytes, page: str) -> tuple[list[str], str]:
        about = self.keys.listing
        if about is None:
            return [], ""
        found = decoded(body)
        rows = _list(found, about.rows)
        symbols = [row if isinstance(row, str) else at_path(row, about.symbol) for row in rows]
        if not all(isinstance(symbol, str) and symbol for symbol in symbols):
            raise BadData(f"the listing has rows without {about.symbol!r}", cause="bad listing")
        return symbols, self._next(found, about.next, page, about.url, len(rows))

    def adjustments(self, symbol: str, page: str) -> str:
        about = self.keys.actions
        if about is None:
            return ""
        return page if _is_address(page) else self._filled(about.url, symbol, page, {})

    def parse_adjustments(self, body: bytes, symbol: str, page: str) -> Page:
        about = self.keys.actions
        return Page() if about is None else self._page(body, symbol, page, about, about.url)

    def subscription(self, symbols: Sequence[str], last: Mapping[str, int]) -> Subscription:
        live = self.keys.live
        if live is None:
            raise Permanent(
                "this source has no stream: set live: {url: wss://…}", cause="no stream"
            )
        listed = msgspec.json.encode(list(symbols)).decode()
        known = msgspec.json.encode(dict(last)).decode()
        message = live.subscribe.replace("{symbols}", listed).replace("{last}", known)
        return Subscription(url=live.url, messages=[message] if message else [])

    def parse_frame(self, message: str) -> Frame:
        found = decoded(message)
        live = self.keys.live
        rows = at_path(found, live.rows if live else "")
        listed = rows if isinstance(rows, list) else [rows]
        events, refused = [], []
        for row in listed:
            named = self._named(row, self.keys.format)
            # Messages of other kinds (heartbeats, answers to a subscription) have no time.
            if named.get("timestamp") is None or not named.get("symbol"):
                continue
            try:
                events.append(event_of(named, "", usual_type(self.keys)))
            except ValueError as error:
                refused.append(str(error))
        return Frame(events=events, refused=refused)

    def _page(self, body: bytes, symbol: str, page: str, about: RowKeys, template: str) -> Page:
        found = decoded(body)
        rows = _list(found, about.rows)
        named = [self._named(row, about) for row in rows]
        next_page = self._next(found, about.next, page, template, len(rows))
        return rows_page(named, symbol, usual_type(self.keys), next_page)

    def _named(self, row: Any, about: RowKeys) -> dict[str, Any]:
        """A row with our names of fields."""
        if isinstance(row, list) and not about.fields:
            return dict(zip(COLUMNS, row, strict=False))
        paths = {name: about.fields.get(name, name) for name in FIELDS}
        return {name: at_path(row, path) for name, path in paths.items()}

    def _next(self, found: Any, path: str, page: str, template: str, rows: int) -> str:
        """The page after this one: as the answer says, or by its number until a page is empty."""
        if path:
            token = at_path(found, path)
            return "" if token in (None, False, "") else str(token)
        number = page or self.keys.format.first_page
        is_numbered = "{page}" in template and rows > 0 and number.isdecimal()
        return str(int(number) + 1) if is_numbered else ""

    def _filled(self, template: str, symbol: str, page: str, places: Mapping[str, str]) -> str:
        known = {**places, "symbol": symbol, "page": page or self.keys.format.first_page}

        def fill(found: re.Match[str]) -> str:
            return quote(known.get(found[1], found[0]), safe="")

        return _PLACE.sub(fill, template)


def _is_address(page: str) -> bool:
    return page.startswith(("http://", "https://"))


def _list(found: Any, path: str) -> list[Any]:
    rows = at_path(found, path)
    if not isinstance(rows, list):
        where = f"at {path!r}" if path else "in itself"
        raise BadData(f"the provider's answer has no list {where}", cause="no rows")
    return rows


def at_path(found: Any, path: str) -> Any:
    """What is at a path such as `data.items.0`; None if there is nothing."""
    for part in path.split(".") if path else ():
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found
