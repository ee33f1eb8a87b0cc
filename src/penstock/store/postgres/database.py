"""What is Postgres's own way in a store: its schema, its locks, the statements of a turn, whole tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import errors as e

from penstock.clock import Clock
from penstock.gates.fair_shares import Stretch
from penstock.jobs.job import Claimed, Owned
from penstock.store.database import ALL, Fences, JobRow, to_json
from penstock.store.postgres.connection import LOCK_S, Connection, connect
from penstock.store.postgres.grants import refuse_lacking
from penstock.store.postgres.migrate import Migrating, newest
from penstock.store.postgres.schema_names import in_schema
from penstock.store.postgres.session import Session
from penstock.store.schema import Applied, Plan, Purpose, refuse_unfinished

# A run's tallies are summed up when there are so many.
SUM_AFTER = 12
# How long a claim waits for a source or run that somebody else has locked, if there is no other.
SOON_S = 1.0
# How many rows of a long answer are in memory at once.
STREAM_ROWS = 100


class PostgresDatabase(Session):
    """For one thread of one process."""

    is_shared = True

    def __init__(
        self, url: str, clock: Clock, *, time: Clock | None = None, purpose: Purpose = "work"
    ) -> None:
        super().__init__(url, clock, time)
        self.schema = newest()
        self.avoided: frozenset[int] = frozenset()
        # What others may be waiting for, since somebody has set this to False.
        self.has_locked = False
        try:
            self._make_sure(purpose)
        except BaseException:
            self.close()
            raise

    # The schema.

    def _make_sure(self, purpose: Purpose) -> None:
        with self._translated():
            if purpose == "schema":
                self._open()
                return
            refuse_lacking(self._open(), self.place, self.namespace)
            self._migrating().ensure()
        if purpose == "work":
            refuse_unfinished(self.place, self.value("unfinished_copy"))

    def _migrating(self) -> Migrating:
        def another() -> Connection:
            return connect(self._info, self.place)[0]

        about = (self.place, self._is_pooled, self.namespace)
        return Migrating(self._open(), another, self.now, *about)

    def plan(self) -> Plan:
        with self._translated():
            return self._migrating().plan()

    def migrate(self, actor: str, reason: str) -> Iterator[Applied]:
        with self._translated():
            yield from self._migrating().migrate(actor, reason)

    def clear_leftovers(self) -> list[str]:
        with self._translated():
            return self._migrating().clear()

    def size_bytes(self) -> int:
        return int(self.value("size_bytes"))

    # Locks, always in this order: sources by id, then runs by id.

    def lock_lanes(self, source_ids: Sequence[int]) -> None:
        self.has_locked = True
        self.rows("lock_lanes", ids=array_of(source_ids))

    def lock_runs(self, run_ids: Sequence[int]) -> None:
        if not self._locked_runs.issuperset(run_ids):
            self._locked_runs.update(run_ids)
            self._sum_up(self.rows("lock_runs", ids=array_of(run_ids)))

    def _sum_up(self, found: Sequence[tuple[int, int]]) -> None:
        many = [run_id for run_id, tallies in found if tallies >= SUM_AFTER]
        if many:
            self.do("sum_up", ids=array_of(many))

    def lock_what_is_free(
        self, source_ids: Sequence[int], run_ids: Sequence[int]
    ) -> tuple[set[int], set[int]]:
        self.has_locked = True
        lanes = self._lock_free("lock_free_lanes", "lock_lanes", source_ids)
        runs = self._lock_free("lock_free_runs", "lock_runs", run_ids) if lanes else set()
        self._locked_runs.update(runs)
        return lanes, runs

    def _lock_free(self, free: str, waiting: str, ids: Sequence[int]) -> set[int]:
        """Those of these that nobody has locked; else the first, waited for, and what is free then.

        Another worker's turn has mostly had all of them, and let go of all at once.
        """
        found = {row[0] for row in self.rows(free, ids=array_of(ids))}
        if not found:
            found = {row[0] for row in self._lock_soon(waiting, ids[:1])}
            if found and len(ids) > 1:
                found |= {row[0] for row in self.rows(free, ids=array_of(ids[1:]))}
        return found

    def lanes_are_as_read(self) -> bool:
        # Whoever was at it committed before our locks were free, or will find them taken.
        return self._lanes_read == {self.value("committed")}

    def _lock_soon(self, name: str, ids: Sequence[int]) -> list[Any]:
        """Wait a moment for these; nothing is locked if they are not free by then."""
        with self._translated():
            self._run(b"SAVEPOINT waiting")
            self._run(f"SET LOCAL lock_timeout = {SOON_S * 1000:.0f}".encode())
            try:
                found = self._execute(name, {"ids": array_of(ids)}).fetchall()
            except e.LockNotAvailable:
                self._run(b"ROLLBACK TO SAVEPOINT waiting")
                return []
            self._run(f"SET LOCAL lock_timeout = {LOCK_S * 1000:.0f}".encode())
        return found

    def locked_elsewhere(self) -> frozenset[int]:
        """Active runs that nobody can settle now, because somebody has locked them or their sources."""
        return frozenset(run_id for (run_id,) in self.rows("locked_runs"))

    def jobs_of_runs(self, job_ids: Iterable[int], run_ids: Iterable[int]) -> set[int]:
        """Which of these jobs belong to one of these runs."""
        ids = {"ids": array_of(job_ids), "runs": array_of(run_ids)}
        return {job_id for (job_id,) in self.rows("jobs_of_runs", **ids)}

    def fold_ended_runs(self, limit: int) -> None:
        """Put the tallies of runs that have ended into their counters."""
        with self.writing():
            ids = [run_id for (run_id,) in self.rows("ended_with_tallies", limit=limit)]
            if ids:
                self.rows("lock_runs", ids=array_of(ids))
                self.do("fold", ids=array_of(ids))

    def ready_lanes(
        self,
        floors: Sequence[tuple[int, str, float, int]],
        sources: Sequence[int] | None,
        for_drains: bool,
        stretch: Stretch = ALL,
    ) -> tuple[list[Any], list[Any], int]:
        where = {"sources": None if sources is None else to_json(sources), **stretch._asdict()}
        heads, running, reached, committed = self.json(
            "ready_lanes", floors=to_json(floors), for_drains=for_drains, **where
        )
        self._lanes_read.add(committed)
        return heads, running, reached

    def new_job_ids(self, count: int) -> Sequence[int]:
        return self.decoded("new_job_ids", list[int], count=count)

    def add_jobs(self, now: float, jobs: Sequence[JobRow]) -> set[int]:
        rows = to_json(jobs)
        if self.do("add_keys", jobs=rows) != len(jobs):
            new = set(self.json("present_jobs", jobs=rows))
            jobs = [row for row in jobs if row[0] in new]
            rows = to_json(jobs)
        self.later("add_jobs", now=now, jobs=rows)
        return {row[0] for row in jobs}

    def fence(
        self, now: float, worker: str, plain: Fences, others: Fences
    ) -> tuple[Sequence[Owned], Sequence[Owned]]:
        ended = self._succeed(now, worker, plain)
        if not others:
            return ended, []
        return ended, self.decoded("fence", list[Owned], fences=to_json(others), worker=worker)

    def succeed(self, now: float, worker: str, owned: Sequence[Owned]) -> None:
        self._succeed(now, worker, [(job.id, job.attempt) for job in owned])

    def _succeed(self, now: float, worker: str, ends: Fences) -> list[Owned]:
        # A statement for each number of attempts, which nearly all have in common: ids alone are found
        # in a fifth less time than pairs.
        by_attempt: dict[int, list[int]] = defaultdict(list)
        for job_id, attempt in ends:
            by_attempt[attempt].append(job_id)
        return [
            Owned(*row)
            for attempt, ids in by_attempt.items()
            for row in self.rows(
                "succeed_if_running", now=now, worker=worker, ids=array_of(ids), attempt=attempt
            )
        ]

    def start(self, now: float, worker: str, job_ids: Sequence[int]) -> list[Claimed]:
        rows = self.rows("claim_if_queued", now=now, worker=worker, ids=array_of(job_ids))
        begun = {row[0]: Claimed(*row) for row in rows}
        return [begun[job_id] for job_id in job_ids if job_id in begun]

    def has_company(self, worker: str) -> bool:
        """Whether anybody else works here."""
        return self.value("has_company", id=worker) is not None

    # Whole tables, for a copy.

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One moment of the database, for as long as this lasts."""
        with self.patient(), self._translated():
            self._open().execute(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0;"
                " SET LOCAL idle_in_transaction_session_timeout = 0"
            )
            try:
                yield
            finally:
                self._roll_back()

    def stream(
        self, text: str, values: Sequence[Any] | Mapping[str, Any]
    ) -> Iterator[tuple[Any, ...]]:
        with self._translated():
            query = self._ours(text)
            yield from self._open().cursor().stream(query, values, size=STREAM_ROWS)

    def put(self, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._translated(), self._open().cursor().copy(self._ours(text)) as into:
            for row in rows:
                into.write_row(row)

    def run_sql(self, text: str) -> list[Any]:
        """For this package's own upkeep, never for a verb."""
        with self._translated():
            cursor = self._open().execute(self._ours(text))
            return cursor.fetchall() if cursor.description else []

    def ask(self, text: str, values: Mapping[str, Any]) -> list[Any]:
        """The same with values, behind what was put off."""
        with self._translated():
            cursor = self._run(self._ours(text), dict(values))
            return cursor.fetchall() if cursor.description else []

    def _ours(self, text: str) -> bytes:
        return in_schema(text, self.namespace).encode()

    def scrub(self) -> bool:
        """The server's vacuum overwrites dead rows in its own time."""
        return False

    def problems(self) -> list[str]:
        """The server looks after its own files; what it does not clear away is said."""
        with self._translated():
            left = self._migrating().leftovers()
        return [f"index {name} is incomplete: penstock db migrate drops it" for name in left]


def array_of(ids: Iterable[int]) -> str:
    """As the server writes arrays: the driver would look at each id, which takes as long as all else."""
    return f"{{{','.join(map(str, ids))}}}"
