"""The journal, to be read from its end, behind a line, or as it grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.journal.condition import Condition
from penstock.journal.registry import current_kind, stored_kinds
from penstock.store.database import to_json
from penstock.store.journal_rows import (
    Followed,
    FollowedKinds,
    StoredEvent,
    conditions,
    matching,
    read_events,
)
from penstock.store.journal_search import (
    DISORDER,
    JobLines,
    JobSpan,
    RunSpan,
    Wanted,
    rare_events,
    rare_events_of_run,
)
from penstock.store.noun import Noun
from penstock.store.rows import Cursor, EventRow, RunRow
from penstock.store.sources import source_id_of

# So much of the journal is looked through for the trail of a run.
TRAIL = 50_000
# So many lines one page of a list is looked for in, where no index leads to what is wanted.
LOOKED = 200_000


def _of_kind(kind: str | None) -> dict[str, Any]:
    """What to look for: a kind or a noun as it is, or all the names that a kind has had."""
    names = [] if kind is None else stored_kinds([kind])
    if len(names) > 1:
        return {"kind": None, "kinds": tuple(names)}
    return {"kind": kind, "kinds": None}


class Journal(Noun):
    """The verbs of the journal."""

    def events(
        self,
        source: str | None = None,
        run_id: int | None = None,
        job_id: int | None = None,
        after_id: int | None = None,
        limit: int = 50,
        kind: str | None = None,
        where: Sequence[Condition] = (),
        before_id: int | None = None,
    ) -> list[EventRow]:
        """The newest events, oldest of them first; with `after_id`, those that came next.

        With `before_id`, the newest of those before it.

        `kind` is one kind (`job.throttled`), by today's name or its old one, or all of a noun (`job`).
        """
        if after_id is not None:
            wanted = self._wanted(source, run_id, job_id, limit, kind)
            return self._events_after(after_id, limit, wanted, where)
        about = (source, run_id, job_id)
        return self._newest(about, limit, kind, where, before_id, looked=None)[0]

    def page(
        self,
        source: str | None = None,
        run_id: int | None = None,
        job_id: int | None = None,
        limit: int = 50,
        kind: str | None = None,
        where: Sequence[Condition] = (),
        before_id: int | None = None,
    ) -> tuple[list[EventRow], int | None]:
        """As `events`, and the line before which the next page goes on if fewer than `limit` were found.

        Where no index leads to them only a part of the journal is looked through; None if that was all.
        """
        about = (source, run_id, job_id)
        return self._newest(about, limit, kind, where, before_id, looked=LOOKED)

    def _newest(
        self,
        about: tuple[str | None, int | None, int | None],
        limit: int,
        kind: str | None,
        where: Sequence[Condition],
        before_id: int | None,
        looked: int | None,
    ) -> tuple[list[EventRow], int | None]:
        source, run_id, job_id = about
        source_id = source_id_of(self._db, source)
        wanted = Wanted(limit, **_of_kind(kind), where=tuple(where))
        span = None if job_id is None else self._span_of(job_id)
        if job_id is not None and span is not None:
            if run_id not in (None, span.run_id):
                return [], None
            found = JobLines(self._db, job_id, span, self._line_until).newest(wanted, before_id)
        elif job_id is None and wanted.is_rare:
            found = rare_events(self._db, wanted, source_id, run_id, before_id)
        else:
            return self._walked(wanted, (source_id, run_id, job_id), before_id, looked)
        return [row for row in found if source in (None, row.source)], None

    def _walked(
        self,
        wanted: Wanted,
        about: tuple[int | None, int | None, int | None],
        before_id: int | None,
        looked: int | None,
    ) -> tuple[list[EventRow], int | None]:
        """Line by line from the newest that can be meant; only what is noted of a run later is looked up."""
        source_id, run_id, job_id = about
        first_id, last_id = (each or 0 for each in self._db.json("journal_ids"))
        until_id, later = last_id if before_id is None else before_id - 1, list[EventRow]()
        span = None if run_id is None else self._db.json("line_span", run_id=run_id)
        if run_id is not None and span is not None:
            run = msgspec.convert(span, RunSpan)
            first_id = max(first_id, run.first_id)
            if run.until_id < until_id:
                later = rare_events_of_run(self._db, wanted, run_id, run.until_id, until_id)
                until_id = run.until_id
        left = wanted.limit - len(later)
        if left <= 0:
            return later, None
        bottom_id = first_id if looked is None else max(first_id, until_id - looked + 1)
        place = {"seen": None, "line": None, "until_id": until_id, "floor_id": bottom_id - 1}
        which = {"source_id": source_id, "run_id": run_id, "job_id": job_id, "limit": left}
        kinds = {"kind": wanted.kind, "kinds": wanted.kinds and to_json(wanted.kinds)}
        found = self._latest_events(left, {**place, **which, **kinds}, wanted.where)
        has_more = len(found) < left and bottom_id > first_id
        return [*found, *later], bottom_id if has_more else None

    def _of_run(self, run_id: int, limit: int, before_id: int | None = None) -> list[EventRow]:
        """The newest events of a run itself, and not of its jobs; oldest of them first."""
        return self._indexed("events_of_run", limit, before_id, run_id=run_id)

    def trail(self, run: RunRow, limit: int, kind: str | None = None) -> list[EventRow]:
        """The newest events of a run and its jobs, oldest of them first.

        Only a part of the journal is looked through: of a run that has ended, what stands before its end.
        """
        last = self._of_run(run.id, 1) if run.is_ended else []
        until_id = last[0].id + DISORDER if last else self._db.json("journal_ids")[1]
        if until_id is None:
            return []
        place = {"seen": None, "line": None, "until_id": until_id, "floor_id": until_id - TRAIL}
        wanted = self._wanted(None, run.id, None, limit, kind)
        return self._read_events("latest_events", where=None, **place, **wanted)

    def of_source(self, source_id: int, limit: int, before_id: int | None = None) -> list[EventRow]:
        """The newest events of a source itself, and not of its runs and jobs; oldest of them first."""
        return self._indexed("events_of_source", limit, before_id, source_id=source_id)

    def of_people(self, limit: int, before_id: int | None = None) -> list[EventRow]:
        """The newest acts of people, by whatever front end; oldest of them first."""
        return self._indexed("events_of_people", limit, before_id)

    def _indexed(
        self, query: str, limit: int, before_id: int | None, **about: int
    ) -> list[EventRow]:
        until_id = None if before_id is None else before_id - 1
        return self._read_events(query, limit=limit, after_id=0, until_id=until_id, **about)

    def _latest_events(
        self, limit: int, wanted: dict[str, Any], where: Sequence[Condition]
    ) -> list[EventRow]:
        found: list[EventRow] = []
        while True:
            page = self._read_events("latest_events", where=conditions(where), **wanted)
            found = [*matching(page, where), *found]
            if len(page) < limit or len(found) >= limit:
                return found[-limit:]
            wanted["until_id"] = page[0].id - 1

    def _events_after(
        self, after_id: int, limit: int, wanted: dict[str, Any], where: Sequence[Condition]
    ) -> list[EventRow]:
        found: list[EventRow] = []
        while True:
            page = self._read_events("events", after_id=after_id, **wanted)
            found += matching(page, where)
            if len(page) < limit or len(found) >= limit:
                return found[:limit]
            after_id = page[-1].id

    def _read_events(self, query: str, **values: Any) -> list[EventRow]:
        return read_events(self._db.decoded(query, list[StoredEvent], **values))

    def follow(
        self,
        cursor: Cursor | None,
        source: str | None = None,
        run_id: int | None = None,
        job_id: int | None = None,
        limit: int = 500,
        kind: str | None = None,
        where: Sequence[Condition] = (),
    ) -> tuple[list[EventRow], Cursor]:
        """What the journal has behind a cursor, and the cursor behind that; without one, the newest lines.

        Each line is answered once: those of a transaction that has not ended come when it has, although
        others with higher ids were answered before.
        """
        wanted = self._wanted(source, run_id, job_id, limit, kind)
        if cursor is None:
            cursor = self._db.decoded("journal_end", Cursor)
            place = {"seen": cursor.seen, "line": cursor.line, "until_id": None, "floor_id": None}
            return self._latest_events(limit, {**place, **wanted}, where), cursor
        return self._behind(cursor, wanted, limit, where)

    def follow_until(
        self,
        cursor: Cursor,
        until: Cursor,
        source: str | None = None,
        run_id: int | None = None,
        job_id: int | None = None,
        limit: int = 500,
        kind: str | None = None,
        where: Sequence[Condition] = (),
    ) -> tuple[list[EventRow], Cursor]:
        """As `follow`, but no further than another reader has come; all is read when it answers `until`."""
        wanted = self._wanted(source, run_id, job_id, limit, kind)
        if until.seen:
            bounded = cursor if cursor.upto else Cursor(cursor.seen, until.seen, cursor.line)
            return self._behind(bounded, wanted, limit, where)
        # Lines become visible in the order of their ids.
        found, end = self._behind(cursor, wanted, limit, where)
        left = [row for row in found if row.id <= until.line]
        return left, until if end.line >= until.line else end

    def follow_kinds(
        self, cursor: Cursor | None, kinds: Sequence[str], limit: int = 500
    ) -> tuple[list[EventRow], Cursor]:
        """As `follow`, of these kinds alone; without a cursor nothing but the end of the journal."""
        if cursor is None:
            return [], self._db.decoded("journal_end", Cursor)
        which = {"source_id": None, "run_id": None, "job_id": None, "kind": None, "limit": limit}
        return self._behind(cursor, {**which, "kinds": to_json(stored_kinds(kinds))}, limit)

    def kinds_behind(self, cursor: Cursor) -> tuple[set[str], Cursor]:
        """Of what kinds the events behind a cursor are, all of them, and the cursor behind those."""
        place = {"seen": cursor.seen, "upto": cursor.upto or None, "line": cursor.line}
        found = self._db.decoded("kinds_behind", FollowedKinds, **place)
        return {current_kind(kind) for kind in found.kinds}, found.end

    def _behind(
        self,
        cursor: Cursor,
        wanted: dict[str, Any],
        limit: int,
        where: Sequence[Condition] = (),
    ) -> tuple[list[EventRow], Cursor]:
        found: list[EventRow] = []
        while True:
            place = {"seen": cursor.seen, "upto": cursor.upto or None, "line": cursor.line}
            about = {**place, **wanted, "where": conditions(where)}
            page = self._db.decoded("follow_events", Followed, **about)
            found += matching(read_events(page.lines), where)
            if len(page.lines) < limit:
                return found, page.end
            cursor = Cursor(cursor.seen, page.end.seen, page.lines[-1].id)
            if len(found) >= limit:
                return found, cursor

    def _line_until(self, at: float) -> int:
        """The last of the lines that were written until then, as far as they stand in the order of time."""
        return int(self._db.value("line_until", at=at))

    def _span_of(self, job_id: int) -> JobSpan | None:
        found = self._db.json("job_span", id=job_id)
        return None if found is None else msgspec.convert(found, JobSpan)

    def _wanted(
        self,
        source: str | None,
        run_id: int | None,
        job_id: int | None,
        limit: int,
        kind: str | None,
    ) -> dict[str, Any]:
        source_id = source_id_of(self._db, source)
        if job_id is not None and run_id is None and (span := self._span_of(job_id)) is not None:
            run_id = span.run_id  # nothing of a job stands before its run began
        which = {"source_id": source_id, "run_id": run_id, "job_id": job_id, "limit": limit}
        names = _of_kind(kind)
        return {**which, **names, "kinds": names["kinds"] and to_json(names["kinds"])}
