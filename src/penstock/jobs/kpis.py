"""Five numbers that say how well work recovers, each from what the rows tell.

- completion without restart: runs that ended `completed`, however often they were interrupted, resumed
  or retried, of all that ended; of those that were cancelled, of the ones that somebody started over
- mean recovery time: from the last sign of life of a running job's worker (or its drain) to its next start
- duplicates per million: saves that changed nothing, per million saves
- throttling incidents per week: times that a provider asked a source to wait; within 5 minutes they are one
- operator steps to recover: what people did for a source between a bad end and its next good one
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import msgspec

WEEK_S = 7 * 86400.0
INCIDENT_GAP_S = 300.0

# Who acts without being asked: what these do is no step of an operator's.
OURSELVES = frozenset({"", "penstock", "scheduler", "upkeep", "clock", "stream", "supervisor"})
# What an operator does, once for each command.
ACTS = (
    "run.queued",
    "run.reopened",
    "run.continued",
    "run.paused",
    "run.resumed",
    "run.handed_over",
    "run.cancelled",
    "run.undone",
    "run.committed",
    "source.paused",
    "source.resumed",
    "checkpoint.rewound",
    "project.held",
    "project.unheld",
    "source.held",
    "source.unheld",
    "breaker.opened",
    "breaker.closed",
    "quarantine.released",
    "quarantine.discarded",
    "quarantine.noted",
)
# One command writes these in several transactions.
SWEEPS = ("quarantine.released", "quarantine.discarded")
SWEEP_S = 60.0
BAD_ENDS = ("run.partial", "run.failed")
GOOD_END = "run.completed"
STEERING = (*ACTS, *BAD_ENDS, GOOD_END)


class RunTotals(msgspec.Struct, frozen=True):
    """How the runs of a time ended, and what they saved."""

    completed: int = 0
    partial: int = 0
    failed: int = 0
    saves: int = 0
    duplicates: int = 0
    first_at: float | None = None
    # Cancelled half-way, and started over: a backfill over the same range, or a run that continues it.
    restarted: int = 0


class Interruptions(msgspec.Struct, frozen=True):
    """Jobs that were taken back and started again."""

    recovered: int = 0
    mean_s: float | None = None


class Act(msgspec.Struct, frozen=True, array_like=True):
    """A line of the journal that is part of a recovery, with the kind of its run."""

    at: float
    kind: str
    source_id: int | None
    run_id: int | None
    run_kind: str | None
    actor: str


class Kpi(msgspec.Struct, frozen=True):
    """One number; None where there is nothing to count. `counted` is how many things it is about."""

    name: str
    value: float | None
    unit: str
    counted: int
    of: str


def kpis_of(
    runs: RunTotals,
    interruptions: Interruptions,
    incidents: int,
    acts: Iterable[Act],
    *,
    since: float,
    now: float,
) -> list[Kpi]:
    """The five numbers of the time from `since` until now."""
    ended = runs.completed + runs.partial + runs.failed + runs.restarted
    steps = steps_to_recover(acts)
    has_runs = runs.first_at is not None
    # What is younger than a week is not blown up to one.
    weeks = max(1.0, (now - max(since, runs.first_at or since)) / WEEK_S)
    saves, resumed = runs.saves, interruptions.recovered
    whole = 100.0 * runs.completed / ended if ended else None
    doubled = 1e6 * runs.duplicates / saves if saves else None
    weekly = incidents / weeks if has_runs else None
    by_hand = sum(steps) / len(steps) if steps else None
    return [
        Kpi("completion_without_restart", whole, "%", ended, "runs ended"),
        Kpi("mean_recovery_time", interruptions.mean_s, "s", resumed, "jobs resumed"),
        Kpi("duplicates_per_million", doubled, "per million", saves, "saves"),
        Kpi("throttling_incidents_per_week", weekly, "per week", incidents, "incidents"),
        Kpi("operator_steps_to_recover", by_hand, "steps", len(steps), "recoveries"),
    ]


class Recovery(msgspec.Struct):
    """A source that has not recovered yet: since which run, and what people have done about it so far."""

    run_id: int | None
    run_kind: str | None
    steps: int = 0
    # When each actor did what last (`KIND ACTOR`), and when their last transaction was.
    swept_at: dict[str, float] = {}
    acted_at: dict[str, float] = {}

    def count(self, act: Act) -> None:
        """One step more, unless it belongs to the one before."""
        if act.actor in OURSELVES:
            return
        sweep = f"{act.kind} {act.actor}"
        is_sweep = act.kind in SWEEPS and act.at - self.swept_at.get(sweep, -inf) <= SWEEP_S
        is_same = self.acted_at.get(act.actor) == act.at
        if act.kind in SWEEPS:
            self.swept_at[sweep] = act.at
        self.acted_at[act.actor] = act.at
        self.steps += not (is_sweep or is_same)


def note_act(open_ones: dict[int, Recovery], act: Act) -> int | None:
    """Take note of an act; if it is the good end of a recovery, how many steps people took for that.

    `open_ones` are the sources that have not recovered; it is changed. Good is the same run when it ends
    again, or another of its kind. What one command wrote in one transaction is one step. What is about no
    source, such as the breaker of a host, counts for all that have not recovered.
    """
    if act.source_id is None and act.kind in ACTS:
        for each in open_ones.values():
            each.count(act)
        return None
    source_id = act.source_id or 0
    recovery = open_ones.get(source_id)
    if recovery is None:
        if act.kind in BAD_ENDS:
            open_ones[source_id] = Recovery(act.run_id, act.run_kind)
    elif act.kind == GOOD_END:
        if act.run_id == recovery.run_id or act.run_kind == recovery.run_kind:
            return open_ones.pop(source_id).steps
    elif act.kind not in BAD_ENDS:
        recovery.count(act)
    return None


def steps_to_recover(acts: Iterable[Act]) -> list[int]:
    """How many steps people took for each recovery: from a bad end to the next good one."""
    open_ones: dict[int, Recovery] = {}
    steps = (note_act(open_ones, act) for act in acts)
    return [each for each in steps if each is not None]
