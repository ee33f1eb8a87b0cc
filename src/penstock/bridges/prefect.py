"""Prefect: a source's pipeline, or a profile of the builder, as a flow with one task per stage.

Each task drains one stage of one run of Penstock (`bridges/drains.py`). The flow run's id is the key of that
run: a flow run that is tried again goes on with it. On SQLite the flow runs one task at a time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from penstock.bridges.builder_steps import builder_job, resumes, run_builder_step, works_at_once
from penstock.bridges.drains import (
    Partial,
    StageEnd,
    TaskFailed,
    check_partial,
    drain_stage,
    failing_in_one_line,
    prepare_run,
    run_url,
    stop_drains,
)
from penstock.bridges.engines import missing
from penstock.bridges.places import Place, ProjectPlace, place_of
from penstock.bridges.tasks import (
    BridgeTask,
    TaskGraph,
    builder_tasks,
    pipeline_tasks,
    refuse_shards,
)
from penstock.bridges.watching import raise_signal, run_now, start_run, wait_for_run

try:
    from prefect import Flow, Task, flow, get_run_logger, task
    from prefect.artifacts import create_link_artifact, create_table_artifact
    from prefect.cache_policies import NO_CACHE
    from prefect.client.schemas.objects import FlowRun
    from prefect.futures import PrefectFuture
    from prefect.runtime import flow_run as this_flow_run
    from prefect.runtime import task_run as this_task_run
    from prefect.states import Completed, Failed, State
    from prefect.task_runners import ThreadPoolTaskRunner
except ImportError as error:
    raise missing("prefect", error) from None

ACTOR = "prefect"
# The names of states beside Prefect's own: done with a warning, and not worth another try.
PARTIAL, MISCONFIGURED = "Partial", "Misconfigured"
# Without a number, as many shards as a host has use for are drained at once.
WORKERS = 8


def pipeline_flow(
    project: ProjectPlace,
    source: str,
    *,
    name: str = "",
    kind: str | None = None,
    shards: int = 1,
    partial: Partial = "warn",
    retries: int = 0,
    retry_delay_s: float = 10.0,
    deadline_s: float | None = None,
    dashboard: str = "",
    workers: int = WORKERS,
) -> Flow[..., Any]:
    """A flow that runs a source's pipeline: prepare a run, then drain it stage by stage.

    `retries` are of each task. `partial` says what a stage counts as of which some jobs are in quarantine:
    `ok`, `warn` (completed, in a state named Partial) or `failed`. `dashboard` is the address of
    `penstock web`, for links. On Postgres `workers` tasks run at once. The flow's parameters are `kind`,
    `first` and `last` (the days of a backfill), `params`, `pages` and `shards`.
    """
    check_partial(partial)
    place, opened = place_of(project), place_of(project).open()
    key, is_serial = opened.source(source).key, not opened.settings.is_on_postgres
    refuse_shards(opened, shards)
    usual_kind, usual_shards = kind, shards
    tasks = {
        "retries": retries,
        "retry_delay_seconds": retry_delay_s if retries else None,
        "retry_condition_fn": is_worth_a_retry,
    }
    options = {"partial": partial, "deadline_s": deadline_s, "dashboard": dashboard}

    @flow(
        name=name or f"penstock {key}",
        description=f"Runs {key} through its pipeline, stage by stage.",
        task_runner=ThreadPoolTaskRunner(max_workers=1 if is_serial else workers),
    )
    def penstock_pipeline(
        kind: str | None = usual_kind,
        first: str | None = None,
        last: str | None = None,
        params: dict[str, Any] | None = None,
        pages: int | None = None,
        shards: int = usual_shards,
    ) -> State[Any]:
        asked = {"kind": kind, "between": _between(first, last), "params": params, "pages": pages}
        with _drains_stopped():
            return _run_pipeline(place, key, asked, shards, tasks, options)

    return penstock_pipeline


def _run_pipeline(
    place: Place,
    source: str,
    asked: dict[str, Any],
    shards: int,
    tasks: dict[str, Any],
    options: dict[str, Any],
) -> State[Any]:
    kind = asked["kind"] or ("backfill" if asked["between"] else None)
    try:
        with failing_in_one_line():
            graph = pipeline_tasks(place, source, kind, shards)
    except TaskFailed as error:
        return _failed(error)
    prepared = prepare.with_options(**tasks)(place, source, asked, return_state=True)
    if not prepared.is_completed():
        return _flow_state([prepared], {})
    run_id: int = prepared.result()

    def submit(each: BridgeTask, after: list[PrefectFuture[Any]]) -> list[PrefectFuture[Any]]:
        found = []
        for part, parts in each.parts:
            title = each.name if parts == 1 else f"{each.name} {part}/{parts}"
            one = drain.with_options(name=each.name, task_run_name=title, **tasks)
            found.append(
                one.submit(place, run_id, source, each.name, (part, parts), options, wait_for=after)
            )
        return found

    states = _submitted(graph, submit)
    _link_to_run(source, run_id, options["dashboard"])
    return _flow_state(states, {"run": run_id, "state": run_now(place, run_id).state})


@task(name="prepare", task_run_name="prepare", cache_policy=NO_CACHE, persist_result=False)
def prepare(place: Place, source: str, asked: dict[str, Any]) -> Any:
    """The number of the run of Penstock that belongs to this flow run."""
    try:
        run_id = prepare_run(place, source, f"prefect:{this_flow_run.id}", actor=ACTOR, **asked)
    except TaskFailed as error:
        return _failed(error)
    get_run_logger().info("run %s of %s", run_id, source)
    return run_id


@task(name="drain", cache_policy=NO_CACHE, persist_result=False)
def drain(
    place: Place,
    run_id: int,
    source: str,
    stage: str,
    shard: tuple[int, int],
    options: dict[str, Any],
) -> State[Any]:
    """One stage of a run, or one shard of it."""
    logger = get_run_logger()
    try:
        end = drain_stage(
            *(place, run_id, stage),
            shard=shard,
            attempt=_attempt(),
            tell=lambda text: logger.info("%s", text),
            actor=ACTOR,
            **options,
        )
    except TaskFailed as error:
        return _failed(error)
    _show_counts(source, stage, end)
    if end.warning:
        logger.warning("%s", end.warning)
        return Completed(name=PARTIAL, message=end.warning, data=end.as_json())
    return Completed(message=_counts(end), data=end.as_json())


@flow(name="penstock-builder", task_runner=ThreadPoolTaskRunner(max_workers=WORKERS))
def builder_prefect_flow(
    job_path: str,
    outdir: str,
    profile: str = "standard",
    extra_cli_args: list[str] | None = None,
    env: dict[str, str] | None = None,
) -> State[Any]:
    """A profile of the builder: each task is one `penstock builder run-step`, and is not retried.

    The first step that fails ends the flow. On SQLite one step runs at a time; with a store on Postgres in
    the job, or in PENSTOCK_BUILDER_STORE, those that wait for nothing run at once. Prefect stores parameters:
    secrets belong into the environment of the worker, not into `env`.
    """
    try:
        with failing_in_one_line():
            job = builder_job(job_path, outdir, profile, extra_cli_args, env)
            graph = builder_tasks(profile, is_serial=not works_at_once(job))
    except TaskFailed as error:
        return _failed(error)

    def submit(each: BridgeTask, after: list[PrefectFuture[Any]]) -> list[PrefectFuture[Any]]:
        one = run_step_task.with_options(name=each.name, task_run_name=each.name)
        return [
            one.submit(
                *(job_path, outdir, each.name, profile, extra_cli_args, env),
                resume=resumes(each, 1),
                wait_for=after,
            )
        ]

    with _drains_stopped():
        return _flow_state(_submitted(graph, submit), {"profile": profile, "outdir": outdir})


@task(name="builder step", retries=0, cache_policy=NO_CACHE, persist_result=False)
def run_step_task(
    job_path: str,
    outdir: str,
    step: str,
    profile: str = "standard",
    extra_cli_args: list[str] | None = None,
    env: Mapping[str, str] | None = None,
    resume: bool = True,
) -> State[Any]:
    """One step of the builder; for flows of your own, with retries by `run_step_task.with_options`.

    `resume` goes on with the newest run of the job. Without it, the first try of a step that nothing comes
    before begins a new one.
    """
    logger = get_run_logger()
    try:
        job = builder_job(job_path, outdir, profile, extra_cli_args, env)
        goes_on = resume or _attempt() > 1
        warning = run_builder_step(job, step, lambda line: logger.info("%s", line), resume=goes_on)
    except TaskFailed as error:
        return _failed(error)
    if warning:
        logger.warning("%s", warning)
        return Completed(name=PARTIAL, message=warning)
    return Completed()


@task(name="wait for penstock", cache_policy=NO_CACHE, persist_result=False)
def penstock_run(
    project: str | os.PathLike[str],
    source: str,
    *,
    kind: str | None = None,
    params: dict[str, Any] | None = None,
    run: int | None = None,
    partial: Partial = "warn",
    every_s: float = 5.0,
) -> dict[str, Any]:
    """Wait for a run that Penstock's own workers perform: this one, or a new one of the source.

    Answers with the run as `penstock runs --json` shows it; raises TaskFailed if it failed.
    """
    place = place_of(project)
    if run is None:
        run = start_run(place, source, kind=kind, params=params, actor=ACTOR)
    view = wait_for_run(place, run, partial=partial, every_s=every_s)
    if view.state == "partial" and partial == "warn":
        get_run_logger().warning("run %s of %s is partial", view.id, view.source)
    return view.as_json()


def signal_hook(
    project: ProjectPlace, signal: str, source: str | None = None
) -> Callable[[Flow[..., Any], FlowRun, State[Any]], None]:
    """A hook for `on_completion`, `on_failure` … of a flow: its run becomes a signal, raised once.

    Schedules that wait for it (`schedule: {signal: NAME}`) start with the flow's name, run and state as data.
    """
    place = place_of(project)

    def raise_it(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
        data = {"engine": ACTOR, "flow": flow.name, "run": str(flow_run.id), "state": state.name}
        key = f"prefect:{flow_run.id}:{state.type.value.lower()}"
        raise_signal(place, signal, data, key=key, source=source, actor=ACTOR)

    return raise_it


def _submitted(
    graph: TaskGraph,
    submit: Callable[[BridgeTask, list[PrefectFuture[Any]]], list[PrefectFuture[Any]]],
) -> list[State[Any]]:
    """Submit each task to run after those that it comes after, and wait for all of them.

    Where one runs at a time, the first failure is the last task: the others could only fail after it.
    """
    futures: dict[str, list[PrefectFuture[Any]]] = {}
    for each in graph.tasks:
        after = [future for name in each.after for future in futures[name]]
        futures[each.name] = submit(each, after)
        if graph.is_serial and not all(
            state.is_completed() for state in _ended(futures[each.name])
        ):
            break
    return _ended(future for given in futures.values() for future in given)


def _ended(futures: Iterable[PrefectFuture[Any]]) -> list[State[Any]]:
    found = []
    for future in futures:
        future.wait()
        found.append(future.state)
    return found


def _flow_state(states: list[State[Any]], data: dict[str, Any]) -> State[Any]:
    """The flow's state from those of its tasks: what failed first, or all warnings."""
    bad = [state for state in states if not state.is_completed()]
    failed = [state for state in bad if state.is_final()] or bad
    if failed:
        name = failed[0].name if failed[0].name == MISCONFIGURED else None
        return Failed(name=name, message=failed[0].message)
    warnings = [state.message or "" for state in states if state.name == PARTIAL]
    if warnings:
        return Completed(name=PARTIAL, message="; ".join(warnings), data=data)
    return Completed(data=data)


