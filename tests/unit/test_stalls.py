"""A rate holds whatever stood still meanwhile: a place that was missed is not made up for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from penstock.engine.worker.calls import Inline
from penstock.engine.worker.request_limiter import StoreRequestLimiter
from penstock.gates.project_terms import ProjectTerms, SourceTerms
from penstock.gates.rates import LATEST_S
from penstock.http.fetch import Fetcher, Paced
from penstock.http.network import RawResponse, Request
from penstock.settings import FetchPolicy
from penstock.settings.budget import Bound
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import ScriptedNetwork, VirtualClock, VirtualLoop

Answer = TypeVar("Answer")
RATE = 20
POLICY = FetchPolicy(robots=False, rate_per_s=RATE, connections=1000)
REQUESTS = Bound("source:shop", "requests", "day", 1000.0)


class SetClock(VirtualClock):
    """A clock that somebody sets, while time goes on as ever."""

    set_by_s = 0.0

    def now(self) -> float:
        return super().now() + self.set_by_s


class Way(Inline):
    """A store whose answers are on their way for a while, always or in one call alone."""

    def __init__(self, always_s: float = 0.0) -> None:
        self.always_s = always_s
        self.next_s = 0.0

    async def __call__(self, verb: Callable[[], Answer]) -> Answer:
        answer = verb()
        late_s, self.next_s = self.always_s + self.next_s, 0.0
        await asyncio.sleep(late_s)
        return answer


class Rig:
    """A worker that sends as fast as its rate allows, until `count` pages are there."""

    def __init__(self, root: Path, calls: Way | None = None) -> None:
        self.clock = SetClock()
        self.store = SqliteStore(root / "penstock.db", self.clock)
        self.store.workers.register("w", "here", 1, "test")
        rules = ProjectTerms({"shop": SourceTerms((REQUESTS,))})
        self.pacing = StoreRequestLimiter(self.store, calls or Way(), rules, "w")
        network = ScriptedNetwork(self.answer)
        self.fetcher = Fetcher(network, self.clock, random.Random(1), self.pacing)
        self.at: list[float] = []

    async def answer(self, request: Request) -> RawResponse:
        self.at.append(self.clock.monotonic())
        return RawResponse(200, {}, b"")

    async def fetch_on(self, pages: list[int]) -> None:
        """One of many that fetch a page after the other."""
        while pages:
            number = pages.pop()
            try:
                url = f"https://shop.example/{number}"
                await self.fetcher.fetch(url, POLICY, source="shop", run_id=1)
            except Paced as wait:
                pages.append(number)
                await asyncio.sleep(wait.delay_s)

    def run(self, count: int, meanwhile: Callable[[], Awaitable[None]]) -> None:
        async def everything() -> None:
            pages = list(range(count))
            await asyncio.gather(meanwhile(), *(self.fetch_on(pages) for _ in range(80)))
            await self.pacing.settle()

        with closing(VirtualLoop(self.clock)) as loop:
            loop.run_until_complete(everything())
        self.pacing.stop()

    @property
    def most_in_a_second(self) -> int:
        return max(sum(1 for at in self.at if first <= at < first + 1.0) for first in self.at)


MOST = int(RATE * (1 + LATEST_S)) + 1


@pytest.mark.parametrize("stall_s", [0.1, 1.0, 8.0, 3600.0])
def test_a_worker_that_stood_still_does_not_send_all_that_it_had_reserved(
    tmp_path: Path, stall_s: float
) -> None:
    rig = Rig(tmp_path)

    async def stall() -> None:
        await asyncio.sleep(2.0)
        rig.clock.advance(stall_s)

    rig.run(200, stall)
    assert len(rig.at) == 200
    assert rig.most_in_a_second <= MOST
    # What was never sent has cost the budget nothing.
    assert [row.used for row in rig.store.budgets.all()] == [200]


@pytest.mark.parametrize("set_by_s", [3600.0, 60.0, 3.0, -3600.0])
def test_a_clock_that_is_set_sends_nothing_twice_as_fast(tmp_path: Path, set_by_s: float) -> None:
    rig = Rig(tmp_path)

    async def set_clock() -> None:
        await asyncio.sleep(2.0)
        rig.clock.set_by_s = set_by_s

    rig.run(300, set_clock)
    assert len(rig.at) == 300
    assert rig.most_in_a_second <= MOST


async def nothing() -> None:
    return None


def test_an_answer_that_comes_late_is_asked_for_again(tmp_path: Path) -> None:
    """The places that it brings are past, and are given to others now."""
    way = Way()
    rig = Rig(tmp_path, way)
    way.next_s = 4.0
    rig.run(200, nothing)
    assert len(rig.at) == 200
    assert rig.most_in_a_second <= MOST


def test_a_slow_way_to_the_store_sends_at_its_rate_all_the_same(tmp_path: Path) -> None:
    rig = Rig(tmp_path, Way(always_s=0.6))

    rig.run(100, nothing)
    assert len(rig.at) == 100
    assert rig.at[-1] < 100 / RATE + 5
    assert rig.most_in_a_second <= MOST
