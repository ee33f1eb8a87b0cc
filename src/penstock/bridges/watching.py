"""The other direction: an engine waits for a run of Penstock, or its run is a signal to Penstock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from penstock.app.leading import judge_signal
from penstock.app.views.runs import RunView
from penstock.bridges.drains import TaskFailed, check_partial, failing_in_one_line
from penstock.bridges.places import Place
from penstock.counting import count
from penstock.errors import UsageError


def start_run(
    place: Place,
    source: str,
    *,
    kind: str | None = None,
    params: dict[str, Any] | None = None,
    actor: str,
    reason: str = "",
) -> int:
    """Queue a run for Penstock's own workers, or find the source's unfinished one; answer its number."""
    with failing_in_one_line(), place.opened() as project:
        started = project.runs.start(
            source, kind, params=params, awaited=True, actor=actor, reason=reason
        )
        assert started.run is not None  # noqa: S101 - only a dry run has none
        return started.run.id


def run_now(place: Place, run: int) -> RunView:
    """The run as it is now."""
    with failing_in_one_line(), place.opened() as project:
        return project.runs.get(run)


def latest_run(place: Place, source: str, since: float | None = None) -> RunView | None:
    """The newest run of a source, if it was made after this moment (seconds since the epoch)."""
    with failing_in_one_line(), place.opened() as project:
        found = project.runs.list(source, limit=1).items
        return found[0] if found and (since is None or found[0].created_at > since) else None


def ended_runs(place: Place, source: str, after: int = 0, limit: int = 100) -> Sequence[RunView]:
    """Runs of a source that have ended, with a number beyond this one, oldest first."""
    with failing_in_one_line(), place.opened() as project:
        found = project.runs.list(source, limit=limit).items
        return [run for run in reversed(found) if run.id > after and run.is_ended]


def refuse_failed(run: RunView, partial: str = "warn") -> None:
    """Raise TaskFailed if a run that was waited for has not come to what was asked for."""
    is_bad = run.state in ("failed", "cancelled") or (
        run.state == "partial" and partial == "failed"
    )
    if is_bad:
        jobs = count(run.quarantined, "job")
        raise TaskFailed(
            f"run {run.id} of {run.source} is {run.state}; {jobs} in quarantine",
            code=f"run_{run.state}",
            exit_code=4,
            is_final=False,
        )


def wait_for_run(
    place: Place,
    run: int,
    *,
    partial: str = "warn",
    every_s: float = 5.0,
    pause: Callable[[float], object] = time.sleep,
) -> RunView:
    """Wait until a run has ended that others perform; `pause` is how to sleep, if the engine has a way."""
    check_partial(partial)
    seen = run_now(place, run)
    while not seen.is_ended:
        pause(every_s)
        seen = run_now(place, run)
    refuse_failed(seen, partial)
    return seen


def raise_signal(
    place: Place,
    name: str,
    data: Any = None,
    *,
    key: str | None = None,
    source: str | None = None,
    actor: str,
) -> int:
    """Raise a signal and answer its number. The same key raises it once, however often a task is tried.

    A signal that an alert is about is judged at once.
    """
    if not name:
        raise UsageError("a signal has a name")
    with failing_in_one_line(), place.opened() as project:
        raised = project.signals.raise_(name, data, key=key, source=source, actor=actor)
        if raised.is_new:
            # With no drain at work, nothing else would open the alert before the next run.
            judge_signal(project, name)
        return raised.id
