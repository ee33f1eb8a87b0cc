"""Prepared runs: workers leave them alone, and a drain claims its part of one and nothing else."""

from __future__ import annotations

from penstock.gates.capacity import Capacity, DrainScope
from penstock.gates.lane import LaneLimits
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.run import RunKind
from penstock.outlook.outlook import Outlook
from tests.contract.scenes import SITE, World, done, pages, quarantined, retried
from tests.contract.test_explaining import ROOM, closed
from tests.contract.test_outlook import outlooks


def prepare(world: World, key: str = "dag-1", source: str = "acme.com") -> int:
    source_id = world.source(source)
    run_id, _ = world.store.runs.start(
        source_id, RunKind.FULL, SITE, "v1", key=key, actor="test", for_drains=True
    )
    return run_id


def drained(world: World, scope: DrainScope, slots: int = 1000) -> list[Claimed]:
    return world.turn("d", capacity=Capacity(slots, scope=scope)).claimed


def prepare_pages(world: World, count: int) -> int:
    """A prepared run whose discover has ended and that has this many pages queued; "d" is a drain."""
    run_id = prepare(world)
    world.register("d")
    [root] = drained(world, DrainScope(run_id, "discover"))
    world.turn("d", done(root, children=pages(count)))
    return run_id


def of_run(world: World, run_id: int) -> tuple[Outlook, Outlook]:
    """What explain and the list say of it."""
    explained = world.store.explanation.explain(world.limits, ROOM, run_id=run_id)
    return explained, outlooks(world)["acme.com"]


def test_workers_leave_a_prepared_run_alone_and_a_drain_everything_else(world: World) -> None:
    run_id = prepare_pages(world, 3)
    other = world.start(source="other.org")

    assert [job.run_id for job in world.claim()] == [other]
    assert {job.run_id for job in drained(world, DrainScope(run_id, "extract"))} == {run_id}


def test_drain_claims_its_stage_only(world: World) -> None:
    run_id = prepare_pages(world, 3)

    assert drained(world, DrainScope(run_id, "persist")) == []
    assert drained(world, DrainScope(run_id + 1, "extract")) == []
    assert len(drained(world, DrainScope(run_id, "extract"))) == 3


def test_shards_share_out_a_stage_and_keep_their_jobs_through_retries(world: World) -> None:
    run_id = prepare_pages(world, 60)
    scopes = [DrainScope(run_id, "extract", shard, 3) for shard in range(3)]

    found = [drained(world, scope) for scope in scopes]

    ids = [job.id for part in found for job in part]
    assert len(ids) == len(set(ids)) == 60
    assert all(15 <= len(part) <= 25 for part in found)
    world.turn("d", *(retried(job, 5) for job in found[1]))
    world.clock.advance(5)
    assert drained(world, scopes[0]) == []
    assert {job.id for job in drained(world, scopes[1])} == {job.id for job in found[1]}


def test_what_is_left_of_a_shard_does_not_count_the_others(world: World) -> None:
    run_id = prepare_pages(world, 10)
    mine, theirs = (DrainScope(run_id, "extract", shard, 2) for shard in range(2))
    jobs = drained(world, mine)
    assert world.store.runs.left_of(mine).is_running

    world.turn("d", *(done(job) for job in jobs[:-1]), retried(jobs[-1], 30))

    left = world.store.runs.left_of(mine)
    assert (bool(left.is_queued), bool(left.is_running)) == (False, False)
    assert left.due_at == world.clock.now() + 30
    assert world.store.runs.left_of(theirs).is_queued


def test_limits_of_a_source_hold_over_workers_and_drains_together(world: World) -> None:
    run_id = prepare_pages(world, 10)
    world.start_with_pages(10, key="second")
    limits = {world.source(): LaneLimits(concurrency=4)}
    begun = world.turn("w", capacity=Capacity(3), limits=limits).claimed
    room = Capacity(100, scope=DrainScope(run_id, "extract"))

    more = world.turn("d", capacity=room, limits=limits).claimed

    assert (len(begun), len(more)) == (3, 1)


