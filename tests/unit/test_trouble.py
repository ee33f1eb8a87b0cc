"""A database that is away: asked again for ever, not too often, and told of once a minute."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import cast

import pytest

from penstock.engine.worker.store_backoff import FIRST_S, LONGEST_S, RETRY_S, StoreBackoff
from penstock.errors import StoreCorrupt, StoreError, StoreUnreachable
from penstock.http.network import RawResponse, Request
from penstock.project import Project
from penstock.store.store import Store
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal
from tests.tapped import Tapped

AWAY = StoreUnreachable("can't reach the database")
NOBODY = cast(Store, None)


def a_trouble(seed: int = 1) -> tuple[StoreBackoff, VirtualClock, list[str]]:
    clock, told = VirtualClock(), list[str]()
    return StoreBackoff(NOBODY, clock, told.append, random.Random(seed)), clock, told


def test_server_that_is_away_is_asked_soon_and_then_less_and_less_often() -> None:
    trouble, _, _ = a_trouble()

    waits = [trouble.wait_s(AWAY) for _ in range(200)]

    most = [min(LONGEST_S, FIRST_S * 2**number) for number in range(200)]
    assert all(whole / 2 <= wait <= whole for wait, whole in zip(waits, most, strict=True))
    assert (FIRST_S, LONGEST_S) == (0.1, 2.0)


def test_many_who_lost_the_same_server_come_back_one_by_one() -> None:
    waits = [a_trouble(seed)[0].wait_s(AWAY) for seed in range(50)]

    assert len({round(wait, 4) for wait in waits}) > 40


def test_server_that_was_back_for_a_moment_is_asked_soon_again() -> None:
    trouble, _, _ = a_trouble()
    for _ in range(20):
        trouble.wait_s(AWAY)

    trouble.is_over()

    assert trouble.wait_s(AWAY) <= FIRST_S


def test_it_is_said_once_a_minute_in_whatever_words_and_when_it_is_over() -> None:
    trouble, clock, told = a_trouble()

    for number in range(600):
        trouble.wait_s(StoreUnreachable(f"can't reach the database ({number})"))
        clock.advance(1.0)
    trouble.is_over()
    trouble.is_over()

    assert len(told) == 10 + 1
    assert "again" in told[-1]


def test_what_is_only_busy_is_asked_again_soon_and_what_is_broken_is_not() -> None:
    trouble, _, _ = a_trouble()

    assert trouble.wait_s(StoreError("waited 5 s for a lock")) == RETRY_S
    with pytest.raises(StoreCorrupt):
        trouble.wait_s(StoreCorrupt("damaged"))


# A worker whose database is away for minutes, on virtual time.

MODULE = "pipelines_of_a_database_that_is_away"
PIPELINE = """
import asyncio

from penstock import Pipeline

site = Pipeline("site")


@site.step(unit="run")
async def discover(ctx):
    for number in range(30):
        yield {"url": f"https://shop.example/{number}"}


@site.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    await asyncio.sleep(20)
    async for _ in ctx.records("page"):
        break
    response = await ctx.fetch(page["url"])
    ctx.save("page", key=page["url"], data={"n": response.text})
"""
ASKED_BY_THE_WORKER = frozenset(
    "turn workers.still_owned workers.halted workers.jobs_of hosts.closed hosts.reserve records.of"
    " snapshots.places snapshots.of".split()
)


class Away(Tapped):
    """A store that can't be reached between two moments."""

    def __init__(self, store: Store, clock: VirtualClock, since: float, until: float) -> None:
        super().__init__(store, self._miss)
        self._clock = clock
        self._span = (since, until)
        self.misses = 0

    def _miss(self, verb: str) -> None:
        since, until = self._span
        if verb in ASKED_BY_THE_WORKER and since <= self._clock.monotonic() < until:
            self.misses += 1
            raise AWAY


def test_worker_outlives_a_database_that_is_away_for_minutes_and_spends_no_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{MODULE}.py").write_text(PIPELINE)
    source = {"pipeline": f"{MODULE}:site", "timeout": "1h", "limits": {"concurrency": 8}}
    (tmp_path / "penstock.yaml").write_text(
        json.dumps({"project": "away", "sources": {"shop.example": source}})
    )
    monkeypatch.syspath_prepend(tmp_path)

    async def answer(request: Request) -> RawResponse:
        status = 404 if request.url.endswith("robots.txt") else 200
        return RawResponse(status, {"content-type": "text/plain"}, b"fine")

    clock = VirtualClock()
    with Project.load(tmp_path) as project:
        project.clock = clock
        away = Away(project.connection, clock, since=10.0, until=310.0)
        monkeypatch.setattr(Project, "connection", away)
        with Simulation(project, ScriptedNetwork(answer), seed=1, clock=clock) as simulation:
            run_id = project.run("shop.example", actor="test")
            simulation.run()

        run = project.require_run(run_id)
        assert (run.state, run.inserted, run.unchanged) == ("completed", 30, 0)
        assert clock.monotonic() > 310.0
        assert 100 < away.misses < 3000
        started = [event for event in journal(project) if event.kind == "job.started"]
        assert {event.attempt for event in started} == {1}
    sys.modules.pop(MODULE, None)
