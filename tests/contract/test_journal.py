"""Following the journal: each line once, however its writers overlap."""

from __future__ import annotations

import random
import threading
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.clock import SystemClock
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.journal.condition import condition
from penstock.store import jobs as jobs_of_store
from penstock.store import journal as journal_of_store
from penstock.store import journal_search
from penstock.store.jobs import JobFilter
from penstock.store.rows import Cursor, EventRow
from tests.contract.scenes import POSTGRES, Place, StoreKind, World, done, quarantined


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
        rows, cursor = world.store.journal.follow(cursor, None, run_id, job_id, limit)
        found += rows
        if len(rows) < limit:
            return found


def test_follow_begins_with_the_newest_and_goes_on_behind_them(world: World) -> None:
    world.start_with_pages(10)
    shown, cursor = world.store.journal.follow(None, limit=3)
    assert shown == world.store.journal.events(limit=3)
    assert rest(world, cursor) == []
    world.start(source="other.com")
    new = world.store.journal.events(after_id=shown[-1].id, limit=100)
    assert rest(world, cursor) == new
    assert rest(world, cursor, limit=1) == new


def test_follow_can_be_for_one_run_or_job_only(world: World) -> None:
    first = world.start_with_pages(3)
    _, cursor = world.store.journal.follow(None, run_id=first)
    second = world.start(source="other.com")
    world.claim()
    assert {row.run_id for row in rest(world, cursor, run_id=first)} == {first}
    assert {row.run_id for row in rest(world, cursor, run_id=second)} == {second}
    job_id = world.jobs(second)[0].id
    assert [row.kind for row in rest(world, cursor, job_id=job_id)] == ["job.started"]


def of_job(world: World, job_id: int) -> list[EventRow]:
    return [row for row in world.store.journal.events(limit=100_000) if row.job_id == job_id]


def a_long_journal(world: World) -> list[int]:
    """Jobs that came to all kinds of ends, hours apart, with others in between."""
    world.start_with_pages(8)
    jobs = world.claim()
    for number, job in enumerate(jobs):
        world.clock.advance(1800.0)
        end = quarantined(job) if number % 2 else done(job)
        world.turn("w", end)
        world.start(source=f"other{number}.com", key=f"other {number}")
    world.store.quarantine.note(jobs[1].id, "asked the shop", "ann")
    world.clock.advance(7200.0)
    world.store.jobs.retry(jobs[3].id, "ann", "")
    world.store.jobs.retry(jobs[5].id, "ann", "")
    world.store.jobs.cancel(jobs[5].id, "ann", "")
    world.clock.advance(7200.0)
    world.start(source="last.com", key="last")
    return [job.id for job in jobs]


@pytest.mark.parametrize("piece", [journal_search.NEAR, 3])
def test_lines_of_a_job_are_all_of_them_wherever_they_stand(
    world: World, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(journal_search, "NEAR", piece)
    for job_id in a_long_journal(world):
        expected = of_job(world, job_id)
        assert len(expected) >= 2
        assert world.store.journal.events(job_id=job_id) == expected
        assert world.store.journal.events(job_id=job_id, limit=1) == expected[-1:]
        assert world.store.journal.events(job_id=job_id, kind="job.started") == expected[:1]
        assert world.store.journal.events(job_id=job_id, after_id=0) == expected
        assert world.store.journal.follow(None, job_id=job_id)[0] == expected


def test_whatever_is_asked_for_is_what_a_walk_through_the_journal_finds(world: World) -> None:
    a_long_journal(world)
    everything = world.store.journal.events(limit=100_000)
    kinds = {row.kind for row in everything} | {"job", "run"}
    alone = [(kind, None, None) for kind in kinds]
    of_runs = product(["run", "job", "job.quarantined", None], [1, 3], [None])
    of_sources = product(["run", "job.quarantined", None], [None], ["acme.com", "other3.com"])
    for kind, run_id, source in [*alone, *of_runs, *of_sources]:
        expected = [
            row
            for row in everything
            if kind in (None, row.kind, row.kind.partition(".")[0])
            and run_id in (None, row.run_id)
            and source in (None, row.source)
        ]
        wanted: dict[str, Any] = {"kind": kind, "run_id": run_id, "source": source}
        assert world.store.journal.events(limit=100_000, **wanted) == expected
        assert world.store.journal.events(limit=2, **wanted) == expected[-2:]
        before_id = expected[-1].id if expected else 1
        found = world.store.journal.events(limit=1, before_id=before_id, **wanted)
        assert found == expected[-2:-1]


@pytest.mark.parametrize("wanted", [{"source": "other3.com"}, {"kind": "job"}, {"run_id": 1}])
def test_page_that_looks_through_a_part_of_the_journal_says_where_the_next_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any]
) -> None:
    a_long_journal(world)
    monkeypatch.setattr(journal_of_store, "LOOKED", 7)
    where = () if "source" in wanted else (condition("actor=ann"),)
    expected = world.store.journal.events(limit=1000, where=where, **wanted)
    assert expected
    found: list[EventRow] = []
    before_id, pages = None, 0
    while pages == 0 or before_id is not None:
        page, before_id = world.store.journal.page(
            limit=1000, where=where, before_id=before_id, **wanted
        )
        assert not page or page[-1].id - page[0].id < 7 or wanted == {"run_id": 1}
        found = [*page, *found]
        pages += 1
    assert found == expected
    assert pages > 2


