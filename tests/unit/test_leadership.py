"""Leadership and ticks under virtual time: one leader at a time, each tick once, whoever sleeps and wakes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.engine.leader.leadership import ASK_S, MARGIN_S, TERM_S, Leadership
from penstock.engine.leader.scheduler import Scheduler
from penstock.errors import StoreUnreachable
from penstock.project import Project
from penstock.store.leaders import Term
from penstock.store.schedule_rows import DueRow, Passed, Passing
from penstock.store.sqlite.store import SqliteStore
from penstock.store.store import Store
from penstock.testing import VirtualClock

HOSTS = ("a", "b", "c")


class HostClock:
    """A host's clocks: the time of day is whatever it was set to, the other runs, a little fast or slow."""

    def __init__(self, true: VirtualClock, pace: float = 1.0) -> None:
        self._true = true
        self._pace = pace
        self.set_by = 0.0

    def now(self) -> float:
        return self._true.now() + self.set_by

    def monotonic(self) -> float:
        return 1000.0 + self._true.monotonic() * self._pace


class Line:
    """The way from one host to the store: slow, lossy, or down."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self._store = store
        self._clock = clock
        self.leaders = self
        self.there_s = self.back_s = 0.0
        self.is_lost = False

    def lead(self, name: str, holder: str, ttl_s: float, term: int = 0) -> Term | None:
        self._clock.advance(self.there_s)
        answer = self._store.leaders.lead(name, holder, ttl_s, term)
        self._clock.advance(self.back_s)
        if self.is_lost:
            raise StoreUnreachable("the answer was lost")
        return answer

    def resign(self, name: str, holder: str, term: int) -> bool:
        return self._store.leaders.resign(name, holder, term)


class Elections(RuleBasedStateMachine):
    """Hosts that ask, answer late, lose answers, resign, sleep and have wrong clocks."""

    @initialize(paces=st.tuples(*[st.floats(0.95, 1.05)] * len(HOSTS)))
    def begin(self, paces: tuple[float, ...]) -> None:
        self.folder = TemporaryDirectory()
        self.clock = VirtualClock()
        self.store = SqliteStore(Path(self.folder.name) / "penstock.db", self.clock)
        self.clocks = {
            name: HostClock(self.clock, pace) for name, pace in zip(HOSTS, paces, strict=True)
        }
        self.lines = {name: Line(self.store, self.clock) for name in HOSTS}
        self.leads = {
            name: Leadership(self.lines[name], "scheduler", name, self.clocks[name])  # type: ignore[arg-type]
            for name in HOSTS
        }
        self.terms: dict[int, str] = {}

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()

    @rule(
        host=st.sampled_from(HOSTS),
        there_s=st.sampled_from([0.0, 0.1, 3.0, 12.0]),
        back_s=st.sampled_from([0.0, 0.1, 3.0, 12.0]),
        is_lost=st.booleans(),
    )
    def ask(self, host: str, there_s: float, back_s: float, is_lost: bool) -> None:
        line = self.lines[host]
        line.there_s, line.back_s, line.is_lost = there_s, back_s, is_lost
        try:
            self.leads[host].seek()
        except StoreUnreachable:
            assert is_lost
        for row in self.store.leaders.all():
            assert self.terms.setdefault(row.term, row.holder) == row.holder, "a term changed hands"

    @rule(host=st.sampled_from(HOSTS))
    def resign(self, host: str) -> None:
        self.leads[host].resign()

    @rule(seconds=st.sampled_from([0.1, ASK_S, TERM_S - MARGIN_S, TERM_S, 3600.0]))
    def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(host=st.sampled_from(HOSTS), seconds=st.sampled_from([-3600.0, 3600.0]))
    def set_clock(self, host: str, seconds: float) -> None:
        self.clocks[host].set_by += seconds

    @invariant()
    def at_most_one_is_trusted_and_the_store_agrees(self) -> None:
        trusted = [name for name in HOSTS if self.leads[name].is_trusted()]
        assert len(trusted) <= 1
        for name in trusted:
            [row] = self.store.leaders.all()
            assert (row.holder, row.term) == (name, self.leads[name].term)
            assert row.expires_at > self.clock.now()


Elections.TestCase.settings = settings(max_examples=25, stateful_step_count=30)
TestElections = Elections.TestCase


def leadership(store: Store, clock: VirtualClock, holder: str) -> Leadership:
    return Leadership(store, "scheduler", holder, clock)


@contextmanager
def a_store(folder: Path, clock: VirtualClock) -> Iterator[SqliteStore]:
    store = SqliteStore(folder / "penstock.db", clock)
    yield store
    store.close()


def test_trust_counts_from_before_the_question_was_sent(tmp_path: Path) -> None:
    clock = VirtualClock()
    with a_store(tmp_path, clock) as store:
        line = Line(store, clock)
        line.there_s = line.back_s = (TERM_S - MARGIN_S) / 2
        leads = Leadership(line, "scheduler", "a", clock)  # type: ignore[arg-type]
        assert not leads.seek()
        assert store.leaders.all()[0].holder == "a"


def test_leader_that_is_stuck_is_followed_within_its_term(tmp_path: Path) -> None:
    clock = VirtualClock()
    with a_store(tmp_path, clock) as store:
        stuck, other = leadership(store, clock, "stuck"), leadership(store, clock, "other")
        assert stuck.seek()
        assert not other.seek()
        waited_s = 0.0
        while not other.seek():
            clock.advance(ASK_S)
            waited_s += ASK_S
        assert waited_s <= TERM_S + ASK_S
        assert not stuck.is_trusted()
        assert not stuck.seek()


def test_leader_that_resigns_is_followed_at_once(tmp_path: Path) -> None:
    clock = VirtualClock()
    with a_store(tmp_path, clock) as store:
        first, second = leadership(store, clock, "first"), leadership(store, clock, "second")
        assert first.seek()
        assert first.resign()
        assert not first.is_trusted()
        assert second.seek()
        assert second.term == 2


# Ticks.

SOURCE = """
project: ticks
sources:
  clock: {pipeline: "steps:ticks", schedule: {every: 1s}}
