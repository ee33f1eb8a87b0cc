"""KPIs: five numbers, each from a scripted history; none where there is nothing to count."""

from __future__ import annotations

import pytest

from penstock.jobs.kpis import (
    WEEK_S,
    Act,
    Interruptions,
    RunTotals,
    kpis_of,
    steps_to_recover,
)

NOW = 1_800_000_000.0


def act(
    kind: str, run: int | None = 1, actor: str = "ana", at: float = 0.0, source: int = 1
) -> Act:
    return Act(at, kind, source, run, "full", actor)


def ended(kind: str, run: int = 1, run_kind: str = "full", source: int = 1) -> Act:
    return Act(0.0, f"run.{kind}", source, run, run_kind, "penstock")


def values(
    runs: RunTotals | None = None,
    interruptions: Interruptions | None = None,
    incidents: int = 0,
    acts: tuple[Act, ...] = (),
    days: float = 30.0,
) -> dict[str, float | None]:
    found = kpis_of(
        runs or RunTotals(),
        interruptions or Interruptions(),
        incidents,
        acts,
        since=NOW - days * 86400.0,
        now=NOW,
    )
    return {each.name: each.value for each in found}


def test_no_history_is_no_data_and_not_zero() -> None:
    assert set(values().values()) == {None}


def test_completion_counts_runs_that_were_not_cancelled() -> None:
    runs = RunTotals(completed=8, partial=1, failed=1)

    assert values(runs)["completion_without_restart"] == pytest.approx(80.0)


def test_duplicates_are_saves_that_changed_nothing() -> None:
    runs = RunTotals(completed=1, saves=4_000_000, duplicates=6)

    assert values(runs)["duplicates_per_million"] == pytest.approx(1.5)


def test_incidents_of_less_than_a_week_are_not_blown_up() -> None:
    young = RunTotals(first_at=NOW - 3600.0)
    old = RunTotals(first_at=NOW - 4 * WEEK_S)

    assert values(young, incidents=2)["throttling_incidents_per_week"] == pytest.approx(2.0)
    found = values(old, incidents=8, days=14)["throttling_incidents_per_week"]
    assert found == pytest.approx(4.0)
    assert values(old)["throttling_incidents_per_week"] == 0.0


def test_recovery_counts_what_people_did_between_a_bad_end_and_the_next_good_one() -> None:
    story = [
        act("run.queued"), ended("partial"),
        act("run.reopened", at=5.0), ended("partial"),
        act("source.paused", None, at=9.0), act("source.resumed", None, at=10.0),
        act("run.reopened", at=11.0), ended("completed"),
        act("run.queued", 2), ended("completed", 2),
    ]  # fmt: skip

    assert steps_to_recover(story) == [4]


def test_recovery_by_the_schedule_takes_nobody() -> None:
    story = [ended("failed"), act("run.queued", 2, "scheduler"), ended("completed", 2)]

    assert steps_to_recover(story) == [0]


def test_what_one_command_wrote_is_one_step() -> None:
    again = [act("run.reopened", run, at=5.0) for run in (1, 2, 3)]

    assert steps_to_recover([ended("failed"), *again, ended("completed")]) == [1]


def test_good_end_of_another_kind_or_source_is_no_recovery() -> None:
    story = [
        ended("failed"), ended("completed", 2, "replay"), ended("completed", 3, source=2),
        act("run.queued", 4, at=1.0), ended("completed", 4),
    ]  # fmt: skip

    assert steps_to_recover(story) == [1]


def test_what_has_not_recovered_is_not_counted() -> None:
    assert steps_to_recover([ended("failed"), act("run.reopened")]) == []


def test_breakers_and_quarantine_are_steps_of_an_operator() -> None:
    story = [
        ended("partial"),
        act("breaker.closed", None, at=1.0), act("quarantine.noted", at=2.0),
        act("quarantine.discarded", at=3.0), act("breaker.opened", None, actor="", at=4.0),
        ended("completed"),
    ]  # fmt: skip

    assert steps_to_recover(story) == [3]


def test_one_command_that_writes_many_lines_is_one_step() -> None:
    in_batches = [act("quarantine.discarded", at=at) for at in (1.0, 1.0, 1.4, 1.9)]
    released = [act("quarantine.released", at=9.0), act("run.reopened", at=9.0)]

    assert steps_to_recover([ended("partial"), *in_batches, *released, ended("completed")]) == [2]


def test_what_is_done_for_the_whole_project_counts_for_all_that_have_not_recovered() -> None:
    whole = Act(5.0, "project.held", None, None, None, "ana")
    story = [ended("partial"), whole, ended("completed"), ended("completed", 2, source=2)]

    assert steps_to_recover(story) == [1]


def test_run_that_was_cancelled_and_started_over_did_not_complete_without_restart() -> None:
    runs = RunTotals(completed=1, restarted=1)

    assert values(runs)["completion_without_restart"] == pytest.approx(50.0)
