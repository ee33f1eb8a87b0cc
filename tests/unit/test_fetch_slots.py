"""Host slots: as many at a time as allowed, nobody forgotten."""

from __future__ import annotations

import asyncio
import random

import pytest

from penstock.http.host_slots import HostSlots
from tests.hostile.loopback import in_loop

A = ("a", "small")


@pytest.mark.parametrize("seed", range(20))
@in_loop
async def test_the_limit_holds_and_everyone_has_a_turn_whoever_is_cancelled(seed: int) -> None:
    slots, rng = HostSlots(), random.Random(seed)
    running = most = finished = 0

    async def visit(steps: int) -> None:
        nonlocal running, most, finished
        await slots.take(A, 3)
        running += 1
        most = max(most, running)
        try:
            for _ in range(steps):
                await asyncio.sleep(0)
        finally:
            running -= 1
            slots.give(A)
        finished += 1

    visits = [asyncio.ensure_future(visit(rng.randrange(5))) for _ in range(60)]
    for _ in range(30):
        await asyncio.sleep(0)
        rng.choice(visits).cancel()
    results = await asyncio.gather(*visits, return_exceptions=True)
    assert most == 3
    assert running == 0
    assert finished == results.count(None)
    await asyncio.wait_for(visit(0), 30.0)


@in_loop
async def test_hosts_do_not_wait_for_each_other() -> None:
    slots = HostSlots()
    await slots.take(A, 1)
    await asyncio.wait_for(slots.take(("b", "small"), 1), 30.0)
    waiting = asyncio.ensure_future(slots.take(A, 1))
    await asyncio.sleep(0)
    assert not waiting.done()
    slots.give(A)
    await waiting


@in_loop
async def test_sources_do_not_wait_for_each_other_at_one_host() -> None:
    slots = HostSlots()
    for _ in range(32):
        await slots.take(("a", "big"), 32)
    await asyncio.wait_for(slots.take(A, 1), 30.0)