def test_run_ends_by_its_drains_and_a_zombie_of_one_changes_nothing(world: World) -> None:
    run_id = prepare_pages(world, 2)
    scope = DrainScope(run_id, "extract")
    first = drained(world, scope)
    world.store.workers.bury("d", "killed")
    world.register("e")
    again = world.turn("e", capacity=Capacity(10, scope=scope)).claimed
    assert [job.id for job in again] == [job.id for job in first]

    assert world.turn("d", *(done(job) for job in first)).settled == []
    world.turn("e", *(done(job) for job in again))

    assert world.run(run_id).state == "completed"
    assert world.run(run_id).succeeded == 3


def test_key_finds_the_run_again_and_nobody_joins_it(world: World) -> None:
    run_id = prepare(world)
    assert prepare(world) == run_id

    found, is_new = world.store.runs.start(
        world.source(), RunKind.FULL, SITE, "v1", key="mine", actor="test", joins_active=True
    )

    assert is_new
    assert found != run_id
    assert prepare(world, "dag-2") not in (run_id, found)


def test_run_that_was_handed_over_is_for_workers(world: World) -> None:
    run_id = prepare(world)
    assert world.store.jobs.startable_stages(60) == []
    assert world.store.jobs.startable_stages(60, run_id=run_id) != []

    assert world.store.runs.hand_over(run_id, "ann", "airflow is gone")

    assert not world.store.runs.hand_over(run_id, "ann", "")
    assert world.kinds(run_id=run_id)[-1] == "run.handed_over"
    assert [job.run_id for job in world.claim()] == [run_id]


def test_suspects_of_a_prepared_run_are_isolated_by_its_drains(world: World) -> None:
    run_id = prepare_pages(world, 1)
    scope = DrainScope(run_id, "extract")
    for name in ("d", "e"):
        assert world.turn(name, capacity=Capacity(1, scope=scope)).claimed
        world.store.workers.bury(name, "it crashed")
        world.register("e")

    assert not world.store.jobs.has_suspects()
    assert world.store.jobs.has_suspects(run_id)
    room = Capacity(5, admits="suspect")
    assert world.turn("w", capacity=room).claimed == []
    room = Capacity(5, admits="suspect", scope=scope)
    assert len(world.turn("e", capacity=room).claimed) == 1


def test_failed_jobs_of_one_part_are_queued_again(world: World) -> None:
    run_id = prepare_pages(world, 8)
    jobs = drained(world, DrainScope(run_id, "extract"))
    world.turn("d", *(quarantined(job) for job in jobs))
    [cause] = world.store.runs.failures_by_cause(run_id, 5, "extract")
    assert (cause.jobs, world.store.runs.failures_by_cause(run_id, 5, "persist")) == (8, [])

    mine = DrainScope(run_id, "extract", 1, 2)
    queued = world.store.runs.retry_failed(run_id, "test", "again", mine)

    again = drained(world, DrainScope(run_id, "extract"))
    assert queued == len(again) == 4
    assert {job.id for job in again} == {job.id for job in jobs if job.id % 2 == 1}
    assert len(world.jobs(run_id, JobState.QUARANTINED)) == 4
    world.turn("d", *(done(job) for job in again))
    assert world.run(run_id).state == "partial"


def test_explain_and_the_list_name_the_drain_that_is_missing(world: World) -> None:
    run_id = prepare_pages(world, 2)

    for outlook in of_run(world, run_id):
        assert (outlook.would_start, outlook.stands, outlook.gate) == (False, "person", "drain")
        assert outlook.command == f"penstock drain {run_id} extract"
    scope = DrainScope(run_id, "extract")
    world.store.workers.register("f", "here", 1, "test", 5, scope=scope)
    for outlook in of_run(world, run_id):
        assert outlook.would_start, closed(outlook)
