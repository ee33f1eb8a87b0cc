"""What an operator sees: short reads of maintained counters and indexed rows, never a scan of the queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from penstock.errors import UsageError, nearest
from penstock.jobs.job import JobState
from penstock.jobs.run import Plan
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.journal.condition import Condition
from penstock.journal.registry import stored_kinds
from penstock.store.database import LAST_ID, Database, to_json
from penstock.store.journal import Followed, StoredEvent, conditions, matching, read_events
from penstock.store.rows import (
    Cursor,
    EventRow,
    JobDetail,
    JobRow,
    Overview,
    RecordRow,
    RunRow,
    SnapshotRow,
    SourceRow,
)
from penstock.store.store import JobFilter

# So many queued jobs are put in order in a blink.
MANY = 100_000
RECORD_PAGE = 500
# A job is looked for by its key in so many of the newest runs.
LOOKED_AT_RUNS = 200
# On a server, lines of transactions that were written side by side stand in any order.
DISORDER_S = 60.0


class _Span(msgspec.Struct):
    """Of a job: its run, and when it was moved or noted last."""

    run_id: int
    state: JobState
    at: float


def _of_kind(kind: str | None) -> dict[str, str | None]:
    """What to look for: a kind or a noun as it is, or all the names that a kind has had."""
    names = [] if kind is None else stored_kinds([kind])
    if len(names) > 1:
        return {"kind": None, "kinds": to_json(names)}
    return {"kind": kind, "kinds": None}


class Reading:
    """The verbs that change nothing."""

    _db: Database

    def now(self) -> float:
        """The time by the store's clock, the only one that counts for due times and leases."""
        return self._db.now()

    def overview(self) -> Overview:
        return self._db.decoded("overview", Overview, now=self._db.now())

    def has_startable(self, within_s: float, outside: Sequence[int] = ()) -> bool:
        """Whether something is queued that no person holds back and that may start this soon.

        Sources that are `outside` their hours for as long only start what does not touch them.
        """
        until, away = self._db.now() + within_s, to_json(sorted(outside))
        return self._db.value("startable", until=until, outside=away) is not None

    def startable_stages(
        self, within_s: float, outside: Sequence[int] = ()
    ) -> list[tuple[int, str]]:
        """The same, by source and stage."""
        until, away = self._db.now() + within_s, to_json(sorted(outside))
        found = self._db.json("startable_stages", until=until, outside=away)
        return [(source_id, stage) for source_id, stage in found]

    def sources(self) -> list[SourceRow]:
        return self._db.decoded("sources", list[SourceRow])

    def runs(
        self,
        source: str | None = None,
        active_only: bool = False,
        limit: int = 20,
        before_id: int | None = None,
    ) -> list[RunRow]:
        """The newest runs first; with `before_id`, those that are older than this one."""
        source_id = self._source_id(source)
        where = {"limit": limit, "before_id": LAST_ID if before_id is None else before_id}
        if active_only:
            ids = self._db.value("latest_active_runs", source_id=source_id, **where)
        elif source_id is not None:
            ids = self._db.value("latest_runs_of", source_id=source_id, **where)
        else:
            ids = self._db.value("latest_runs", **where)
        return self._db.decoded("runs", list[RunRow], ids=ids)

    def run(self, run_id: int) -> RunRow | None:
        found = self.runs_by_id([run_id])
        return found[0] if found else None

    def runs_by_id(self, run_ids: Sequence[int]) -> list[RunRow]:
        """Those of these runs that there are, with one query."""
        return self._db.decoded("runs", list[RunRow], ids=to_json(sorted(set(run_ids))))

    def run_plan(self, run_id: int) -> Plan:
        """The stages that a run was started with."""
        return self._db.decoded("run_plan", Plan, id=run_id)

    def jobs(self, wanted: JobFilter) -> list[JobRow]:
        """Jobs in the order they were enqueued."""
        where = {
            "after_id": wanted.after_id,
            "run_id": wanted.run_id,
            "source_id": self._source_id(wanted.source),
            "stage": wanted.stage,
            "limit": wanted.limit,
        }
        if wanted.states == (JobState.QUARANTINED,):
            ids = self._db.value("find_quarantined", **where)
        elif wanted.states and self._are_few(wanted.states):
            ids = self._db.value("find_live", states=to_json(wanted.states), **where)
        else:
            states = to_json(wanted.states) if wanted.states else None
            ids = self._db.value("find_jobs", states=states, **where)
        return self._db.decoded("jobs", list[JobRow], ids=ids)

    def _are_few(self, states: Sequence[JobState]) -> bool:
        """Whether jobs in these states are found sooner among themselves than among all.

        Of a long queue, the first are soon met by whoever begins at the oldest job that there is.
        """
        if not set(states) <= set(OPEN_JOB_STATES):
            return False
        return JobState.QUEUED not in states or self.overview().queued <= MANY

    def job(self, job_id: int) -> JobRow | None:
        found = self._db.decoded("jobs", list[JobRow], ids=to_json([job_id]))
        return found[0] if found else None

    def job_detail(self, job_id: int) -> JobDetail:
        """What a job was enqueued with, and where its last attempt failed."""
        return self._db.decoded("job_detail", JobDetail, id=job_id)

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
        wanted = self._wanted(source, run_id, job_id, limit, kind)
        if after_id is not None:
            return self._events_after(after_id, limit, wanted, where)
        until_id = self._last_line_of(job_id) if before_id is None else before_id - 1
        place = {"seen": None, "line": None, "until_id": until_id}
        return self._latest_events(limit, {**place, **wanted}, where)

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
            place = {"seen": cursor.seen, "line": cursor.line, "until_id": None}
            return self._latest_events(limit, {**place, **wanted}, where), cursor
        return self._behind(cursor, wanted, limit, where)

    def follow_kinds(
        self, cursor: Cursor | None, kinds: Sequence[str], limit: int = 500
    ) -> tuple[list[EventRow], Cursor]:
        """As `follow`, of these kinds alone; without a cursor nothing but the end of the journal."""
        if cursor is None:
            return [], self._db.decoded("journal_end", Cursor)
        which = {"source_id": None, "run_id": None, "job_id": None, "kind": None, "limit": limit}
        return self._behind(cursor, {**which, "kinds": to_json(stored_kinds(kinds))}, limit)

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

    def _last_line_of(self, job_id: int | None) -> int | None:
        """A line of the journal behind which a job that is done has none; None if nobody knows.

        An index of the journal by jobs would cost every move of every job. Lines stand nearly in the order of
        time, and a job knows when it was moved last. If that line is not found where it should be, because
        a clock was set, all lines are looked through.
        """
        span = None if job_id is None else self._span_of(job_id)
        if span is None or span.state in OPEN_JOB_STATES:
            return None
        until_id = self._lines_until(span.at + DISORDER_S)
        about = {"seen": None, "line": None, "until_id": until_id, "source_id": None, "kind": None}
        where = {"run_id": span.run_id, "job_id": job_id, "limit": 1, "where": None, "kinds": None}
        last = self._db.decoded("latest_events", list[StoredEvent], **about, **where)
        return until_id if last and last[0].at == span.at else None

    def _lines_until(self, at: float) -> int:
        """The last of the lines that were written until then, as far as they stand in the order of time."""
        first, last = self._db.json("journal_ids")
        low, high = first or 0, (last or 0) + 1
        while low < high:
            middle = (low + high) // 2
            line = self._db.json("event_from", id=middle)
            if line is None or line[1] > at:
                high = middle
            else:
                low = line[0] + 1
        return low - 1

    def _span_of(self, job_id: int) -> _Span | None:
        found = self._db.json("job_span", id=job_id)
        return None if found is None else msgspec.convert(found, _Span)

    def _wanted(
        self,
        source: str | None,
        run_id: int | None,
        job_id: int | None,
        limit: int,
        kind: str | None,
    ) -> dict[str, Any]:
        source_id = self._source_id(source)
        if job_id is not None and run_id is None and (span := self._span_of(job_id)) is not None:
            run_id = span.run_id  # nothing of a job stands before its run began
        which = {"source_id": source_id, "run_id": run_id, "job_id": job_id}
        return {**which, **_of_kind(kind), "limit": limit}

    def collections(self) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in self._db.rows("collections")]

    def records(
        self, collection: str, after_key: str = "", limit: int | None = None
    ) -> list[RecordRow]:
        """Records in the order of their keys: all of them, or with `limit` a page."""
        return list(self.each_record(collection, after_key=after_key, limit=limit))

    def each_record(
        self,
        collection: str,
        *,
        source_id: int | None = None,
        run_id: int | None = None,
        since: float | None = None,
        after_key: str = "",
        limit: int | None = None,
    ) -> Iterator[RecordRow]:
        """The same one by one, read in pages: a million need no more memory than a page.

        Only those that a source or a run wrote last, or that were written since a time.
        """
        where = {"source_id": source_id, "run_id": run_id, "since": since}
        left = limit
        while left is None or left > 0:
            page = self._db.decoded(
                "records",
                list[RecordRow],
                collection=collection,
                after_key=after_key,
                limit=RECORD_PAGE if left is None else min(left, RECORD_PAGE),
                **where,
            )
            if not page:
                return
            yield from page
            after_key, left = page[-1].key, None if left is None else left - len(page)

    def versions(self, collection: str, key: str) -> list[RecordRow]:
        """Every version of one record, the first one first."""
        return self._db.decoded("versions", list[RecordRow], collection=collection, key=key)

    def checkpoints(self, source_id: int) -> dict[str, Any]:
        found: dict[str, Any] = self._db.json("checkpoints", source_id=source_id)
        return found

    def snapshot_of(self, job_id: int, url: str) -> SnapshotRow | None:
        """What an earlier attempt of this job fetched from this address."""
        found = self._db.json("snapshot_of_job", job_id=job_id, url=url)
        return None if found is None else msgspec.convert(found, SnapshotRow)

    def last_snapshot(self, url: str) -> SnapshotRow | None:
        found = self._db.json("last_snapshot", url=url)
        return None if found is None else msgspec.convert(found, SnapshotRow)

    def pages_of(self, job_id: int, limit: int = 20) -> list[SnapshotRow]:
        """What a job fetched, the newest first; where it fetched nothing, the page its item came from."""
        return self._db.decoded("pages_of_job", list[SnapshotRow], job_id=job_id, limit=limit)

    def pages_at(self, url: str, limit: int = 20) -> list[SnapshotRow]:
        """What was fetched from an address, the newest first."""
        return self._db.decoded("pages_at", list[SnapshotRow], url=url, limit=limit)

    def last_job_of(self, source_id: int, stage: str, key: str) -> int | None:
        """The newest job for this stage and key in the newest runs of a source."""
        about = {"source_id": source_id, "stage": stage, "key": key, "runs": LOOKED_AT_RUNS}
        found: int | None = self._db.value("last_job_of", **about)
        return found

    def places(self, hashes: Sequence[str]) -> dict[str, tuple[str, int, int]]:
        """Where payloads with these hashes lie, if they do."""
        return self._db.decoded("places", dict[str, tuple[str, int, int]], hashes=to_json(hashes))

    def closed_hosts(self) -> dict[str, float]:
        found: dict[str, float] = self._db.json("closed_hosts", now=self._db.now())
        return found

    def _source_id(self, key: str | None) -> int | None:
        if key is None:
            return None
        found = self._db.value("source_id", key=key)
        if found is None:
            raise UsageError(
                f"there is no source {key!r}", nearest(key, self._db.json("source_ids"))
            )
        return int(found)
