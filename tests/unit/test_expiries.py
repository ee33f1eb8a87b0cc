"""One timer sees to it that each attempt on the loop ends when its own time is over."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from penstock.engine.worker.expiries import Expiries
from penstock.engine.worker.on_loop import OnLoop
from penstock.engine.worker.threads import Threads
from penstock.pipeline.pipeline import Pipeline
from tests.unit.performing import Bench, begun, virtually


class Timed:
    """Notes when it expires."""

    def __init__(self, log: list[tuple[str, float]], name: str) -> None:
        self._log = log
        self._name = name

    def expire(self) -> None:
        self._log.append((self._name, asyncio.get_running_loop().time()))


def test_each_expires_at_its_own_time_whatever_was_set_before_it() -> None:
    log: list[tuple[str, float]] = []

    async def wait() -> None:
        expiries = Expiries(asyncio.get_running_loop)
        late, soon, ended, put_off = (Timed(log, name) for name in ("late", "soon", "ended", "off"))
        expiries.set(late, 60)
        expiries.set(ended, 2)
        expiries.set(soon, 5)
        expiries.set(put_off, 6)
        expiries.drop(ended)
        expiries.postpone(put_off, 4)
        expiries.postpone(ended, 4)
        await asyncio.sleep(100)
        expiries.set(soon, 1)
        await asyncio.sleep(100)

    virtually(wait())
    assert [name for name, _ in log] == ["soon", "off", "late", "soon"]
    assert [at for _, at in log] == pytest.approx([5, 10, 60, 101])


def looking() -> Pipeline:
    pipeline = begun()

    @pipeline.step(after="begin", unit="page")
    async def look(page: Any, ctx: Any) -> None:
        await asyncio.sleep(0)

    return pipeline


def attempts() -> int:
    return sum(isinstance(each, OnLoop) for each in gc.get_objects())


def test_attempt_that_has_ended_leaves_nothing_to_the_garbage_collector() -> None:
    # A worker holds thousands of attempts: collecting them took a fifth of its time.
    async def perform() -> int:
        threads = Threads(max_threads=1)
        bench = Bench(looking(), threads=threads)
        gc.collect()
        before = attempts()  # of other tests, which something still holds
        gc.disable()
        try:
            for job_id in range(5):
                await bench.start("look", {}, job_id=job_id)
            await asyncio.sleep(0)
            return attempts() - before
        finally:
            gc.enable()
            threads.close()

    assert asyncio.run(perform()) == 0
