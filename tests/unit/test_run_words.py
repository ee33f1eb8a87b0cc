"""What a run is and was asked for is told in words."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.cli.render.run_words import asked_for, kind_of, next_of, result_of
from penstock.jobs.run import RunKind, RunOptions, RunState
from penstock.jobs.signals import SignalFacts
from penstock.store.replays import ReplayRow
from penstock.store.rows import RunRow

JANUARY = 1_704_067_200.0
DAY_S = 86_400.0


def a_run(kind: RunKind = RunKind.FULL, of_run_id: int | None = None, **options: Any) -> RunRow:
    about = (9, 1, "prices", kind, RunState.COMPLETED, "ops", "", "v1")
    return RunRow(
        *about, 1.0, 1.0, 2.0, 0, 0, 0, 0, 0, 0, options=RunOptions(**options), of_run_id=of_run_id
    )


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (a_run(), "full"),
        (a_run(RunKind.REPLAY, 5, is_undo=True), "undo of run 5"),
        (a_run(RunKind.REPLAY, 5, is_redrive=True), "replay of rejects"),
        (a_run(RunKind.REPLAY, 5, is_staged=True), "replay of run 5"),
        (a_run(RunKind.REPLAY, is_staged=True, since_at=1.0), "replay"),
        (a_run(RunKind.BACKFILL, reconciles=3), "backfill (reconciliation)"),
        (a_run(RunKind.BACKFILL, 3), "backfill"),
    ],
)
def test_kind_says_what_it_is_of(run: RunRow, told: str) -> None:
    assert kind_of(run) == told


def test_backfill_says_its_range_partitions_windows_and_what_it_fetches() -> None:
    run = a_run(
        RunKind.BACKFILL,
        start_at=JANUARY,
        end_at=JANUARY + 31 * DAY_S,
        window_s=DAY_S,
        partitions=("A", "B", "C", "D", "E", "F", "G"),
        calendar="weekdays",
        holidays=("2024-01-01",),
        is_missing_only=True,
        reconciles=3,
    )

    assert asked_for(run) == [
        ("range", "2024-01-01 to 2024-01-31, UTC"),
        ("partitions", "7: A, B, C, D, E and 2 more"),
        ("windows", "1 d each, weekdays only, without 1 holiday"),
        ("fetches", "only what was not ingested before"),
        ("reconciles", "run 3, which has ingested all of it before"),
    ]


def test_range_of_times_is_told_in_times_of_its_own_zone() -> None:
    run = a_run(
        RunKind.BACKFILL,
        start_at=JANUARY - 3600,
        end_at=JANUARY + 1800,
        window_s=60.0,
        timezone="Europe/Berlin",
    )

    told = dict(asked_for(run))

    assert told["range"] == "2024-01-01 00:00:00 to 2024-01-01 01:30:00, Europe/Berlin"
    assert (told["windows"], told["fetches"]) == ("1 min each", "everything in it")


def test_days_are_those_of_the_backfill_s_own_zone() -> None:
    run = a_run(
        RunKind.BACKFILL,
        start_at=JANUARY - 3600,
        end_at=JANUARY + DAY_S - 3600,
        window_s=DAY_S,
        timezone="Europe/Berlin",
    )

    assert dict(asked_for(run))["range"] == "2024-01-01, Europe/Berlin"


def test_what_a_run_replays_continues_or_was_started_by_is_told() -> None:
    only = "run 5, only the pages in quarantine"
    assert asked_for(a_run(RunKind.REPLAY, 5, is_staged=True, is_quarantined_only=True)) == [
        ("replays", only)
    ]
    assert asked_for(a_run(continues=7, degrade_after=9)) == [
        ("continues", "run 7: what it has done is not done again")
    ]
    assert asked_for(a_run(signal=SignalFacts(4, "prices.stale"))) == [
        ("signal", "prices.stale, number 4")
    ]


REPLAY = a_run(RunKind.REPLAY, 5, is_staged=True)
UNDO = a_run(RunKind.REPLAY, 5, is_undo=True)


@pytest.mark.parametrize(
    ("run", "replay", "is_staged", "told", "commands"),
    [
        (a_run(), ReplayRow(), False, "", []),
        (
            *(REPLAY, ReplayRow(), True, "staged, and waits for you"),
            ["penstock replay 9 --diff", "penstock replay 9 --commit", "penstock replay 9 --drop"],
        ),
        (
            *(REPLAY, ReplayRow("committing", changed=2), True),
            "its commit was interrupted; so far 0 added, 2 changed, 0 removed",
            ["penstock replay 9 --commit"],
        ),
        (
            *(REPLAY, ReplayRow("committed", changed=2), False),
            *("committed: 0 added, 2 changed, 0 removed", ["penstock undo 9"]),
        ),
        (REPLAY, ReplayRow("dropped"), False, "dropped", []),
        (
            *(REPLAY, ReplayRow("staged", added=1), True),
            "committed: 1 added, 0 changed, 0 removed; what was left alone is staged, and waits for you",
            [
                *("penstock replay 9 --diff", "penstock replay 9 --commit"),
                *("penstock replay 9 --drop", "penstock undo 9"),
            ],
        ),
        (
            *(UNDO, ReplayRow("committed", changed=2), False),
            *("2 brought back, 0 returned, 0 removed", ["penstock undo 9"]),
        ),
        (
            *(UNDO, ReplayRow("committing"), False),
            *("interrupted; so far 0 brought back, 0 returned, 0 removed", ["penstock undo 5"]),
        ),
    ],
)
def test_what_became_of_a_replay_is_told_with_what_can_be_done(
    run: RunRow, replay: ReplayRow, is_staged: bool, told: str, commands: list[str]
) -> None:
    assert result_of(run, replay, is_staged) == told
    assert [command for _, command in next_of(run, replay, is_staged)] == commands
