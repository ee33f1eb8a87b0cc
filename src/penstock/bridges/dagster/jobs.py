"""Jobs: one op per stage, or per shard of one, behind an op that prepares the run."""

# No postponed annotations: Dagster reads the type of `context` from them.

import keyword
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import dagster as dg

from penstock.bridges.dagster.outcomes import failures_shown, metadata_of
from penstock.bridges.drains import Partial, check_partial, drain_stage, prepare_run
from penstock.bridges.places import Place, ProjectPlace, place_of
from penstock.bridges.tasks import BridgeTask, TaskGraph, identifier_of, pipeline_tasks

ACTOR = "dagster"
# Of ops that make requests; and of those whose process was killed.
NETWORK_RETRY = dg.RetryPolicy(max_retries=2, delay=60, backoff=dg.Backoff.EXPONENTIAL)
PREPARE = "penstock_run"
WORKERS = 8
BACKFILL = "backfill"
# What Dagster keeps to itself.
RESERVED = set(
    "context conf config meta arg_dict dict input_arg_dict output_arg_dict".split()
    + "int str float bool input output type".split()
)


class PipelineConfig(dg.Config):
    """What one run of a job is asked for; all of it may be left out.

    `kind` is full, incremental, backfill or probe; `first` and `last` are the days of a backfill.
    """

    kind: str | None = None
    first: str | None = None
    last: str | None = None
    params: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies it
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """What all ops of a job have in common."""

    place: Place
    source: str
    kind: str | None
    partial: Partial
    deadline_s: float | None
    dashboard: str
    retry_policy: dg.RetryPolicy | None
    retry_policy_others: dg.RetryPolicy | None
    pool: str | None
    partition_param: str


def pipeline_job(
    project: ProjectPlace,
    source: str,
    *,
    name: str = "",
    kind: str | None = None,
    shards: int = 1,
    partial: Partial = "warn",
    retry_policy: dg.RetryPolicy | None = NETWORK_RETRY,
    retry_policy_others: dg.RetryPolicy | None = None,
    deadline_s: float | None = None,
    dashboard: str = "",
    workers: int = WORKERS,
    partitions: dg.PartitionsDefinition[Any] | None = None,
    partition_param: str = "",
) -> dg.JobDefinition:
    """A job that runs a source's pipeline: prepare a run, then drain it stage by stage.

    `retry_policy` is of ops that make requests. `partial` says what a stage counts as of which some jobs are
    in quarantine: `ok`, `warn` or `failed`. With time-window `partitions` each Dagster run is a backfill of
    its window; with others, the partition's key becomes the param that `partition_param` names.
    """
    terms = terms_of(
        project,
        source,
        kind=BACKFILL if partitions is not None and not partition_param else kind,
        partial=partial,
        deadline_s=deadline_s,
        dashboard=dashboard,
        retry_policy=retry_policy,
        retry_policy_others=retry_policy_others,
        partition_param=partition_param,
    )
    graph = pipeline_tasks(terms.place, source, terms.kind, shards)
    nodes, links = _nodes(graph, terms)
    return dg.GraphDefinition(
        name=name or identifier_of(f"penstock_{graph.name}"),
        description=f"Runs {graph.name} through its pipeline, stage by stage.",
        node_defs=nodes,
        dependencies=links,
    ).to_job(
        executor_def=executor(graph.is_serial, workers),
        partitions_def=partitions,
        tags={"penstock/source": graph.name},
    )


def terms_of(
    project: ProjectPlace,
    source: str,
    *,
    kind: str | None,
    partial: Partial,
    deadline_s: float | None,
    dashboard: str,
    retry_policy: dg.RetryPolicy | None,
    retry_policy_others: dg.RetryPolicy | None,
    partition_param: str,
) -> Terms:
    check_partial(partial)
    place = place_of(project)
    settings = (opened := place.open()).settings
    return Terms(
        place=place,
        source=opened.source(source).key,
        kind=kind,
        partial=partial,
        deadline_s=deadline_s,
        dashboard=dashboard,
        retry_policy=retry_policy,
        retry_policy_others=retry_policy_others,
        # With a limit of 1 for pools in dagster.yaml, runs of several jobs leave the file to each other.
        pool=None if settings.is_on_postgres else identifier_of(f"penstock_{settings.project}"),
        partition_param=partition_param,
    )


def executor(is_serial: bool, workers: int = WORKERS) -> dg.ExecutorDefinition:
    """A process for each op; one at a time where their store is a SQLite file."""
    found = dg.multiprocess_executor.configured({"max_concurrent": 1 if is_serial else workers})
    assert isinstance(found, dg.ExecutorDefinition)  # noqa: S101 - for the type checker
    return found


