"""The registry: every kind of event there is, and how its data becomes a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from penstock.journal import (
    access_events,
    alert_events,
    audit_events,
    canary_events,
    cell_events,
    job_events,
    release_events,
    run_events,
    runbook_events,
    service_events,
    source_events,
)
from penstock.journal.event import Event

EVENTS: tuple[type[Event], ...] = (
    *run_events.EVENTS,
    *job_events.EVENTS,
    *source_events.EVENTS,
    *service_events.EVENTS,
    *audit_events.EVENTS,
    *alert_events.EVENTS,
    *runbook_events.EVENTS,
    *access_events.EVENTS,
    *release_events.EVENTS,
    *canary_events.EVENTS,
    *cell_events.EVENTS,
)
KINDS: dict[str, type[Event]] = {each.kind: each for each in EVENTS}

# What kinds were called before. Rows that were written under an old name keep it, and are read under
# the new one.
RENAMED: dict[str, str] = {
    "budget.warned": "budget.threshold_reached",
    "cadence.moved": "cadence.changed",
    "hook.retried": "hook.redelivery_requested",
    "job.retried": "job.retry_scheduled",
    "job.retry": "job.requeued",
    "job.woken": "job.due",
    "run.committing": "run.commit_started",
    "run.cut": "run.limit_reached",
    "run.enqueued": "run.jobs_added",
    "run.unaccounted": "run.counts_mismatch",
    "run.undoing": "run.undo_started",
    "run.version": "run.version_changed",
    "schedule.planned": "schedule.defined",
    "source.slowed": "source.concurrency_lowered",
    "source.sped_up": "source.concurrency_restored",
    "worker.buried": "worker.reaped",
}


def current_kind(kind: str) -> str:
    """The name that a kind has today."""
    return RENAMED.get(kind, kind)


def stored_kinds(kinds: Iterable[str]) -> list[str]:
    """Every name under which events of these kinds may have been written."""
    wanted = {current_kind(kind) for kind in kinds}
    return sorted(wanted | {old for old, new in RENAMED.items() if new in wanted})


def sentence_of(kind: str, data: Mapping[str, Any]) -> str:
    """What a person reads of an event with this data.

    An event of a kind or with fields that only a newer Penstock knows is shown as its data.
    """
    if set(data) == {"text"}:
        return str(data["text"])
    known = KINDS.get(kind)
    if known is not None:
        try:
            return msgspec.convert(data, known).sentence()
        except msgspec.ValidationError:
            pass
    return ", ".join(f"{name}: {value}" for name, value in data.items())


def worker_of(kind: str, actor: str, worker: str | None) -> str | None:
    """The worker that an event is about; it is stored only where the actor need not be the worker."""
    if worker:
        return worker
    known = KINDS.get(kind)
    return actor if known is not None and known.is_by_worker else None