@pytest.mark.parametrize("step_s", [-7200.0, 7200.0, -86_400.0])
def test_clock_that_was_set_hides_no_line_of_a_job(world: World, step_s: float) -> None:
    world.start_with_pages(6)
    jobs = world.claim()
    for number, job in enumerate(jobs):
        world.clock.advance(step_s if number == 3 else 900.0)
        world.turn("w", done(job))
        for more in range(10):
            world.start(source="other.com", key=f"{number} {more}")
    for job in jobs:
        assert world.store.journal.events(job_id=job.id) == of_job(world, job.id)


@pytest.mark.parametrize("many", [0, jobs_of_store.MANY])
def test_jobs_of_any_state_are_found_in_their_order(
    world: World, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(jobs_of_store, "MANY", many)
    a_long_journal(world)
    job = world.one()
    world.store.jobs.hold(world.jobs(world.start(source="b.com", key="b"))[0].id, "ann", "")
    put_off = world.claim()[0]
    world.turn("w", Settlement(put_off.id, put_off.attempt, JobState.WAITING, delay_s=60.0))
    world.start(source="c.com", key="c")
    everything = world.store.jobs.find(JobFilter(limit=1000))
    assert {row.state for row in everything} >= {*OPEN_JOB_STATES, JobState.SUCCEEDED}
    for states in [(state,) for state in JobState] + [OPEN_JOB_STATES, tuple(JobState)]:
        expected = [row for row in everything if row.state in states]
        assert world.store.jobs.find(JobFilter(states=states, limit=1000)) == expected
        for of in ({"run_id": job.run_id}, {"source": "acme.com"}, {"stage": job.stage}):
            name, value = next(iter(of.items()))
            some = [row for row in expected if getattr(row, name) == value]
            assert world.store.jobs.find(JobFilter(states=states, limit=1000, **of)) == some
        after = JobFilter(states=states, after_id=everything[4].id, limit=3)
        assert world.store.jobs.find(after) == [r for r in expected if r.id > everything[4].id][:3]


def test_events_can_be_of_one_kind_or_of_all_of_a_noun(world: World) -> None:
    world.start_with_pages(3)
    world.claim()
    everything = [row.kind for row in world.store.journal.events(limit=100)]
    begun = [kind for kind in everything if kind == "job.started"]
    of_jobs = [kind for kind in everything if kind.startswith("job.")]
    assert begun
    assert len(of_jobs) < len(everything)

    assert [row.kind for row in world.store.journal.events(limit=100, kind="job.started")] == begun
    assert [row.kind for row in world.store.journal.events(limit=100, kind="job")] == of_jobs
    assert world.store.journal.events(limit=100, kind="jo") == []
    assert world.store.journal.events(limit=100, kind="job.start%") == []
    followed, _ = world.store.journal.follow(None, limit=100, kind="job")
    assert [row.kind for row in followed] == of_jobs


def test_what_nobody_wanted_is_not_looked_at_again(world: World) -> None:
    run_id = world.start_with_pages(3)
    _, cursor = world.store.journal.follow(None, run_id=run_id)
    world.start(source="other.com")
    rows, later = world.store.journal.follow(cursor, run_id=run_id)
    assert rows == []
    assert later != cursor


def test_reader_beside_many_writers_sees_each_line_once(kind: StoreKind, place: Place) -> None:
    """On a server the ids of those who write at once become visible in any order."""
    world = World(kind, place)
    writers, turns = (4, 25) if kind is POSTGRES else (2, 10)
    _, cursor = world.store.journal.follow(None)
    last = world.store.journal.events(limit=1)[-1].id
    threads = [
        threading.Thread(target=write, args=(kind, place, number, turns))
        for number in range(writers)
    ]
    for thread in threads:
        thread.start()
    seen: list[int] = []
    while any(thread.is_alive() for thread in threads):
        rows, cursor = world.store.journal.follow(cursor, limit=random.randint(1, 20))
        seen += [row.id for row in rows]
    for thread in threads:
        thread.join()
    seen += [row.id for row in rest(world, cursor)]
    written = [row.id for row in world.store.journal.events(after_id=last, limit=100_000)]
    assert [line for line, times in Counter(seen).items() if times > 1] == []
    assert sorted(seen) == written
    world.close()


def write(kind: StoreKind, place: str | Path, number: int, turns: int) -> None:
    store = kind.open(place, SystemClock())
    for turn in range(turns):
        store.workers.register(f"w-{number}-{turn}", "here", 1, "test")
        store.workers.sign_off(f"w-{number}-{turn}")
    store.close()


def test_line_that_is_committed_late_is_seen_late_and_holds_up_nobody(
    schema_database: str,
) -> None:
    world = World(POSTGRES, schema_database)
    _, cursor = world.store.journal.follow(None)
    slow = psycopg.connect(schema_database)
    slow.execute("INSERT INTO penstock.event (at, kind) VALUES (1, 'slow')")
    world.register("quick")
    rows, cursor = world.store.journal.follow(cursor)
    assert [row.kind for row in rows] == ["worker.started"]
    slow.commit()
    slow.close()
    late, cursor = world.store.journal.follow(cursor)
    assert [row.kind for row in late] == ["slow"]
    assert late[0].id < rows[0].id
    assert world.store.journal.follow(cursor)[0] == []
    world.close()
