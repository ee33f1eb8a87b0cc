"""Performing what clients of the SQL interface have asked for, by the verbs that the command line uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError, Refused, StoreError, UsageError
from penstock.journal.origin import SQL, acting_from
from penstock.project.run_starter import Asked
from penstock.project.sql_sources import described_sources

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.store.inbox import Request
    from penstock.store.store import Store

BATCH = 200


def perform_requests(project: Project, may_go_on: Callable[[], bool] = lambda: True) -> int:
    """Perform all that is due, the oldest first; answers how many.

    One that a leader had begun when it died is performed again: every verb here may be.
    """
    done, after_id = 0, 0
    with acting_from(SQL):
        store = project.connection
        while may_go_on() and (found := store.inbox.due(after_id, BATCH)):
            for request in found:
                if not may_go_on():
                    return done
                after_id = request.id
                done += _end(project, store, request)
    return done


def describe_sources(project: Project) -> int:
    """Have SQL clients see the sources as they are configured now; answers how many have changed."""
    store = project.connection
    return store.inbox.describe(described_sources(project.settings, project.source_ids))


def _end(project: Project, store: Store, request: Request) -> bool:
    if not store.inbox.take(request.id):
        return False  # its client has taken it back
    try:
        run_id = _perform(project, store, request)
    except StoreError:
        raise
    except PenstockError as error:
        store.inbox.end(request.id, "refused", error=error.message)
    else:
        store.inbox.end(request.id, "done", run_id)
    return True


def _perform(project: Project, store: Store, request: Request) -> int | None:
    about = (request.actor, request.reason)
    match request.verb:
        case "runs.start":
            return _start(project, request)
        case "records.edit":
            params = request.params
            store.record_edits.edit(params["collection"], params["key"], params["fields"], *about)
        case "sources.hold":
            store.sources.hold(request.source, *about)
        case "sources.unhold":
            store.sources.unhold(request.source, *about)
        case "sources.pause":
            store.sources.pause(request.source_id, *about)
        case "sources.resume":
            store.sources.resume(request.source_id, *about)
        case _:
            _steer(project, store, request)
    return None


def _steer(project: Project, store: Store, request: Request) -> None:
    """An act on a run. What changed since it was asked for may have made it impossible, or needless."""
    if request.run_id is None:
        raise UsageError(f"request {request.id} names no run")
    run, about = project.require_run(request.run_id), (request.actor, request.reason)
    verbs: dict[str, tuple[Callable[..., Any], str]] = {
        "runs.pause": (store.runs.pause, "paused"),
        "runs.resume": (store.runs.resume, ""),
        "runs.begin": (store.runs.start_draft, "queued"),
        "runs.cancel": (store.runs.cancel, "cancelled"),
        "runs.retry": (store.runs.retry_failed, "running"),
    }
    verb, comes_to = verbs[request.verb]
    if request.verb in ("runs.retry", "runs.begin"):
        project.refuse_degraded_end(run) if run.is_ended else project.refuse_degraded_run(run)
    if not verb(run.id, *about) and run.state != comes_to:
        act = request.verb.removeprefix("runs.")
        raise Refused(f"run {run.id} is {run.state}: {act} is not possible", code="run_moved")


def _start(project: Project, request: Request) -> int:
    params = request.params
    asked = Asked(params.get("params") or {}, priority=params.get("priority"))
    row, is_new = project.start_requested(
        request.source,
        params.get("kind"),
        f"sql:{request.id}",
        request.actor,
        request.reason,
        asked,
    )
    is_told_more = bool(asked.params)
    if not is_new and is_told_more and asked.params != row.options.params:
        raise Refused(
            f"run {row.id} of {row.source} has not ended yet and was started with other params",
            code="run_differs",
        )
    return row.id
