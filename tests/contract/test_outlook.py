"""The outlook: what explain says of each source, for all of them at once, without a lock."""

from __future__ import annotations

from typing import Any

import apsw
import psycopg
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.gates.loaded import Loaded, LoadedSource
from penstock.outlook.outlook import Outlook
from penstock.store.schedule_rows import Planned
from tests.contract.scenes import SITE, World, a_job, done, retried, throttled
from tests.contract.test_explaining import (
    QUICK,
    ROOM,
    SCENES,
    Scene,
    build,
    cleared,
    closed,
    explained,
    the_only_worker,
)


def outlooks(world: World, room: Capacity = ROOM, **of: Any) -> dict[str, Outlook]:
    limits = {row.key: world.limits[row.id] for row in world.store.sources.all()}
    return {each.source: each for each in world.store.outlooks.of_sources(limits, room, **of)}


def decided(outlook: Outlook) -> tuple[Any, ...]:
    """What an answer comes to; texts may be shorter in a list."""
    times = {name: (gate.since, gate.opens_at) for name, gate in closed(outlook).items()}
    for name in ("run", "job"):  # since when is in the history, which a list does not read
        if name in times:
            times[name] = (None, times[name][1])
    what = (outlook.would_start, outlook.stands, outlook.gate, outlook.opens_at, outlook.command)
    return (*what, times)


# For any history, the list, the explanation and the next turn agree.


@QUICK
@given(scene=SCENES, second=st.sampled_from([None, None, "all", "sound", "suspect"]))
def test_outlook_names_the_gate_that_explain_names_and_says_what_the_next_turn_starts(
    world: World, scene: Scene, second: Any
) -> None:
    agrees(world, scene, second)


@pytest.mark.torture
@pytest.mark.timeout(1800)
@settings(QUICK, max_examples=1000)
@given(scene=SCENES, second=st.sampled_from([None, None, "all", "sound", "suspect"]))
def test_outlook_agrees_in_very_many_scenes(world: World, scene: Scene, second: Any) -> None:
    agrees(world, scene, second)


def agrees(world: World, scene: Scene, second: Any) -> None:
    cleared(world)
    world.clock.advance(1)
    job_ids = build(world, scene, f"t{len(world.limits)}")
    assume(job_ids)
    world.clock.advance(1)
    worker, whole, free = the_only_worker(world, scene)
    if second is not None:
        world.store.workers.register("z", "here", 1, "test", 2, second)
    sources = list({world.job(job_id).source for job_id in job_ids})
    older = [row.key for row in world.store.sources.all() if row.key not in sources][:1]

    seen = outlooks(world, whole, sources=[*sources, *older])
    for key, outlook in seen.items():
        said = explained(world, whole, source=key)
        assert decided(outlook) == decided(said), (outlook, said)
    if second is None:
        started = {world.job(job.id).source for job in world.turn(worker, capacity=free).claimed}
        for key in sources:
            assert seen[key].would_start == (key in started), seen[key]


# What it says.


def test_outlook_of_sources_that_have_no_work_says_when_they_have_some(world: World) -> None:
    due_at = world.clock.now() + 600
    source_id = world.source("acme.com")
    world.source("other.org")
    world.store.schedules.plan([Planned(source_id, "main", "{}", "every hour", "every", due_at)])

    seen = outlooks(world)

    assert list(seen) == ["acme.com", "other.org"]
    acme, other = seen.values()
    assert (acme.stands, acme.gate, acme.opens_at) == ("idle", "work", due_at)
    assert (other.stands, other.command) == ("idle", "penstock run other.org")


def test_outlook_asks_the_gates_in_the_order_of_the_claim(world: World) -> None:
    world.start_with_pages(3)
    world.turn("w", throttled(world.one(), 90))
    world.store.breakers.open("source:acme.com", 60, "ann", "it is down")
    world.store.sources.pause(world.source(), "ann", "")
    world.store.sources.hold("", "ann", "")

    seen = outlooks(world)["acme.com"]

    assert list(closed(seen)) == ["held", "paused", "breaker", "cooldown"]
    assert (seen.gate, seen.command) == ("held", "penstock unhold")


