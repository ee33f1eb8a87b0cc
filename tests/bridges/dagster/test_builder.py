"""The builder's jobs on Dagster: each op is the real command, and a killed one is retried."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from penstock.bridges.tasks import builder_tasks
from tests.bridges.dagster.rig import executed, executing, jobs_file, last_run, steps_that
from tests.bridges.scenes import builder_job_in, command_of, dataset_of, task_of
from tests.journeys.rig import kill, until

JOB = """
from penstock.bridges.dagster import BuilderConfig, create_builder_job

paths = BuilderConfig(job_path=folder + "/job.yaml", outdir=folder + "/out")
quick = create_builder_job("quick", config=paths, retry_policy=again)
"""
OPS = [task.identifier for task in builder_tasks("quick").tasks]


def test_profile_is_built_op_by_op_and_a_killed_op_is_retried(
    tmp_path: Path, dagster_home: Path
) -> None:
    builder_job_in(tmp_path)
    file = jobs_file(tmp_path, JOB)
    with executing(file, "builder_quick_job", dagster_home) as process:
        command = until(lambda: command_of("dumps.collect", tmp_path), "its command runs")
        kill(task_of(command))
        until(lambda: not Path(f"/proc/{command}").exists(), "the command dies with its op")
        process.wait(600)

    assert last_run(dagster_home).status is dg.DagsterRunStatus.SUCCESS
    assert steps_that(dagster_home, dg.DagsterEventType.STEP_RESTARTED) == ["dumps_collect"]
    assert sorted(steps_that(dagster_home, dg.DagsterEventType.STEP_SUCCESS)) == sorted(OPS)
    assert len(dataset_of(tmp_path)) == 3


def test_failing_step_ends_the_job_and_nothing_is_packaged(
    tmp_path: Path, dagster_home: Path
) -> None:
    builder_job_in(tmp_path, dumps=[{"path": "missing.csv"}])
    file = jobs_file(tmp_path, JOB.replace("retry_policy=again", "retry_policy=None"))
    assert not executed(file, "builder_quick_job", dagster_home)
    assert "dumps_collect" in steps_that(dagster_home, dg.DagsterEventType.STEP_FAILURE)
    assert "package_export" not in steps_that(dagster_home, dg.DagsterEventType.STEP_SUCCESS)
