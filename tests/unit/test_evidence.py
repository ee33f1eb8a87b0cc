"""A page that killed its worker is kept, and given to the next attempt, before a step sees it again."""

from __future__ import annotations

import sys
from pathlib import Path

from penstock import Project
from penstock.gates.capacity import Capacity
from penstock.http.network import RawResponse, Request
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

URL = "http://acme.test/page"
MODULE = "pipelines_for_evidence"
PIPELINE = f"""
from penstock import Pipeline

shop = Pipeline("shop")
look = lambda: None


@shop.step(unit="run")
async def read(ctx):
    response = await ctx.fetch("{URL}")
    look()
    ctx.note(f"{{response.text}} {{response.is_from_snapshot}}")
"""


def a_project(folder: Path) -> Project:
    (folder / f"{MODULE}.py").write_text(PIPELINE)
    (folder / "penstock.yaml").write_text(
        f"project: p\nsources:\n  acme.test:\n    pipeline: {MODULE}:shop\n"
        "    fetch: {robots: false}\n"
    )
    project = Project.load(folder)
    project.clock = VirtualClock()
    return project


async def answer(request: Request) -> RawResponse:
    return RawResponse(200, {}, b"poison")


def test_a_page_is_known_before_a_step_that_killed_a_worker_sees_it(tmp_path: Path) -> None:
    project = a_project(tmp_path)
    project.run("acme.test", actor="test")
    project.connection.workers.register("dead", "host", 1, "0")
    [job] = project.connection.turn("dead", [], Capacity(1), {}).claimed
    project.connection.workers.bury("dead", "was killed")
    known: list[bool] = []
    sys.modules[MODULE].look = lambda: known.append(  # type: ignore[attr-defined]
        project.connection.snapshots.of(job.id, URL) is not None
    )

    network, clock = ScriptedNetwork(answer), project.clock
    assert isinstance(clock, VirtualClock)
    with Simulation(project, network, seed=1, clock=clock) as simulation:
        simulation.run()

    assert known == [True]
    assert network.requests == [URL]
    found = project.connection.snapshots.of(job.id, URL)
    assert found is not None
    assert found.status == 200
