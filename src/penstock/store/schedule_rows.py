"""Rows of schedules and their ticks, and what is decided about a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from penstock.jobs.run import NO_OPTIONS, Plan, RunKind, RunOptions
from penstock.schedules.overlap import Overlap

Outcome = Literal["fired", "joined", "missed", "skipped", "denied"]


class Planned(msgspec.Struct, frozen=True, array_like=True):
    """A schedule as the configuration has it, and when it would be due first if it were new."""

    source_id: int
    name: str
    definition: str
    words: str
    kind: str
    next_due_at: float | None


class DueRow(msgspec.Struct, frozen=True, array_like=True):
    """A schedule that is to be looked at. It was put off if it is looked at later than it is due."""

    source_id: int
    source: str
    name: str
    version: int
    due_at: float
    look_at: float
    definition: str

    @property
    def is_put_off(self) -> bool:
        return self.look_at > self.due_at


class ScheduleRow(msgspec.Struct, frozen=True):
    """A schedule and where it stands; `tick_*` is its last tick, `last_*` the last that started a run."""

    source_id: int
    source: str
    name: str
    version: int
    definition: str
    words: str
    kind: str
    next_due_at: float | None
    look_at: float | None
    last_due_at: float | None
    last_run_id: int | None
    changed_at: float
    last_started_at: float | None = None
    last_state: str | None = None
    tick_at: float | None = None
    tick_outcome: str | None = None
    tick_reason: str = ""


class TickRow(msgspec.Struct, frozen=True):
    schedule: str
    due_at: float
    version: int
    outcome: Outcome
    run_id: int | None
    reason: str
    at: float
    state: str | None = None


class TickCount(msgspec.Struct, frozen=True):
    schedule: str
    version: int
    outcome: Outcome
    ticks: int
    first_at: float
    last_at: float
    # How many of them nobody was there for; a late one may have fired all the same.
    missed: int = 0
    first_missed_at: float | None = None
    last_missed_at: float | None = None


class VersionRow(msgspec.Struct, frozen=True):
    """A definition that a schedule had; it is empty where the schedule was taken out."""

    name: str
    version: int
    definition: str
    words: str
    at: float
    actor: str


@dataclass(frozen=True, slots=True)
class Start:
    """What a tick would start."""

    kind: RunKind
    plan: Plan
    pipeline_version: str
    options: RunOptions = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class Passing:
    """What is to become of a schedule's ticks up to now: those that are over, and one that may fire.

    `denied` says why it may not. `is_missed`: nobody was there when it was due. `patient` is a missed tick
    that is made up for by itself: it waits for a run that has not ended, whatever the overlap.
    """

    row: DueRow
    next_due_at: float | None
    passed: Sequence[float] = ()
    passed_as: Outcome = "missed"
    fires: float | None = None
    start: Start | None = None
    denied: str = ""
    overlap: Overlap = "skip"
    is_missed: bool = False
    patient: bool = False
    again_s: float = field(default=2.0)


@dataclass(frozen=True, slots=True)
class Passed:
    """What became of it. `put-off`: nothing yet; `known`: somebody had decided on this tick before."""

    outcome: Outcome | Literal["put-off", "known"]
    run_id: int | None = None
    reason: str = ""
