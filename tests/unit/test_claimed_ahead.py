"""Jobs that are claimed ahead: no slot waits for a transaction, and no limit is passed for it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from penstock.engine.worker.claimed_ahead import (
    COVER_S,
    LONGEST_WAIT_S,
    MOST_AHEAD,
    MOST_BYTES_AHEAD,
    ClaimedAhead,
)
from penstock.gates.lane import LaneLimits
from penstock.http.failures import FetchError
from penstock.http.network import RawResponse, Request
from penstock.jobs.job import Claimed, JobState
from penstock.project import Project
from penstock.store.jobs import JobFilter
from penstock.store.rows import EventRow
from penstock.store.sqlite.filesystem import RESERVE_BYTES
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal

SOURCE = 7
pytestmark = pytest.mark.usefixtures("pipelines")


def a_job(number: int) -> Claimed:
    return Claimed(number, 1, SOURCE, "page", str(number), 1, 0, 0, 0, False, "{}")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def ahead(clock: VirtualClock) -> ClaimedAhead:
    return ClaimedAhead(clock, {SOURCE: LaneLimits(concurrency=4)})


def end(ahead: ClaimedAhead, count: int, took_s: float, saved: int = 0) -> None:
    for _ in range(count):
        ahead.begun(SOURCE)
    for _ in range(count):
        ahead.has_ended(SOURCE, took_s, saved)


def test_as_many_are_wanted_as_the_slots_perform_in_the_time_of_a_few_turns(
    ahead: ClaimedAhead,
) -> None:
    end(ahead, 40, 0.016)

    assert ahead.wanted() == {SOURCE: int(4 * COVER_S / 0.016)}


def test_pages_that_take_long_and_end_together_are_not_claimed_ahead(ahead: ClaimedAhead) -> None:
    end(ahead, 100, 20.0)

    assert ahead.wanted() == {}


def test_quick_run_level_step_says_nothing_of_its_pages(ahead: ClaimedAhead) -> None:
    ahead.begun(SOURCE)
    ahead.has_ended(SOURCE, None)

    assert ahead.wanted() == {}


def test_never_more_are_wanted_than_a_worker_hands_back_at_once(ahead: ClaimedAhead) -> None:
    end(ahead, 100, 0.0)

    assert ahead.wanted() == {SOURCE: MOST_AHEAD}


def test_no_more_are_wanted_than_a_full_disk_has_room_for(ahead: ClaimedAhead) -> None:
    end(ahead, 100, 0.0, saved=40_000)

    assert ahead.wanted() == {SOURCE: MOST_BYTES_AHEAD // 40_000}
    assert 2 * MOST_BYTES_AHEAD < RESERVE_BYTES


def test_source_that_stands_still_is_not_claimed_ahead_until_it_is_quick_again(
    ahead: ClaimedAhead, clock: VirtualClock
) -> None:
    end(ahead, 4, 0.001)
    assert ahead.wanted()
    ahead.add(a_job(1))
    clock.advance(LONGEST_WAIT_S)

    assert [job.id for job in ahead.late()] == [1]
    assert ahead.wanted() == {}

    for _ in range(10):
        end(ahead, 4, 0.001)
        ahead.wanted()
    assert ahead.wanted()


def test_wait_begins_again_where_no_source_is_to_blame(
    ahead: ClaimedAhead, clock: VirtualClock
) -> None:
    ahead.add(a_job(1))
    clock.advance(LONGEST_WAIT_S)

    ahead.start_over()

    assert ahead.late() == []


def test_source_whose_steps_use_up_a_budget_is_not_claimed_ahead(clock: VirtualClock) -> None:
    ahead = ClaimedAhead(clock, {}, is_paid=lambda source_id: source_id == SOURCE)
    end(ahead, 100, 0.0)

    assert ahead.wanted() == {}


def test_what_waits_begins_in_order_as_others_end(ahead: ClaimedAhead) -> None:
    ahead.bound({SOURCE: 2})
    begun = []
    for number in range(5):
        if ahead.may_begin(SOURCE):
            ahead.begun(SOURCE)
            begun.append(number)
        else:
            ahead.add(a_job(number))
    assert begun == [0, 1]

    for _ in range(3):
        ahead.has_ended(SOURCE, 0.0)
        for job in ahead.ready(SOURCE):
            ahead.begun(SOURCE)
            begun.append(job.id)

    assert begun == [0, 1, 2, 3, 4]


def test_job_that_is_claimed_later_does_not_pass_one_that_waits(ahead: ClaimedAhead) -> None:
    ahead.bound({SOURCE: 1})
    ahead.add(a_job(1))

    assert not ahead.may_begin(SOURCE)


def test_bound_holds_while_something_waits(ahead: ClaimedAhead) -> None:
    """A turn that claims nothing ahead says nothing of the source."""
    ahead.bound({SOURCE: 1})
    ahead.begun(SOURCE)
    ahead.add(a_job(1))

    ahead.bound({})

    assert list(ahead.ready(SOURCE)) == []


def test_what_waits_for_too_long_is_handed_back(ahead: ClaimedAhead, clock: VirtualClock) -> None:
    ahead.add(a_job(1))
    clock.advance(LONGEST_WAIT_S)
    ahead.add(a_job(2))

    assert [job.id for job in ahead.late()] == [1]
    assert ahead.attempts == {(2, 1)}


# In a worker.

MODULE = "pipelines_of_claimed_ahead"
PIPELINES = """
import asyncio

