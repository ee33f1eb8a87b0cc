"""How well work recovers, folded line by line: the five KPIs are sums of this, and never a scan.

What one line alone does not say is remembered. Which sources have not recovered yet, and when each was
throttled last, is in the memory; how a run ended before, and which attempts were released, is in tables.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from penstock.jobs.kpis import INCIDENT_GAP_S, STEERING, Act, Recovery, note_act
from penstock.metrics.line import Line

STARTED, RELEASED, THROTTLED = "job.started", "job.released", "job.throttled"
QUEUED, REOPENED = "run.queued", "run.reopened"
ENDS = {f"run.{state}": state for state in ("completed", "partial", "failed")}
# Probes save nothing and replays go over what is there: neither says how well work is done.
REGULAR = frozenset({"full", "incremental", "backfill", "stream"})


class FoldMemory(msgspec.Struct):
    """What is remembered from batch to batch, by source: small, and written with the position."""

    throttled_at: dict[int, float] = {}
    recoveries: dict[int, Recovery] = {}


class Count(Protocol):
    """Adds to the sums of a line's source and hour."""

    def __call__(self, line: Line, measure: str, label: str = "", by: float = 1.0) -> None: ...


class RecoveryFold:
    """`released` are attempts that were taken back and whose job has not started again, `recovered` those
    from before that have."""

    def __init__(
        self, memory: FoldMemory, count: Count, runs: dict[tuple[int, str, str], float]
    ) -> None:
        self.memory = memory
        self.released: dict[tuple[int, int], float] = {}
        self.recovered: set[tuple[int, int]] = set()
        self._count = count
        self._runs = runs
        self._ended: dict[int, str | None] = {}
        self._restarted: set[int] = set()

    def add(self, line: Line, kind: str) -> None:
        if kind == STARTED:
            self._start(line)
        elif kind == RELEASED:
            idle_since = line.at if line.idle_since is None else line.idle_since
            self.released[line.job_id or 0, line.attempt or 0] = idle_since
        elif kind == THROTTLED:
            self._throttle(line)
        elif kind in STEERING:
            self._steer(line, kind)

    def _start(self, line: Line) -> None:
        before = (line.job_id or 0, (line.attempt or 0) - 1)
        idle_since = self.released.pop(before, None)
        if idle_since is None and line.idle_since is not None and before not in self.recovered:
            idle_since = line.idle_since
            self.recovered.add(before)
        if idle_since is not None:
            self._count(line, "recovered_jobs")
            self._count(line, "recovery_seconds", "", max(0.0, line.at - idle_since))

    def _throttle(self, line: Line) -> None:
        """What comes soon after another of the same source belongs to it."""
        throttled_at = self.memory.throttled_at
        last_at = throttled_at.get(line.source_id or 0)
        if last_at is None or line.at - last_at > INCIDENT_GAP_S:
            self._count(line, "throttling_incidents")
        for source_id in [
            each for each, at in throttled_at.items() if line.at - at > INCIDENT_GAP_S
        ]:
            del throttled_at[source_id]
        throttled_at[line.source_id or 0] = line.at

    def _steer(self, line: Line, kind: str) -> None:
        if kind in ENDS and line.run_kind in REGULAR:
            self._end_run(line, line.run_id or 0, ENDS[kind])
        elif kind == REOPENED:
            self._reopen(line, line.run_id or 0)
        elif kind == QUEUED and line.run_kind in REGULAR:
            self._restart(line)
        act = Act(line.at, kind, line.source_id, line.run_id, line.run_kind, line.actor)
        steps = note_act(self.memory.recoveries, act)
        if steps is not None:
            self._count(line, "recoveries")
            self._count(line, "operator_steps", "", float(steps))

    def _end_run(self, line: Line, run_id: int, state: str) -> None:
        self._ended[run_id] = state
        self._count(line, "ended_runs", state)
        self._runs[run_id, "ended", state] += 1.0

    def _reopen(self, line: Line, run_id: int) -> None:
        state = self._ended.get(run_id, line.ended)
        self._ended[run_id] = None
        if state is not None:
            self._count(line, "ended_runs", state, -1.0)
            self._runs[run_id, "ended", state] -= 1.0

    def _restart(self, line: Line) -> None:
        for run_id in line.restarts or ():
            if run_id not in self._restarted:
                self._restarted.add(run_id)
                self._count(line, "ended_runs", "restarted")
                self._runs[run_id, "restarted", ""] += 1.0
