"""Following the journal: each line once, however its writers overlap."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

import psycopg

from penstock.clock import SystemClock
from penstock.store.rows import Cursor, EventRow
from tests.contract.scenes import POSTGRES, Place, StoreKind, World


def rest(
    world: World,
    cursor: Cursor,
    limit: int = 500,
    run_id: int | None = None,
    job_id: int | None = None,
) -> list[EventRow]:
    """Everything behind a cursor, in pages."""
    found: list[EventRow] = []
    while True:
        rows, cursor = world.store.follow(cursor, None, run_id, job_id, limit)
        found += rows
        if len(rows) < limit:
            return found


def test_follow_begins_with_the_newest_and_goes_on_behind_them(world: World) -> None:
    world.start_with_pages(10)
    shown, cursor = world.store.follow(None, limit=3)
    assert shown == world.store.events(limit=3)
    assert rest(world, cursor) == []
    world.start(source="other.com")
    new = world.store.events(after_id=shown[-1].id, limit=100)
    assert rest(world, cursor) == new
    assert rest(world, cursor, limit=1) == new


def test_follow_can_be_for_one_run_or_job_only(world: World) -> None:
    first = world.start_with_pages(3)
    _, cursor = world.store.follow(None, run_id=first)
    second = world.start(source="other.com")
    world.claim()
    assert {row.run_id for row in rest(world, cursor, run_id=first)} == {first}
    assert {row.run_id for row in rest(world, cursor, run_id=second)} == {second}
    job_id = world.jobs(second)[0].id
    assert [row.kind for row in rest(world, cursor, job_id=job_id)] == ["job.started"]


def test_events_can_be_of_one_kind_or_of_all_of_a_noun(world: World) -> None:
    world.start_with_pages(3)
    world.claim()
    everything = [row.kind for row in world.store.events(limit=100)]
    begun = [kind for kind in everything if kind == "job.started"]
    of_jobs = [kind for kind in everything if kind.startswith("job.")]
    assert begun
    assert len(of_jobs) < len(everything)

    assert [row.kind for row in world.store.events(limit=100, kind="job.started")] == begun
    assert [row.kind for row in world.store.events(limit=100, kind="job")] == of_jobs
    assert world.store.events(limit=100, kind="jo") == []
    assert world.store.events(limit=100, kind="job.start%") == []
    followed, _ = world.store.follow(None, limit=100, kind="job")
    assert [row.kind for row in followed] == of_jobs


def test_what_nobody_wanted_is_not_looked_at_again(world: World) -> None:
    run_id = world.start_with_pages(3)
    _, cursor = world.store.follow(None, run_id=run_id)
    world.start(source="other.com")
    rows, later = world.store.follow(cursor, run_id=run_id)
    assert rows == []
    assert later != cursor


def test_reader_beside_many_writers_sees_each_line_once(kind: StoreKind, place: Place) -> None:
    """On a server the ids of those who write at once become visible in any order."""
    world = World(kind, place)
    writers, turns = (4, 25) if kind is POSTGRES else (2, 10)
    _, cursor = world.store.follow(None)
    last = world.store.events(limit=1)[-1].id
    threads = [
        threading.Thread(target=write, args=(kind, place, number, turns))
        for number in range(writers)
    ]
    for thread in threads:
        thread.start()
    seen: list[int] = []
    while any(thread.is_alive() for thread in threads):
        rows, cursor = world.store.follow(cursor, limit=random.randint(1, 20))
        seen += [row.id for row in rows]
    for thread in threads:
        thread.join()
    seen += [row.id for row in rest(world, cursor)]
    written = [row.id for row in world.store.events(after_id=last, limit=100_000)]
    assert [line for line, times in Counter(seen).items() if times > 1] == []
    assert sorted(seen) == written
    world.close()


def write(kind: StoreKind, place: str | Path, number: int, turns: int) -> None:
    store = kind.open(place, SystemClock())
    for turn in range(turns):
        store.register(f"w-{number}-{turn}", "here", 1, "test")
        store.sign_off(f"w-{number}-{turn}")
    store.close()


def test_line_that_is_committed_late_is_seen_late_and_holds_up_nobody(
    schema_database: str,
) -> None:
    world = World(POSTGRES, schema_database)
    _, cursor = world.store.follow(None)
    slow = psycopg.connect(schema_database)
    slow.execute("INSERT INTO penstock.event (at, kind) VALUES (1, 'slow')")
    world.register("quick")
    rows, cursor = world.store.follow(cursor)
    assert [row.kind for row in rows] == ["worker.started"]
    slow.commit()
    slow.close()
    late, cursor = world.store.follow(cursor)
    assert [row.kind for row in late] == ["slow"]
    assert late[0].id < rows[0].id
    assert world.store.follow(cursor)[0] == []
    world.close()
