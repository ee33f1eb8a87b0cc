"""Sensors: what starts Dagster runs, and what Dagster runs tell Penstock."""

# No postponed annotations: Dagster reads the type of `context` from them.

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import dagster as dg
import msgspec

from penstock.bridges.changes import new_files, new_signals, newly_ended_runs, reset_budgets
from penstock.bridges.dagster.jobs import ACTOR
from penstock.bridges.dagster.outcomes import failures_shown
from penstock.bridges.drains import Partial
from penstock.bridges.places import ProjectPlace, place_of
from penstock.bridges.tasks import identifier_of
from penstock.bridges.watching import raise_signal, start_run, wait_for_run
from penstock.errors import UsageError

# Or what `define_asset_job` makes, which has no public name.
Job: TypeAlias = Any
# Every so often a sensor looks; Dagster's own default.
LOOK_S = 30
Found: TypeAlias = Iterator[dg.RunRequest | dg.SkipReason]


def new_input_sensor(
    folder: str | os.PathLike[str],
    job: Job,
    *,
    pattern: str = "**/*",
    name: str = "",
    run_config: dict[str, Any] | None = None,
    look_s: int = LOOK_S,
    settled_s: float = 5.0,
) -> dg.SensorDefinition:
    """Request a run when files in a folder are new or have changed, and are no longer being written."""
    place = Path(folder).absolute()

    def look(context: dg.SensorEvaluationContext) -> Found:
        if not place.is_dir():
            raise UsageError(f"there is no folder {place}")
        found = new_files(place, pattern, context.cursor, time.time(), settled_s)
        context.update_cursor(found.cursor)
        if not found.paths:
            yield dg.SkipReason(f"no new files in {place.name}")
            return
        first = ", ".join(found.paths[:3])
        yield dg.RunRequest(
            run_key=found.key, run_config=run_config or {}, tags={"penstock/input": first[:200]}
        )

    return _sensor(name or f"new_input_in_{identifier_of(place.name)}", look, job, look_s)


def budget_reset_sensor(
    project: ProjectPlace,
    source: str,
    job: Job,
    *,
    name: str = "",
    run_config: dict[str, Any] | None = None,
    look_s: int = LOOK_S,
) -> dg.SensorDefinition:
    """Request a run when a budget that the source counts against was exhausted and has reset."""
    place = place_of(project)
    place.open().source(source)

    def look(context: dg.SensorEvaluationContext) -> Found:
        found = reset_budgets(place, source, context.cursor)
        context.update_cursor(found.cursor)
        if not found.names:
            yield dg.SkipReason("no budget has reset")
            return
        yield dg.RunRequest(
            run_config=run_config or {}, tags={"penstock/budget": ", ".join(found.names)[:200]}
        )

    return _sensor(name or f"budget_reset_of_{identifier_of(source)}", look, job, look_s)


def signal_sensor(
    project: ProjectPlace,
    signal: str,
    job: Job,
    *,
    name: str = "",
    run_config: Callable[[Any], dict[str, Any]] | None = None,
    look_s: int = LOOK_S,
) -> dg.SensorDefinition:
    """Request a run for each signal of Penstock with this name; `run_config` makes its config of the data."""
    place = place_of(project)

    def look(context: dg.SensorEvaluationContext) -> Found:
        found, cursor = new_signals(place, signal, context.cursor)
        context.update_cursor(cursor)
        for each in found:
            yield dg.RunRequest(
                run_key=f"signal:{each.id}",
                run_config=run_config(each.data) if run_config is not None else {},
                tags={"penstock/signal": str(each.id)},
            )
        if not found:
            yield dg.SkipReason(f"no new signal {signal}")

    return _sensor(name or f"signal_{identifier_of(signal)}", look, job, look_s)


def penstock_runs_sensor(
    project: ProjectPlace,
    source: str,
    job: Job,
    *,
    states: tuple[str, ...] = ("completed", "partial"),
    name: str = "",
    look_s: int = LOOK_S,
) -> dg.SensorDefinition:
    """Request a run for each run of a source that Penstock has ended in one of these states."""
    place = place_of(project)
    place.open().source(source)

    def look(context: dg.SensorEvaluationContext) -> Found:
        found, cursor = newly_ended_runs(place, source, context.cursor)
        context.update_cursor(cursor)
        wanted = [run for run in found if run.state in states]
        for run in wanted:
            tags = {
                "penstock/run": str(run.id),
                "penstock/state": str(msgspec.to_builtins(run.state)),
            }
            yield dg.RunRequest(run_key=f"run:{run.id}", tags=tags)
        if not wanted:
            yield dg.SkipReason(f"no run of {source} has ended")

    return _sensor(name or f"runs_of_{identifier_of(source)}", look, job, look_s)


def signal_to_penstock(
    project: ProjectPlace,
    signal: str,
    *,
    jobs: list[Any] | None = None,
    status: dg.DagsterRunStatus = dg.DagsterRunStatus.SUCCESS,
    source: str | None = None,
    name: str = "",
) -> dg.SensorDefinition:
    """Raise a signal of Penstock for each Dagster run of these jobs (of all) that comes to this status."""
    place = place_of(project)

    @dg.run_status_sensor(
        run_status=status,
        name=name or f"signal_to_penstock_{identifier_of(signal)}",
        monitored_jobs=jobs,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def tell(context: dg.RunStatusSensorContext) -> None:
        run = context.dagster_run
        data = {"engine": ACTOR, "job": run.job_name, "run": run.run_id, "state": status.value}
        key = f"dagster:{run.run_id}:{status.value.lower()}"
        raise_signal(place, signal, data, key=key, source=source, actor=ACTOR)

    return tell


def penstock_run_op(
    project: ProjectPlace,
    source: str,
    *,
    name: str = "",
    kind: str | None = None,
    partial: Partial = "warn",
    every_s: float = 5.0,
) -> dg.OpDefinition:
    """An op that starts a run which Penstock's own workers perform (`penstock up`), and waits for its end."""
    place = place_of(project)
    place.open().source(source)

    @dg.op(name=name or f"run_of_{identifier_of(source)}", out=dg.Out(int))
    def awaited(context: dg.OpExecutionContext) -> int:
        with failures_shown():
            run_id = start_run(place, source, kind=kind, actor=ACTOR)
            context.log.info("run %s of %s", run_id, source)
            view = wait_for_run(place, run_id, partial=partial, every_s=every_s)
        if view.state == "partial" and partial == "warn":
            context.log.warning("run %s of %s is partial", run_id, source)
        context.add_output_metadata(
            {"run": run_id, "state": msgspec.to_builtins(view.state), **view.counts}
        )
        return run_id

    return awaited


def _sensor(
    name: str, look: Callable[[dg.SensorEvaluationContext], Found], job: Job, look_s: int
) -> dg.SensorDefinition:
    return dg.SensorDefinition(
        name=name, evaluation_fn=look, job=job, minimum_interval_seconds=look_s
    )
