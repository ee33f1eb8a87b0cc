"""The builder as a DAG: each task is the real command, in a run of the builder for each run of the DAG."""

from __future__ import annotations

from pathlib import Path

from tests.bridges.airflow.home import dag_file, play
from tests.bridges.scenes import builder_job_in, dataset_of, edges_of

BUILDER = """
from penstock.bridges.airflow import create_builder_dag

dag = create_builder_dag(
    "companies",
    {job!r},
    {out!r},
    "quick",
    env={{"MY_VARIABLE": "{{{{ run_id }}}}"}},
    default_args={{"retries": 0}},
)
"""


def built(folder: Path) -> str:
    return BUILDER.format(job=str(folder / "job.yaml"), out=str(folder / "out"))


def test_profile_is_built_task_by_task(tmp_path: Path) -> None:
    builder_job_in(tmp_path)
    with dag_file(built(tmp_path)) as module:
        played = play(module.dag)

    assert played.state == "success"
    assert set(played.states) == {name for edge in edges_of("quick") for name in edge}
    assert len(dataset_of(tmp_path)) == 3


def test_first_step_that_fails_keeps_all_that_come_after_it(tmp_path: Path) -> None:
    builder_job_in(tmp_path, dumps=[{"path": "missing.csv"}])
    with dag_file(built(tmp_path)) as module:
        played = play(module.dag)

    assert (played.state, played.states["dumps.collect"]) == ("failed", "failed")
    assert played.states["package.export"] == "upstream_failed"
