"""Cadence auto: classes follow what runs bring, with patience, within bounds, and each move says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.schedules.auto import (
    LADDER,
    LOST_PROBES,
    AutoRule,
    EndedRun,
    Level,
    Move,
    Standing,
    effective_schedule,
    judge,
    moved,
)
from penstock.schedules.cadence import Cadence
from penstock.settings import ScheduleSettings, load_settings

RULE = AutoRule()
AUTO = ScheduleSettings("cadence", cadence="auto")


def a_run(number: int, share: float, *, probe: bool = False, good: bool = True) -> EndedRun:
    return EndedRun(number, probe, good, round(share * 100), 100)


def walk(
    shares: list[float], rule: AutoRule = RULE, level: Level = "medium"
) -> tuple[Standing, list[Move]]:
    standing, moves = Standing(level), []
    for number, share in enumerate(shares, 1):
        standing, move = judge(standing, [a_run(number, share)], False, rule)
        if move is not None:
            moves.append(move)
            standing = moved(standing, move.level)
    return standing, moves


def test_three_runs_in_a_row_with_much_that_is_new_make_it_quicker() -> None:
    standing, moves = walk([0.5, 0.5])
    assert (standing.level, moves) == ("medium", [])
    standing, moves = walk([0.5, 0.5, 0.25])
    assert standing == Standing("high", "medium", 0, 3)
    assert moves == [
        Move("high", "3 runs in a row; in run 3 25% of what it saw was new or different")
    ]


def test_three_runs_in_a_row_with_nothing_new_make_it_slower_and_it_stays_within_its_bounds() -> (
    None
):
    standing, moves = walk([0.0] * 20)
    assert (standing.level, [move.level for move in moves]) == ("low", ["low"])
    assert "as it was" in moves[0].reason
    standing, moves = walk([0.0] * 20, AutoRule(slowest="medium"))
    assert (standing.level, moves) == ("medium", [])
    standing, _ = walk([0.9] * 20, AutoRule(fastest="medium"), "low")
    assert standing.level == "medium"


def test_runs_that_disagree_or_lie_in_between_move_nothing() -> None:
    assert walk([0.5, 0.5, 0.0] * 10)[1] == []
    assert walk([0.1] * 30)[1] == []
    assert walk([0.5, 0.5, 0.1] * 10)[1] == []


@given(st.lists(st.floats(0, 1), max_size=60), st.integers(1, 5))
def test_no_two_moves_are_closer_than_the_runs_they_need(shares: list[float], runs: int) -> None:
    standing, since = Standing("medium"), 0
    for number, share in enumerate(shares, 1):
        standing, move = judge(standing, [a_run(number, share)], False, AutoRule(runs))
        since += 1
        assert standing.level in LADDER
        if move is not None:
            assert since >= runs
            assert abs(LADDER.index(move.level) - LADDER.index(standing.level)) == 1
            standing, since = moved(standing, move.level), 0


def test_a_degraded_source_is_probed_and_returns_to_its_class_when_it_is_well() -> None:
    standing, move = judge(Standing("high"), [a_run(9, 0.0, good=False)], True, RULE)
    assert move is not None
    assert move.level == "probe"
    standing = moved(standing, "probe")
    assert (standing.level, standing.before) == ("probe", "high")
    standing, move = judge(standing, [a_run(10, 0.0, probe=True)], True, RULE)
    assert move is None
    standing, move = judge(standing, [a_run(11, 0.0, probe=True)], False, RULE)
    assert move == Move("high", "it is healthy again")
    assert moved(standing, "high").level == "high"


def test_probes_that_fail_for_long_pause_it_and_it_still_knows_its_class() -> None:
    standing = Standing("probe", "low")
    moves = []
    for number in range(1, LOST_PROBES + 1):
        ended = [a_run(number, 0.0, probe=True, good=False)]
        standing, move = judge(standing, ended, True, RULE)
        moves.append(move)
    assert [move is None for move in moves] == [True] * (LOST_PROBES - 1) + [False]
    standing = moved(standing, "paused")
    assert (standing.level, standing.before) == ("paused", "low")
    assert effective_schedule(AUTO, "a", "paused").next_due(0.0) is None
    assert judge(standing, [], False, RULE)[1] == Move("low", "it is healthy again")


def test_failed_runs_say_nothing_of_how_often_a_source_changes() -> None:
    standing = Standing("medium", steps=2)
    after, move = judge(standing, [a_run(1, 0.0, good=False)], False, RULE)
    assert (after.steps, move) == (2, None)


def test_the_class_is_what_the_schedule_goes_by() -> None:
    assert effective_schedule(AUTO, "a", "low") == Cadence("low", "a")
    assert effective_schedule(AUTO, "a") == Cadence("medium", "a")
    fixed = ScheduleSettings("cadence", cadence="high")
    assert effective_schedule(fixed, "a", "low") == Cadence("high", "a")


def read(folder: Path, schedule: Any) -> ScheduleSettings:
    config = {"sources": {"a": {"pipeline": "m:p", "schedule": schedule}}}
    (folder / "penstock.yaml").write_text(json.dumps(config))
    return load_settings(folder).sources["a"].schedules[0]


def test_bounds_and_patience_are_configured(tmp_path: Path) -> None:
    said = {"cadence": "auto", "runs": 5, "slowest": "medium", "mode": "suggest"}
    found = read(tmp_path, said)
    assert (found.runs, found.slowest, found.fastest, found.mode) == (
        5,
        "medium",
        "high",
        "suggest",
    )
    assert read(tmp_path, {"cadence": "daily"}).cadence == "high"
    for wrong in (
        {"cadence": "high", "runs": 5},
        {"cadence": "auto", "slowest": "high", "fastest": "low"},
        {"cadence": "auto", "slowest": "probe"},
        {"cadence": "auto", "runs": 0},
    ):
        with pytest.raises(ConfigError):
            read(tmp_path, wrong)
