"""Threads: few for quick steps, more for steps that block, and none lost without being counted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from penstock.engine.worker.threads import InlineThreads, Threads
from penstock.jobs.effects import Effects
from penstock.jobs.outcome import AttemptLost, Cancelled, Outcome, Succeeded
from penstock.pipeline.error_outcome import timed_out
from penstock.pipeline.pipeline import Pipeline
from tests.unit.performing import Bench, begun, until

WAIT_S = 10.0


class Noted:
    """An errand that notes what happens to it."""

    def __init__(self, act: Callable[[], Any] = lambda: None, timeout_s: float = 60.0) -> None:
        self._act = act
        self.timeout_s = timeout_s
        self.thread = 0
        self.log: list[str] = []

    def act(self) -> None:
        self.thread = threading.get_ident()
        self._act()

    def finish(self) -> None:
        self.log.append("finished")

    def expire(self) -> None:
        self.log.append("expired")


def with_threads(
    use: Callable[[Threads], Coroutine[Any, Any, None]], max_threads: int = 32
) -> None:
    async def main() -> None:
        threads = Threads(max_threads)
        try:
            await use(threads)
        finally:
            threads.close()

    asyncio.run(main())


def all_done(errands: list[Noted]) -> Callable[[], bool]:
    return lambda: all(errand.log for errand in errands)


def test_quick_errands_share_a_thread_and_keep_their_order() -> None:
    order: list[int] = []

    async def use(threads: Threads) -> None:
        errands = [Noted(partial(order.append, n)) for n in range(2000)]
        for errand in errands:
            threads.submit(errand)
        await until(all_done(errands))
        assert len({errand.thread for errand in errands}) <= 2
        assert sorted(order) == list(range(2000))
        assert all(errand.log == ["finished"] for errand in errands)

    with_threads(use)


def test_errands_that_block_get_threads_of_their_own() -> None:
    barrier = threading.Barrier(8, timeout=WAIT_S)

    async def use(threads: Threads) -> None:
        errands = [Noted(barrier.wait) for _ in range(8)]
        for errand in errands:
            threads.submit(errand)
        await until(all_done(errands))
        assert threads.size >= 8

    with_threads(use)


def test_there_are_never_more_threads_than_allowed() -> None:
    gate, begun_count = threading.Event(), []

    def block() -> None:
        begun_count.append(1)
        gate.wait(WAIT_S)

    async def use(threads: Threads) -> None:
        errands = [Noted(block) for _ in range(12)]
        for errand in errands:
            threads.submit(errand)
        await until(lambda: len(begun_count) == 3)
        assert threads.size == 3
        gate.set()
        await until(all_done(errands))
        assert threads.size == 3

    with_threads(use, max_threads=3)


def test_a_thread_that_is_stuck_is_counted_and_replaced_and_welcome_back() -> None:
    gate = threading.Event()

    async def use(threads: Threads) -> None:
        stuck, next_one = Noted(lambda: gate.wait(WAIT_S), timeout_s=0.02), Noted()
        threads.submit(stuck)
        threads.submit(next_one)
        await until(all_done([stuck, next_one]))
        assert (stuck.log, next_one.log, threads.lost) == (["expired"], ["finished"], 1)

        gate.set()
        await until(lambda: threads.lost == 0)
        assert stuck.log == ["expired", "finished"]
        await until(lambda: threads.size == 1)

    with_threads(use, max_threads=1)


def test_time_runs_while_an_errand_is_performed_and_not_while_it_waits() -> None:
    gate = threading.Event()

    async def use(threads: Threads) -> None:
        first, second = Noted(lambda: gate.wait(WAIT_S)), Noted(timeout_s=0.02)
        threads.submit(first)
        threads.submit(second)
        ends_at = asyncio.get_running_loop().time() + 0.05
        await until(lambda: asyncio.get_running_loop().time() > ends_at)
        gate.set()
        await until(all_done([first, second]))
        assert second.log == ["finished"]

    with_threads(use, max_threads=1)


def test_one_errand_that_can_not_be_finished_does_not_hold_up_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Noted):
        def finish(self) -> None:
            raise RuntimeError("broken")

    async def use(threads: Threads) -> None:
        errands = [Broken(), *(Noted() for _ in range(10))]
        for errand in errands:
            threads.submit(errand)
        await until(all_done(errands[1:]))

    with_threads(use)
    assert "broken" in caplog.text


def test_inline_threads_are_done_before_submit_returns() -> None:
    errand = Noted()
    InlineThreads().submit(errand)
    assert errand.log == ["finished"]
    assert errand.thread == threading.get_ident()


# Attempts in threads.


def blocking(gate: threading.Event, log: list[Any]) -> Pipeline:
    pipeline = begun()

    @pipeline.step(after="begin", unit="page")
    def act(item: Any, ctx: Any) -> None:
        log.append(item)
        gate.wait(WAIT_S)
        try:
            ctx.note("late")
        except AttemptLost:
            log.append("lost")

    return pipeline


def test_a_plain_attempt_that_takes_too_long_is_fenced_off() -> None:
    gate, log = threading.Event(), list[Any]()

    async def use(threads: Threads) -> None:
        bench = Bench(blocking(gate, log), threads=threads)
        outcome = await bench.start("act", 1, timeout_s=0.02)
        assert outcome == timed_out(0.02)
        assert (bench.performer.running, bench.performer.lost_threads) == (0, 1)

        gate.set()
        await until(lambda: bench.performer.lost_threads == 0)
        assert log == [1, "lost"]
        assert len(bench.outcomes) == 1

    with_threads(use)


def test_a_plain_attempt_can_be_cancelled_while_it_runs_and_before() -> None:
    gate, log = threading.Event(), list[Any]()

    async def use(threads: Threads) -> None:
        bench = Bench(blocking(gate, log), threads=threads)
        running, waiting = (bench.start("act", n, job_id=n) for n in (1, 2))
        await until(lambda: log == [1])
        bench.performer.cancel(2, "drained")
        bench.performer.cancel(1, "drained")
        assert running.result() == waiting.result() == Cancelled("drained")
        assert bench.performer.lost_threads == 1

        gate.set()
        await until(lambda: bench.performer.lost_threads == 0)
        assert log == [1, "lost"]

    with_threads(use, max_threads=1)


def test_a_plain_run_step_that_waits_for_the_store_is_let_go_when_cancelled() -> None:
    log: list[str] = []
    pipeline = Pipeline("p")

    @pipeline.step(unit="run")
    def discover() -> Any:
        try:
            yield from range(10_000)
        finally:
            log.append("closed")

    @pipeline.step(after="discover", unit="page")
    def extract(n: Any) -> None: ...

    async def use(threads: Threads) -> None:
        bench = Bench(pipeline, threads=threads)
        bench.services.room = asyncio.Semaphore(0)
        ended = bench.start("discover")
        await until(lambda: bench.services.asked == 1)
        bench.performer.cancel(1, "drained")
        assert await ended == Cancelled("drained")
        await until(lambda: log == ["closed"])
        await until(lambda: bench.performer.lost_threads == 0)

    with_threads(use)


def test_a_plain_step_after_an_async_one_runs_in_a_thread() -> None:
    pipeline = begun()
    idents: list[int] = []

    @pipeline.step(after="begin", unit="page")
    async def first(item: Any) -> Any:
        idents.append(threading.get_ident())
        return item

    @pipeline.step(after="first", unit="page")
    def second(item: Any) -> Any:
        idents.append(threading.get_ident())
        return item

    @pipeline.step(after="second", unit="page")
    async def third(item: Any) -> None:
        idents.append(threading.get_ident())

    async def use(threads: Threads) -> None:
        outcome: Outcome = await Bench(pipeline, threads=threads).start("first", 1)
        assert outcome == Succeeded(Effects())
        assert idents[0] == idents[2] != idents[1]

    with_threads(use)


def test_a_mixed_attempt_that_is_stuck_in_a_thread_times_out() -> None:
    gate = threading.Event()
    pipeline = begun()

    @pipeline.step(after="begin", unit="page")
    async def first(item: Any) -> Any:
        return item

    @pipeline.step(after="first", unit="page")
    def second(item: Any) -> None:
        gate.wait(WAIT_S)

    async def use(threads: Threads) -> None:
        bench = Bench(pipeline, threads=threads)
        outcome = await bench.start("first", 1, timeout_s=0.05)
        assert outcome == timed_out(0.05)
        assert bench.performer.lost_threads == 1
        gate.set()
        await until(lambda: bench.performer.lost_threads == 0)

    with_threads(use)
