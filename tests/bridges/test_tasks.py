"""The graph of tasks that every engine is given: the stages of a pipeline, the steps of a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bridges.builder_steps import builder_job, works_at_once
from penstock.bridges.drains import TaskFailed
from penstock.bridges.tasks import builder_tasks, pipeline_tasks
from penstock.builder.registry import builder
from penstock.errors import PipelineError, UsageError
from tests.bridges.scenes import STAGES, builder_job_in, edges_of, rig_of

PROFILES = list(builder.profiles)


def test_stages_are_tasks_in_order_and_nothing_is_opened(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3):
        graph = pipeline_tasks(tmp_path, "shop")

        assert [task.name for task in graph.tasks] == list(STAGES)
        assert graph.edges == {
            ("discover", "extract"),
            ("extract", "clean"),
            ("clean", "package"),
        }
        assert [task.name for task in graph.tasks if task.is_network] == ["discover", "extract"]
        assert graph.is_serial
        assert not (tmp_path / "penstock.db").exists()


def test_on_a_server_pages_are_split_and_runs_and_gathers_are_not(
    tmp_path: Path, database: str
) -> None:
    with rig_of(tmp_path, 3, database):
        graph = pipeline_tasks(tmp_path, "shop", shards=3)

        assert [task.shards for task in graph.tasks] == [1, 3, 3, 1]
        assert graph.task("extract").parts == [(1, 3), (2, 3), (3, 3)]
        assert not graph.is_serial


@pytest.mark.parametrize("profile", PROFILES)
def test_steps_of_a_profile_are_tasks_with_the_edges_of_the_registry(profile: str) -> None:
    graph = builder_tasks(profile)

    assert graph.edges == edges_of(profile)
    assert graph.tasks[-1].name == "package.export"
    assert [task.name for task in graph.tasks if task.is_final] == ["package.export"]
    assert graph.task("dumps.collect").identifier == "dumps_collect"
    for task in graph.tasks:
        assert task.is_network == builder.steps[task.name].is_network


def test_what_can_not_be_planned_is_refused_in_one_line(tmp_path: Path) -> None:
    with rig_of(tmp_path, 3):
        with pytest.raises(UsageError, match="on SQLite one task works at a time") as serial:
            pipeline_tasks(tmp_path, "shop", shards=2)
        assert "use Postgres" in serial.value.hint
        with pytest.raises(UsageError, match="no source 'shp'"):
            pipeline_tasks(tmp_path, "shp")
        with pytest.raises(UsageError, match="at least one shard"):
            pipeline_tasks(tmp_path, "shop", shards=0)
    with pytest.raises(PipelineError, match="no profile 'standart'; did you mean 'standard'"):
        builder_tasks("standart")


def test_steps_of_a_job_work_at_once_where_its_store_is_seen_to_be_on_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_once(job: str = str(tmp_path / "job.yaml"), **env: str) -> bool | None:
        return works_at_once(builder_job(job, "out", env=env))

    builder_job_in(tmp_path)
    assert at_once() is False
    assert at_once(PENSTOCK_BUILDER_STORE="postgresql://db.example.com/b") is True
    assert at_once("{{ var.value.job }}") is None
    assert at_once(PENSTOCK_BUILDER_STORE="{{ conn.jobs.get_uri() }}") is None
    builder_job_in(tmp_path, penstock={"store": "${JOBS_URL}"})
    assert at_once() is None, "only the worker has the variable"
    assert at_once(JOBS_URL="postgresql://db.example.com/b") is True
    monkeypatch.setenv("PENSTOCK_BUILDER_STORE", "sqlite:other.db")
    assert at_once("{{ var.value.job }}") is False


@pytest.mark.parametrize("word", ["--resume", "--job=other.yaml", "--profile"])
def test_extra_arguments_can_not_say_what_parameters_say(word: str) -> None:
    with pytest.raises(TaskFailed, match="is a parameter of its own") as refused:
        builder_job("job.yaml", "out", extra_args=[word])
    assert refused.value.is_final