from penstock import Pipeline

pages = Pipeline("pages")
under_way = [0]
most = [0]


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"number": number}


@pages.step(after="discover", unit="page", key="number")
async def page(item, ctx):
    under_way[0] += 1
    most[0] = max(most[0], under_way[0])
    await asyncio.sleep(ctx.params["seconds"])
    under_way[0] -= 1
"""
CONCURRENCY = 3


def a_project(folder: Path, pages: int, seconds: float) -> Project:
    folder.mkdir(exist_ok=True)
    source = {
        "pipeline": f"{MODULE}:pages",
        "params": {"pages": pages, "seconds": seconds},
        "limits": {"concurrency": CONCURRENCY, "adaptive": False},
    }
    settings = {"project": "ahead", "store": "sqlite:penstock.db", "sources": {"acme.com": source}}
    (folder / "penstock.yaml").write_text(json.dumps(settings))
    return Project.load(folder)


async def nobody(request: Request) -> RawResponse:
    raise FetchError("there is no network", request.url)


def most_at_once() -> int:
    return int(importlib.import_module(MODULE).most[0])


def started_together(events: list[EventRow]) -> int:
    """The most jobs that one turn has started."""
    started = [event.at for event in events if event.kind == "job.started"]
    return max(started.count(at) for at in set(started))


def test_quick_pages_are_claimed_ahead_and_no_more_are_under_way_than_allowed(
    tmp_path: Path, clock: VirtualClock
) -> None:
    with a_project(tmp_path / "project", 400, 0.001) as project:
        with Simulation(project, ScriptedNetwork(nobody), seed=1, clock=clock) as simulation:
            project.run("acme.com", actor="test")
            simulation.run()
        assert project.connection.upkeep.check() == []
        told = journal(project)

    assert started_together(told) > CONCURRENCY
    assert most_at_once() == CONCURRENCY


def test_drain_hands_back_what_waits_without_spending_a_try(
    tmp_path: Path, clock: VirtualClock
) -> None:
    with a_project(tmp_path / "project", 400, 0.001) as project:
        with Simulation(project, ScriptedNetwork(nobody), seed=1, clock=clock) as simulation:
            run_id = project.run("acme.com", actor="test")
            simulation.run(for_s=0.06)
            released = [e for e in journal(project) if e.kind == "job.released"]
            running = JobFilter(run_id=run_id, states=(JobState.RUNNING,))
            assert project.connection.jobs.find(running) == []
            simulation.run()
        row = project.require_run(run_id)

    assert released
    assert (row.state, row.succeeded, row.retried) == ("completed", 401, 0)
