"""A worker that was asked to leave the work to others settles what it has, and claims nothing meanwhile."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.project import Project
from penstock.sources.network import RawResponse, Request
from penstock.store.store import Capacity, Store, Turn
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

MODULE = "pipelines_of_a_worker_that_rests"
REST_S = 7.0
PIPELINE = """
import asyncio

from penstock import Pipeline

site = Pipeline("site")


@site.step(unit="run")
async def discover(ctx):
    for number in range(12):
        yield {"n": number}


@site.step(after="discover", unit="page", key="n")
async def extract(page, ctx):
    await asyncio.sleep(1)
"""


class Slow:
    """A store that asks to be left alone after each turn that claimed something."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self._store = store
        self._clock = clock
        self.turns: list[tuple[float, int, int, int]] = []

    def turn(self, worker: str, ends: Any, capacity: Capacity, *more: Any) -> Turn:
        turn = self._store.turn(worker, ends, capacity, *more)
        seen = (self._clock.monotonic(), capacity.slots, len(turn.settled), len(turn.claimed))
        self.turns.append(seen)
        return replace(turn, rest_s=REST_S if turn.claimed else 0.0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_worker_that_rests_settles_and_claims_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{MODULE}.py").write_text(PIPELINE)
    source = {"pipeline": f"{MODULE}:site", "limits": {"concurrency": 4}}
    (tmp_path / "penstock.yaml").write_text(
        json.dumps({"project": "resting", "sources": {"shop.example": source}})
    )
    monkeypatch.syspath_prepend(tmp_path)

    async def nothing(request: Request) -> RawResponse:
        raise AssertionError(request.url)

    clock = VirtualClock()
    with Project.load(tmp_path) as project:
        project.clock = clock
        slow = Slow(project.store, clock)
        project.__dict__["store"] = slow
        with Simulation(project, ScriptedNetwork(nothing), seed=1, clock=clock) as simulation:
            run_id = project.run("shop.example", actor="test")
            simulation.run()
        assert project.require_run(run_id).state == "completed"
    claims = [at for at, _, _, claimed in slow.turns if claimed]
    assert len(claims) >= 4
    assert min(b - a for a, b in itertools.pairwise(claims)) >= REST_S
    resting = [(slots, settled) for at, slots, settled, _ in slow.turns if at - claims[1] < REST_S]
    assert any(settled and not slots for slots, settled in resting), (
        "what it had is settled at once"
    )
    sys.modules.pop(MODULE, None)