def test_outlook_sees_what_the_next_turn_wakes(world: World) -> None:
    world.start_with_pages(1)
    world.turn("w", retried(world.one(), 30))
    waits = outlooks(world)["acme.com"]
    assert (waits.stands, waits.gate, waits.opens_at) == ("time", "job", world.clock.now() + 30)

    world.clock.advance(30)
    world.store.workers.beat("w")

    assert outlooks(world)["acme.com"].would_start
    assert len(world.claim()) == 1


def test_outlook_of_a_source_that_no_worker_has_loaded(world: World) -> None:
    run_id = world.start_with_pages(1)
    world.start(source="other.org")
    source_id = world.source("other.org")
    stages = tuple(stage.name for stage in SITE.stages)
    world.store.workers.announce("w", Loaded("", {}, {source_id: LoadedSource("v1", stages)}), 1)

    seen = outlooks(world)

    assert (seen["acme.com"].stands, seen["acme.com"].gate) == ("person", "code")
    assert seen["other.org"].would_start
    assert decided(seen["acme.com"]) == decided(explained(world, run_id=run_id))


def test_outlook_counts_what_runs_in_all_runs_of_a_source(world: World) -> None:
    world.start_with_pages(1, key="first")
    world.start_with_pages(3, key="second")
    world.claim(slots=2)
    world.source("acme.com", LaneLimits(concurrency=3))

    seen = outlooks(world)["acme.com"]

    assert (seen.would_start, seen.gate) == (False, "slots")
    assert decided(seen) == decided(explained(world, source="acme.com"))


def test_outlook_of_a_source_that_only_runs(world: World) -> None:
    world.start_with_pages(1)
    job = world.one()

    seen = outlooks(world)["acme.com"]

    assert (seen.stands, seen.job_id) == ("running", job.id)
    assert closed(seen)["job"].by == "running in w"


# What it does not do.


def test_outlook_changes_nothing(world: World) -> None:
    world.start_with_pages(3)
    world.turn("w", retried(world.one(), 10))
    world.clock.advance(10)
    before = world.dump()

    assert outlooks(world)["acme.com"].would_start

    assert world.dump() == before


def test_outlook_waits_for_nobody_who_writes(world: World) -> None:
    world.start_with_pages(1)
    if world.kind.is_shared:
        with psycopg.connect(str(world.path)) as other:
            other.execute("SELECT 1 FROM penstock.source FOR UPDATE")
            other.execute("SELECT 1 FROM penstock.run FOR UPDATE")
            other.execute("UPDATE penstock.job SET at = at")
            assert outlooks(world)["acme.com"].would_start
        return
    other_file = apsw.Connection(str(world.path))
    other_file.execute("BEGIN IMMEDIATE; UPDATE job SET at = at")
    assert outlooks(world)["acme.com"].would_start
    other_file.close()


def test_outlook_keeps_nobody_from_writing(world: World) -> None:
    """While it is read at one moment, a turn goes on and claims."""
    world.start_with_pages(1)
    with world.store._db.at_one_moment():
        other = world.kind.open(world.path, world.clock)
        claimed = other.turn("w", [], ROOM, world.limits).claimed
        other.close()
    assert len(claimed) == 1


def test_what_stops_a_source_is_told_although_post_processing_goes_on(world: World) -> None:
    run_id = world.start_with_pages(2)
    world.turn("w", done(world.one(), children=[a_job("c", stage="persist")]))
    world.store.breakers.open("source:acme.com", 120, "ann", "it is down")

    seen = outlooks(world)["acme.com"]

    assert (seen.run_id, seen.stands, closed(seen)) == (run_id, "starts", {})
    assert [stop.name for stop in seen.stops] == ["breaker"]
    world.claim()
    assert [stop.name for stop in outlooks(world)["acme.com"].stops] == ["breaker"]
