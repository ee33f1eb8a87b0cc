"""An attempt does not overwrite what others wrote since it read a record."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.jobs.effects import Basis, Effects
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Settlement
from tests.contract.scenes import World, a_save, done, retried

READ = {"schema": "one", "notes": [], "ratio": 1.5}


def based(job: Claimed, fields: dict[str, Any] | None, otherwise: bool = True) -> Settlement:
    """The end of an attempt that read these fields of the record `a`, and saves another schema."""
    effects = Effects(
        saves=[a_save("a", {"schema": f"of {job.key}"}, merge="merge"), a_save(job.key, {})],
        bases=[Basis("product", "a", msgspec.json.encode(fields))],
        spent={"money": 2.0},
    )
    late = retried(job, 30.0) if otherwise else None
    return msgspec.structs.replace(done(job, effects=effects), otherwise=late)


def records(world: World) -> dict[str, Any]:
    return {row.key: row.data for row in world.store.records.of("product")}


@pytest.mark.parametrize(
    ("there", "read", "is_kept"),
    [
        (READ, {"schema": "one", "notes": []}, True),
        (READ, {"schema": "one", "absent": None, "ratio": 1.5}, True),
        ({**READ, "seen": "later"}, READ, True),
        ({**READ, "schema": "two"}, READ, False),
        ({**READ, "notes": ["logo"]}, READ, False),
        (READ, None, False),
        (None, None, True),
        (None, READ, False),
    ],
)
def test_an_attempt_commits_only_if_what_it_read_is_still_so(
    world: World, there: dict[str, Any] | None, read: dict[str, Any] | None, is_kept: bool
) -> None:
    world.start_with_pages(2)
    first, second = world.claim()
    if there is not None:
        world.turn("w", done(first, saves=[a_save("a", there)]))
    before = records(world)

    world.turn("w", based(second, read))

    assert world.job(second.id).state is (JobState.SUCCEEDED if is_kept else JobState.WAITING)
    if is_kept:
        assert records(world)["a"] == {**(there or {}), "schema": f"of {second.key}"}
        assert second.key in records(world)
    else:
        assert records(world) == before
    [run] = world.store.runs.newest()
    assert run.money == 2.0  # it is paid for all the same


def test_of_two_attempts_that_read_the_same_one_commits(world: World) -> None:
    world.start_with_pages(3)
    first, second, third = world.claim()
    world.turn("w", done(first, saves=[a_save("a", READ)]))

    world.turn("w", based(second, READ), based(third, READ))

    assert records(world)["a"]["schema"] == f"of {second.key}"
    assert world.job(third.id).state is JobState.WAITING


def test_an_edit_by_hand_is_not_overwritten_by_an_attempt_that_nobody_retries(world: World) -> None:
    world.start_with_pages(2)
    first, second = world.claim()
    world.turn("w", done(first, saves=[a_save("a", READ)]))
    world.store.record_edits.edit("product", "a", {"schema": "by ann"}, "ann", "better")

    world.turn("w", based(second, READ, otherwise=False))

    assert records(world)["a"]["schema"] == "by ann"
    assert world.job(second.id).state is JobState.QUARANTINED
