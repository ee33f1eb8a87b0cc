"""The small world of the contract: a store on virtual time, and short words for what tests do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import apsw
import msgspec
import psycopg

from penstock.clock import Clock, SystemClock
from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.jobs.effects import Covered, Effects, Mark, Merge, Note, Raised, Rejection, Save
from penstock.jobs.job import Claimed, JobState, NewJob
from penstock.jobs.outcome import Flush, Settlement
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.store.jobs import Enqueued, JobFilter
from penstock.store.postgres.store import PostgresStore
from penstock.store.rows import JobRow, RunRow
from penstock.store.sqlite.store import SqliteStore
from penstock.store.store import Store
from penstock.store.turn.turn import Turn
from penstock.testing import VirtualClock

SITE = Plan(
    (
        PlannedStage("discover", "run", is_required=True),
        PlannedStage("extract", "page", ("discover",)),
        PlannedStage("persist", "candidate", ("extract",)),
    )
)
# A project whose pipeline does nothing.
PLAIN_STEPS = """
from penstock import Pipeline

plain = Pipeline("plain")


@plain.step(unit="run")
async def look(ctx):
    pass
"""


def write_project(folder: Path, place: Place, sources: Mapping[str, Any]) -> Path:
    """A project over a store of the contract; its sources have `PLAIN_STEPS` unless they say otherwise."""
    (folder / "steps.py").write_text(PLAIN_STEPS)
    store = f"sqlite:{place}" if isinstance(place, Path) else place
    each = {key: {"pipeline": "steps:plain", **more} for key, more in sources.items()}
    whole = {"project": "contract", "store": store, "sources": each}
    (folder / "penstock.yaml").write_text(msgspec.json.encode(whole).decode())
    return folder


WIDE = LaneLimits(concurrency=10_000, candidates=10_000)
Ends = Settlement | Flush


# A file, or the address of a server's database.
Place = Path | str


@dataclass(frozen=True)
class StoreKind:
    """One store that must keep the contract, and the few things a test does behind its back."""

    name: str
    open: Callable[[Place, Clock], Store]
    dump: Callable[..., dict[str, list[Any]]]
    tamper: Callable[[Place, str], None]
    breaking: Callable[[Place, str, str], AbstractContextManager[None]]
    watch: str
    is_shared: bool = False
    # Where this store writes what the first one writes there.
    stand_ins: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def open_sqlite(place: Place, clock: Clock) -> Store:
    return SqliteStore(Path(place), clock)


def dump_sqlite(path: Place, only: str = "") -> dict[str, list[Any]]:
    connection = apsw.Connection(str(path))
    every = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
    names = [only] if only else [name for (name,) in connection.execute(every)]
    found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}
    connection.close()
    return found


def tamper_sqlite(path: Place, sql: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    connection.close()


@contextmanager
def breaking_sqlite(path: Place, act: str, table: str) -> Iterator[None]:
    """While this lasts, every such act on this table fails."""
    tamper_sqlite(
        path,
        f"CREATE TRIGGER broken BEFORE {act} ON {table} BEGIN SELECT RAISE(ABORT, 'planted'); END",
    )
    try:
        yield
    finally:
        tamper_sqlite(path, "DROP TRIGGER broken")


WATCH_SQLITE = """
CREATE TABLE moved (what TEXT, id INTEGER, attempt INTEGER, leaves TEXT, enters TEXT);
CREATE TRIGGER watch_job AFTER UPDATE OF state ON job
BEGIN INSERT INTO moved VALUES ('job', old.id, old.attempt, old.state, new.state); END;
CREATE TRIGGER watch_run AFTER UPDATE OF state ON run
BEGIN INSERT INTO moved VALUES ('run', old.id, 0, old.state, new.state); END;
"""

SQLITE = StoreKind("sqlite", open_sqlite, dump_sqlite, tamper_sqlite, breaking_sqlite, WATCH_SQLITE)


def open_postgres(place: Place, clock: Clock) -> Store:
    """On virtual time, like the rest of the world; the database's own clock is tested apart."""
    return PostgresStore(str(place), clock, time=clock)


def dump_postgres(place: Place, only: str = "") -> dict[str, list[Any]]:
    with psycopg.connect(str(place), autocommit=True) as connection:
        names = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'penstock'::regnamespace"
            " AND %s IN ('', relname::text)",
            [only],
        ).fetchall()
        return {
            name: [
                tuple(row[:-1])
                for row in connection.execute(
                    f"SELECT t.*, t::text AS o FROM penstock.{name} t ORDER BY o"
                )
            ]
            for (name,) in names
        }


def tamper_postgres(place: Place, sql: str) -> None:
    with psycopg.connect(str(place), autocommit=True) as connection:
        connection.execute("SET search_path = penstock")
        connection.execute(sql.encode())


