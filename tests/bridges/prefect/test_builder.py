"""The builder as a Prefect flow: each task is the real command, and the first failure ends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prefect import State

from penstock.bridges.prefect import builder_prefect_flow
from penstock.bridges.tasks import builder_tasks
from tests.bridges.prefect.rig import counts_by_task, edges, states_by_task, task_runs, told
from tests.bridges.scenes import builder_job_in, dataset_of, edges_of


def built(folder: Path, **more: Any) -> State[Any]:
    paths = {"job_path": str(folder / "job.yaml"), "outdir": str(folder / "out")}
    found: State[Any] = builder_prefect_flow(**paths, **more, return_state=True)
    return found


def test_profile_is_built_task_by_task_and_each_flow_run_is_a_run_of_its_own(
    tmp_path: Path,
) -> None:
    builder_job_in(tmp_path)
    state = built(tmp_path, profile="quick", env={"MY_VARIABLE": "1"})
    assert state.is_completed(), state.message
    number = state.state_details.flow_run_id
    assert number is not None
    told(lambda: edges(number), edges_of("quick"))
    told(lambda: set(counts_by_task(number).values()), {1})
    assert len(dataset_of(tmp_path)) == 3


def test_first_steps_run_at_once_on_a_server_and_begin_one_run(
    tmp_path: Path, database: str
) -> None:
    builder_job_in(tmp_path, penstock={"store": "${JOBS_URL}"})
    state = built(tmp_path, profile="quick", env={"JOBS_URL": database})
    assert state.is_completed(), state.message
    assert len(dataset_of(tmp_path)) == 3
    number = state.state_details.flow_run_id
    assert number is not None
    steps = [each.name for each in builder_tasks("quick").tasks]
    told(lambda: sorted(states_by_task(number)), sorted(steps))
    runs = {run.name: run for run in task_runs(number)}
    spans = [(runs[name].start_time, runs[name].end_time) for name in steps[:2]]
    (began, ended), (second_began, second_ended) = spans
    assert None not in (began, ended, second_began, second_ended)
    assert max(began, second_began) < min(ended, second_ended), "they ran side by side"  # type: ignore[type-var]


@pytest.mark.parametrize("profile", ["standard", "deep"])
def test_edges_of_each_profile_are_those_of_the_registry(tmp_path: Path, profile: str) -> None:
    builder_job_in(tmp_path, maps={"key": "none is asked"})
    state = built(tmp_path, profile=profile, extra_cli_args=["--dry-run"])
    assert state.is_completed(), state.message
    number = state.state_details.flow_run_id
    assert number is not None
    told(lambda: edges(number), edges_of(profile))


def test_first_step_that_fails_ends_the_flow(tmp_path: Path) -> None:
    builder_job_in(tmp_path, dumps=[{"path": "missing.csv"}])
    state = built(tmp_path, profile="quick")
    number = state.state_details.flow_run_id
    assert number is not None
    assert state.is_failed()
    assert (state.message or "").startswith("dumps.collect failed with exit code")
    told(lambda: states_by_task(number), {"dumps.collect": "Failed"})


def test_unknown_profile_and_doubled_options_are_refused_in_one_line(tmp_path: Path) -> None:
    builder_job_in(tmp_path)
    wrong = built(tmp_path, profile="fast")
    assert wrong.name == "Misconfigured"
    assert "there is no profile 'fast'" in (wrong.message or "")
    doubled = built(tmp_path, profile="quick", extra_cli_args=["--job", "other.yaml"])
    assert doubled.name == "Misconfigured"
    assert "--job, which is a parameter of its own" in (doubled.message or "")
