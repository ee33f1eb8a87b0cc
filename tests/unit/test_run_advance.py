"""Runs: how one goes on and ends is computed from the number of its jobs in each state."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.jobs.job import Unit
from penstock.jobs.run import Advance, Plan, PlannedStage, RunState, StageCount, advance

ONE, NONE = StageCount(succeeded=1), StageCount()
OPEN = [
    StageCount(queued=1),
    StageCount(running=1),
    StageCount(waiting=1),
    StageCount(held=1),
    StageCount(succeeded=9, waiting=1),
]


def a_stage(
    name: str, *after: str, unit: Unit = "run", gather: bool = False, required: bool | None = None
) -> PlannedStage:
    is_required = unit == "run" if required is None else required
    return PlannedStage(name, unit, after, gather, is_required)


SITE = Plan(
    (
        a_stage("discover"),
        a_stage("extract", "discover", unit="page"),
        a_stage("persist", "extract", unit="candidate"),
    )
)
# discover -> extract -> report -> export, and prices -> report
PACKAGED = Plan(
    (
        a_stage("discover"),
        a_stage("prices"),
        a_stage("extract", "discover", unit="page"),
        a_stage("report", "extract", "prices", gather=True),
        a_stage("export", "report", gather=True),
    )
)


def site(discover: StageCount, extract: StageCount = NONE, persist: StageCount = NONE) -> Advance:
    return advance(SITE, {"discover": discover, "extract": extract, "persist": persist})


@pytest.mark.parametrize("count", OPEN)
def test_run_with_anything_open_goes_on(count: StageCount) -> None:
    for counts in ((count,), (ONE, count), (ONE, ONE, count)):
        assert site(*counts) == Advance()


@pytest.mark.parametrize(
    ("extract", "persist", "state"),
    [
        (NONE, NONE, RunState.COMPLETED),
        (StageCount(succeeded=5, skipped=2), StageCount(succeeded=9), RunState.COMPLETED),
        (StageCount(succeeded=5, cancelled=1), NONE, RunState.COMPLETED),
        (StageCount(cancelled=3), NONE, RunState.COMPLETED),
        (StageCount(succeeded=5, quarantined=1), NONE, RunState.PARTIAL),
        (StageCount(quarantined=1, skipped=1), NONE, RunState.PARTIAL),
        (StageCount(succeeded=5), StageCount(quarantined=3), RunState.PARTIAL),
        (StageCount(quarantined=3), NONE, RunState.FAILED),
        (StageCount(quarantined=3), StageCount(succeeded=1), RunState.FAILED),
    ],
)
def test_verdict_on_pages_and_candidates(
    extract: StageCount, persist: StageCount, state: RunState
) -> None:
    assert site(ONE, extract, persist).ends_as is state


@pytest.mark.parametrize(
    ("discover", "state"),
    [
        (StageCount(quarantined=1), RunState.FAILED),
        (StageCount(cancelled=1), RunState.CANCELLED),
        (StageCount(skipped=1), RunState.COMPLETED),
    ],
)
def test_verdict_on_a_required_step(discover: StageCount, state: RunState) -> None:
    assert site(discover).ends_as is state
    assert site(discover, StageCount(succeeded=4)).ends_as is state


def test_failure_weighs_more_than_a_cancellation() -> None:
    counts = {"discover": StageCount(cancelled=1), "prices": StageCount(quarantined=1)}

    assert advance(PACKAGED, counts).ends_as is RunState.FAILED


def test_step_that_is_not_required_makes_a_run_partial_when_it_fails() -> None:
    plan = Plan((a_stage("discover"), a_stage("extra", "discover", required=False)))

    found = advance(plan, {"discover": ONE, "extra": StageCount(quarantined=1)})

    assert found.ends_as is RunState.PARTIAL


def packaged(**counts: StageCount) -> Advance:
    return advance(PACKAGED, counts)


@pytest.mark.parametrize(
    "counts",
    [
        {"discover": StageCount(running=1), "prices": ONE},
        {"discover": ONE, "prices": StageCount(waiting=1)},
        {"discover": ONE, "prices": ONE, "extract": StageCount(succeeded=9, queued=1)},
    ],
)
def test_gather_waits_for_everything_it_comes_after(counts: Mapping[str, StageCount]) -> None:
    assert advance(PACKAGED, counts) == Advance()


def test_gather_starts_when_all_before_it_is_closed() -> None:
    assert packaged(discover=ONE, prices=ONE) == Advance(start=("report",))
    assert packaged(discover=ONE, prices=ONE, extract=StageCount(quarantined=3)).start == (
        "report",
    )


def test_gathers_follow_each_other() -> None:
    before = {"discover": ONE, "prices": ONE, "extract": ONE}

    assert packaged(**before, report=StageCount(running=1)) == Advance()
    assert packaged(**before, report=ONE) == Advance(start=("export",))
    assert packaged(**before, report=ONE, export=ONE).ends_as is RunState.COMPLETED


@pytest.mark.parametrize("bad", [StageCount(quarantined=1), StageCount(cancelled=1)])
def test_gather_behind_a_required_step_that_came_to_nothing_does_not_start(bad: StageCount) -> None:
    assert packaged(discover=bad, prices=ONE).start == ()
    assert packaged(discover=ONE, prices=bad, extract=ONE).start == ()
    assert packaged(discover=ONE, prices=ONE, extract=ONE, report=bad).start == ()


def test_required_step_with_one_job_of_many_cancelled_did_not_come_to_nothing() -> None:
    found = packaged(discover=StageCount(succeeded=3, cancelled=1), prices=ONE)

    assert found.start == ("report",)


def test_required_step_that_is_retried_holds_its_run_open() -> None:
    assert packaged(discover=ONE, prices=StageCount(quarantined=1, queued=1)) == Advance()


def test_stages_without_a_count_have_no_jobs() -> None:
    assert advance(SITE, {}).ends_as is RunState.COMPLETED


def test_count_knows_what_is_open() -> None:
    count = StageCount(1, 2, 3, 4, 5, 6, 7, 8)

    assert (count.open, count.total) == (10, 36)


def test_plan_finds_a_stage_by_name() -> None:
    assert SITE.stage("extract") is SITE.stages[1]
    assert SITE.stage("nothing") is None


# Required steps.


@pytest.mark.parametrize("unit", ["page", "candidate"])
@pytest.mark.parametrize("required", [True, False])
def test_required_step_fails_the_run_and_another_does_not(unit: Unit, required: bool) -> None:
    plan = Plan(
        (
            a_stage("discover"),
            a_stage("act", "discover", unit=unit, required=required),
            a_stage("report", "act", gather=True),
        )
    )
    some_failed = StageCount(succeeded=9, quarantined=1)

    ended = advance(plan, {"discover": ONE, "act": some_failed, "report": NONE})

    # What gathers behind a required step that failed never starts.
    assert ended == (Advance(ends_as=RunState.FAILED) if required else Advance(start=("report",)))


@pytest.mark.parametrize(
    ("extract", "state"),
    [
        (StageCount(quarantined=3), RunState.FAILED),
        (StageCount(quarantined=3, skipped=1), RunState.PARTIAL),
        (StageCount(quarantined=3, succeeded=1), RunState.PARTIAL),
        (StageCount(skipped=3), RunState.COMPLETED),
    ],
)
def test_every_page_failed_is_failed_and_a_skipped_page_has_not(
    extract: StageCount, state: RunState
) -> None:
    assert site(ONE, extract).ends_as is state
