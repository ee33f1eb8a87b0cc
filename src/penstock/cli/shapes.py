"""Rows as programs read them: one name for one thing in every command, times in UTC."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.app.views.jobs import job_view
from penstock.app.views.records import record_view
from penstock.app.views.runs import run_view
from penstock.app.views.sources import breach_view, hold_view, source_view
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
    return source_view(row).as_json()


def hold_shape(row: HoldRow) -> dict[str, Any]:
    """A hold of the whole project has no source."""
    return hold_view(row).as_json()


def breach_shape(row: BreachRow) -> dict[str, Any]:
    return breach_view(row).as_json()


def run_shape(row: RunRow, now: float) -> dict[str, Any]:
    """What `penstock run --json` prints of a run, and what else is known of it."""
    return run_view(row, now).as_json()


def job_shape(row: JobRow) -> dict[str, Any]:
    return job_view(row).as_json()


def event_shape(row: EventRow) -> dict[str, Any]:
    return shaped(row, id="event", run_id="run", job_id="job")


def worker_shape(row: WorkerRow, now: float) -> dict[str, Any]:
    left_s = row.lease_expires_at - now
    return {**shaped(row, id="worker"), "is_alive": left_s > 0, "lease_left_s": round(left_s, 3)}


def leader_shape(row: LeaderRow) -> dict[str, Any]:
    return shaped(row)


def record_shape(row: RecordRow) -> dict[str, Any]:
    """Exactly these seven fields; programs rely on it. A version that took the record away says so."""
    return record_view(row).as_json()
