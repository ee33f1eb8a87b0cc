"""Requests that wait for their places ask together, and nothing goes out that was not given one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from penstock.engine.worker.calls import Inline
from penstock.engine.worker.request_limiter import REST_S, StoreRequestLimiter
from penstock.engine.worker.store_backoff import StoreBackoff
from penstock.errors import StoreCorrupt, StoreError, StoreIoError
from penstock.gates.admission import NO_REPORT, Report
from penstock.gates.rates import LONGEST_WAIT_S, RateDecision, RateRequest
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import VirtualClock, VirtualLoop

WANT = RateRequest("acme.com", 10.0)
Answer = TypeVar("Answer")


class Flaky(SqliteStore):
    """A store that fails as often as it is told to, and remembers what it was asked."""

    def __init__(self, path: Path, clock: VirtualClock) -> None:
        super().__init__(path, clock)
        self.asked: list[int] = []
        self.reopened = 0
        self.errors: list[StoreError] = []
        self._reserve, self.hosts.reserve = self.hosts.reserve, self._flaky  # type: ignore[method-assign]

    def _flaky(
        self, wants: Sequence[RateRequest], report: Report = NO_REPORT
    ) -> list[RateDecision]:
        self.asked.append(len(wants))
        if self.errors:
            raise self.errors.pop(0)
        return self._reserve(wants, report)

    def reopen(self) -> None:
        self.reopened += 1
        super().reopen()


class Slow(Inline):
    """Each call takes a second, as if the disk or the way to the server did."""

    async def __call__(self, verb: Callable[[], Answer]) -> Answer:
        await asyncio.sleep(1.0)
        return verb()


class Rig:
    def __init__(self, root: Path, calls: Inline | None = None) -> None:
        self.clock = VirtualClock()
        self.store = Flaky(root / "penstock.db", self.clock)
        self.pacing = StoreRequestLimiter(self.store, calls or Inline())
        self.said: list[str] = []
        self.pacing.backoff = StoreBackoff(self.store, self.clock, self.said.append)

    def run(self, work: Callable[[], Awaitable[Answer]]) -> Answer:
        async def to_the_end() -> Answer:
            try:
                return await work()
            finally:
                self.pacing.stop()

        with closing(VirtualLoop(self.clock)) as loop:
            return loop.run_until_complete(to_the_end())

    async def ask(self, count: int) -> list[tuple[float, str]]:
        verdicts = await asyncio.gather(*(self.pacing.ask(WANT) for _ in range(count)))
        return [(round(verdict.wait_s, 5), verdict.gate) for verdict in verdicts]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_requests_that_come_together_share_one_call(rig: Rig) -> None:
    assert rig.run(lambda: rig.ask(4)) == [(0, ""), (0.1, ""), (0.2, ""), (0.3, "")]
    assert rig.store.asked == [4]


def test_requests_that_come_while_a_call_is_under_way_share_the_next(tmp_path: Path) -> None:
    rig = Rig(tmp_path, Slow())

    async def a_few_and_then_many() -> list[list[tuple[float, str]]]:
        first = asyncio.create_task(rig.ask(2))
        await asyncio.sleep(0.5)
        others = [asyncio.create_task(rig.ask(5)) for _ in range(3)]
        return await asyncio.gather(first, *others)

    rig.run(a_few_and_then_many)
    assert rig.store.asked == [2, 15]
    assert rig.clock.monotonic() == pytest.approx(2.0 + REST_S)


def test_requests_that_come_soon_after_a_call_share_the_next(tmp_path: Path) -> None:
    rig = Rig(tmp_path, Slow())

    async def one_and_then_two() -> None:
        await rig.ask(1)
        others = []
        for _ in range(2):
            await asyncio.sleep(REST_S / 3)
            others.append(asyncio.create_task(rig.ask(1)))
        await asyncio.gather(*others)

    rig.run(one_and_then_two)
    assert rig.store.asked == [1, 2]


def test_who_stopped_waiting_before_the_call_takes_no_place(rig: Rig) -> None:
    async def one_gives_up() -> list[tuple[float, str]]:
        gone = asyncio.create_task(rig.pacing.ask(WANT))
        await asyncio.sleep(0)
        gone.cancel()
        return await rig.ask(2)

    assert rig.run(one_gives_up) == [(0, ""), (0.1, "")]


def test_store_that_is_away_for_a_moment_is_waited_for(rig: Rig) -> None:
    rig.store.errors = [StoreError("away"), StoreError("away")]
    assert rig.run(lambda: rig.ask(3)) == [(0, ""), (0.1, ""), (0.2, "")]
    assert rig.clock.monotonic() == pytest.approx(2.0)
    assert rig.said == ["away"]


def test_store_that_stays_away_lets_nothing_out_and_costs_nobody_a_try(rig: Rig) -> None:
    rig.store.errors = [StoreError("away")] * 100
    assert rig.run(lambda: rig.ask(3)) == [(LONGEST_WAIT_S, "store")] * 3
    assert rig.clock.monotonic() == pytest.approx(LONGEST_WAIT_S)


def test_call_that_hangs_is_not_waited_for_longer_than_a_place(tmp_path: Path) -> None:
    class Hanging(Inline):
        async def __call__(self, verb: Callable[[], Answer]) -> Answer:
            await asyncio.sleep(3600.0)
            return verb()

    rig = Rig(tmp_path, Hanging())
    assert rig.run(lambda: rig.ask(2)) == [(LONGEST_WAIT_S, "store")] * 2
    assert rig.store.asked == []


def test_connection_that_met_a_disk_error_is_opened_anew(rig: Rig) -> None:
    rig.store.errors = [StoreIoError("the disk reported an error")]
    assert rig.run(lambda: rig.ask(1)) == [(0, "")]
    assert rig.store.reopened == 1


def test_a_closed_host_is_told_soon_and_without_waiting_for_it(rig: Rig) -> None:
    rig.store.errors = [StoreError("away")]

    async def told() -> list[tuple[float, str]]:
        rig.pacing.close("acme.com", 30.0)
        rig.pacing.close("acme.com", 20.0)
        return await rig.ask(1)

    assert rig.run(told) == [(0, "")]
    assert rig.store.hosts.closed() == {"acme.com": pytest.approx(rig.clock.now() + 30, abs=1.1)}


def test_damage_is_left_to_the_turn_that_meets_it_too(rig: Rig) -> None:
    rig.store.errors = [StoreCorrupt("damaged")] * 100
    assert rig.run(lambda: rig.ask(2)) == [(LONGEST_WAIT_S, "store")] * 2
