"""What pages show of a run, a source and of people, found among millions of lines about jobs."""

from __future__ import annotations

from penstock.store.entries import EntryFilter
from tests.contract.scenes import World, a_job, done, quarantined
from tests.contract.test_quarantine import failed


def test_the_trail_of_an_ended_run_is_its_own_and_ends_with_it(world: World) -> None:
    first = world.start_with_pages(3)
    world.turn("w", *(done(job) for job in world.claim()))
    second = world.start_with_pages(2, key="second")
    world.claim()
    runs = world.store.runs
    for run_id in (first, second):
        row = runs.get(run_id)
        assert row is not None
        everything = world.store.journal.events(run_id=run_id, limit=1000)
        assert world.store.journal.trail(row, 1000) == everything
        assert world.store.journal.trail(row, 2) == everything[-2:]
        jobs = [line for line in everything if line.job_id is not None]
        assert world.store.journal.trail(row, 1000, "job") == jobs


def test_what_happened_to_a_source_itself_is_apart_from_its_runs(world: World) -> None:
    world.start_with_pages(2)
    source_id, other_id = world.source("acme.com"), world.source("other.com")
    world.store.sources.pause(source_id, "ana", "rest")
    world.store.sources.pause(other_id, "ana", "rest")
    world.store.sources.resume(source_id, "ana", "")
    kinds = [line.kind for line in world.store.journal.of_source(source_id, 10)]
    assert kinds == ["source.paused", "source.resumed"]
    [newest] = world.store.journal.of_source(source_id, 1)
    [before] = world.store.journal.of_source(source_id, 1, before_id=newest.id)
    assert (before.kind, newest.kind) == ("source.paused", "source.resumed")


def test_acts_of_people_are_found_without_what_workers_did(world: World) -> None:
    world.start_with_pages(2)
    world.turn("w", *(done(job) for job in world.claim()))
    source_id = world.source("acme.com")
    world.store.acts_from("dashboard")
    world.store.sources.pause(source_id, "ana", "rest")
    world.store.acts_from("leader")
    world.store.sources.resume(source_id, "penstock", "")
    [act] = world.store.journal.of_people(10)
    assert (act.kind, act.actor, act.origin) == ("source.paused", "ana", "dashboard")
    world.store.acts_from("mcp")
    world.store.sources.pause(source_id, "ana via client", "rest")
    world.store.acts_from("cli")
    world.store.sources.resume(source_id, "ben", "")
    found = world.store.journal.of_people(10)
    assert [each.origin for each in found] == ["dashboard", "mcp", "cli"]
    assert [each.origin for each in world.store.journal.of_people(2)] == ["mcp", "cli"]


def test_entries_are_grouped_by_source_kind_and_cause(world: World) -> None:
    [mine, other] = world.start_all({"acme.com": 4, "other.com": 1})
    jobs = world.claim(slots=50)
    of_mine = [job for job in jobs if job.run_id == mine]
    of_other = [job for job in jobs if job.run_id == other]
    world.turn(
        "w",
        *(failed(job, "KeyError at shop.py:3") for job in of_mine[:2]),
        failed(of_mine[2], "", "budget"),
        done(of_mine[3]),
        failed(of_other[0], "KeyError at shop.py:3"),
    )
    groups = world.store.quarantine.groups(None, 10, 1000)
    assert [(each.source, each.kind, each.cause, each.jobs) for each in groups] == [
        ("acme.com", "data", "KeyError at shop.py:3", 2),
        ("acme.com", "budget", "", 1),
        ("other.com", "data", "KeyError at shop.py:3", 1),
    ]
    assert groups[0].error == f"broken {of_mine[1].key}"
    assert sum(each.jobs for each in world.store.quarantine.groups("acme.com", 10, 1000)) == 3
    entries = world.store.quarantine.count(EntryFilter(source="acme.com", cause=groups[0].cause))
    assert entries == groups[0].jobs


def test_stages_of_a_run_say_how_many_of_its_jobs_are_in_which_state(world: World) -> None:
    run_id = world.start_with_pages(3)
    first, second, _ = world.claim()
    world.turn("w", done(first), quarantined(second))
    [stage] = [each for each in world.store.runs.stages(run_id) if each.stage == "extract"]
    assert (stage.succeeded, stage.quarantined, stage.running) == (1, 1, 1)
    assert world.store.runs.stages(10**9) == []


def test_children_of_a_job_are_listed_in_the_order_they_were_enqueued(world: World) -> None:
    world.start_with_pages(2)
    parent, other = world.claim()
    world.turn("w", done(parent, [a_job("b", stage="persist"), a_job("a", stage="persist")]))
    world.turn("w", done(other, [a_job("c", stage="persist")]))
    row = world.store.jobs.get(parent.id)
    assert row is not None
    assert [each.key for each in world.store.jobs.children(row, 10)] == ["b", "a"]
    assert [each.key for each in world.store.jobs.children(row, 1)] == ["b"]
