"""Fields that runs saved are counted over all workers, and compared when a run ends."""

from __future__ import annotations

from penstock.jobs.effects import Effects
from penstock.jobs.effects.fields import add_fields
from penstock.schemas.shape import kind_of
from tests.contract.scenes import World, done


def saved(world: World, key: str, *records: dict[str, object]) -> int:
    """A run that has saved these, a record in each attempt, and ended."""
    run_id = world.start(key=key)
    world.enqueue(run_id, *(f"{key} {number}" for number in range(len(records))))
    jobs = world.claim()
    waiting = list(records)
    ends = []
    for job in jobs:
        counts: dict[str, int] = {}
        if job.stage == "extract":
            add_fields(counts, "product", waiting.pop(), kind_of)
        ends.append(done(job, effects=Effects(fields=counts)))
    for end in ends:
        world.turn("w", end)
    assert not waiting
    return run_id


def test_drift_is_told_once_with_the_run_that_it_differs_from(world: World) -> None:
    first = saved(world, "first", {"a": 1}, {"a": 2})
    second = saved(world, "second", {"a": 1, "new": "x"}, {"a": "2"})
    saved(world, "third", {"a": 1, "new": "x"}, {"a": "2"})

    [event] = world.store.journal.events(kind="schema.drifted")

    assert event.run_id == second
    assert event.data["of_run"] == first
    assert [(each["field"], each["what"]) for each in event.data["changes"]] == [
        ("a", "type"),
        ("new", "new"),
    ]
    assert [each.name for each in world.store.signals.newest("schema.drifted")] == [
        "schema.drifted"
    ]
