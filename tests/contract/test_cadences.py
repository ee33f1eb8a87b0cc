"""Cadences: a move is written once, with its reason and the ticks of the new class, or not at all."""

from __future__ import annotations

from penstock.jobs.effects import Effects
from penstock.schedules.auto import EndedRun, Standing
from penstock.store.cadences import CadenceMove, CadenceRow
from penstock.store.schedule_rows import Planned
from tests.contract.scenes import SITE, World, a_save, done, quarantined


def begun(world: World) -> CadenceRow:
    source_id = world.store.sources.ensure(["a.test"])["a.test"]
    world.store.cadences.begin([(source_id, "medium")])
    [row] = world.store.cadences.all(source_id)
    return row


def a_move(row: CadenceRow, due_at: float | None = None) -> CadenceMove:
    return CadenceMove(row.level, Standing("low", row.level, 0, 7), "it is quiet", {"main": due_at})


def events(world: World) -> list[tuple[str, str, str]]:
    found = world.store.journal.events(limit=100)
    return [(e.kind, e.actor, e.detail) for e in found if e.kind.startswith("cadence.")]


def test_a_source_has_the_class_it_was_given_first(world: World) -> None:
    row = begun(world)
    world.store.cadences.begin([(row.source_id, "high")])
    [again] = world.store.cadences.all()
    assert again == row
    assert (row.source, row.level, row.before, row.steps, row.last_run_id) == (
        *("a.test", "medium", ""),
        *(0, 0),
    )


def test_a_move_is_told_with_its_reason_and_plans_the_next_tick(world: World) -> None:
    row = begun(world)
    due = world.store.now() + 100.0
    planned = Planned(row.source_id, "main", "{}", "words", "cadence", due)
    world.store.schedules.plan([planned])

    assert world.store.cadences.move(row, a_move(row, due + 5000.0), "ada")

    [after] = world.store.cadences.all(row.source_id)
    assert (after.level, after.before, after.reason) == ("low", "medium", "it is quiet")
    assert events(world) == [("cadence.changed", "ada", "medium to low: it is quiet")]
    [schedule] = world.store.schedules.all(row.source_id)
    assert (schedule.next_due_at, schedule.look_at) == (due + 5000.0, due + 5000.0)


def test_of_two_who_move_it_at_once_only_the_first_does(world: World) -> None:
    row = begun(world)
    assert world.store.cadences.move(row, a_move(row), "one")
    assert not world.store.cadences.move(row, a_move(row), "two")
    assert len(events(world)) == 1


def test_a_proposal_moves_nothing(world: World) -> None:
    row = begun(world)
    standing = Standing("medium", "", 0, 3)
    assert world.store.cadences.propose(row, standing, "high", "it is busy", "scheduler")
    [after] = world.store.cadences.all(row.source_id)
    assert (after.level, after.proposed, after.since) == ("medium", "high", row.since)
    assert events(world) == [("cadence.proposed", "scheduler", "medium to high: it is busy")]
    assert world.store.cadences.note(after, Standing("medium", "", 2, 4))
    [noted] = world.store.cadences.all(row.source_id)
    assert (noted.proposed, noted.steps, noted.last_run_id) == ("high", 2, 4)
    assert len(events(world)) == 1


def test_runs_are_looked_at_up_to_one_that_goes_on(world: World) -> None:
    row = begun(world)
    runs = [world.start(source="a.test", key=f"k{number}") for number in range(4)]
    world.store.runs.cancel(runs[0], "ada", "")
    assert world.store.cadences.runs({row.source_id: 0}) == {}

    ends = [quarantined(job) for job in world.claim() if job.run_id in runs[1:3]]
    world.turn("w", *ends)

    found = world.store.cadences.runs({row.source_id: 0})
    assert found == {row.source_id: [EndedRun(run, False, False, 0, 0) for run in runs[1:3]]}
    assert world.store.cadences.runs({row.source_id: runs[2]}) == {}
    assert world.store.cadences.runs({}) == {}


def test_run_that_has_just_ended_is_judged_by_all_that_it_brought(world: World) -> None:
    row = begun(world)
    first = world.start(source="a.test", key="first")
    world.turn("w", done(world.one(), effects=Effects(saves=[a_save("a", {}), a_save("b", {})])))
    second = world.start(source="a.test", key="second")
    changed = [a_save("a", {"new": 1}), a_save("b", {})]
    world.turn("w", done(world.one(), effects=Effects(saves=changed)))

    found = world.store.cadences.runs({row.source_id: 0})

    assert found[row.source_id] == [
        EndedRun(first, False, True, 2, 2),
        EndedRun(second, False, True, 1, 2),
    ]


def test_run_that_goes_on_with_the_rest_of_another_moves_no_class(world: World) -> None:
    row = begun(world)
    run_id = world.start(source="a.test")
    world.turn("w", quarantined(world.one()))
    world.store.runs.continue_(run_id, SITE, "v1", "test", "")
    world.turn("w", quarantined(world.one()))
    found = world.store.cadences.runs({row.source_id: 0})
    assert [ended.run_id for ended in found[row.source_id]] == [run_id]
