"""The outbox: a line is there if and only if the run has ended, and is sent until it was accepted."""

from __future__ import annotations

import msgspec
import pytest

from penstock.jobs.job import JobState
from penstock.jobs.run import Plan, PlannedStage, RunState
from penstock.store.hooks import OutboxRow
from penstock.store.upkeep import Keep
from tests.contract.scenes import World, done, quarantined

LEASE_S = 30.0
DAY_S = 86_400.0
ONE = Plan((PlannedStage("look", "run"),))


def hook(world: World, *states: str, name: str = "tell", source: str = "") -> None:
    source_id = world.source(source) if source else 0
    world.store.hooks.plan([(name, state, source_id) for state in states])


def a_run(world: World, source: str = "acme.com", key: str = "first") -> int:
    run_id = world.start(ONE, source, key)
    [job] = world.claim()
    world.turn("w", done(job))
    return run_id


def rows(world: World) -> list[OutboxRow]:
    return world.store.hooks.outbox()


def test_the_end_of_a_run_is_put_down_for_who_asked_for_it(world: World) -> None:
    hook(world, "completed", "failed")
    run_id = a_run(world)
    [row] = rows(world)
    assert (row.hook, row.run_id, row.run_state, row.state) == ("tell", run_id, "completed", "due")
    [parcel] = world.store.hooks.claim(10, LEASE_S)
    assert f'"run":{run_id}' in parcel.body
    assert '"source":"acme.com"' in parcel.body


def test_nobody_is_told_what_nobody_asked_for(world: World) -> None:
    hook(world, "failed")
    a_run(world)
    assert rows(world) == []
    hook(world, "completed", source="other.com")
    a_run(world, key="second")
    assert rows(world) == []
    a_run(world, "other.com")
    assert [row.source for row in rows(world)] == ["other.com"]


def test_a_cancelled_run_has_ended_too(world: World) -> None:
    hook(world, "cancelled")
    run_id = world.start(ONE)
    world.store.runs.cancel(run_id, "somebody", "no longer wanted")
    [row] = rows(world)
    assert row.run_state == "cancelled"
    names = [signal.name for signal in world.store.signals.after()]
    assert names == ["run.cancelled"]
    [parcel] = world.store.hooks.claim(10, LEASE_S)
    assert '"reason":"no longer wanted"' in parcel.body


def test_a_run_that_ends_twice_is_told_of_twice(world: World) -> None:
    hook(world, "partial", "completed")
    run_id = world.start_with_pages(2)
    good, bad = world.claim()
    world.turn("w", done(good), quarantined(bad))
    assert world.run(run_id).state == RunState.PARTIAL
    for _ in range(2):
        world.clock.advance(60.0)
        assert world.store.runs.retry_failed(run_id, "somebody", "") == 1
        [job] = world.claim()
        world.turn("w", quarantined(job))
    assert [row.run_state for row in rows(world)] == ["partial"] * 3


def test_the_line_and_the_end_are_one(world: World) -> None:
    hook(world, "completed")
    run_id = world.start(ONE)
    [job] = world.claim()
    with (
        world.kind.breaking(world.path, "INSERT", "outbox"),
        pytest.raises(Exception, match="planted"),
    ):
        world.turn("w", done(job))
    assert not world.run(run_id).is_ended
    assert world.job(job.id).state == JobState.RUNNING
    assert rows(world) == []
    world.turn("w", done(job))
    assert world.run(run_id).is_ended
    assert len(rows(world)) == 1


def test_a_line_is_one_senders_at_a_time(world: World) -> None:
    hook(world, "completed")
    a_run(world)
    [parcel] = world.store.hooks.claim(10, LEASE_S)
    assert world.store.hooks.claim(10, LEASE_S) == []
    world.clock.advance(LEASE_S + 1)  # whoever had it is dead
    [again] = world.store.hooks.claim(10, LEASE_S)
    assert again.id == parcel.id
    assert again.body == parcel.body
    world.store.hooks.accept(again, "hooks")
    world.clock.advance(DAY_S)
    assert world.store.hooks.claim(10, LEASE_S) == []
    assert rows(world)[0].state == "delivered"


def test_what_was_refused_is_sent_again_later_and_then_given_up(world: World) -> None:
    hook(world, "completed")
    a_run(world)
    [parcel] = world.store.hooks.claim(10, LEASE_S)
    world.store.hooks.refuse(parcel, "it answered 500", 60.0, "hooks")
    assert world.store.hooks.claim(10, LEASE_S) == []
    assert (rows(world)[0].state, rows(world)[0].error) == ("failing", "it answered 500")
    world.clock.advance(61.0)
    [parcel] = world.store.hooks.claim(10, LEASE_S)
    assert parcel.attempts == 2
    world.store.hooks.refuse(parcel, "it answered 500", None, "hooks")
    world.clock.advance(DAY_S)
    assert world.store.hooks.claim(10, LEASE_S) == []
    assert rows(world)[0].state == "given up"
    assert "hook.failed" in world.kinds()


def test_a_late_refusal_undoes_neither_an_acceptance_nor_a_later_attempt(world: World) -> None:
    hook(world, "completed")
    a_run(world)
    [slow] = world.store.hooks.claim(10, LEASE_S)
    world.clock.advance(LEASE_S + 1)
    [quick] = world.store.hooks.claim(10, LEASE_S)
    world.store.hooks.refuse(slow, "too late", None, "hooks")
    assert rows(world)[0].due_at is not None
    world.store.hooks.accept(quick, "hooks")
    world.store.hooks.refuse(quick, "too late", 1.0, "hooks")
    assert rows(world)[0].state == "delivered"
    assert world.kinds().count("hook.delivered") == 1


def test_retry_sends_again_what_was_given_up_but_not_what_was_accepted(world: World) -> None:
    hook(world, "completed")
    a_run(world)
    [parcel] = world.store.hooks.claim(10, LEASE_S)
    world.store.hooks.refuse(parcel, "gone", None, "hooks")
    assert world.store.hooks.retry(parcel.id, "somebody", "mended")
    [parcel] = world.store.hooks.claim(10, LEASE_S)
    assert parcel.attempts == 1
    world.store.hooks.accept(parcel, "hooks")
    assert not world.store.hooks.retry(parcel.id, "somebody", "")


def test_old_lines_go_and_what_is_due_stays(world: World) -> None:
    hook(world, "completed")
    a_run(world)
    [parcel] = world.store.hooks.claim(10, LEASE_S)
    world.store.hooks.accept(parcel, "hooks")
    a_run(world, key="second")
    world.clock.advance(100 * DAY_S)
    while world.store.upkeep.prune(Keep(None, DAY_S, None, None)):
        pass
    assert [row.state for row in rows(world)] == ["due"]


def test_hooks_are_those_of_the_last_configuration(world: World) -> None:
    hook(world, "completed")
    hook(world, "completed", "failed", name="other")
    a_run(world)
    assert [row.hook for row in rows(world)] == ["other"]


def test_what_is_told_of_a_run_that_failed_has_its_errors(world: World) -> None:
    hook(world, "partial")
    world.start_with_pages(3)
    first, second, well = world.claim()
    world.turn("w", quarantined(first), quarantined(second), done(well))

    [parcel] = world.store.hooks.claim(10, LEASE_S)

    [error] = msgspec.json.decode(parcel.body)["errors"]
    assert (error["jobs"], error["job"]) == (2, min(first.id, second.id))
    assert error["error"]
