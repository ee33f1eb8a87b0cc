"""The chain of a file's parts: what one job leaves to the next."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from penstock.connectors.dump.columns import MOST_TABLES, Report
from penstock.connectors.dump.parts import Part, Position
from penstock.connectors.dump.remote import FIRST_BLOCK, RemoteFile, next_size
from penstock.connectors.dump.vanished import turns_for

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
    # How many jobs have downloaded pieces of it.
    pieces: int = 0
    # Whether the source had records before. If so, and rows have keys, those that vanished are looked for
    # after the last part: in which turn, and after which record.
    is_known: bool = False
    # Whether the file has no end that can be seen, and whether it had none when it was read last.
    is_open: bool = False
    was_open: bool = False
    is_sweep: bool = False
    turn: int = 0
    swept: str = ""

    @property
    def is_start(self) -> bool:
        is_first = self.at == Position() and self.block in (0, FIRST_BLOCK) and not self.pieces
        return is_first and not self.restarts and not self.is_end and not self.is_sweep

    @property
    def label(self) -> str:
        """What tells the jobs of one file apart, also of another state of it within one run."""
        mark = hashlib.blake2b(self.stamp.encode(), digest_size=4).hexdigest()
        where = "end" if self.is_end else f"{self.at.table}:{self.at.row}:{self.at.offset}"
        if self.is_sweep:
            swept = hashlib.blake2b(self.swept.encode("utf-8", "surrogatepass"), digest_size=8)
            where = f"gone:{self.turn}:{swept.hexdigest()}"
        if not self.is_remote:
            return f"{mark}:{where}"
        pieces = f":{self.pieces}" if self.pieces else ""
        return f"{mark}:{where}:{self.restarts}:{self.block}{pieces}"

    @property
    def is_remote(self) -> bool:
        return self.remote is not None or not self.stamp

    def after(self, part: Part, columns: list[str], *, has_keys: bool = False) -> Chain:
        """What comes after a part."""
        is_last = part.next is None
        return msgspec.structs.replace(
            self,
            at=part.next or self.at,
            is_end=is_last and not (has_keys and self.is_known),
            is_sweep=is_last and has_keys and self.is_known,
            table=part.name,
            columns=columns,
            delimiter=part.delimiter,
            encoding=part.encoding,
            reports=dict(self.reports),
            is_open=part.is_open,
            block=self._next_block(part),
        )

    def after_sweep(self, after: str | None) -> Chain:
        """What comes after a look for vanished rows: more records, the next turn, or the end."""
        if after is not None:
            return msgspec.structs.replace(self, swept=after)
        if self.turn + 1 < turns_for(self.rows):
            return msgspec.structs.replace(self, turn=self.turn + 1, swept="")
        return msgspec.structs.replace(self, is_sweep=False, is_end=True)

    @property
    def rows(self) -> int:
        return sum(report.rows for report in self.reports.values())

    @property
    def rejected(self) -> int:
        return sum(report.rejected for report in self.reports.values())

    def _next_block(self, part: Part) -> int:
        if self.remote is None or part.next is None:
            return 0
        return next_size(part.next.offset - self.at.offset, self.block)

    def report(self, table: str) -> Report:
        """The report of a table, to be added to; those of many tables have one together."""
        if table and table not in self.reports and len(self.reports) >= MOST_TABLES:
            table = ALL_OTHERS
        return self.reports.setdefault(table, Report()) if table else Report()


class Swept(msgspec.Struct, frozen=True, omit_defaults=True):
    """Keys of records whose rows are gone, and the last record that was looked at, if there are more."""

    gone: list[str] = []
    after: str | None = None
    # Where to go on instead, if the file is not there yet.
    instead: Chain | None = None


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
        "rows": chain.rows,
        "rejected": chain.rejected,
        "tables": len(tables),
    }
    found = {"meta": meta, "stamp": chain.stamp, "tables": tables}
    return msgspec.json.encode(found, order="deterministic")
