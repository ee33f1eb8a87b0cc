"""Logs: what steps print and log, kept with the attempt that it comes from."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.store.database import to_json
from penstock.store.noun import Noun


class LogLine(msgspec.Struct, frozen=True, array_like=True):
    """A line to keep. `level` is `stdout`, `stderr`, or a level of logging in small letters."""

    at: float
    source_id: int
    run_id: int
    job_id: int
    attempt: int
    level: str
    text: str


class LogRow(msgspec.Struct, frozen=True, array_like=True):
    """A line that was kept."""

    id: int
    at: float
    source: str | None
    run_id: int
    job_id: int
    attempt: int
    level: str
    text: str


class Logs(Noun):
    """The verbs of logs. They say what happened; nothing depends on them."""

    def add(self, lines: Sequence[LogLine]) -> None:
        """Keep these, in a transaction of their own: of an attempt that comes to nothing, too."""
        if lines:
            with self._db.writing():
                self._db.do("add_log_lines", lines=to_json(lines))

    def of_run(
        self, run_id: int, after_id: int = 0, limit: int = 500, before_id: int | None = None
    ) -> list[LogRow]:
        """The newest lines of a run between these two, the oldest of them first."""
        where = {"run_id": run_id, "after_id": after_id, "limit": limit, "before_id": before_id}
        return self._db.decoded("log_lines_of_run", list[LogRow], **where)

    def of_job(
        self, job_id: int, after_id: int = 0, limit: int = 500, before_id: int | None = None
    ) -> list[LogRow]:
        where = {"job_id": job_id, "after_id": after_id, "limit": limit, "before_id": before_id}
        return self._db.decoded("log_lines_of_job", list[LogRow], **where)
