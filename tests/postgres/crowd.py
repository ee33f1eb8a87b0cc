"""A crowd: many clients with a store each, on the database's own clock, doing everything at once.

What each of them does is chosen by a seed. Beside them the database itself keeps watch: a trigger writes
down whenever more jobs of a lane run than its limits allow, and a sampler looks for transactions that idle.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import psycopg

from penstock.clock import SystemClock
from penstock.errors import Refused, StoreError, UsageError
from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.gates.rates import RateRequest
from penstock.jobs.effects import Effects, Mark, Note, Raised, Rejection, Save
from penstock.jobs.job import Claimed, JobState, NewJob
from penstock.jobs.outcome import Flush, Settlement
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.store.entries import EntryFilter
from penstock.store.jobs import JobFilter
from penstock.store.postgres.store import PostgresStore
from penstock.store.snapshots import Kept
from penstock.store.upkeep import Keep

CLOCK = SystemClock()
PLAN = Plan(
    (
        PlannedStage("discover", "run", is_required=True),
        PlannedStage("extract", "page", ("discover",)),
        PlannedStage("persist", "candidate", ("extract",)),
        PlannedStage("report", "run", ("persist",), is_gather=True),
    )
)
NEXT = {"discover": "extract", "extract": "persist"}
LIMITS = LaneLimits(concurrency=3, candidates=2)
SOURCES = [f"shop{number}.example" for number in range(4)]
RUN_KEYS = 3
ACTS_PER_KEY = 100
JOB_KEYS = 40
RECORD_KEYS = 25
PAYLOADS = 12
IDLE_S = 1.0
# What becomes of an attempt, how often, and where its job goes.
FATES = {"done": 70, "retried": 8, "throttled": 5, "quarantined": 6, "skipped": 5, "released": 6}
STATES = {
    "done": JobState.SUCCEEDED, "retried": JobState.WAITING, "throttled": JobState.WAITING,
    "quarantined": JobState.QUARANTINED, "skipped": JobState.SKIPPED, "released": JobState.QUEUED,
}  # fmt: skip

# A lane's claims are counted one transaction after another, whatever the store itself has locked.
WATCH = """
CREATE TABLE penstock.excess (source_id bigint, is_candidate boolean, running bigint);
CREATE FUNCTION penstock.count_lane() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  n bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(7, new.source_id::integer);
  SELECT count(*) INTO n FROM penstock.job
  WHERE state = 'running' AND source_id = new.source_id AND (unit = 'candidate') = (new.unit = 'candidate');
  IF n > (CASE WHEN new.unit = 'candidate' THEN {candidates} ELSE {concurrency} END) THEN
    INSERT INTO penstock.excess VALUES (new.source_id, new.unit = 'candidate', n);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER count_lane AFTER UPDATE ON penstock.job FOR EACH ROW
WHEN (new.state = 'running' AND old.state <> 'running') EXECUTE FUNCTION penstock.count_lane();

CREATE TABLE penstock.added (id bigint, run_id bigint, stage text);
CREATE FUNCTION penstock.note_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO penstock.added VALUES (new.id, new.run_id, new.stage);
  RETURN NULL;
