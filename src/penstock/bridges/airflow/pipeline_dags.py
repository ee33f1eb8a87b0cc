"""A source's pipeline as a DAG: one task per stage, and one before them that prepares the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from penstock.bridges.airflow.installed import (
    DAG,
    Asset,
    AsyncCallback,
    BaseOperator,
    CronDataIntervalTimetable,
    DeadlineAlert,
    DeadlineReference,
    DeltaDataIntervalTimetable,
    Param,
)
from penstock.bridges.airflow.operators import (
    DrainOperator,
    PrepareRunOperator,
    PublishOperator,
)
from penstock.bridges.airflow.signals import PenstockSignal, report_missed_deadline
from penstock.bridges.airflow.terms import BACKFILL, FROM, TO
from penstock.bridges.drains import Partial, check_partial
from penstock.bridges.places import Place, ProjectPlace, place_of
from penstock.bridges.tasks import BridgeTask, TaskGraph, identifier_of, pipeline_tasks
from penstock.errors import UsageError, nearest

# For a stage that makes requests, of a host that may be away for long: `tasks={"extract": PATIENT}`.
PATIENT: dict[str, Any] = {
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
    "retry_exponential_backoff": 2,
    "max_retry_delay": timedelta(minutes=30),
}
DEFAULTS = {"owner": "penstock", "retries": 1}
START = datetime(2024, 1, 1, tzinfo=UTC)
PREPARE, PUBLISH = "prepare", "publish"
Callbacks: TypeAlias = Callable[[Any], object] | Sequence[Callable[[Any], object]]


@dataclass(frozen=True, slots=True)
class PipelineTasks:
    """What the tasks of one DAG share."""

    place: Place
    partial: Partial
    dashboard: str
    default_args: Mapping[str, Any]
    overrides: Mapping[str, Mapping[str, Any]]

    def drain(self, task: BridgeTask, run: str) -> BaseOperator:
        options = {
            "task_id": task.name,
            "place": self.place,
            "stage": task.name,
            "run": run,
            "partial": self.partial,
            "dashboard": self.dashboard,
            "doc_md": _doc(task),
            **usual_options(task, self.default_args),
            **self.overrides.get(task.name, {}),
        }
        if task.shards == 1:
            return DrainOperator(**options)
        shards = [f"{part}/{parts}" for part, parts in task.parts]
        options["map_index_template"] = "{{ task.shard }}"
        return DrainOperator.partial(**options).expand(shard=shards)


def pipeline_dag(
    project: ProjectPlace,
    source: str,
    *,
    dag_id: str | None = None,
    kind: str | None = None,
    schedule: Any = None,
    shards: int = 1,
    partial: Partial = "warn",
    collections: Sequence[str] = (),
    deadline: timedelta | None = None,
    on_failure: Callbacks | None = None,
    run_params: Mapping[str, Any] | None = None,
    pages: int | None = None,
    pool: str | None = None,
    dashboard: str = "",
    tasks: Mapping[str, Mapping[str, Any]] | None = None,
    default_args: Mapping[str, Any] | None = None,
    **dag_options: Any,
) -> DAG:
    """The pipeline of a source as a DAG. Parsing the DAG file imports its code, and opens no store.

    A run of the DAG is one run of the source, whatever is tried again. `kind="backfill"` fetches the data
    interval of each run. `shards` splits stages into mapped tasks, on Postgres. A stage of which some jobs
    are in quarantine succeeds with a warning, unless `partial` is "ok" or "failed". `collections` become
    assets. `deadline` raises a signal if a run has not ended so long after it was queued. `on_failure` is
    called when a task has failed for good; by default it raises the signal `airflow.failed`. `pool` is of all
    tasks; with one slot, it keeps DAGs apart that share a SQLite file. `tasks` has Airflow's options for
    single stages, such as `{"extract": {"pool": "crawlers"}}`. All other options are those of Airflow's DAG.
    """
    check_partial(partial)
    place = place_of(project)
    graph = pipeline_tasks(place, source, kind, shards)
    defaults, overrides = defaults_of(pool, default_args), tasks or {}
    refuse_unknown(overrides, graph)
    shared = PipelineTasks(place, partial, dashboard, defaults, overrides)
    report = on_failure or PenstockSignal(place, source=graph.name)
    usual = {
        "schedule": _schedule(schedule, kind),
        "deadline": None if deadline is None else _deadline(deadline, place, graph.name),
        "params": _backfill_params() if kind == BACKFILL else {},
        "tags": ["penstock", graph.name],
    }
    with DAG(
        dag_id or identifier_of(graph.name),
        default_args={**DEFAULTS, "on_failure_callback": report, **defaults},
        **limits_of(graph, dag_options),
        **{**USUAL_DAG, **usual, **dag_options},
    ) as dag:
        prepare = PrepareRunOperator(
            task_id=free_id(PREPARE, graph),
            place=place,
            source=graph.name,
            kind=kind,
            run_params=run_params,
            pages=pages,
        )
        # A template, because `prepare.output` would draw an edge to each task.
        run = f"{{{{ ti.xcom_pull(task_ids='{prepare.task_id}') }}}}"
        drains = {task.name: shared.drain(task, run) for task in graph.tasks}
        connect(drains, graph, first=prepare)
        if collections:
            _publish(drains, graph, run, place, collections)
    return dag


USUAL_DAG: dict[str, Any] = {"start_date": START, "catchup": False, "max_active_runs": 1}


def defaults_of(pool: str | None, asked: Mapping[str, Any] | None) -> dict[str, Any]:
    return {**({} if pool is None else {"pool": pool}), **(asked or {})}


def usual_options(task: BridgeTask, default_args: Mapping[str, Any]) -> dict[str, Any]:
    """What Airflow is told about a task, unless the DAG's own `default_args` say something else."""
    usual = {"depends_on_past": True} if task.is_final else {}
    return {name: value for name, value in usual.items() if name not in default_args}