@contextmanager
def breaking_postgres(place: Place, act: str, table: str) -> Iterator[None]:
    """While this lasts, every such act on this table fails."""
    tamper_postgres(
        place,
        "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'planted'; END $$;"
        f"CREATE TRIGGER broken BEFORE {act} ON {table} FOR EACH ROW EXECUTE FUNCTION broken()",
    )
    try:
        yield
    finally:
        tamper_postgres(place, f"DROP TRIGGER broken ON {table}; DROP FUNCTION broken()")


WATCH_POSTGRES = """
CREATE TABLE moved (
  n bigint GENERATED ALWAYS AS IDENTITY, what text, id bigint, attempt integer, leaves text, enters text
);
CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  attempt integer := to_jsonb(old) ->> 'attempt';
BEGIN
  INSERT INTO penstock.moved (what, id, attempt, leaves, enters)
  VALUES (tg_table_name, old.id, coalesce(attempt, 0), old.state, new.state);
  RETURN new;
END $$;
CREATE TRIGGER watch AFTER UPDATE OF state ON job FOR EACH ROW EXECUTE FUNCTION watch();
CREATE TRIGGER watch AFTER UPDATE OF state ON run FOR EACH ROW EXECUTE FUNCTION watch();
"""

POSTGRES = StoreKind(
    "postgres",
    open_postgres,
    dump_postgres,
    tamper_postgres,
    breaking_postgres,
    WATCH_POSTGRES,
    is_shared=True,
    stand_ins={"run_stage": ("INSERT", "tally"), "run": ("INSERT", "tally")},
)
# The same by way of a pooler that gives each transaction another session.
POOLED = replace(POSTGRES, name="pgbouncer")
KINDS = {kind.name: kind for kind in (SQLITE, POSTGRES, POOLED)}


@dataclass
class World:
    """A store, its clock, and a worker called "w" that is registered from the start."""

    kind: StoreKind
    path: Place
    clock: VirtualClock = field(default_factory=VirtualClock)
    limits: dict[int, LaneLimits] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = self.kind.open(self.path, self.clock)
        self.register("w")

    @property
    def file(self) -> Path:
        """Where the store is a file."""
        assert isinstance(self.path, Path)
        return self.path

    def register(self, *names: str) -> None:
        for name in names:
            self.store.workers.register(name, "here", 1, "test")

    def source(self, key: str = "acme.com", limits: LaneLimits = WIDE) -> int:
        source_id = self.store.sources.ensure([key])[key]
        self.limits[source_id] = limits
        return source_id

    def start(
        self,
        plan: Plan = SITE,
        source: str = "acme.com",
        key: str = "first",
        kind: RunKind = RunKind.FULL,
        is_draft: bool = False,
    ) -> int:
        source_id = self.source(source)
        run_id, _ = self.store.runs.start(
            source_id,
            kind,
            plan,
            "v1",
            key=key,
            actor="test",
            reason="because",
            is_draft=is_draft,
        )
        return run_id

    def start_with_pages(self, count: int, source: str = "acme.com", key: str = "first") -> int:
        """A run whose discover has ended and that has this many pages queued."""
        [run_id] = self.start_all({source: count}, key)
        return run_id

    def start_all(self, counts: Mapping[str, int], key: str = "first") -> list[int]:
        """A run of each source, whose discover has ended and that has so many pages queued."""
        runs = {self.start(source=source, key=key): count for source, count in counts.items()}
        roots = [job for job in self.claim() if job.run_id in runs]
        self.turn("w", *(done(root, children=pages(runs[root.run_id])) for root in roots))
        return list(runs)

    def turn(
        self,
        worker: str = "w",
        *ends: Ends,
        capacity: Capacity | None = None,
        limits: Mapping[int, LaneLimits] | None = None,
    ) -> Turn:
        room = capacity or Capacity(0)
        return self.store.turn(worker, ends, room, self.limits if limits is None else limits)

    def claim(self, worker: str = "w", slots: int = 1000) -> list[Claimed]:
        return self.turn(worker, capacity=Capacity(slots)).claimed

    def one(self, worker: str = "w") -> Claimed:
        [job] = self.claim(worker, 1)
        return job

    def enqueue(self, run_id: int, *keys: str, stage: str = "extract") -> list[Enqueued]:
        return self.store.jobs.enqueue(run_id, [a_job(key, stage=stage) for key in keys])

    def job(self, job_id: int) -> JobRow:
        found = self.store.jobs.get(job_id)
        assert found is not None
        return found

    def run(self, run_id: int) -> RunRow:
        found = self.store.runs.get(run_id)
        assert found is not None
        return found

    def jobs(self, run_id: int, *states: JobState, stage: str | None = None) -> list[JobRow]:
        return self.store.jobs.find(
            JobFilter(run_id=run_id, states=states, stage=stage, limit=100_000)
        )

    def kinds(self, job_id: int | None = None, run_id: int | None = None) -> list[str]:
        found = self.store.journal.events(run_id=run_id, job_id=job_id, limit=100_000)
        return [event.kind for event in found]

    def dump(self) -> dict[str, list[Any]]:
        return self.kind.dump(self.path)

    def tamper(self, sql: str) -> None:
        self.kind.tamper(self.path, sql)

    def watch(self) -> None:
        """From now on, write down every move of a job or run, whichever statement makes it."""
        self.tamper(self.kind.watch)

    def moves(self) -> list[tuple[str, int, int, str, str]]:
        """(what, id, attempt, leaves, enters), in order."""
        moved = self.kind.dump(self.path, "moved")["moved"]
        return [row[-5:] for row in sorted(moved)] if self.kind.is_shared else moved

    def breaking(self, act: str, table: str) -> AbstractContextManager[None]:
        act, table = self.kind.stand_ins.get(table, (act, table))
        return self.kind.breaking(self.path, act, table)

    def close(self) -> None:
        problems = self.store.upkeep.check()
        self.store.close()
        assert problems == [], "every test leaves a sound store behind"


