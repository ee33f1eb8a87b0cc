"""Runbooks that are followed: who has come how far is in the database, and goes with it."""

from __future__ import annotations

from penstock.store.runbooks import NewStep
from penstock.store.upkeep import Keep
from tests.contract.scenes import World

DONE = NewStep(step="fix", outcome="done", actor="ann", reason="it broke", summary="mended")


def test_execution_begins_with_its_first_step_and_is_continued_by_anybody(world: World) -> None:
    store = world.store.runbooks
    assert store.open("source-broke", "shop") is None
    begun = store.record("source-broke", "shop", DONE)
    world.clock.advance(60)
    skip = NewStep(step="drop", outcome="skipped", actor="bob", findings={"store_sound": True})

    assert store.record("source-broke", "shop", skip).id == begun.id
    assert store.record("source-broke", "", DONE).id != begun.id
    assert store.open("source-broke", "shop") == begun
    [first, second] = store.steps(begun.id)
    assert (first.step, first.actor, first.reason, first.summary) == (
        "fix", "ann", "it broke", "mended"
    )  # fmt: skip
    assert (second.outcome, second.findings, second.at - first.at) == (
        "skipped", {"store_sound": True}, 60
    )  # fmt: skip


def test_ended_execution_stays_ended_and_the_next_step_begins_another(world: World) -> None:
    store = world.store.runbooks
    begun = store.record("source-broke", "shop", DONE)

    assert store.end(begun, "recovered", actor="ann", reason="it yields")
    assert not store.end(begun, "abandoned", actor="bob")
    again = store.record("source-broke", "shop", DONE)
    assert [row.id for row in store.executions(9)] == [again.id, begun.id]
    assert [row.outcome for row in store.executions(9, again.id)] == ["recovered"]
    assert [(row.kind, row.actor, row.detail) for row in world.store.journal.events(kind="runbook")] == [
        ("runbook.started", "ann", "source-broke shop"),
        ("runbook.step_done", "ann", "source-broke shop, fix: mended (it broke)"),
        ("runbook.ended", "ann", "source-broke shop recovered: it yields"),
        ("runbook.started", "ann", "source-broke shop"),
        ("runbook.step_done", "ann", "source-broke shop, fix: mended (it broke)"),
    ]  # fmt: skip


def test_retention_drops_old_executions_with_their_steps_and_keeps_open_ones(world: World) -> None:
    store = world.store.runbooks
    ended = store.record("source-broke", "shop", DONE)
    store.end(ended, "recovered", actor="ann")
    still = store.record("database-down", "", DONE)
    world.clock.advance(1000)

    while world.store.upkeep.prune(Keep(None, 900.0, None, None)):
        pass

    assert [row.id for row in store.executions(9)] == [still.id]
    assert store.steps(ended.id) == []
    assert len(store.steps(still.id)) == 1
