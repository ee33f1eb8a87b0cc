"""A profile of the builder as a job: each op is one `penstock builder run-step`."""

# No postponed annotations: Dagster reads the type of `context` from them.

from typing import Any

import dagster as dg

from penstock.bridges.builder_steps import (
    BuilderJob,
    builder_job,
    resumes,
    run_builder_step,
    works_at_once,
)
from penstock.bridges.dagster.jobs import NETWORK_RETRY, WORKERS, attempt_of, executor, op_name
from penstock.bridges.dagster.outcomes import failures_shown
from penstock.bridges.drains import TaskFailed
from penstock.bridges.tasks import BridgeTask, builder_tasks
from penstock.errors import UsageError

RESOURCE = "builder"
OP_CONFIG = {
    "job_path": dg.Field(str, is_required=False, description="the job file"),
    "outdir": dg.Field(str, is_required=False, description="where the dataset is written"),
    "extra_args": dg.Field([str], is_required=False, description="more for the command"),
}


class BuilderConfig(dg.ConfigurableResource):  # type: ignore[type-arg]
    """What all ops of a builder's job share, so that no op has to repeat it. An op's own config wins."""

    job_path: str = ""
    outdir: str = ""
    extra_args: list[str] = []  # noqa: RUF012 - pydantic copies it


def create_builder_job(
    profile: str = "standard",
    *,
    name: str = "",
    retry_policy: dg.RetryPolicy | None = NETWORK_RETRY,
    config: BuilderConfig | None = None,
    workers: int | None = None,
) -> dg.JobDefinition:
    """A job of the builder: one op per step of the profile, wired by `Nothing` inputs.

    `job_path`, `outdir` and optional `extra_args` come from the config of each op or from the resource
    `builder`. `retry_policy` is of ops that make requests. One op runs at a time, unless the job's store is
    known to be on Postgres (by `config`, or PENSTOCK_BUILDER_STORE); otherwise `workers` says how many.
    """
    at_once = _works_at_once(config, profile)
    if workers is not None and workers > 1 and at_once is False:
        raise UsageError(
            f"{profile} can't run {workers} ops at once: on SQLite one works at a time",
            "leave out `workers`, or use Postgres: `penstock: {store: …}` in the job",
            code="tasks_need_postgres",
        )
    graph = builder_tasks(profile, is_serial=not at_once and workers is None)
    links: dict[str, Any] = {}
    for each in graph.tasks:
        links[op_name(each.identifier)] = {
            f"after_{graph.task(before).identifier}": dg.DependencyDefinition(
                op_name(graph.task(before).identifier)
            )
            for before in each.after
        }
    nodes = [
        _step_op(each, list(links[op_name(each.identifier)]), profile, retry_policy)
        for each in graph.tasks
    ]
    return dg.GraphDefinition(
        name=name or f"builder_{op_name(profile)}_job",
        description=f"The builder, profile {profile}.",
        node_defs=nodes,
        dependencies=links,
    ).to_job(
        executor_def=executor(graph.is_serial, workers or WORKERS),
        resource_defs={RESOURCE: config or BuilderConfig.configure_at_launch()},
        tags={"penstock/profile": profile},
    )


def _works_at_once(config: BuilderConfig | None, profile: str) -> bool | None:
    job_path, outdir = (config.job_path, config.outdir) if config is not None else ("", "")
    return works_at_once(builder_job(job_path, outdir, profile))


def _step_op(
    task: BridgeTask, after: list[str], profile: str, retry_policy: dg.RetryPolicy | None
) -> dg.OpDefinition:
    @dg.op(
        name=op_name(task.identifier),
        description=task.summary,
        ins={each: dg.In(dg.Nothing) for each in after},
        out=dg.Out(dg.Nothing),
        config_schema=OP_CONFIG,
        required_resource_keys={RESOURCE},
        retry_policy=retry_policy if task.is_network else None,
    )
    def step(context: dg.OpExecutionContext) -> None:
        with failures_shown():
            job = _job(context.op_config, getattr(context.resources, RESOURCE), profile)
            resume = resumes(task, attempt_of(context))
            warning = run_builder_step(job, task.name, context.log.info, resume=resume)
        if warning:
            context.log.warning(warning)
            context.add_output_metadata({"warning": warning})

    return step


def _job(of_op: dict[str, Any], shared: BuilderConfig, profile: str) -> BuilderJob:
    job_path = of_op.get("job_path") or shared.job_path
    outdir = of_op.get("outdir") or shared.outdir
    if not job_path or not outdir:
        lacking = "job_path" if not job_path else "outdir"
        raise TaskFailed(
            f"{lacking} is missing: set it in the config of the op or of the resource {RESOURCE}",
            code="usage",
            exit_code=2,
            is_final=True,
        )
    return builder_job(job_path, outdir, profile, of_op.get("extra_args") or shared.extra_args)


builder_standard_job = create_builder_job("standard")
