"""The graphs of DAGs, how Airflow reads their files, and what is refused before anything runs."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.app.step_graphs import profile_graph
from penstock.bridges.airflow import (
    PATIENT,
    builder_standard_dag,
    create_builder_dag,
    pipeline_dag,
)
from penstock.builder.registry import builder
from penstock.errors import PenstockError
from tests.bridges.airflow.home import dag_file
from tests.bridges.airflow.projects import STEPS, dag_text, source
from tests.bridges.scenes import builder_job_in
from tests.journeys.rig import Rig
from tests.postgres.ports import free_port

REGISTRY = """
from penstock import Registry

shop = Registry("shop", default="standard")
shop.add("list.pages", "steps:list_pages", outputs="link", unit="run")
shop.add("fetch", "steps:fetch", needs="list.pages", takes="link", outputs="item", unit="page", network=True)
shop.add("check", "steps:check", after="fetch", takes="item", outputs="item", unit="candidate")
shop.add("save", "steps:save", needs="fetch", after="check", takes="item", unit="candidate")
shop.add("export", "steps:export", needs="save", final=True)
shop.profile("standard", steps=["check", "export"])
shop.profile("quick", steps=["export"])


def list_pages(ctx):
    yield {"kind": "link", "url": "https://acme.com/"}


def fetch(link, ctx):
    return {"kind": "item", "url": link["url"]}


def check(item):
    return item


def save(item, ctx):
    ctx.save("item", key=item["url"], data=item)


def export(ctx):
    ctx.note("done")
