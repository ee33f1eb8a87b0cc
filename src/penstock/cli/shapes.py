"""Rows as programs read them: one name for one thing in every command, times in UTC."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.cli.wording import iso
from penstock.store.promises import BreachRow
from penstock.store.rows import (
    EventRow,
    HoldRow,
    JobRow,
    LeaderRow,
    RecordRow,
    RunRow,
    SourceRow,
    WorkerRow,
)

COUNTS = (
    "pages",
    "pages_done",
    "candidates",
    "saved",
    # The same as `saved`, under its old name: candidates are accepted, records are saved.
    "accepted",
    "inserted",
    "updated",
    "unchanged",
    "rejected",
    "dropped",
    "skipped",
    "pages_unchanged",
    "disallowed",
    "pages_missing",
    "retried",
    "throttled",
    "quarantined",
    "queued",
    "running",
    "waiting",
)
RECORD = ("key", "data", "score", "source", "run", "version", "updated_at")
_TIMES = frozenset(
    """at created_at started_at finished_at last_finished_at updated_at due_at next_due_at next_run_at
    paused_at degraded_at cooldown_until lease_expires_at expires_at""".split()
)


def shaped(row: object, **renamed: str) -> dict[str, Any]:
    """A row's fields by name, some of them renamed, with every time as text in UTC."""
    fields: dict[str, Any] = msgspec.to_builtins(row)
    return {
        renamed.get(name, name): iso(value) if name in _TIMES else value
        for name, value in fields.items()
    }


def source_shape(row: SourceRow) -> dict[str, Any]:
    shape = shaped(row, key="source", last_run_id="last_run")
    del shape["id"]
    return shape


def hold_shape(row: HoldRow) -> dict[str, Any]:
    """A hold of the whole project has no source."""
    return {**shaped(row, scope="source"), "source": row.scope or None}


def breach_shape(row: BreachRow) -> dict[str, Any]:
    return {
        "source": row.source,
        "rule": row.rule,
        "since": iso(row.since),
        "run": row.run_id,
        "detail": row.detail,
        "ended_at": iso(row.ended_at),
    }


def run_shape(row: RunRow, now: float) -> dict[str, Any]:
    """What `penstock run --json` prints of a run, and what else is known of it."""
    shape = shaped(row, id="run")
    known = (
        "end_reason",
        "actor",
        "reason",
        "pipeline_version",
        "created_at",
        "started_at",
        "finished_at",
    )
    return {
        **{name: shape[name] for name in ("run", "source", "kind", "state")},
        "is_reconciliation": row.options.reconciles is not None,
        "reconciled_windows": row.options.reconciled_windows,
        "is_undo": row.options.is_undo,
        "of_run": row.of_run_id,
        "seconds": seconds_of(row, now),
        "counts": run_counts(row),
        **{name: shape[name] for name in known},
    }


def run_counts(row: RunRow) -> dict[str, int]:
    saved = row.inserted + row.updated + row.unchanged
    return {name: saved if name in ("saved", "accepted") else getattr(row, name) for name in COUNTS}


def seconds_of(row: RunRow, now: float) -> float:
    """How long a run took, or has taken until now."""
    return round(max(0.0, (row.finished_at or now) - (row.started_at or row.created_at)), 3)


def job_shape(row: JobRow) -> dict[str, Any]:
    return shaped(row, id="job", run_id="run", kind="error_kind")


def event_shape(row: EventRow) -> dict[str, Any]:
    return shaped(row, id="event", run_id="run", job_id="job")


def worker_shape(row: WorkerRow, now: float) -> dict[str, Any]:
    left_s = row.lease_expires_at - now
    return {**shaped(row, id="worker"), "is_alive": left_s > 0, "lease_left_s": round(left_s, 3)}


def leader_shape(row: LeaderRow) -> dict[str, Any]:
    return shaped(row)


def record_shape(row: RecordRow) -> dict[str, Any]:
    """Exactly these seven fields; programs rely on it. A version that took the record away says so."""
    shape = shaped(row)
    named = {name: shape[name] for name in RECORD}
    return {**named, "is_removed": True} if row.is_removed else named
