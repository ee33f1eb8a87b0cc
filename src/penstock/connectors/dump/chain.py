"""The chain of a file's parts: what one job leaves to the next."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from penstock.connectors.dump.columns import MOST_TABLES, Report
from penstock.connectors.dump.parts import Part, Position
from penstock.connectors.dump.remote import FIRST_BLOCK, RemoteFile, next_size

ALL_OTHERS = "other tables"


class Chain(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Where the next part begins, of which state of the file, and what was found out so far."""

    stamp: str
    at: Position = Position()
    is_end: bool = False
    restarts: int = 0
    # Of the table that is being read.
    table: str = ""
    columns: list[str] = []
    delimiter: str = ","
    encoding: str = "utf-8"
    reports: dict[str, Report] = {}
    # On a server: the state that is read, and how many bytes to ask for.
    remote: RemoteFile | None = None
    block: int = 0

    @property
    def is_start(self) -> bool:
        is_first = self.at == Position() and self.block in (0, FIRST_BLOCK)
        return is_first and not self.restarts and not self.is_end

    @property
    def label(self) -> str:
        """What tells the jobs of one file apart, also of another state of it within one run."""
        mark = hashlib.blake2b(self.stamp.encode(), digest_size=4).hexdigest()
        where = "end" if self.is_end else f"{self.at.table}:{self.at.row}:{self.at.offset}"
        return f"{mark}:{where}" + (f":{self.restarts}:{self.block}" if self.is_remote else "")

    @property
    def is_remote(self) -> bool:
        return self.remote is not None or not self.stamp

    def after(self, part: Part, columns: list[str]) -> Chain:
        """What comes after a part."""
        return msgspec.structs.replace(
            self,
            at=part.next or self.at,
            is_end=part.next is None,
            table=part.name,
            columns=columns,
            delimiter=part.delimiter,
            encoding=part.encoding,
            reports=dict(self.reports),
            block=self._next_block(part),
        )

    def _next_block(self, part: Part) -> int:
        if self.remote is None or part.next is None:
            return 0
        return next_size(part.next.offset - self.at.offset, self.block)

    def report(self, table: str) -> Report:
        """The report of a table, to be added to; those of many tables have one together."""
        if table and table not in self.reports and len(self.reports) >= MOST_TABLES:
            table = ALL_OTHERS
        return self.reports.setdefault(table, Report()) if table else Report()


def manifest(chain: Chain) -> bytes:
    """What is known of a file that was read, to its end."""
    tables: dict[str, Any] = {
        name: {
            "rows": report.rows,
            "rejected": report.rejected,
            "columns": report.types(),
        }
        for name, report in chain.reports.items()
    }
    meta = {
        "rows": sum(report.rows for report in chain.reports.values()),
        "rejected": sum(report.rejected for report in chain.reports.values()),
        "tables": len(tables),
    }
    found = {"meta": meta, "stamp": chain.stamp, "tables": tables}
    return msgspec.json.encode(found, order="deterministic")
