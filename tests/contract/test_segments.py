"""Which segments are still needed: asked for some of them, and forgotten a batch at a time."""

from __future__ import annotations

import threading

import psycopg
import pytest

from penstock.gates.capacity import Capacity
from penstock.jobs.job import Claimed
from penstock.store.snapshots import Kept
from penstock.store.upkeep import Keep
from tests.contract.conftest import STORES
from tests.contract.scenes import StoreKind, World
from tests.postgres.workspace import until

DAY_S = 86_400.0
SNAPSHOTS = Keep(None, None, None, DAY_S)
SHARED = [kind for kind in STORES if kind.is_shared]


def keep(world: World, job: Claimed, number: int, segment: str, content: str = "") -> None:
    kept = Kept(
        number,
        job.id,
        job.run_id,
        f"https://a/{number}",
        200,
        {},
        world.clock.now(),
        content or f"content {number}",
        segment,
        number,
        1,
    )
    world.store.turn("w", [], Capacity(0), {}, [kept])


def drop_all(world: World, limit: int = 1000) -> int:
    """Forget what can be forgotten; answers in how many batches."""
    batches, after = 0, world.store.snapshots.drop_unused_payloads("", limit)
    while after is not None:
        batches += 1
        after = world.store.snapshots.drop_unused_payloads(after, limit)
    return batches


def test_only_segments_that_were_asked_for_are_said_to_be_in_use(world: World) -> None:
    world.start()
    job = world.one()
    for number in range(4):
        keep(world, job, number, f"s{number}")
    assert world.store.snapshots.segments_in_use(["s1", "s3", "other"]) == {"s1", "s3"}
    assert world.store.snapshots.segments_in_use([]) == set()


def test_a_segment_is_in_use_until_its_last_snapshot_is_gone(world: World) -> None:
    world.start()
    job = world.one()
    keep(world, job, 1, "both")
    keep(world, job, 2, "old")
    world.clock.advance(10 * DAY_S)
    keep(world, job, 3, "both")
    world.store.runs.cancel(job.run_id, "test", "")
    world.store.workers.bury("w", "test")
    while world.store.upkeep.prune(SNAPSHOTS):
        pass
    assert world.store.snapshots.segments_in_use(["both", "old"]) == {"both", "old"}
    assert drop_all(world) == 1
    assert world.store.snapshots.segments_in_use(["both", "old"]) == {"both"}
    assert world.store.upkeep.check() == []


def test_every_segment_is_looked_at_however_small_the_batches(world: World) -> None:
    world.start()
    job = world.one()
    for number in range(7):
        keep(world, job, number, f"s{number}")
    world.tamper("DELETE FROM snapshot")
    assert drop_all(world, limit=3) == 3
    assert world.dump()["payload"] == []


@pytest.mark.parametrize("kind", SHARED, ids=[kind.name for kind in SHARED])
def test_a_payload_that_a_turn_is_about_to_refer_to_is_not_forgotten(
    world: World, kind: StoreKind, schema_database: str
) -> None:
    world.start()
    job = world.one()
    keep(world, job, 1, "s", "equal")
    world.tamper("DELETE FROM snapshot")
    with psycopg.connect(schema_database) as turn, psycopg.connect(schema_database) as watcher:
        watcher.autocommit = True
        # As a turn does it that has fetched equal content, up to its commit.
        turn.execute(
            "INSERT INTO penstock.payload VALUES ('equal', 's', 1, 1) ON CONFLICT (hash) DO NOTHING"
        )
        turn.execute(
            "INSERT INTO penstock.snapshot VALUES (2, %s, %s, 'https://a/2', 'equal', 200, '{}', 1)",
            (job.id, job.run_id),
        )
        upkeep = threading.Thread(target=world.store.snapshots.drop_unused_payloads)
        upkeep.start()
        until(
            "upkeep waits for the turn, or is done",
            lambda: not upkeep.is_alive() or is_anyone_waiting(watcher),
        )
        turn.commit()
        upkeep.join()
    assert world.store.snapshots.segments_in_use(["s"]) == {"s"}
    assert world.store.upkeep.check() == []


def is_anyone_waiting(watcher: psycopg.Connection[tuple[int]]) -> bool:
    found = watcher.execute(
        "SELECT count(*) FROM pg_locks WHERE NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    ).fetchone()
    return found is not None and found[0] > 0
