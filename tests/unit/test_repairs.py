"""What a source missed, by its breaker or in a gap of its stream, is fetched, and once only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock import Project
from penstock.engine.leader.repairs import Repairs
from penstock.engine.leader.signals import SignalChore
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Raised
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import RunKind
from penstock.jobs.windows import windows_of
from penstock.testing import EPOCH, VirtualClock

MODULE = "repaired_pipelines"
PIPELINES = """
from penstock import Pipeline

quotes = Pipeline("quotes")


@quotes.step(unit="run")
def begin(ctx):
    pass


@quotes.step(unit="page", windows=True)
def fetch(window, ctx):
    pass
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    (tmp_path / f"{MODULE}.py").write_text(PIPELINES)
    monkeypatch.syspath_prepend(tmp_path)
    backfill = "    backfill: {window: 1h, partitions: [AAPL]}\n"
    (tmp_path / "penstock.yaml").write_text(
        f"sources:\n  quotes:\n    pipeline: {MODULE}:quotes\n{backfill}"
        f"  plain:\n    pipeline: {MODULE}:quotes\n"
    )
    project = Project.load(tmp_path)
    project.clock = VirtualClock()
    project.connection.workers.register("w", "here", 1, "1")
    yield project
    project.close()
    sys.modules.pop(MODULE, None)


def signalled(
    project: Project, source: str, *, named: str = "breaker.closed", **data: object
) -> int:
    """Have a run of this source raise the signal; answers with the run."""
    run_id = project.run(source)
    [job] = project.connection.turn("w", [], Capacity(1), project.limits()).claimed
    raised = Raised(named, msgspec.json.encode(data))
    end = Settlement(job.id, job.attempt, JobState.SUCCEEDED, effects=Effects(signals=[raised]))
    project.connection.turn("w", [end], Capacity(0), project.limits())
    return run_id


def received(project: Project) -> list[int]:
    """What is started when every signal there ever was is handed to it."""
    repairs = Repairs(project, project.connection)
    found = (repairs.receive(signal) for signal in project.connection.signals.after())
    return [run_id for run_id in found if run_id is not None]


WINDOW: dict[str, Any] = {"start_at": EPOCH - 7200.0, "end_at": EPOCH - 60.0}


def test_missed_window_is_filled_by_a_backfill_that_is_linked_to_the_run(project: Project) -> None:
    run_id = signalled(project, "quotes", **WINDOW)

    [filling] = received(project)

    row = project.require_run(filling)
    assert (row.kind, row.of_run_id) == ("backfill", run_id)
    assert (row.options.start_at, row.options.end_at) == (WINDOW["start_at"], WINDOW["end_at"])
    assert "breaker" in row.reason


def test_gap_that_a_stream_names_is_filled_in_one_window_of_its_partition(project: Project) -> None:
    about: dict[str, Any] = {
        "start_at": EPOCH - 90_000.0,
        "end_at": EPOCH - 60.0,
        "partition": "MSFT",
    }
    run_id = signalled(project, "quotes", named="gap.found", sequences=[[3, 5]], **about)

    [filling] = received(project)

    row = project.require_run(filling)
    assert (row.of_run_id, row.options.partitions) == (run_id, ("MSFT",))
    assert (row.options.start_at, row.options.end_at) == (about["start_at"], about["end_at"])
    assert (windows_of(row.options).total, row.options.params) == (1, {"gap": [[3, 5]]})


def test_gap_of_which_no_partition_is_named_was_seen_to_by_its_worker(project: Project) -> None:
    signalled(project, "quotes", named="gap.found", **WINDOW)
    signalled(project, "quotes", named="gap.found", partition=7, **WINDOW)

    assert received(project) == []


def test_signal_that_is_looked_at_again_starts_nothing_more(project: Project) -> None:
    signalled(project, "quotes", **WINDOW)
    once = received(project) + received(project)

    assert len(set(once)) == 1
    assert len(project.connection.runs.newest(limit=10)) == 2


def test_source_that_can_not_be_asked_for_a_stretch_of_time_is_left_alone(project: Project) -> None:
    signalled(project, "plain", **WINDOW)

    assert received(project) == []


def test_somebodys_own_signal_under_the_name_harms_nothing(project: Project) -> None:
    signalled(project, "quotes", start_at="yesterday", end_at=None)
    signalled(project, "quotes")
    signalled(project, "quotes", **WINDOW)

    assert len(received(project)) == 1


def test_who_delivers_signals_hands_it_over(project: Project) -> None:
    run_id = signalled(project, "quotes", **WINDOW)
    signals = SignalChore(
        project, project.connection, [Repairs(project, project.connection).receive]
    )
    signals.plan()
    signals.look()
    [filling] = [row for row in project.connection.runs.newest(limit=10) if row.kind == "backfill"]
    assert filling.of_run_id == run_id
    signals.look()
    assert len(project.connection.runs.newest(limit=10)) == 2


def degrade(project: Project, source: str) -> None:
    for _ in range(3):
        project.run(source)
        [job] = project.connection.turn("w", [], Capacity(1), project.limits()).claimed
        end = Settlement(job.id, job.attempt, JobState.QUARANTINED, error="no such host")
        project.connection.turn("w", [end], Capacity(0), project.limits())


def test_window_that_a_degraded_source_missed_waits_until_it_has_recovered(
    project: Project,
) -> None:
    signalled(project, "quotes", **WINDOW)
    degrade(project, "quotes")

    [filling] = received(project)

    repairs = Repairs(project, project.connection)
    assert (repairs.look(), received(project)) == ([], [filling])
    row = project.require_run(filling)
    assert (row.state, row.options.waits_for_recovery) == ("draft", True)
    assert "waits until quotes has recovered" in row.reason
    outlook = project.explain(run=filling)
    assert (outlook.would_start, outlook.gate) == (False, "run")
    assert outlook.command == "penstock resume quotes"

    project.resume("quotes", reason="they are back")

    assert project.require_run(filling).state == "queued"
    assert [
        job.run_id
        for job in project.connection.turn("w", [], Capacity(1), project.limits()).claimed
    ] == [filling]


def test_commands_that_explain_names_for_a_degraded_source_are_not_refused(
    project: Project,
) -> None:
    degrade(project, "quotes")
    [last] = project.connection.runs.newest("quotes", limit=1)

    assert project.explain("quotes").command == "penstock run quotes --kind probe"
    project.refuse_run("quotes", "probe")
    assert project.explain(run=last.id).command == "penstock resume quotes"
    draft_id = project.connection.runs.start(
        project.source_ids["quotes"], RunKind.FULL, project.graph(project.source("quotes")).plan(),
        "v1", key="draft", actor="ops", is_draft=True,
    )[0]  # fmt: skip
    assert project.explain(run=draft_id).command == "penstock resume quotes"
