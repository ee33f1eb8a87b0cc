"""A worker rests: when it was asked to leave the work to others, and so that attempts share their turns."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from penstock.engine.worker import loop as engine
from penstock.engine.worker.calls import Answer, Inline
from penstock.gates.capacity import Capacity
from penstock.http.network import RawResponse, Request
from penstock.project import Project
from penstock.store.store import Store
from penstock.store.turn.turn import Turn
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

MODULE = "pipelines_of_a_worker_that_rests"
REST_S = 7.0
TURN_S = 0.004
PIPELINE = """
import asyncio

from penstock import Pipeline

site = Pipeline("site")


@site.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params.get("pages", 12)):
        yield {"n": number}


@site.step(after="discover", unit="page", key="n")
async def extract(page, ctx):
    await asyncio.sleep(ctx.params.get("takes_s", 1) + page["n"] * ctx.params.get("more_s", 0))
"""


class Watched:
    """A store whose turns are remembered; it asks to be left alone after each that claimed something."""

    def __init__(self, store: Store, clock: VirtualClock, rest_s: float) -> None:
        self._store = store
        self._clock = clock
        self._rest_s = rest_s
        self.turns: list[tuple[float, int, int, int]] = []

    def turn(self, worker: str, ends: Any, capacity: Capacity, *more: Any) -> Turn:
        turn = self._store.turn(worker, ends, capacity, *more)
        seen = (self._clock.monotonic(), capacity.slots, len(turn.settled), len(turn.claimed))
        self.turns.append(seen)
        return replace(turn, rest_s=self._rest_s if turn.claimed else 0.0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Slow(Inline):
    """Each call takes a while, as those of a real disk do."""

    async def __call__(self, verb: Callable[[], Answer]) -> Answer:
        await asyncio.sleep(TURN_S)
        return verb()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / f"{MODULE}.py").write_text(PIPELINE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop(MODULE, None)


@contextmanager
def worked_off(folder: Path, limit: int, rest_s: float = 0.0, **params: Any) -> Iterator[Watched]:
    """The turns in which a run of this source came to its end."""
    source = {
        "pipeline": f"{MODULE}:site",
        "limits": {"concurrency": limit},
        "params": params,
    }
    (folder / "penstock.yaml").write_text(
        json.dumps({"project": "resting", "sources": {"shop.example": source}})
    )

    async def nothing(request: Request) -> RawResponse:
        raise AssertionError(request.url)

    clock = VirtualClock()
    with Project.load(folder) as project:
        project.clock = clock
        watched = Watched(project.connection, clock, rest_s)
        network = ScriptedNetwork(nothing)
        with (
            patch.object(Project, "connection", watched),
            Simulation(project, network, seed=1, clock=clock) as simulation,
        ):
            run_id = project.run("shop.example", actor="test")
            simulation.run()
        assert project.require_run(run_id).state == "completed"
        yield watched


def test_worker_that_rests_settles_and_claims_nothing(folder: Path) -> None:
    with worked_off(folder, 4, REST_S) as watched:
        turns = watched.turns
    claims = [at for at, _, _, claimed in turns if claimed]
    assert len(claims) >= 4
    assert min(b - a for a, b in itertools.pairwise(claims)) >= REST_S
    resting = [(slots, settled) for at, slots, settled, _ in turns if at - claims[1] < REST_S]
    assert any(settled and not slots for slots, settled in resting), (
        "what it had is settled at once"
    )


@pytest.mark.parametrize("rest_s", [0.0, engine.REST_S])
def test_attempts_that_end_soon_after_each_other_share_a_turn(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rest_s: float
) -> None:
    monkeypatch.setattr("penstock.testing.Inline", Slow)
    monkeypatch.setattr(engine, "REST_S", rest_s)
    # One page ends every millisecond, and a turn takes four: five would share each without a rest.
    with worked_off(folder, 64, pages=64, takes_s=0.5, more_s=0.001) as watched:
        shares = [settled for at, _, settled, _ in watched.turns if settled and at > 0.5]
    early = shares[: len(shares) // 2]
    assert (max(early) > 6) == bool(rest_s), shares


def test_attempt_that_ends_beside_long_ones_waits_no_longer_than_a_turn_takes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.testing.Inline", Slow)
    ended = {}
    for rest_s in (0.0, 100.0):
        monkeypatch.setattr(engine, "REST_S", rest_s)
        where = folder / f"{rest_s:.0f}"
        where.mkdir()
        with worked_off(where, 12, takes_s=1.0, more_s=2.0) as watched:
            ended[rest_s] = [at for at, _, settled, _ in watched.turns if settled]
    assert len(ended[0.0]) == len(ended[100.0])
    assert all(b - a <= 2 * TURN_S for a, b in zip(ended[0.0], ended[100.0], strict=True))
