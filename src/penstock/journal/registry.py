"""The registry: every kind of event there is, and how its data becomes a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.journal import job_events, run_events, service_events, source_events
from penstock.journal.event import Event

EVENTS: tuple[type[Event], ...] = (
    *run_events.EVENTS,
    *job_events.EVENTS,
    *source_events.EVENTS,
    *service_events.EVENTS,
)
KINDS: dict[str, type[Event]] = {each.kind: each for each in EVENTS}

# Of these there is one for each job in each turn: they have no data, and are written by name.
STARTED = job_events.JobStarted.kind
SUCCEEDED = job_events.JobSucceeded.kind


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