def _failed(error: TaskFailed) -> State[Any]:
    """A state, not an exception: Prefect would log a traceback, and try again what can't get better."""
    return Failed(name=MISCONFIGURED if error.is_final else None, message=error.message)


def is_worth_a_retry(task: Task[..., Any], run: object, state: State[Any]) -> bool:
    """For `retry_condition_fn`: not where the configuration or the code is wrong."""
    return state.name != MISCONFIGURED


@contextmanager
def _drains_stopped() -> Iterator[None]:
    """Whatever ends a flow ahead of its tasks, as a cancellation does, stops their drains in good order."""
    try:
        yield
    except BaseException:
        stop_drains()
        raise


def _show_counts(source: str, stage: str, end: StageEnd) -> None:
    """The stage's jobs by state, as an artifact."""
    link = f" [Run {end.view.run}]({end.url})" if end.url else f" Run {end.view.run}"
    create_table_artifact(
        key=_slug("penstock", source, stage),
        table=[{"jobs": name, "number": number} for name, number in end.counts.items()],
        description=f"{end.view.step} of {source} is {end.view.state}.{link}",
    )


def _link_to_run(source: str, run_id: int, dashboard: str) -> None:
    if dashboard:
        create_link_artifact(
            link=run_url(dashboard, run_id),
            link_text=f"Run {run_id} of {source}",
            key=_slug("penstock", source, "run"),
        )


def _between(first: str | None, last: str | None) -> tuple[str, str] | None:
    if first is None and last is None:
        return None
    return first or last or "", last or first or ""


def _attempt() -> int:
    """Whether this is the first try: of the task, and of the flow run."""
    return max(this_task_run.run_count or 1, this_flow_run.run_count or 1)


def _counts(end: StageEnd) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in end.counts.items()) or "no jobs"


def _slug(*words: str) -> str:
    """Prefect's keys have lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")