END $$;
CREATE TRIGGER note_added AFTER INSERT ON penstock.job FOR EACH ROW EXECUTE FUNCTION penstock.note_added();
"""


def watch(url: str, limits: LaneLimits = LIMITS) -> None:
    """From now on the database writes down what must not be, and every job that is added."""
    ask(url, WATCH.format(candidates=limits.candidates, concurrency=limits.concurrency))


def ask(url: str, sql: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


class Idlers:
    """Looks again and again for transactions of this database that hold locks and do nothing."""

    def __init__(self, url: str) -> None:
        self.worst_s = 0.0
        self._url = url
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Idlers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._is_over.wait(0.05):
                row = connection.execute(
                    "SELECT coalesce(extract(epoch FROM max(clock_timestamp() - state_change)), 0)::float8"
                    " FROM pg_stat_activity WHERE datname = current_database()"
                    " AND state LIKE 'idle in transaction%'"
                ).fetchone()
                self.worst_s = max(self.worst_s, row[0] if row else 0.0)


@dataclass
class Seen:
    """What the crowd was told: it must all be there in the end."""

    signals: set[str] = field(default_factory=set)
    enqueued: set[int] = field(default_factory=set)
    settled: set[tuple[int, int]] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    acts: dict[str, int] = field(default_factory=dict)


class Client:
    """One of the crowd: a worker with an operator's rights and no plan."""

    def __init__(self, url: str, seed: int, seen: Seen, source_ids: Sequence[int]) -> None:
        self.store = PostgresStore(url, CLOCK)
        self.rng = random.Random(seed)
        self.seen = seen
        self.source_ids = source_ids
        self.limits = dict.fromkeys(source_ids, LIMITS)
        self.held: list[Claimed] = []
        self.flushes: dict[tuple[int, int], int] = {}
        self.name = ""
        self.register()

    def register(self) -> None:
        self.name = uuid.UUID(int=self.rng.getrandbits(128)).hex[:12]
        self.held, self.flushes = [], {}
        self.store.workers.register(self.name, "crowd", 1, "test")

    def close(self) -> None:
        self.store.close()

    def act(self) -> None:
        """One thing, at random; what is refused is refused, and any other error is noted."""
        acts, weights = zip(*ACTS.items(), strict=True)
        [act] = self.rng.choices(acts, weights)
        self.seen.acts[act.__name__] = self.seen.acts.get(act.__name__, 0) + 1
        try:
            act(self)
        except Refused:
            pass
        except StoreError as error:
            self.seen.errors.append(f"{act.__name__}: {error.message}")

    # The worker.

    def turn(self) -> None:
        ends: list[Claimed] = []
        rest: list[Claimed] = []
        for job in self.held:
            (ends if self.rng.random() < 0.7 else rest).append(job)
        saved: set[str] = set()
        written = [self._end(job, saved) for job in ends]
        flushed = [self._flush(job, saved) for job in rest if self.rng.random() < 0.3]
        kept = [self._kept(job) for job in self.held if self.rng.random() < 0.3]
        capacity = Capacity(self.rng.choice((0, 1, 4, 8)))
        turn = self.store.turn(self.name, [*flushed, *written], capacity, self.limits, kept)
        lost = set(turn.lost)
        ends_and_flushes: list[Settlement | Flush] = [*flushed, *written]
        for end in ends_and_flushes:
            if end.job_id not in lost:
                self.seen.signals |= {raised.data.decode() for raised in end.effects.signals}
        self.seen.settled |= {(e.job_id, e.attempt) for e in written if e.job_id not in lost}
        self.held = [job for job in rest if job.id not in lost] + turn.claimed
        if turn.is_buried:
            assert not turn.claimed
            self.register()

    def _end(self, job: Claimed, saved: set[str]) -> Settlement:
        [fate] = self.rng.choices(list(FATES), list(FATES.values()))
        effects = self._effects(job, saved) if fate == "done" else Effects()
        host = f"host{self.rng.randrange(3)}.example" if fate == "throttled" else ""
        return Settlement(
            job.id,
            job.attempt,
            state=STATES[fate],
            delay_s=self.rng.uniform(0, 0.05),
            spends_try=fate in ("retried", "quarantined"),
            is_throttle=fate == "throttled",
            reason=fate,
            error="broken" if fate in ("retried", "quarantined") else "",
            cause=f"cause-{self.rng.randrange(4)}" if fate in ("retried", "quarantined") else "",
            useful_for_s=self.rng.choice((None, 0.01, 60.0)),
            closes_host=host,
            closes_for_s=0.02,
            effects=effects,
        )

    def _flush(self, job: Claimed, saved: set[str]) -> Flush:
        fence = (job.id, job.attempt)
        self.flushes[fence] = number = self.flushes.get(fence, 0) + 1
        return Flush(*fence, self._effects(job, saved), number)

    def _effects(self, job: Claimed, saved: set[str]) -> Effects:
        children = self._children(job.stage)
        saves = [self._save(key) for key in self._keys(RECORD_KEYS, 4) if key not in saved]
        saved |= {
            save.key for save in saves
        }  # a second one in the same turn would leave no version
        signal = uuid.UUID(int=self.rng.getrandbits(128)).hex
        marks = [Mark(f"part{self.rng.randrange(3)}", b'"here"')]
        raised = [Raised("gap", msgspec.json.encode(signal))]
        return Effects(
            children=children,
            saves=saves,
            marks=marks,
            signals=raised,
            notes=[Note("noted")],
            rejections=[Rejection("rejected", "no")],
        )

    def _children(self, stage: str) -> list[NewJob]:
        below = NEXT.get(stage)
        if below is None:
            return []
        return [NewJob(below, key, b"{}", 5) for key in self._keys(JOB_KEYS, 5)]

    def _save(self, key: str) -> Save:
        data = msgspec.json.encode({"v": self.rng.getrandbits(64)})
        return Save("offer" if key.endswith("7") else "product", key, data, None, "replace")

    def _keys(self, among: int, most: int) -> list[str]:
        count = self.rng.randrange(most)
        return [f"key-{number}" for number in self.rng.sample(range(among), count)]

    def _kept(self, job: Claimed) -> Kept:
        payload = self.rng.randrange(PAYLOADS)
        place = (f"hash-{payload}", f"segment-{payload % 4}", payload, 1)
        snapshot_id = self.rng.getrandbits(62)
        return Kept(snapshot_id, job.id, job.run_id, "http://a.test/", 200, {}, 0.0, *place)

    def beat(self) -> None:
        self.store.workers.beat(self.name)
        self.store.workers.expired()

    def leave(self) -> None:
        self.store.workers.sign_off(self.name)
        self.register()

    def bury(self) -> None:
        """Somebody, perhaps itself, perhaps in the middle of its turn."""
        worker = self.rng.choice(self.store.workers.all()).id
        self.store.workers.bury(worker, "chosen")
        if worker == self.name:
            self.register()

    # The operator.

    def start_run(self) -> None:
        source_id = self.rng.choice(self.source_ids)
        # The same few keys for a while, then others: runs end, and there must be new ones.
        period = sum(self.seen.acts.values()) // ACTS_PER_KEY
        key = f"run-{period + self.rng.randrange(RUN_KEYS)}"
        self.store.runs.start(source_id, RunKind.FULL, PLAN, "v1", key=key, actor="crowd")

    def enqueue(self) -> None:
        run_id = self._run()
        stage = self.rng.choice(("extract", "persist"))
        jobs = [NewJob(stage, key, b"{}", 5) for key in self._keys(JOB_KEYS, 8)]
        if run_id and jobs:
            answers = self.store.jobs.enqueue(run_id, jobs)
            self.seen.enqueued |= {answer.job_id for answer in answers if answer.is_new}

    def cancel_run(self) -> None:
        if run_id := self._run():
            self.store.runs.cancel(run_id, "crowd", "at random")

    def cancel_job(self) -> None:
        if job_id := self._job(JobState.QUEUED, JobState.RUNNING, JobState.WAITING):
            self.store.jobs.cancel(job_id, "crowd", "at random")

    def retry(self) -> None:
        if job_id := self._job(JobState.QUARANTINED, JobState.WAITING):
            self.store.jobs.retry(job_id, "crowd", "at random")

    def retry_failed(self) -> None:
        if run_id := self._run():
            self.store.runs.retry_failed(run_id, "crowd", "at random")

    def release(self) -> None:
        for _ in self.store.quarantine.release(self._entries(), "crowd", "at random"):
            pass

    def discard(self) -> None:
        for _ in self.store.quarantine.discard(self._entries(), "crowd", "at random"):
            pass

    def expire(self) -> None:
        self.store.quarantine.expire(0.5, self.rng.choice((3, 500)))

    def _entries(self) -> EntryFilter:
        if self.rng.random() < 0.5:
            return EntryFilter(run_id=self._run())
        return EntryFilter(cause=f"cause-{self.rng.randrange(4)}")

    def steer_run(self) -> None:
        if run_id := self._run():
            steer = self.rng.choice((self.store.runs.pause, self.store.runs.resume))
            steer(run_id, "crowd", "at random")

    def steer_source(self) -> None:
        steer = self.rng.choice((self.store.sources.pause, self.store.sources.resume))
        steer(self.rng.choice(self.source_ids), "crowd", "at random")

    def steer_job(self) -> None:
        """Set one aside, or put it back."""
        if self.rng.random() < 0.5:
            if job_id := self._job(JobState.QUEUED, JobState.WAITING):
                self.store.jobs.hold(job_id, "crowd", "at random")
        elif job_id := self._job(JobState.HELD):
            self.store.jobs.unhold(job_id, "crowd", "at random")

    def maintain(self) -> None:
        steer = self.rng.choice(
            (self.store.sources.hold, self.store.sources.unhold, self.store.sources.unhold)
        )
        steer(self.rng.choice(("", *SOURCES)), "crowd", "at random")

    def continue_run(self) -> None:
        if run_id := self._run():
            self.store.runs.continue_(run_id, PLAN, "v2", "crowd", "at random")

    def explain(self) -> None:
        self.store.explanation.explain(self.limits, Capacity(50), source=self.rng.choice(SOURCES))
        if job_id := self._job(JobState.QUEUED, JobState.WAITING):
            with suppress(UsageError):  # it may have been dropped meanwhile
                self.store.explanation.explain(self.limits, Capacity(50), job_id=job_id)

    # The clockwork.

    def sweep(self) -> None:
        self.store.runs.sweep_cancelled(self.rng.choice((1, 5, 2000)))

    def prune(self) -> None:
        self.store.upkeep.prune(Keep(0.05, 3600.0, None, 0.05), self.rng.choice((3, 1000)))
        self.store.snapshots.drop_unused_payloads()

    def pace(self) -> None:
        keys = self.rng.sample(SOURCES, 2)
        self.store.hosts.reserve([RateRequest(key, 1000.0) for key in keys])

    def look(self) -> None:
        """Everything that is shown is whole, whatever happens meanwhile."""
        self.store.overview()
        self.store.sources.all()
        self.store.runs.newest()
        self.store.journal.events(limit=20)
        self.store.records.collections()

    def _run(self) -> int | None:
        runs = self.store.runs.newest(limit=30)
        return self.rng.choice(runs).id if runs else None

    def _job(self, *states: JobState) -> int | None:
        wanted = JobFilter(states=states, limit=200, after_id=self.rng.randrange(400))
        jobs = self.store.jobs.find(wanted)
        return self.rng.choice(jobs).id if jobs else None


