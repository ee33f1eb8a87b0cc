"""States: one table of moves per machine; enum, SQL and the pictures in the docs say the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import pytest

from penstock.gates.onboarding import SOURCE_MOVES, SourceState, source_may_move
from penstock.jobs.job import JobState
from penstock.jobs.run import (
    ACTIVE_RUN_STATES,
    ENDED_RUN_STATES,
    RunKind,
    RunState,
    StageCount,
)
from penstock.jobs.transitions import (
    CLOSED_JOB_STATES,
    JOB_MOVES,
    OPEN_JOB_STATES,
    RUN_MOVES,
    job_may_move,
    run_may_move,
)
from penstock.store.schema import migrations
from penstock.store.sqlite.migrate import PACKAGE

STATES = Path(__file__).parents[2] / "docs" / "states.md"
SCHEMA = "\n".join(each.text for each in migrations(PACKAGE))


State = TypeVar("State", bound=StrEnum)


def picture(moves: Mapping[tuple[State, State], str], *starts: State) -> str:
    """A table of moves as a Mermaid state diagram."""
    arrows = [f"    {leaves} --> {enters}: {cause}" for (leaves, enters), cause in moves.items()]
    begins = [f"    [*] --> {start}" for start in starts]
    lines = ["```mermaid", "stateDiagram-v2", *begins, *arrows, "```"]
    return "\n".join(lines)


def checked(table: str, column: str) -> list[set[str]]:
    """What the schema's CHECKs allow in a column."""
    body = re.search(rf"CREATE TABLE {table} \((.*?)\n\) STRICT", SCHEMA, re.DOTALL)
    assert body is not None
    found = re.findall(rf"CHECK \({column} IN \(([^)]*)\)\)", body.group(1))
    return [set(re.findall(r"'(\w+)'", values)) for values in found]


def test_sql_allows_the_states_of_the_enums_and_no_others() -> None:
    assert checked("job", "state") == [set(JobState)]
    assert checked("run", "state") == [set(RunState)]
    assert checked("run", "kind") == [set(RunKind)]
    assert checked("onboarding", "state") == [set(SourceState)]


def test_counters_have_a_column_for_each_state() -> None:
    assert StageCount.__struct_fields__ == tuple(JobState)
    for state in JobState:
        assert f"{state} INTEGER NOT NULL DEFAULT 0 CHECK ({state} >= 0)" in SCHEMA


def test_pictures_in_the_docs_are_drawn_from_the_tables() -> None:
    text = STATES.read_text(encoding="utf-8")

    assert picture(JOB_MOVES, JobState.QUEUED) in text
    assert picture(RUN_MOVES, RunState.DRAFT, RunState.QUEUED) in text
    assert picture(SOURCE_MOVES, SourceState.PROPOSED, SourceState.ACTIVE) in text
    assert text.count("```mermaid") == 3


def test_no_cause_holds_what_ends_a_statement_in_a_picture() -> None:
    causes = [*JOB_MOVES.values(), *RUN_MOVES.values(), *SOURCE_MOVES.values()]

    assert [cause for cause in causes if set(cause) & set(";:\n")] == []


@pytest.mark.parametrize("state", JobState)
def test_every_state_of_a_job_is_described_in_the_docs(state: JobState) -> None:
    assert f"| `{state}` |" in STATES.read_text(encoding="utf-8")


@pytest.mark.parametrize("state", RunState)
def test_every_state_of_a_run_is_described_in_the_docs(state: RunState) -> None:
    assert f"| `{state}` |" in STATES.read_text(encoding="utf-8")


@pytest.mark.parametrize("state", SourceState)
def test_every_state_of_a_source_is_described_in_the_docs(state: SourceState) -> None:
    assert f"| `{state}` |" in STATES.read_text(encoding="utf-8")


def test_source_is_ingested_only_after_its_trial_and_every_state_is_left() -> None:
    active, trial = SourceState.ACTIVE, SourceState.TRIAL
    assert [leaves for leaves, enters in SOURCE_MOVES if enters is active] == [trial]
    assert {leaves for leaves, _ in SOURCE_MOVES} == set(SourceState)
    assert not source_may_move(SourceState.PROPOSED, active)


def test_states_are_either_open_or_closed() -> None:
    assert sorted((*OPEN_JOB_STATES, *CLOSED_JOB_STATES)) == sorted(JobState)
    assert sorted((*ACTIVE_RUN_STATES, *ENDED_RUN_STATES, RunState.DRAFT)) == sorted(RunState)


def test_every_state_can_be_reached_and_every_open_one_left() -> None:
    for moves, start, open_states in (
        (JOB_MOVES, JobState.QUEUED, OPEN_JOB_STATES),
        (RUN_MOVES, RunState.DRAFT, (RunState.DRAFT, *ACTIVE_RUN_STATES)),
    ):
        entered: set[StrEnum] = {start, *(enters for _, enters in moves)}
        left: set[StrEnum] = {leaves for leaves, _ in moves}
        assert entered == set(type(start))
        assert left >= set(open_states)


def test_what_ended_well_or_was_cancelled_never_moves_again() -> None:
    final = (JobState.SUCCEEDED, JobState.SKIPPED, JobState.CANCELLED)
    assert not any(leaves in final for leaves, _ in JOB_MOVES)
    assert not any(leaves in (RunState.COMPLETED, RunState.CANCELLED) for leaves, _ in RUN_MOVES)


def test_table_answers_whether_a_move_is_legal() -> None:
    assert job_may_move(JobState.QUEUED, JobState.RUNNING)
    assert not job_may_move(JobState.SUCCEEDED, JobState.RUNNING)
    assert run_may_move(RunState.PARTIAL, RunState.RUNNING)
    assert not run_may_move(RunState.CANCELLED, RunState.RUNNING)