def op_name(name: str) -> str:
    """The name for an op; Dagster keeps some words to itself."""
    return f"{name}_" if name in RESERVED or keyword.iskeyword(name) else name


def _nodes(graph: TaskGraph, terms: Terms) -> tuple[list[dg.OpDefinition], dict[Any, Any]]:
    """The ops, and for each what its inputs come from."""
    prepare = _prepare_op(terms)
    nodes, links = [prepare], {}
    names = {each.name: _op_names(each) for each in graph.tasks}
    for each in graph.tasks:
        after = {f"after_{op_name(graph.task(b).identifier)}": names[b] for b in each.after}
        inputs: dict[str, Any] = {"run": dg.DependencyDefinition(PREPARE)}
        for input_name, before in after.items():
            inputs[input_name] = dg.MultiDependencyDefinition(
                [dg.DependencyDefinition(one) for one in before]
            )
        for name, shard in zip(names[each.name], each.parts, strict=True):
            nodes.append(_drain_op(name, each, shard, list(after), terms))
            links[name] = inputs
    return nodes, links


def _op_names(task: BridgeTask) -> list[str]:
    name = op_name(task.identifier)
    if name == PREPARE:
        name = f"{name}_"
    return [name] if task.shards == 1 else [f"{name}_{n}_of_{of}" for n, of in task.parts]


def _prepare_op(terms: Terms) -> dg.OpDefinition:
    @dg.op(
        name=PREPARE,
        description=f"Prepares a run of {terms.source}, or finds the one of this Dagster run.",
        retry_policy=terms.retry_policy,
    )
    def prepare(context: dg.OpExecutionContext, config: PipelineConfig) -> int:
        with failures_shown():
            run_id = prepare_for(context, terms, config)
        context.log.info("run %s of %s", run_id, terms.source)
        return run_id

    return prepare


def prepare_for(context: Any, terms: Terms, config: PipelineConfig) -> int:
    """The run of Penstock that belongs to a Dagster run."""
    between, params = _between(config), dict(config.params)
    if context.has_partition_key and terms.partition_param:
        params[terms.partition_param] = context.partition_key
    elif context.has_partition_key:
        between = window(context.partition_time_window)
    return prepare_run(
        terms.place,
        terms.source,
        f"dagster:{context.run_id}",
        kind=None if between else config.kind or terms.kind,
        between=between,
        params=params,
        pages=config.pages,
        actor=ACTOR,
    )


def _drain_op(
    name: str, task: BridgeTask, shard: tuple[int, int], after: list[str], terms: Terms
) -> dg.OpDefinition:
    @dg.op(
        name=name,
        description=task.summary or f"Drains {', '.join(task.steps)}.",
        ins={"run": dg.In(int), **{each: dg.In(dg.Nothing) for each in after}},
        out=dg.Out(dg.Nothing),
        retry_policy=terms.retry_policy if task.is_network else terms.retry_policy_others,
        pool=terms.pool,
    )
    def drain(context: dg.OpExecutionContext, run: int) -> None:
        context.add_output_metadata(drain_for(context, terms, run, task.name, shard))

    return drain


def drain_for(
    context: Any, terms: Terms, run: int, stage: str, shard: tuple[int, int] = (1, 1)
) -> dict[str, Any]:
    """Drain a stage in an op; its counts become metadata of the op's output."""
    with failures_shown():
        end = drain_stage(
            *(terms.place, run, stage),
            shard=shard,
            attempt=attempt_of(context),
            partial=terms.partial,
            deadline_s=terms.deadline_s,
            dashboard=terms.dashboard,
            tell=context.log.info,
            actor=ACTOR,
        )
    if end.warning:
        context.log.warning(end.warning)
    return metadata_of(end)


def attempt_of(context: Any) -> int:
    """Beyond 1 if Dagster tries again: the op, or the run from its failure on."""
    is_again = context.run.parent_run_id is not None
    return int(context.retry_number) + (2 if is_again else 1)


def window(found: dg.TimeWindow) -> tuple[str, str]:
    """A partition as the range of a backfill, whose last day is in it."""
    if _is_midnight(found.start) and _is_midnight(found.end):
        return found.start.date().isoformat(), (found.end - timedelta(days=1)).date().isoformat()
    return found.start.isoformat(), found.end.isoformat()


def _is_midnight(moment: datetime) -> bool:
    return (moment.hour, moment.minute, moment.second) == (0, 0, 0)


def _between(config: PipelineConfig) -> tuple[str, str] | None:
    if config.first is None and config.last is None:
        return None
    return config.first or config.last or "", config.last or config.first or ""
