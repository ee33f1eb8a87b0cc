"""The planner goes on from where it was, steps aside, and makes only what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Snooze
from penstock.jobs.run import RunKind, RunOptions
from penstock.pipeline import planner
from penstock.pipeline.attempt import Attempt, StepRun
from penstock.pipeline.planner import CURSOR, plan_windows
from penstock.testing import VirtualClock

DAY_S = 86_400.0
JOB = Claimed(1, 1, 1, planner.PLANNER, "root", 1, 0, 0, 0, False, "null")


@dataclass
class Surveyed:
    """What a planner is told, and what it has committed."""

    cursor: Any = None
    waiting: list[int] = field(default_factory=lambda: [0] * 100)
    is_covered: Sequence[tuple[str, float, float]] = ()
    committed: list[int] = field(default_factory=list)

    async def cursors(self, job: Claimed) -> dict[str, Any]:
        return {} if self.cursor is None else {CURSOR: self.cursor}

    async def backlog(self, job: Claimed) -> tuple[int, int]:
        return self.waiting.pop(0), 10

    async def covered(
        self, job: Claimed, partitions: Sequence[str], start_at: float, end_at: float
    ) -> list[tuple[str, float, float]]:
        return [c for c in self.is_covered if c[1] < end_at and c[2] > start_at]


def attempt_of(surveyed: Surveyed, **options: Any) -> Attempt:
    wanted = RunOptions(start_at=0.0, end_at=10 * DAY_S, partitions=("a",), **options)
    effects = Effects()

    async def commit() -> None:
        taken = effects.take()
        surveyed.cursor = msgspec.json.decode(taken.marks[-1].cursor)
        surveyed.committed.append(surveyed.cursor["next"])

    return cast(
        Attempt,
        SimpleNamespace(
            services=surveyed,
            run=StepRun(1, RunKind.BACKFILL, wanted),
            job=JOB,
            clock=VirtualClock(0.0),
            effects=effects,
            commit=commit,
        ),
    )


def planned(attempt: Attempt) -> list[int]:
    """The days that it plans."""

    async def collect() -> list[int]:
        return [int(unit["from"][8:10]) - 1 async for unit in plan_windows(attempt)]

    return asyncio.run(collect())


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "CHUNK_UNITS", 4)
    monkeypatch.setattr(planner, "AHEAD_JOBS", 6)


def test_every_chunk_is_committed_with_how_far_it_goes() -> None:
    surveyed = Surveyed()

    assert planned(attempt_of(surveyed)) == list(range(10))
    assert surveyed.committed == [4, 8, 10]


def test_planner_goes_on_from_its_cursor() -> None:
    surveyed = Surveyed(cursor={"next": 8, "ended": 5, "at": 1.0})

    assert planned(attempt_of(surveyed)) == [8, 9]
    assert planned(attempt_of(surveyed)) == []


def test_planner_steps_aside_while_enough_is_queued() -> None:
    surveyed = Surveyed(waiting=[0, 6])
    with pytest.raises(Snooze, match="6 units queued ahead"):
        planned(attempt_of(surveyed))
    assert surveyed.committed == [4]

    surveyed.waiting = [2, 2, 2]
    assert planned(attempt_of(surveyed)) == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("ended", "since_s", "delay_s"),
    [(0, 10.0, 1.0), (30, 10.0, 1.0), (1, 100.0, 30.0), (10_000, 1.0, 0.2)],
)
def test_planner_comes_back_when_about_half_is_done(
    ended: int, since_s: float, delay_s: float
) -> None:
    assert planner._pause_s(6, ended, since_s) == pytest.approx(delay_s)


def test_only_what_is_missing_is_planned() -> None:
    covered = [("a", 0.0, 3 * DAY_S), ("a", 5 * DAY_S, 9 * DAY_S)]
    surveyed = Surveyed(is_covered=covered)

    assert planned(attempt_of(surveyed, is_missing_only=True)) == [3, 4, 9]
    assert surveyed.committed == [4, 8, 10]
