"""The request limiter: who waits waits in line, who gives up gives back, and what is held is said in full."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from penstock.engine.worker.calls import Inline
from penstock.engine.worker.request_limiter import LONGEST_LINE_S, StoreRequestLimiter
from penstock.errors import StoreError
from penstock.gates.admission import NO_REPORT, Report
from penstock.gates.project_terms import HostLimit, ProjectTerms, SourceTerms
from penstock.gates.rates import LONGEST_WAIT_S, RateDecision, RateRequest, Sent
from penstock.http.failures import FetchError
from penstock.http.fetch import BudgetSpent, Fetcher, Paced
from penstock.http.network import RawResponse, Request
from penstock.settings import FetchPolicy
from penstock.settings.budget import Bound
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import ScriptedNetwork, VirtualClock, VirtualLoop

Answer = TypeVar("Answer")
BYTES = Bound("source:shop", "bytes", "day", 1000.0)
REQUESTS = Bound("source:shop", "requests", "day", 3.0)
HOST = HostLimit("shop.example", 2)
POLICY = FetchPolicy(robots=False, max_bytes=400, timeout_s=10.0, connections=100)


class Watched(SqliteStore):
    """Remembers what it was told, and may fail after it has done what it was asked."""

    def __init__(self, path: Path, clock: VirtualClock) -> None:
        super().__init__(path, clock)
        self.reports: list[Report] = []
        self.lost_answers = 0
        self._reserve, self.hosts.reserve = self.hosts.reserve, self._watched  # type: ignore[method-assign]

    def _watched(
        self, wants: Sequence[RateRequest], report: Report = NO_REPORT
    ) -> list[RateDecision]:
        self.reports.append(report)
        verdicts = self._reserve(wants, report)
        if self.lost_answers:
            self.lost_answers -= 1
            raise StoreError("the answer was lost")
        return verdicts


class Slow(Inline):
    """Each call takes a second, as if the disk or the way to the server did."""

    async def __call__(self, verb: Callable[[], Answer]) -> Answer:
        await asyncio.sleep(1.0)
        return verb()


class Rig:
    """A fetcher and its limiter over a store, on virtual time; pages take a second."""

    def __init__(
        self,
        root: Path,
        *bounds: Bound,
        host: HostLimit | None = None,
        calls: Inline | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.store = Watched(root / "penstock.db", self.clock)
        self.store.workers.register("w", "here", 1, "test")
        hosts = {} if host is None else {host.host: host}
        rules = ProjectTerms({"shop": SourceTerms(bounds)}, hosts=hosts)
        self.pacing = StoreRequestLimiter(self.store, calls or Inline(), rules, "w")
        self.network = ScriptedNetwork(self.answer)
        self.fetcher = Fetcher(self.network, self.clock, random.Random(1), self.pacing)
        self.under_way = 0
        self.most = 0
        self.fails_with: Exception | None = None

    async def answer(self, request: Request) -> RawResponse:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(1.0)
        finally:
            self.under_way -= 1
        if self.fails_with is not None:
            raise self.fails_with
        return RawResponse(200, {}, b"x" * 100)

    async def fetch(self, number: int = 0) -> str:
        try:
            await self.fetcher.fetch(
                f"https://shop.example/{number}", POLICY, source="shop", run_id=1
            )
        except BudgetSpent:
            return "budget"
        except Paced:
            return "paced"
        except FetchError:
            return "failed"
        return "ok"

    async def fetch_all(self, count: int) -> list[str]:
        return await asyncio.gather(*(self.fetch(number) for number in range(count)))

    def run(self, work: Callable[[], Awaitable[Answer]]) -> Answer:
        async def to_the_end() -> Answer:
            try:
                found = await work()
                await self.pacing.settle()
                return found
            finally:
                self.pacing.stop()

        with closing(VirtualLoop(self.clock)) as loop:
            return loop.run_until_complete(to_the_end())

    def standing(self) -> list[tuple[float, float]]:
        return [(row.used, row.held) for row in self.store.budgets.all()]


def test_requests_beyond_what_can_be_reserved_wait_in_line_and_go_out(tmp_path: Path) -> None:
    """1000 bytes are enough for two that may bring 400; in the end for ten that bring 100."""
    rig = Rig(tmp_path, BYTES)
    answers = rig.run(lambda: rig.fetch_all(14))
    assert answers.count("ok") == 10
    assert answers.count("budget") == 4
    assert rig.most == 2
    assert rig.standing() == [(1000, 0)]
    # Who ended lets the next one in at once, without waiting for anybody to look.
    assert rig.clock.monotonic() < 9


def test_places_at_a_host_are_taken_in_turn(tmp_path: Path) -> None:
    rig = Rig(tmp_path, host=HOST)
    assert rig.run(lambda: rig.fetch_all(9)) == ["ok"] * 9
    assert rig.most == 2
    assert rig.clock.monotonic() == pytest.approx(5.0, abs=0.1)


def test_who_stands_in_line_for_too_long_is_put_back(tmp_path: Path) -> None:
    rig = Rig(tmp_path, host=HOST)
    rig.store.workers.register("other", "there", 2, "test")
    rig.store.hosts.reserve([], Report("other", {HOST.key: 2.0}))
    assert rig.run(rig.fetch) == "paced"
    assert rig.clock.monotonic() == pytest.approx(LONGEST_LINE_S, abs=0.1)
    assert rig.network.requests == []


def test_what_another_worker_gives_back_is_found_soon(tmp_path: Path) -> None:
    rig = Rig(tmp_path, host=HOST)
    rig.store.workers.register("other", "there", 2, "test")
    rig.store.hosts.reserve([], Report("other", {HOST.key: 2.0}))

    async def ends_later() -> str:
        fetching = asyncio.create_task(rig.fetch())
        await asyncio.sleep(LONGEST_WAIT_S * 2)
        rig.store.hosts.reserve([], Report("other", {HOST.key: 1.0}))
        return await fetching

    assert rig.run(ends_later) == "ok"
    assert rig.clock.monotonic() < LONGEST_WAIT_S * 2 + 1.5


@pytest.mark.parametrize("after_s", [0.0, 0.3, 0.5, 1.7])
def test_who_is_cancelled_gives_back_what_was_reserved(tmp_path: Path, after_s: float) -> None:
    """Before the answer, in line, or with the request under way."""
    rig = Rig(tmp_path, BYTES, host=HOST)

    async def cancelled() -> list[str]:
        tasks = [asyncio.create_task(rig.fetch(number)) for number in range(6)]
        await asyncio.sleep(after_s)
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)
        await asyncio.sleep(0)
        return await rig.fetch_all(2)

    assert rig.run(cancelled) == ["ok", "ok"]
    assert rig.standing()[0][1] == 0
    assert rig.store.reports[-1].held.get(HOST.key, 0.0) == 0.0


def test_cancelled_between_the_answer_and_its_being_heard(tmp_path: Path) -> None:
    rig = Rig(tmp_path, BYTES)

    async def cancelled() -> None:
        task = asyncio.create_task(rig.fetch())
        while not rig.pacing._held:
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    rig.run(cancelled)
    assert rig.standing() == [(0, 0)]
    assert rig.network.requests == []


def test_cancelled_while_the_store_is_asked(tmp_path: Path) -> None:
    rig = Rig(tmp_path, BYTES, calls=Slow())

    async def cancelled() -> None:
        task = asyncio.create_task(rig.fetch())
        await asyncio.sleep(0.5)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.6)
        assert [len(report.held) for report in rig.store.reports] == [0]

    rig.run(cancelled)
    assert rig.standing() == [(0, 0)]


def test_worker_that_goes_says_first_what_it_used(tmp_path: Path) -> None:
    """What it holds when it goes counts as used, all of it."""
    rig = Rig(tmp_path, BYTES, calls=Slow())
    assert rig.run(lambda: rig.fetch_all(2)) == ["ok", "ok"]
    rig.store.workers.sign_off("w")
    assert rig.standing() == [(200, 0)]


def test_answers_that_are_lost_leave_nothing_reserved(tmp_path: Path) -> None:
    rig = Rig(tmp_path, BYTES, host=HOST)
    rig.store.lost_answers = 3
    assert rig.run(lambda: rig.fetch_all(4)) == ["ok"] * 4
    assert rig.standing()[0][1] == 0
    held = dict(rig.store.reports[-1].held)
    # Remembered until the attempt that sent them has settled.
    assert held.pop("usage:1") == 4
    assert held in ({}, {BYTES.holding: 0.0, HOST.key: 0.0})


def test_requests_are_held_until_they_are_put_down_with_their_run(tmp_path: Path) -> None:
    rig = Rig(tmp_path, REQUESTS)

    async def fetch() -> None:
        await rig.fetch_all(3)
        rig.pacing.settled(1, 1)
        await rig.pacing.settle()
        assert rig.store.reports[-1].held == {"usage:1": 2}
        rig.pacing.settled(1, 2)

    rig.run(fetch)
    assert rig.store.reports[-1].held == {"usage:1": 0}


def test_failed_request_gives_back_and_counts_what_had_come(tmp_path: Path) -> None:
    rig = Rig(tmp_path, BYTES)
    error = FetchError("cut off")
    error.received = 250
    rig.fails_with = error
    assert rig.run(rig.fetch) == "failed"
    assert rig.standing() == [(250, 0)]


def test_counted_budgets_need_no_call_after_the_request(tmp_path: Path) -> None:
    rig = Rig(tmp_path, REQUESTS)
    assert rig.run(lambda: rig.fetch_all(5)) == ["ok", "ok", "ok", "budget", "budget"]
    assert len(rig.store.reports) == 1


def test_every_request_that_went_out_is_counted_for_its_attempt(tmp_path: Path) -> None:
    rig, counted = Rig(tmp_path, REQUESTS), list[Sent]()

    async def fetch() -> None:
        for _ in range(4):
            with suppress(BudgetSpent):
                await rig.fetcher.fetch(
                    "https://shop.example/", POLICY, source="shop", count=counted.append
                )

    rig.run(fetch)
    assert [(sent.bytes, round(sent.seconds, 3)) for sent in counted] == [(100, 1.0)] * 3
