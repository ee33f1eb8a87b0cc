"""What Penstock raises by itself starts runs: one each, of the source that it is about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.leader.signals import SignalChore
from penstock.engine.worker.calls import Answer
from penstock.engine.worker.streams import Streams
from penstock.errors import StoreError
from penstock.gates.admission import Report
from penstock.gates.project_terms import Terms
from penstock.gates.rates import RateRequest
from penstock.jobs.emptiness import ANOMALY, ZERO_YIELD
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.settings.budget import Bound
from penstock.store.rows import RunRow
from tests.contract.scenes import World, a_save, done
from tests.contract.schedule_bench import Bench

SHOP = "acme.com"
LISTENING = Plan((PlannedStage("listen", "run"),))
DAY_S = 86_400.0


class Listening(Bench):
    """Two sources that wait for the same signal, of which it will be about the first."""

    def __init__(self, world: World, folder: Path, name: str) -> None:
        waits = {"schedule": {"name": "ask", "signal": name}}
        self.name = name
        super().__init__(world, folder, {SHOP: waits, "other.org": waits})

    def write(self, sources: dict[str, dict[str, Any]]) -> None:
        super().write(sources)
        self.signals = SignalChore(self.project, self.world.store)
        self.signals.plan()
        self.world.source("other.org")

    def job(self, kind: RunKind = RunKind.FULL) -> Claimed:
        """The one job of a run that begins now."""
        key = f"{len(self.runs())}"
        self.world.start(LISTENING, SHOP, key, kind)
        return self.world.one()

    def run_bringing(self, records: int, kind: RunKind = RunKind.FULL) -> int:
        job = self.job(kind)
        saves = [a_save(f"r{number}", {"of": job.run_id}) for number in range(records)]
        self.world.turn("w", done(job, saves=saves))
        return job.run_id

    def raised(self) -> list[Any]:
        return [each for each in self.world.store.signals.after() if each.name == self.name]

    def started(self) -> RunRow:
        """The one run that was started, of what was raised once."""
        [run_id] = self.signals.look()
        assert self.signals.look() == []
        run = self.world.run(run_id)
        assert run.source == SHOP, "and none of the other source"
        assert run.options.signal is not None
        [signal] = self.raised()
        assert run.options.signal.id == signal.id
        assert run.options.signal.data == signal.data
        return run


@pytest.fixture
def listening(world: World, tmp_path: Path) -> Callable[[str], Listening]:
    return lambda name: Listening(world, tmp_path, name)


def test_run_of_which_nothing_came_though_it_usually_yields(
    listening: Callable[[str], Listening],
) -> None:
    b = listening(ZERO_YIELD)
    for _ in range(3):
        b.run_bringing(2)
    empty = b.run_bringing(0)

    run = b.started()
    assert run.options.signal is not None
    assert run.options.signal.run == empty
    assert run.options.signal.data["runs_before"] == 3


def test_run_that_brings_less_than_half_of_what_is_usual(
    listening: Callable[[str], Listening],
) -> None:
    b = listening(ANOMALY)
    for records in (20, 22, 21):
        b.run_bringing(records)
    b.run_bringing(11)
    b.run_bringing(3, RunKind.INCREMENTAL)
    assert b.raised() == [], "half is no fall, and other kinds have their own idea of what is usual"
    fallen = b.run_bringing(10)

    run = b.started()
    assert run.options.signal is not None
    assert run.options.signal.run == fallen
    reason = "it brought 10 records, where 20 are usual"
    assert run.options.signal.data == {
        "reason": reason, "brought": 10, "usual": 20.5, "runs_before": 4,
    }  # fmt: skip
    assert b.world.run(fallen).state == "completed", "what it brought is good"
    [event] = [e for e in b.world.store.journal.events(run_id=fallen) if e.kind == ANOMALY]
    assert event.detail == reason


def test_pages_that_are_as_they_were_are_no_fall(listening: Callable[[str], Listening]) -> None:
    b = listening(ANOMALY)
    for _ in range(3):
        b.run_bringing(20)
    b.world.start_with_pages(13, key="unchanged")
    changed, *others = b.world.claim()
    saves = [a_save(f"r{number}", {"of": "it"}) for number in range(2)]
    ends = [
        Settlement(job.id, job.attempt, JobState.SKIPPED, reason="304", skip="unchanged")
        for job in others
    ]
    b.world.turn("w", done(changed, saves=saves), *ends)
    assert b.raised() == []


def broken(*_: Any) -> bool:
    raise StoreError("the disk is full")


def test_stream_that_was_away_for_longer_than_its_gap(
    listening: Callable[[str], Listening], monkeypatch: pytest.MonkeyPatch
) -> None:
    b = listening("gap.found")
    filled: list[tuple[float, float]] = []
    job = b.job(RunKind.STREAM)
    store = b.world.store

    async def calls(call: Callable[[], Answer]) -> Answer:
        return call()

    async def listen() -> None:
        streams = Streams("w", store, calls, lambda _, start, end: filled.append((start, end)))
        await streams.open(job, 60.0)
        streams.close(job)

    alive_at = b.world.clock.now()
    asyncio.run(listen())
    b.world.clock.advance(50)
    assert b.raised() == []
    b.world.clock.advance(50)
    with monkeypatch.context() as patch:
        patch.setattr(store.jobs, "beat_stream", broken)
        with pytest.raises(StoreError):
            asyncio.run(listen())
    asyncio.run(listen())
    asyncio.run(listen())

    b.world.turn("w", done(job))
    run = b.started()
    assert run.options.signal is not None
    gap = (alive_at, alive_at + 100)
    assert (run.options.signal.data["start_at"], run.options.signal.data["end_at"]) == gap
    assert set(filled) == {gap}, "whoever fills it does so once for each gap"


def test_budget_that_begins_anew(listening: Callable[[str], Listening]) -> None:
    b = listening("budget.reset")
    bound = Bound(f"source:{SHOP}", "requests", "day", 2)
    want = RateRequest(SHOP, None, "api.example", 7, 3000, 20.0, Terms((bound,)))
    b.world.store.hosts.reserve([want, want], Report("w"))
    b.world.store.budgets.renew([bound])
    assert b.raised() == []

    b.world.clock.advance(DAY_S)
    b.world.store.budgets.renew([bound])
    b.world.store.budgets.renew([bound])

    run = b.started()
    assert run.options.signal is not None
    assert run.options.signal.source == SHOP
