"""Each effect of an attempt is written by the turn that settles it, on every database."""

from __future__ import annotations

from dataclasses import fields

from penstock.jobs.effects import Effects
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.store.tables import TABLES
from tests.contract.scenes import World
from tests.unit.test_effects import CASES

# The accounts of a run read these, and who looks for what is said again.
READ_BY_OTHERS = {"saved_before", "is_dropped", "forgets"}
# Fields are counted in a table that each database has in a shape of its own (see test_fields.py); what is
# gone takes pages away, and here are none.
SEEN_ELSEWHERE = {"fields", "gone"}


def test_turn_writes_each_effect(world: World) -> None:
    world.start_with_pages(len(CASES) + 1)
    plain, *jobs = world.claim()
    before = counted(world)
    world.turn("w", Settlement(plain.id, plain.attempt, JobState.SUCCEEDED))
    for_nothing = {table: rows - before[table] for table, rows in counted(world).items()}
    for job, field in zip(jobs, fields(Effects), strict=True):
        before = counted(world)
        effects = Effects(**{field.name: CASES[field.name].value})
        world.turn("w", Settlement(job.id, job.attempt, JobState.SUCCEEDED, effects=effects))
        written = {table: rows - before[table] for table, rows in counted(world).items()}
        is_seen = field.name not in READ_BY_OTHERS | SEEN_ELSEWHERE
        assert (written != for_nothing) is is_seen, field.name


def counted(world: World) -> dict[str, float]:
    """How many rows each table has; of runs, what they have spent."""
    [run] = world.store.runs.newest()
    tables = world.dump()
    return {table.name: len(tables[table.name]) for table in TABLES} | {"money": run.money}