"""


@pytest.mark.parametrize("profile", builder.profiles)
def test_edges_of_the_builders_dag_are_those_of_the_registry(profile: str) -> None:
    dag = create_builder_dag(f"builder_{profile}", "job.yaml", "out", profile)

    steps = profile_graph(profile).steps
    assert set(dag.task_dict) == {step.name for step in steps}
    assert edges(dag) == {(before, step.name) for step in steps for before in step.after}
    assert (dag.max_active_tasks, dag.max_active_runs, dag.catchup) == (1, 1, False)


@pytest.mark.parametrize("profile", ["standard", "quick"])
def test_edges_of_a_pipelines_dag_are_those_of_its_profile(tmp_path: Path, profile: str) -> None:
    with Rig(tmp_path, {"shop": {"pipeline": "steps:shop", "profile": profile}}, REGISTRY):
        dag = pipeline_dag(tmp_path, "shop")

        steps = profile_graph(profile, "steps:shop", root=tmp_path).steps
        wanted = {(before, step.name) for step in steps for before in step.after}
        assert edges(dag) == wanted | {("prepare", "list.pages")}


def test_export_alone_waits_for_the_run_before_and_each_step_is_tried_again_once() -> None:
    tasks = builder_standard_dag.task_dict
    waiting = {name for name, task in tasks.items() if task.depends_on_past}
    assert waiting == {"package.export"}
    assert {task.retries for task in tasks.values()} == {1}
    assert builder_standard_dag.default_args["retries"] == 1

    patient = create_builder_dag("b", "job.yaml", "out", tasks={"http.serp": PATIENT}).task_dict
    serp, site = patient["http.serp"], patient["enrich.site"]
    assert (serp.retries, serp.retry_exponential_backoff, site.retries) == (3, 2, 1)


def test_options_of_airflow_are_passed_on_and_win(tmp_path: Path) -> None:
    with Rig(tmp_path, {"shop": source(1)}, STEPS):
        dag = pipeline_dag(
            tmp_path,
            "shop",
            dag_id="other",
            pool="polite",
            default_args={"retries": 7},
            tasks={"extract": {"pool": "crawlers", "retry_delay": timedelta(hours=1)}},
            max_active_runs=3,
            tags=["mine"],
        )

    assert (dag.dag_id, dag.max_active_runs, dag.tags) == ("other", 3, {"mine"})
    assert {task.retries for task in dag.tasks} == {7}
    extract, package = dag.get_task("extract"), dag.get_task("package")
    assert (extract.pool, package.pool) == ("crawlers", "polite")
    assert extract.retry_delay == timedelta(hours=1)


def test_dag_file_is_read_quickly_and_opens_no_store(tmp_path: Path) -> None:
    looked = (
        "import sys, time, airflow.sdk, airflow.triggers.base;"
        "begun = time.process_time();"
        f"exec(open({str(tmp_path / 'dag.py')!r}).read());"
        "print(time.process_time() - begun, 'psycopg' in sys.modules)"
    )
    # Nobody listens there, so whoever opened the store would fail.
    store = f"postgresql://127.0.0.1:{free_port()}/none"
    with Rig(tmp_path, {"shop": source(1)}, STEPS, store=store):
        (tmp_path / "dag.py").write_text(dag_text(tmp_path))
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", looked], capture_output=True, text=True, check=True
        )
        whole = time.monotonic() - begun

        took, has_driver = done.stdout.split()
        print(f"{float(took) * 1000:.0f} ms of processor time")
        assert has_driver == "False"
        # Airflow's own import is the rest.
        assert float(took) < whole / 2


def test_airflow_reads_the_files_without_errors(tmp_path: Path) -> None:
    from airflow.dag_processing.dagbag import DagBag

    builders = (
        "from penstock.bridges.airflow import builder_standard_dag, create_builder_dag\n"
        "mine = create_builder_dag('mine', '{{ var.value.job }}', '/data/out', schedule='@daily')\n"
    )
    project = Rig(tmp_path, {"shop": source(1)}, STEPS)
    with project, dag_file(dag_text(tmp_path)), dag_file(builders) as module:
        bag = DagBag(Path(module.__file__).parent, bundle_name="tests")

    assert bag.import_errors == {}
    assert {"shop", "mine", "builder_standard"} <= set(bag.dags)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"source": "shopp"}, "did you mean 'shop'"),
        ({"tasks": {"extrac": {}}}, "did you mean 'extract'"),
        ({"partial": "fine"}, "partial is one of ok, warn, failed"),
        ({"shards": 0}, "a stage has at least one shard"),
        ({"shards": 4}, "on SQLite one task works at a time"),
        ({"max_active_tasks": 4}, "on SQLite one task works at a time"),
        ({"kind": "backfill"}, "no step that takes windows"),
    ],
)
def test_what_can_not_work_is_refused_in_one_line(
    tmp_path: Path, wrong: dict[str, Any], said: str
) -> None:
    with Rig(tmp_path, {"shop": source(1)}, STEPS), pytest.raises(PenstockError) as raised:
        pipeline_dag(tmp_path, **{"source": "shop", **wrong})

    line = f"{raised.value.message} {raised.value.hint}"
    assert said in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"profile": "standart"}, "did you mean 'standard'"),
        ({"extra_args": ["--outdir=/tmp"]}, "a parameter of its own"),
        ({"tasks": {"http.sepr": {}}}, "did you mean 'http.serp'"),
        ({"max_active_tasks": 2}, "on SQLite one task works at a time"),
    ],
)
def test_builder_refuses_in_one_line_too(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    builder_job_in(tmp_path)
    with pytest.raises(PenstockError) as raised:
        create_builder_dag("b", str(tmp_path / "job.yaml"), "out", **wrong)

    assert said in f"{raised.value.message} {raised.value.hint}"


def test_steps_of_a_builder_run_at_once_where_the_store_is_on_postgres_or_a_template_hides_it() -> (
    None
):
    store = {"PENSTOCK_BUILDER_STORE": "postgresql://db.example.com/b"}
    served = create_builder_dag("b", "job.yaml", "out", env=store, max_active_tasks=4)
    hidden = create_builder_dag("c", "{{ var.value.job }}", "out", max_active_tasks=4)
    unasked = create_builder_dag("d", "{{ var.value.job }}", "out")
    assert [each.max_active_tasks for each in (served, hidden, unasked)] == [4, 4, 1]


def edges(dag: Any) -> set[tuple[str, str]]:
    return {(task.task_id, after) for task in dag.tasks for after in task.downstream_task_ids}
