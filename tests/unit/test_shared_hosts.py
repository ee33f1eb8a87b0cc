"""One source cannot hurt another, with both of them on one host."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.entry import main
from penstock.http.network import RawResponse, Request
from penstock.project import Project
from penstock.store.jobs import JobFilter
from penstock.store.rows import RunRow
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

MODULE = "sharing_a_host"
HOST = "shop.example"
PIPELINES = """
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def find(ctx):
    for number in range(ctx.params["pages"]):
        yield {"n": number}


@pages.step(after="find", unit="page", key="n", timeout="10s")
async def fetch(item, ctx):
    for part in range(ctx.params.get("parts", 1)):
        await ctx.fetch(f"https://shop.example/{ctx.source.key}/{item['n']}/{part}")
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / f"{MODULE}.py").write_text(PIPELINES)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop(MODULE, None)


def a_source(pages: int, concurrency: int, parts: int = 1) -> dict[str, Any]:
    return {
        "pipeline": f"{MODULE}:pages",
        "params": {"pages": pages, "parts": parts},
        "limits": {"concurrency": concurrency, "adaptive": False},
        "fetch": {"robots": False},
    }


class Site:
    def __init__(self, clock: VirtualClock, takes_s: float) -> None:
        self.clock = clock
        self.takes_s = takes_s
        self.at: dict[str, list[float]] = {}

    async def answer(self, request: Request) -> RawResponse:
        self.at.setdefault(request.url.split("/")[3], []).append(self.clock.monotonic())
        await asyncio.sleep(self.takes_s)
        return RawResponse(200, {}, b"")


class World:
    def __init__(self, folder: Path, takes_s: float, hosts: Any = None, **sources: Any) -> None:
        self.clock = VirtualClock()
        self.site = Site(self.clock, takes_s)
        config = {"project": "shared", "sources": sources, "hosts": hosts or {}}
        (folder / "penstock.yaml").write_text(json.dumps(config))
        self.project = Project.load(folder)
        self.project.clock = self.clock
        self.names = list(sources)

    def run(self) -> dict[str, RunRow]:
        network = ScriptedNetwork(self.site.answer)
        with Simulation(self.project, network, seed=1, clock=self.clock) as simulation:
            ids = {name: self.project.run(name, actor="test") for name in self.names}
            simulation.run()
        return {name: self.project.require_run(run_id) for name, run_id in ids.items()}

    def tries(self, run: RunRow) -> set[int]:
        jobs = self.project.connection.jobs.find(JobFilter(run_id=run.id, limit=10_000))
        return {job.tries for job in jobs}


def test_a_small_source_is_as_fast_beside_a_big_one_on_its_host_as_alone(tmp_path: Path) -> None:
    alone = World(tmp_path, 0.2, small=a_source(20, 1))
    alone.run()
    together = World(tmp_path, 0.2, small=a_source(20, 1), big=a_source(3000, 32))
    runs = together.run()
    assert {name: run.state for name, run in runs.items()} == dict.fromkeys(runs, "completed")
    assert together.tries(runs["small"]) == {0}
    took_alone, took = (max(world.site.at["small"]) for world in (alone, together))
    assert took < 1.5 * took_alone + 1.0


def test_ten_sources_on_one_host_each_have_their_own_concurrency(tmp_path: Path) -> None:
    sources = {f"s{number}": a_source(40, 4) for number in range(10)}
    world = World(tmp_path, 1.0, **sources)
    runs = world.run()
    assert {run.state for run in runs.values()} == {"completed"}
    # Forty pages, four at a time, a second each: as if each were alone.
    assert max(at for times in world.site.at.values() for at in times) < 15


def test_what_a_host_gives_to_all_is_shared_fairly(tmp_path: Path) -> None:
    """Two at a time for everybody; the big source has sixteen in line all the time."""
    hosts = {HOST: {"concurrency": 2}}
    world = World(tmp_path, 1.0, hosts, small=a_source(10, 1), big=a_source(200, 16))
    runs = world.run()
    assert {run.state for run in runs.values()} == {"completed"}
    times = world.site.at
    last = max(times["small"])
    beside = sum(1 for at in times["big"] if at <= last)
    # One of two places is the small one's whenever it asks.
    assert beside <= 4 * len(times["small"])


def test_waiting_for_a_shared_host_is_no_step_time_and_spends_no_try(tmp_path: Path) -> None:
    """Three pages of three seconds in a step that has ten; the waits between them come on top."""
    hosts = {HOST: {"concurrency": 1}}
    world = World(tmp_path, 3.0, hosts, small=a_source(3, 1, parts=3), big=a_source(30, 8))
    runs = world.run()
    assert {run.state for run in runs.values()} == {"completed"}
    assert world.tries(runs["small"]) == world.tries(runs["big"]) == {0}
    # None was begun twice: a step that is stopped in the middle would fetch its parts again.
    assert len(world.site.at["small"]) == 9
    first, third = world.site.at["small"][0], world.site.at["small"][2]
    assert third + 3.0 - first > 10.0, "the step took longer than its timeout"


def test_explain_names_the_host_whose_places_are_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from penstock.gates.admission import Report

    world = World(tmp_path, 1.0, {HOST: {"concurrency": 2}}, small=a_source(1, 1))
    world.project.run("small", actor="test")
    world.project.connection.workers.register("w", "here", 1, "test")
    world.project.connection.hosts.reserve([], Report("w", {f"host:{HOST}": 2.0}))
    main(["--project", str(tmp_path), "explain", "small"])
    said = capsys.readouterr().out
    assert f"{HOST} has 2 of 2 requests" in said
    assert f"hosts.{HOST}.concurrency" in said