def a_job(key: str, item: Any = None, stage: str = "extract", priority: int = 5) -> NewJob:
    return NewJob(stage, key, msgspec.json.encode(item), priority)


def pages(count: int, priority: int = 5) -> list[NewJob]:
    return [a_job(f"page-{number:06}", {"n": number}, priority=priority) for number in range(count)]


def a_save(
    key: str,
    data: Any,
    merge: Merge = "replace",
    score: float | None = None,
    snapshot: int | None = None,
) -> Save:
    return Save(
        "product", key, msgspec.json.encode(data, order="deterministic"), score, merge, snapshot
    )


def done(
    job: Claimed,
    children: Sequence[NewJob] = (),
    saves: Sequence[Save] = (),
    effects: Effects | None = None,
) -> Settlement:
    wanted = effects or Effects(children=list(children), saves=list(saves))
    return Settlement(job.id, job.attempt, JobState.SUCCEEDED, effects=wanted)


def retried(job: Claimed, delay_s: float) -> Settlement:
    return Settlement(
        job.id, job.attempt, JobState.WAITING, delay_s, spends_try=True, reason="x", error="again"
    )


def snoozed(job: Claimed, delay_s: float) -> Settlement:
    return Settlement(job.id, job.attempt, JobState.WAITING, delay_s, reason="not yet")


def throttled(job: Claimed, delay_s: float, host: str = "acme.com") -> Settlement:
    return Settlement(
        job.id, job.attempt, JobState.WAITING, delay_s, is_throttle=True, reason="slow down",
        closes_host=host, closes_for_s=delay_s,
    )  # fmt: skip


def quarantined(job: Claimed, error: str = "broken") -> Settlement:
    return Settlement(
        job.id, job.attempt, JobState.QUARANTINED, spends_try=True, reason="data", error=error
    )


def skipped(job: Claimed) -> Settlement:
    return Settlement(job.id, job.attempt, JobState.SKIPPED, reason="nothing there")


def released(job: Claimed) -> Settlement:
    return Settlement(job.id, job.attempt, JobState.QUEUED, reason="drained")


def everything(tag: str) -> Effects:
    """Every kind of effect an attempt can have."""
    return Effects(
        children=[a_job(f"child-{tag}", {"tag": tag})],
        saves=[a_save(f"record-{tag}", {"tag": tag}, score=0.5), a_save("shared", {"tag": tag})],
        marks=[Mark("inbox", msgspec.json.encode({"cursor": tag}))],
        signals=[Raised("gap", msgspec.json.encode({"tag": tag}))],
        notes=[Note(f"noted {tag}")],
        covered=[Covered(f"inbox-{tag}", 0.0, 86_400.0)],
        moments=[4_000_000_000.0],
        is_schema_verified=True,
        rejections=[Rejection("no_price", f"no price in {tag}"), Rejection("rejected", tag, 0.25)],
    )


def enqueue_elsewhere(kind: str, place: str, run_id: int, keys: Sequence[str]) -> list[int]:
    """In a thread or process of its own: enqueue these keys one small batch at a time."""
    store = KINDS[kind].open(place, SystemClock())
    ids: list[int] = []
    for first in range(0, len(keys), 50):
        answers = store.jobs.enqueue(run_id, [a_job(key) for key in keys[first : first + 50]])
        ids += [answer.job_id for answer in answers]
    store.close()
    return ids


def fill(world: World) -> None:
    """Something of each noun: two runs, three records, two partitions, a quarantined job, an open breaker."""
    world.start(source="acme.com")
    job = world.one()
    keys = ("blue one", "blue two", "https://acme.com/1")
    saves = [a_save(key, {}) for key in keys]
    marks = [Mark("eur", b"7"), Mark("usd", b"8")]
    world.turn("w", done(job, effects=Effects(saves=saves, marks=marks)))
    world.start(source="news")
    world.turn("w", msgspec.structs.replace(quarantined(world.one()), cause="no price"))
    world.store.breakers.open("host:cdn.example.com", 60, "me", "")