def connect(drains: Mapping[str, Any], graph: TaskGraph, first: Any = None) -> None:
    """The edges of the graph, and `first` before all that nothing else comes before."""
    for task in graph.tasks:
        for name in task.after:
            drains[name] >> drains[task.name]
        if first is not None and not task.after:
            first >> drains[task.name]


def limits_of(graph: TaskGraph, asked: dict[str, Any]) -> dict[str, Any]:
    """How many tasks may run at once: one, where the store is a file. It is taken out of `asked`."""
    wanted = asked.pop("max_active_tasks", None)
    if not graph.is_serial:
        return {} if wanted is None else {"max_active_tasks": wanted}
    if wanted not in (None, 1):
        raise UsageError(
            f"{graph.name} can't run {wanted} tasks at once: on SQLite one task works at a time",
            "leave out `max_active_tasks`, or use Postgres: `store: postgresql://…` in penstock.yaml",
            code="tasks_need_postgres",
        )
    return {"max_active_tasks": 1}


def free_id(name: str, graph: TaskGraph) -> str:
    """The name, or, if a stage has it already, another one."""
    taken = {task.name for task in graph.tasks}
    return name if name not in taken else f"penstock_{name}"


def _publish(
    drains: Mapping[str, Any],
    graph: TaskGraph,
    run: str,
    place: Place,
    collections: Sequence[str],
) -> None:
    """A task after all others, whose success is news of the assets."""
    project = place.open().settings.project
    publish = PublishOperator(
        task_id=free_id(PUBLISH, graph),
        place=place,
        source=graph.name,
        collections=collections,
        run=run,
        outlets=[asset_of(project, name) for name in collections],
    )
    followed = {name for task in graph.tasks for name in task.after}
    for task in graph.tasks:
        if task.name not in followed:
            drains[task.name] >> publish


def asset_of(project: str, collection: str) -> Asset:
    """A collection of records as Airflow's asset, by which other DAGs can be scheduled."""
    return Asset(
        name=f"{project}.{collection}", uri=f"penstock://{project}/{collection}", group="penstock"
    )


def refuse_unknown(overrides: Mapping[str, object], graph: TaskGraph) -> None:
    names = [task.name for task in graph.tasks]
    for name in overrides:
        if name not in names:
            raise UsageError(
                f"`tasks` names {name!r}, which is no stage of {graph.name}", nearest(name, names)
            )


def _schedule(schedule: Any, kind: str | None) -> Any:
    """As it is given; for a backfill, one whose runs cover the time between two ticks."""
    if kind != BACKFILL:
        return schedule
    if isinstance(schedule, timedelta):
        return DeltaDataIntervalTimetable(schedule)
    if isinstance(schedule, str) and schedule not in ("@once", "@continuous"):
        return CronDataIntervalTimetable(schedule, timezone="UTC")
    return schedule


def _backfill_params() -> dict[str, Param]:
    about = (
        "Together with the other one, instead of the data interval: 2024-01-31 or 2024-01-31T12:00Z"
    )
    return {name: Param(None, type=["null", "string"], description=about) for name in (FROM, TO)}


def _deadline(after: timedelta, place: Place, source: str) -> DeadlineAlert:
    told = {"folder": place.folder, "environment": place.environment, "source": source}
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=after,
        callback=AsyncCallback(report_missed_deadline, kwargs=told),
    )


def _doc(task: BridgeTask) -> str:
    more = f": {task.summary}" if task.summary else ""
    return f"Drains {', '.join(f'`{step}`' for step in task.steps)}{more}"