"""
STEPS = """
from penstock import Pipeline

ticks = Pipeline("ticks")


@ticks.step(unit="run")
async def tick(ctx):
    pass
"""


class Sleepy:
    """A scheduler's view of the store. Between reading a tick and firing it, it may sleep, and others act."""

    def __init__(self, store: Store, sleep: Callable[[], None]) -> None:
        self._store = store
        self.schedules = SleepySchedules(store, sleep)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


class SleepySchedules:
    def __init__(self, store: Store, sleep: Callable[[], None]) -> None:
        self._schedules, self._sleep = store.schedules, sleep

    def __getattr__(self, name: str) -> object:
        return getattr(self._schedules, name)

    def due(self, now: float) -> list[DueRow]:
        found = self._schedules.due(now)
        self._sleep()
        return found

    def pass_ticks(self, passing: Passing) -> Passed | None:
        self._sleep()
        return self._schedules.pass_ticks(passing)


class Crowd:
    """Four schedulers that all take themselves for the leader, and a fifth that never sleeps."""

    def __init__(self, folder: Path, seed: int) -> None:
        (folder / "penstock.yaml").write_text(SOURCE)
        (folder / "steps.py").write_text(STEPS)
        self.clock = VirtualClock()
        self.rng = random.Random(seed)
        self.project = Project.open(folder)
        self.project.clock = self.clock
        self.store = self.project.connection
        self.depth = self.rounds = 0
        self.schedulers = []
        for _ in range(4):
            view = Sleepy(self.store, self.maybe_sleep)
            self.schedulers.append(Scheduler(self.project, view))  # type: ignore[arg-type]
        self.awake = Scheduler(self.project, self.store)
        self.awake.plan()

    def round(self) -> None:
        """A second passes, and some of them look at the clock, in any order."""
        self.clock.advance(1.0)
        self.rounds += 1
        for scheduler in self.rng.sample(self.schedulers, self.rng.randint(1, 4)):
            scheduler.tick()

    def maybe_sleep(self) -> None:
        if self.depth < 3 and self.rng.random() < 0.3:
            self.depth += 1
            if self.rng.random() < 0.5:
                self.rng.choice(self.schedulers).tick()
            else:
                # What is due now is fired before time goes on: a tick that nobody fired is made up for later.
                self.awake.tick()
                self.round()
            self.depth -= 1

    def passed(self) -> tuple[int, int]:
        """How many ticks started a run, and how many were skipped because one had not ended."""
        [row] = self.store.schedules.all()
        ticks = self.store.schedules.ticks(row.source_id, row.name, 1_000_000)
        kinds = [event.kind for event in self.store.journal.events(after_id=0, limit=1_000_000)]
        outcomes = [tick.outcome for tick in ticks]
        assert outcomes.count("fired") == kinds.count("run.queued")
        assert {*outcomes} <= {"fired", "skipped"}
        return outcomes.count("fired"), outcomes.count("skipped")


@pytest.mark.parametrize(
    "ticks",
    [200, pytest.param(10_000, marks=[pytest.mark.torture, pytest.mark.timeout(1800)])],
)
def test_four_schedulers_fire_each_tick_once(tmp_path: Path, ticks: int) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    crowd = Crowd(tmp_path, seed)
    while crowd.rounds < ticks:
        crowd.round()
        for run in crowd.store.runs.newest(active_only=True):
            crowd.store.runs.cancel(run.id, "test", "")
    fired, skipped = crowd.passed()
    assert fired + skipped == crowd.rounds
    assert fired > ticks / 4
    crowd.project.close()
