"""Long parsing leaves the loop to other sources, and takes all of it while there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter

import pytest

from penstock.engine.worker import loop as worker
from penstock.http import pace
from penstock.http.network import RawResponse, Request
from penstock.http.pace import BURST_S, SHARE, TURN_S, owe, paced, rest_beside
from penstock.project import Project
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, VirtualLoop, answer

SLICE_S = 0.01
SLICES = 200
STEPS = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    yield {"url": f"http://{ctx.source.key}/page"}


@pages.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    await ctx.fetch(page["url"])
"""


def loop_s(monkeypatch: pytest.MonkeyPatch, has_company: bool, owed_s: float = 0.0) -> float:
    """How long it takes to read a document of so many slices, by the loop's clock."""
    clock = VirtualClock()
    monkeypatch.setattr(pace, "perf_counter", clock.monotonic)

    def document() -> Iterator[list[int]]:
        for number in range(SLICES):
            clock.advance(SLICE_S)
            yield [number]

    async def read() -> None:
        rest_beside(lambda: has_company)
        owe(owed_s)
        assert len([batch async for batch in paced(document())]) == SLICES

    loop = VirtualLoop(clock)
    loop.run_until_complete(read())
    loop.close()
    return clock.monotonic()


def test_parsing_takes_no_rests_while_no_other_source_has_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert loop_s(monkeypatch, has_company=False) == pytest.approx(SLICES * SLICE_S, rel=0.01)


def test_parsing_keeps_to_its_share_beside_another_source(monkeypatch: pytest.MonkeyPatch) -> None:
    fair_s = (SLICES * SLICE_S - BURST_S) / SHARE
    assert loop_s(monkeypatch, has_company=True) == pytest.approx(fair_s, rel=0.05)


def test_work_that_cannot_rest_is_made_up_for_by_the_next_that_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without = loop_s(monkeypatch, has_company=True)
    assert loop_s(monkeypatch, has_company=True, owed_s=1.0) == pytest.approx(
        without + 1.0 / SHARE, rel=0.05
    )


@pytest.mark.parametrize("sources", [1, 2])
def test_a_worker_says_whether_more_than_one_source_is_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: int
) -> None:
    asked: list[Callable[[], bool]] = []
    monkeypatch.setattr(worker, "rest_beside", asked.append)
    seen: list[bool] = []

    async def slow(_: Request) -> RawResponse:
        await asyncio.sleep(1.0)
        seen.append(asked[0]())
        return answer("hello")

    keys = [f"site{number}.example" for number in range(sources)]
    (tmp_path / "pace_steps.py").write_text(STEPS)
    described = "".join(
        f"  {key}: {{pipeline: 'pace_steps:pages', fetch: {{robots: false}}}}\n" for key in keys
    )
    (tmp_path / "penstock.yaml").write_text(f"project: test\nsources:\n{described}")
    with closing(Project.load(tmp_path)) as project:
        clock = VirtualClock()
        with Simulation(project, ScriptedNetwork(slow), seed=1, clock=clock) as simulation:
            for key in keys:
                project.run(key, actor="test")
            simulation.run()
    assert seen[0] is (sources > 1)
    assert len(asked) == 1, "asked for once, by the one worker"


def test_on_virtual_time_a_slow_machine_changes_nothing() -> None:
    def stalled() -> Iterator[list[str]]:
        for _ in range(2):
            began = perf_counter()
            while perf_counter() - began < 5 * TURN_S:
                pass
            yield ["entry"]

    async def read() -> list[str]:
        told: list[str] = []
        asyncio.get_running_loop().call_soon(told.append, "another's turn")
        async for batch in paced(stalled()):
            told += batch
        return told

    with closing(VirtualLoop(VirtualClock())) as loop:
        assert loop.run_until_complete(read()) == ["entry", "entry", "another's turn"]
