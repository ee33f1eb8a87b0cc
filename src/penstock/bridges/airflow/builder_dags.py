"""The builder as a DAG: one task per step of a profile, each a command that can be run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.app.step_graphs import BUILDER
from penstock.bridges.airflow.installed import DAG
from penstock.bridges.airflow.operators import BuilderStepOperator
from penstock.bridges.airflow.pipeline_dags import (
    DEFAULTS,
    USUAL_DAG,
    connect,
    defaults_of,
    limits_of,
    refuse_unknown,
    usual_options,
)
from penstock.bridges.builder_steps import builder_job, works_at_once
from penstock.bridges.tasks import builder_tasks


def create_builder_dag(
    dag_id: str,
    job_path: str,
    outdir: str,
    profile: str = "standard",
    schedule: Any = None,
    extra_args: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    *,
    pool: str | None = None,
    tasks: Mapping[str, Mapping[str, Any]] | None = None,
    default_args: Mapping[str, Any] | None = None,
    registry: str = BUILDER,
    **dag_options: Any,
) -> DAG:
    """The steps of a profile of the builder as a DAG; `package.export` waits for that of the run before.

    `job_path`, `outdir`, `extra_args` and the values of `env` may be templates: `{{ var.value.outdir }}`.
    A step that fails is tried again once; `tasks` has Airflow's options for single steps, such as
    `{"http.serp": PATIENT}`. One step runs at a time, unless the job's store is on Postgres; where that can't
    be seen here, because of templates, `max_active_tasks` says how many.
    """
    job = builder_job(job_path, outdir, profile, extra_args, env)
    at_once = works_at_once(job)
    graph = builder_tasks(profile, registry, is_serial=not at_once)
    if at_once is None and dag_options.get("max_active_tasks") is not None:
        graph = replace(graph, is_serial=False)
    defaults = defaults_of(pool, default_args)
    overrides = tasks or {}
    refuse_unknown(overrides, graph)
    with DAG(
        dag_id,
        schedule=schedule,
        default_args={**DEFAULTS, **defaults},
        **limits_of(graph, dag_options),
        **{**USUAL_DAG, "tags": ["penstock", "builder"], **dag_options},
    ) as dag:
        steps = {
            task.name: BuilderStepOperator(
                task_id=task.name,
                step=task.name,
                job_path=job_path,
                outdir=outdir,
                profile=profile,
                extra_args=extra_args,
                env=env,
                begins=not task.after,
                doc_md=task.summary or None,
                **{**usual_options(task, defaults), **overrides.get(task.name, {})},
            )
            for task in graph.tasks
        }
        connect(steps, graph)
    return dag


# A DAG file that imports it by name has it, too.
builder_standard_dag = create_builder_dag(
    "builder_standard", "/data/jobs/standard.yaml", "/data/out"
)
