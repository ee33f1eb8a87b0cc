"""The inbox: acts that clients of the SQL interface have asked for, until the leader has performed them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.store.database import LAST_ID
from penstock.store.noun import Noun


class SqlSource(msgspec.Struct, array_like=True, frozen=True):
    """What SQL clients see of a source."""

    source_id: int
    job_type: str
    site_url: str
    organization_id: str
    organization_name: str
    domain: str
    is_private: bool


class Request(msgspec.Struct, array_like=True, frozen=True):
    """An act that was asked for. `params` is what the verb needs beyond its target."""

    id: int
    verb: str
    source_id: int
    source: str
    run_id: int | None
    params: dict[str, Any]
    actor: str
    reason: str
    state: str


class RequestRow(msgspec.Struct, array_like=True, frozen=True):
    """The same for a list, with what became of it."""

    id: int
    verb: str
    state: str
    source: str
    run_id: int | None
    at: float
    due_at: float | None
    actor: str
    reason: str
    ended_at: float | None
    error: str


class Inbox(Noun):
    """The verbs of the inbox; clients write to it by the triggers of their views."""

    def due(self, after_id: int = 0, limit: int = 200) -> list[Request]:
        """What is to be performed now, the oldest first."""
        rows = self._db.rows("open_requests", now=self._db.now(), after_id=after_id, limit=limit)
        return [_request(row) for row in rows]

    def take(self, request_id: int) -> bool:
        """Begin it; False if its client has taken it back."""
        with self._db.writing():
            return self._db.do("take_request", id=request_id) > 0

    def end(self, request_id: int, state: str, run_id: int | None = None, error: str = "") -> None:
        """It is `done`, or `refused` for a reason."""
        with self._db.writing() as now:
            about = {"id": request_id, "state": state, "run_id": run_id, "error": error}
            self._db.do("end_request", now=now, **about)

    def newest(self, limit: int = 50, before_id: int | None = None) -> list[RequestRow]:
        """What was asked for last, the newest first."""
        before = LAST_ID if before_id is None else before_id
        rows = self._db.rows("requests", before_id=before, limit=limit)
        return [RequestRow(*row) for row in rows]

    def describe(self, sources: Sequence[SqlSource]) -> int:
        """Have clients see these sources, as they are configured now; answers how many have changed.

        A source that is not configured any more stays as it was: its runs are still there.
        """
        known = self.described()
        changed = [each for each in sources if known.get(each.source_id) != each]
        if changed:
            with self._db.writing():
                for each in changed:
                    self._db.do("add_sql_source", **msgspec.structs.asdict(each))
        return len(changed)

    def described(self) -> dict[int, SqlSource]:
        """What clients see of sources now."""
        rows = self._db.rows("sql_sources")
        return {row[0]: _source(row) for row in rows}


def _request(row: tuple[Any, ...]) -> Request:
    number, verb, source_id, source, run_id, params, *about = row
    told = [number, verb, source_id, source, run_id, msgspec.json.decode(params), *about]
    return msgspec.convert(told, Request)


def _source(row: tuple[Any, ...]) -> SqlSource:
    *texts, is_private = row
    return msgspec.convert([*texts, bool(is_private)], SqlSource)
