"""Overlap: what a tick does when runs of its source have not ended.

A run that began after the tick was due, and does at least as much, answers for the tick: the tick joins it.
So of two schedules that are due together, the stronger kind runs and the other one is answered for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Overlap = Literal["skip", "queue", "replace"]
Act = Literal["start", "replace", "join", "wait", "skip"]

# What a run of each kind looks at: a full run at all that an incremental one does, and more.
_STRENGTH = {"probe": 0, "incremental": 1, "full": 2}


@dataclass(frozen=True, slots=True)
class Active:
    """A run that has not ended, of a kind that schedules start."""

    run_id: int
    kind: str
    created_at: float

    def answers(self, kind: str, due_at: float) -> bool:
        """Whether it does what a run of this kind, due then, would do."""
        return self.created_at >= due_at and strength(self.kind) >= strength(kind)


@dataclass(frozen=True, slots=True)
class Meeting:
    """What the tick does, and the run that it joins, waits for or is skipped for."""

    act: Act
    run_id: int | None = None


def strength(kind: str) -> int:
    return _STRENGTH.get(kind, 0)


def meet(
    active: Sequence[Active], kind: str, due_at: float, overlap: Overlap, *, is_patient: bool
) -> Meeting:
    """Decide for a tick of this kind. A patient one waits, whatever the overlap: it has a run of its own."""
    if not active:
        return Meeting("start")
    oldest = active[0].run_id
    if is_patient or overlap == "queue":
        return Meeting("wait", oldest)
    joined = next((run for run in active if run.answers(kind, due_at)), None)
    if joined is not None:
        return Meeting("join", joined.run_id)
    if overlap == "replace":
        return Meeting("replace", oldest)
    # An incremental run is no reason to leave the weekly full one out.
    is_stronger = all(strength(kind) > strength(run.kind) for run in active)
    return Meeting("wait" if is_stronger else "skip", oldest)
