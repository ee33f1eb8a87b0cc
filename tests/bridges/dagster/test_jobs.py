"""Pipelines as Dagster jobs: whole, killed, failed, partial, split, and for days of the past."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableJob

from penstock.bridges.dagster import create_builder_job, pipeline_job
from penstock.bridges.tasks import builder_tasks, pipeline_tasks
from penstock.builder.registry import builder
from penstock.errors import PipelineError, UsageError
from tests.bridges.dagster.rig import executed, executing, jobs_file, last_run, steps_that
from tests.bridges.scenes import (
    STAGES,
    assert_sound,
    days_rig,
    edges_of,
    kill_amid,
    mended,
    rig_of,
    waiting_rig_of,
)
from tests.journeys.holding import HOLDING, held, holding_source, let_go
from tests.journeys.rig import Rig, until

SUCCESS, RESTARTED = dg.DagsterEventType.STEP_SUCCESS, dg.DagsterEventType.STEP_RESTARTED
PAGES = 40


def edges(job: dg.JobDefinition) -> set[tuple[str, str]]:
    """Pairs of an op and one that waits for it."""
    return {
        (before.node, node.name)
        for node, inputs in job.graph.dependencies.items()
        for given in inputs.values()
        for before in given.get_node_dependencies()
    }


def test_job_runs_a_source_from_end_to_end_with_a_process_for_each_op(
    tmp_path: Path, dagster_home: Path
) -> None:
    with rig_of(tmp_path, PAGES) as rig:
        file = jobs_file(tmp_path, "shop = pipeline_job(folder, 'shop')")

        assert executed(file, "penstock_shop", dagster_home), (
            file.parent / "dagster.log"
        ).read_text()

        assert steps_that(dagster_home, SUCCESS) == ["penstock_run", *STAGES]
        [run] = [rig.run(1)]
        assert (run.state, run.actor) == ("completed", "dagster")
        rig.assert_records({str(number) for number in range(PAGES)})
        assert_sound(rig)


def test_op_that_is_killed_is_retried_by_dagster_and_doubles_nothing(
    tmp_path: Path, dagster_home: Path
) -> None:
    pages = 400
    with waiting_rig_of(tmp_path, pages, "extract", "clean") as rig:
        file = jobs_file(
            tmp_path,
            "shop = pipeline_job(folder, 'shop', retry_policy=again, retry_policy_others=again)",
        )
        with executing(file, "penstock_shop", dagster_home) as process:
            for stage in ("extract", "clean"):
                kill_amid(rig, stage, pages // 10)
                until(lambda: stage in steps_that(dagster_home, RESTARTED), "it is retried")  # noqa: B023
            process.wait(600)

        assert last_run(dagster_home).status is dg.DagsterRunStatus.SUCCESS
        assert steps_that(dagster_home, RESTARTED) == ["extract", "clean"]
        assert len(rig.jobs(stage="extract")) == pages
        rig.assert_records({str(number) for number in range(pages)})
        assert_sound(rig)


def test_step_that_fails_fails_the_run_which_is_executed_again_from_there(
    tmp_path: Path, dagster_home: Path, instance: dg.DagsterInstance
) -> None:
    with rig_of(tmp_path, 3, bad=[0, 1, 2]) as rig:
        file = jobs_file(tmp_path, "shop = pipeline_job(folder, 'shop', retry_policy=None)")
        assert not executed(file, "penstock_shop", dagster_home)
        assert steps_that(dagster_home, SUCCESS) == ["penstock_run", "discover"]
        assert steps_that(dagster_home, dg.DagsterEventType.STEP_FAILURE) == ["extract"]
        [entry] = instance.all_logs(
            last_run(dagster_home).run_id, of_type=dg.DagsterEventType.STEP_FAILURE
        )
        assert entry.dagster_event is not None
        failure = entry.dagster_event.step_failure_data.user_failure_data
        assert failure is not None
        assert failure.description.startswith("extract of run 1 (shop) is failed: ValueError")

        mended(rig)
        from_file = ReconstructableJob.for_file(str(file), "shop")
        parent = last_run(dagster_home).run_id
        again = dg.execute_job(
            from_file,
            instance=instance,
            reexecution_options=dg.ReexecutionOptions.from_failure(parent, instance),
        )

        assert again.success
        assert steps_that(dagster_home, SUCCESS) == ["extract", "clean", "package"]
        assert rig.run(1).state == "completed"
        rig.assert_records({"0", "1", "2"})


def test_partial_is_a_success_a_warning_or_a_failure(tmp_path: Path) -> None:
    with rig_of(tmp_path, 5, bad=[3]) as rig:
        ends = {}
        for partial in ("ok", "warn", "failed"):
            job = pipeline_job(
                tmp_path,
                "shop",
                partial=partial,
                retry_policy=None,
                dashboard="http://localhost:8787",
            )  # type: ignore[arg-type]
            result = job.execute_in_process(raise_on_error=False)
            outputs = {
                e.step_key: e.step_output_data
                for e in result.all_node_events
                if e.is_successful_output
            }
            shown = outputs["extract"].metadata if "extract" in outputs else {}
            ends[partial] = (result.success, "warning" in shown)
            if shown:
                assert shown["quarantined"].value == 1
                assert shown["dashboard"].value.endswith(f"/runs/{shown['run'].value}")
        assert ends == {"ok": (True, False), "warn": (True, True), "failed": (False, False)}
        assert rig.run(1).state == rig.run(2).state == "partial"


def test_shards_work_at_once_on_a_server_and_do_each_job_once(
    tmp_path: Path, dagster_home: Path, database: str
) -> None:
    with Rig(tmp_path, {"shop": holding_source(20)}, HOLDING, {"slots": 2}, database) as rig:
        file = jobs_file(tmp_path, "shop = pipeline_job(folder, 'shop', shards=2)")
        with executing(file, "penstock_shop", dagster_home) as process:
            until(lambda: len(held(rig)) >= 4, "both shards hold pages")
            scopes = {worker.scope for worker in rig.store.workers.all()}
            let_go(rig)
            process.wait(600)

        assert len(scopes) == 2
        assert last_run(dagster_home).status is dg.DagsterRunStatus.SUCCESS
        assert set(steps_that(dagster_home, SUCCESS)) >= {"hold_1_of_2", "hold_2_of_2"}
        rig.assert_records({str(number) for number in range(20)})
        assert_sound(rig)


def test_partition_is_a_backfill_of_its_days(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    days = dg.DailyPartitionsDefinition(start_date="2024-01-01", end_date="2024-02-01")
    with days_rig(tmp_path) as rig:
        job = pipeline_job(tmp_path, "prices", partitions=days)
        for day in ("2024-01-02", "2024-01-05"):
            assert job.execute_in_process(partition_key=day, instance=instance).success
        assert [rig.run(number).kind for number in (1, 2)] == ["backfill", "backfill"]
        rig.assert_records({"AAPL 2024-01-02", "AAPL 2024-01-05"}, "day")


def test_partition_that_is_no_time_becomes_a_param(tmp_path: Path) -> None:
    sizes = dg.StaticPartitionsDefinition(["3", "5"])
    text = "ctx.params['pages']"
    with rig_of(tmp_path, 1) as rig:
        steps = tmp_path / "steps.py"
        steps.write_text(steps.read_text().replace('ctx.params["pages"]', f"int({text})"))
        job = pipeline_job(tmp_path, "shop", partitions=sizes, partition_param="pages")
        assert job.execute_in_process(partition_key="5").success
        rig.assert_records({str(number) for number in range(5)})


def test_edges_of_a_job_are_those_of_the_pipeline(tmp_path: Path) -> None:
    with rig_of(tmp_path, 1):
        found = edges(pipeline_job(tmp_path, "shop"))
        plan = pipeline_tasks(tmp_path, "shop").edges
    assert {edge for edge in found if "penstock_run" not in edge} == plan
    assert {after for before, after in found if before == "penstock_run"} == set(STAGES)


@pytest.mark.parametrize("profile", list(builder.profiles))
def test_edges_of_a_builder_job_are_those_of_the_registry(profile: str) -> None:
    job = create_builder_job(profile)
    names = {task.identifier: task.name for task in builder_tasks(profile).tasks}
    assert {(names[before], names[after]) for before, after in edges(job)} == edges_of(profile)
    assert job.graph.node_named("dumps_collect").definition.name == "dumps_collect"
    policies = {
        node.name: node.retry_policy or node.definition.retry_policy for node in job.graph.nodes
    }
    assert {names[name] for name, policy in policies.items() if policy is not None} == {
        name for name in names.values() if builder.steps[name].is_network
    }


def test_builder_job_takes_its_paths_from_ops_or_from_the_resource() -> None:
    job = create_builder_job("quick")
    of_op = {"job_path": "job.yaml", "outdir": "out"}
    ops = {node.name: {"config": of_op} for node in job.graph.nodes}
    assert dg.validate_run_config(job, {"ops": ops})
    assert dg.validate_run_config(job, {"resources": {"builder": {"config": of_op}}})
    with pytest.raises(dg.DagsterInvalidConfigError):
        dg.validate_run_config(job, {"ops": {"dumps_collect": {"config": {"job": "job.yaml"}}}})
    result = job.execute_in_process(raise_on_error=False)
    failures = [event.step_failure_data for event in result.get_step_failure_events()]
    assert [
        failure.user_failure_data.description for failure in failures if failure.user_failure_data
    ] == ["job_path is missing: set it in the config of the op or of the resource builder"] * len(
        failures
    )


def test_what_can_not_be_a_job_is_refused_in_one_line(tmp_path: Path) -> None:
    with rig_of(tmp_path, 1):
        with pytest.raises(UsageError, match="no source 'shp'"):
            pipeline_job(tmp_path, "shp")
        with pytest.raises(UsageError, match="one task works at a time"):
            pipeline_job(tmp_path, "shop", shards=2)
        with pytest.raises(UsageError, match="partial is one of"):
            pipeline_job(tmp_path, "shop", partial="maybe")  # type: ignore[arg-type]
    with pytest.raises(PipelineError, match="no profile 'fast'"):
        create_builder_job("fast")


def test_second_run_on_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": holding_source(1)}, HOLDING) as rig:
        up = rig.start("up")
        until(rig.store.workers.all, "a worker is there")
        result = pipeline_job(tmp_path, "shop", retry_policy=None).execute_in_process(
            raise_on_error=False
        )
        [failed] = result.get_step_failure_events()
        assert failed.step_failure_data.user_failure_data is not None
        text = failed.step_failure_data.user_failure_data.description
        assert "on SQLite a drain has the project to itself" in text
        up.terminate()
        up.wait(60)
