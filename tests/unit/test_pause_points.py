"""A long attempt that is paused stops at its next commit, yield or fetch, and what is complete is kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.engine.worker.threads import Threads
from penstock.jobs.outcome import Cancelled, Outcome
from penstock.pipeline.pipeline import Pipeline
from tests.unit.performing import Bench, ListedServices, until, virtually

PAUSED = {1: "run 7 is paused"}


def counting(how: str, seen: list[int]) -> Pipeline:
    """A step that never ends by itself, and comes to pause points of one kind only."""
    pipeline = Pipeline("p")

    async def go_on(ctx: Any, number: int) -> None:
        await asyncio.sleep(0.01)
        seen.append(number)
        ctx.save("word", key=number, data={"n": number})
        ctx.checkpoint(number)
        if how == "commit":
            await ctx.commit()

    if how == "yield":

        @pipeline.step(unit="stream")
        async def listen(ctx: Any) -> Any:
            for number in range(1, 10**6):
                await go_on(ctx, number)
                yield {"n": number}

    elif how == "plain":

        @pipeline.step(unit="run")
        def listen(ctx: Any) -> Any:
            for number in range(1, 10**6):
                seen.append(number)
                ctx.save("word", key=number, data={"n": number})
                ctx.checkpoint(number)
                yield {"n": number}

    else:

        @pipeline.step(unit="run")
        async def listen(ctx: Any) -> None:
            for number in range(1, 10**6):
                await go_on(ctx, number)
                if how == "fetch":
                    await ctx.commit() if number % 2 else None
                    await ctx.fetch(f"https://a.com/{number}")

    @pipeline.step(after="listen", unit="candidate", key="n")
    def keep(item: Any) -> None:
        return None

    return pipeline


async def paused(how: str, seen: list[int], services: ListedServices) -> Outcome:
    threads = Threads(2) if how == "plain" else None
    bench = Bench(counting(how, seen), services, threads)
    ended = bench.start("listen")
    await until(lambda: bool(services.flushed))
    bench.performer.halt(PAUSED)
    outcome = await ended
    if threads is not None:
        threads.close()
    return outcome


@pytest.mark.parametrize("how", ["yield", "commit", "fetch"])
def test_a_paused_long_step_stops_at_its_next_pause_point(how: str) -> None:
    seen: list[int] = []
    services = ListedServices()

    assert virtually(paused(how, seen, services)) == Cancelled("run 7 is paused")

    saved = [int(save.key) for effects in services.flushed for save in effects.saves]
    marks = [int(mark.cursor) for effects in services.flushed for mark in effects.marks]
    assert saved == marks == list(range(1, len(saved) + 1)), "each record with its cursor"
    assert len(saved) in (len(seen), len(seen) - 1), "what was complete is written"


def test_a_paused_plain_step_stops_at_its_next_item() -> None:
    seen: list[int] = []
    services = ListedServices()

    assert asyncio.run(paused("plain", seen, services)) == Cancelled("run 7 is paused")

    saved = [int(save.key) for effects in services.flushed for save in effects.saves]
    assert saved == list(range(1, len(saved) + 1))


def test_an_attempt_that_may_go_on_again_is_not_stopped() -> None:
    async def perform() -> Outcome:
        pipeline = Pipeline("p")

        @pipeline.step(unit="run")
        async def look(ctx: Any) -> None:
            await ctx.commit()

        bench = Bench(pipeline)
        ended = bench.start("look")
        bench.performer.halt(PAUSED)
        bench.performer.halt({})
        return await ended

    assert not isinstance(virtually(perform()), Cancelled)