ACTS: dict[Callable[[Client], None], int] = {
    Client.turn: 60, Client.enqueue: 8, Client.start_run: 4, Client.beat: 3, Client.leave: 1,
    Client.bury: 1, Client.cancel_run: 1, Client.cancel_job: 3, Client.retry: 3,
    Client.release: 2, Client.discard: 1, Client.expire: 1,
    Client.retry_failed: 2, Client.steer_run: 3, Client.steer_source: 3, Client.sweep: 3,
    Client.prune: 2, Client.pace: 2, Client.look: 3,
    Client.steer_job: 3, Client.maintain: 2, Client.continue_run: 2, Client.explain: 3,
}  # fmt: skip


def let_loose(url: str, clients: int, acts: int, seed: int) -> Seen:
    """So many clients, so many acts each, all at once; answers with what they were told."""
    seen = Seen()
    with closing(PostgresStore(url, CLOCK)) as store:
        ids = list(store.sources.ensure(SOURCES).values())

    def live(number: int) -> None:
        with closing(Client(url, seed * 1000 + number, seen, ids)) as client:
            for _ in range(acts):
                client.act()

    in_threads([partial(live, number) for number in range(clients)])
    return seen


def finish(url: str) -> None:
    """Let everything that is open come to its end, in good order."""
    with closing(PostgresStore(url, CLOCK)) as store:
        for worker in store.workers.all():
            store.workers.sign_off(worker.id)
        for source in store.sources.all():
            store.sources.resume(source.id, "test", "")
        for held in store.sources.holds():
            store.sources.unhold(held.scope, "test", "")
        for job in store.jobs.find(JobFilter(states=(JobState.HELD,), limit=100_000)):
            store.jobs.unhold(job.id, "test", "")
        for run in store.runs.newest(limit=10_000):
            if run.state == "draft":
                store.runs.start_draft(run.id, "test", "")
        for run in store.runs.newest(active_only=True, limit=100_000):
            store.runs.resume(run.id, "test", "")
        store.workers.register("last", "here", 1, "test")
        limits = {source.id: LIMITS for source in store.sources.all()}
        ends: list[Settlement] = []
        while ends or store.runs.newest(active_only=True, limit=1):
            turn = store.turn("last", ends, Capacity(100), limits)
            ends = [Settlement(job.id, job.attempt, JobState.SUCCEEDED) for job in turn.claimed]
        while store.runs.sweep_cancelled():
            pass
        store.workers.sign_off("last")


def in_threads(acts: Sequence[Callable[[], None]]) -> None:
    """All at once; the first exception of any of them is raised."""
    failures: list[BaseException] = []

    def attempt(act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:  # told by the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=attempt, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def a_line(parties: int) -> threading.Barrier:
    """Everybody crosses it in the same moment, again and again."""
    return threading.Barrier(parties, timeout=60)


@contextmanager
def letting_go(line: threading.Barrier) -> Iterator[None]:
    """Who fails lets the others go."""
    try:
        yield
    except BaseException:
        line.abort()
        raise
