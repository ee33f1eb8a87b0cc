"""Folding: lines of the journal, and what attempts have measured, become sums.

Folding in any batches gives the same sums as folding at once: a line adds to its own hour, and of an attempt
that started in an earlier batch it is known when it did.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from penstock.jobs.kpis import STEERING
from penstock.journal.registry import current_kind, stored_kinds
from penstock.metrics.buckets import bucket
from penstock.metrics.line import Amount, Line, Measured
from penstock.metrics.measures import ALL_SOURCES, DAY_S, EVER, HOUR_S, OF_RUNS, SUMS
from penstock.metrics.recovery import FoldMemory, RecoveryFold

STARTED = "job.started"
# How an attempt ended, by the event that says so.
ENDS = {
    "job.succeeded": "succeeded",
    "job.retry_scheduled": "retried",
    "job.throttled": "throttled",
    "job.snoozed": "snoozed",
    "job.skipped": "skipped",
    "job.quarantined": "quarantined",
    "job.released": "released",
    "job.cancelled": "cancelled",
}
# Those of them that end the job.
OUTCOMES = frozenset({"succeeded", "skipped", "quarantined", "cancelled"})
RUN_ENDS = {f"run.{state}": state for state in ("completed", "partial", "failed", "cancelled")}
QUEUED, MISSED, QUARANTINED = "run.queued", "schedule.missed", "job.quarantined"
REAPED = "worker.reaped"
BREACHES = ("sla.breached", "schema.stale")
# The events that count. Others are passed over.
KINDS = stored_kinds(
    dict.fromkeys([STARTED, *ENDS, *RUN_ENDS, QUEUED, MISSED, REAPED, *BREACHES, *STEERING])
)
# The key of a run that a schedule started: `tick:NAME:DUE_AT`.
TICK = "tick:"
# A job that retention has dropped before it was folded has no stage any more.
NO_STAGE = "other"

# Source, measure, step, at, label.
Place = tuple[int, str, int, float, str]
# Run, measure, label.
RunPlace = tuple[int, str, str]
Attempt = tuple[int, int]
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Fold:
    """Sums of some lines. `opened` are attempts that have not ended in them, `closed` those from before.

    `recovery` has what is not known from one line alone: it remembers, from batch to batch.
    """

    def __init__(self, memory: FoldMemory | None = None) -> None:
        # By source, measure, hour and label.
        self._hours: dict[tuple[int, str, float, str], float] = defaultdict(float)
        self.runs: dict[RunPlace, float] = defaultdict(float)
        self.opened: dict[Attempt, float] = {}
        self.closed: set[Attempt] = set()
        self.recovery = RecoveryFold(memory or FoldMemory(), self._count, self.runs)

    @property
    def size(self) -> int:
        return len(self._hours)

    def sums(self) -> dict[Place, float]:
        """What is to be added where: to the sums of each source and of all of them."""
        found: dict[Place, float] = defaultdict(float)
        for (source_id, measure, hour_at, label), amount in self._hours.items():
            for whose in {ALL_SOURCES, source_id}:
                for place in places(whose, measure, hour_at, label):
                    found[place] += amount
        return found

    def add_lines(self, lines: Iterable[Line]) -> None:
        """In the order in which they were written."""
        for line in lines:
            kind = current_kind(line.kind)
            self._add_line(line, kind)
            self.recovery.add(line, kind)

    def add_measured(self, measured: Iterable[Measured]) -> None:
        for each in measured:
            for measure, label, amount in each.amounts:
                self._add(each.source_id, each.run_id, each.at, measure, label, amount)

    def _add_line(self, line: Line, kind: str) -> None:
        if kind == STARTED:
            self.opened[line.job_id or 0, line.attempt or 0] = line.at
        elif kind in ENDS:
            self._end_job(line, ENDS[kind])
        elif kind in RUN_ENDS:
            self._count(line, "runs", RUN_ENDS[kind])
        elif kind == REAPED:
            self._count(line, "worker_deaths")
        elif kind in BREACHES:
            self._count(line, "breaches", str(_data(line).get("rule", "")))
        elif kind == MISSED:
            self._count(line, "misses", "", float(_data(line).get("ticks", 1)))
        elif kind == QUEUED and (line.run_key or "").startswith(TICK):
            self._start(line, line.run_key or "")

    def _end_job(self, line: Line, outcome: str) -> None:
        self._end_attempt(line, outcome)
        if outcome in OUTCOMES:
            self._count(line, "jobs", f"{line.stage or NO_STAGE}:{outcome}")
        if outcome == "retried":
            self._count(line, "retries")
        elif outcome == "throttled":
            self._count(line, "throttles")
        elif outcome == "quarantined":
            self._count(line, "quarantines", str(_data(line).get("reason", "")))

    def _end_attempt(self, line: Line, outcome: str) -> None:
        """An event of a job that was not running, such as one that is cancelled while it waits, ends none."""
        attempt = (line.job_id or 0, line.attempt or 0)
        began_at = self.opened.pop(attempt, None)
        if began_at is None and line.began_at is not None and attempt not in self.closed:
            began_at = line.began_at
            self.closed.add(attempt)
        if began_at is None:
            return
        self._count(line, "attempts", outcome)
        seconds = max(0.0, line.at - began_at)
        self._count(line, "attempt_seconds", bucket("attempt_seconds", seconds))
        self._count(line, SUMS["attempt_seconds"], "", seconds)

    def _start(self, line: Line, key: str) -> None:
        due_at = float(key.rpartition(":")[2])
        self._count(line, "starts")
        self._count(line, "lateness_seconds", "", max(0.0, line.at - due_at))

    def _count(self, line: Line, measure: str, label: str = "", by: float = 1.0) -> None:
        self._add(line.source_id, line.run_id, line.at, measure, label, by)

    def _add(
        self,
        source_id: int | None,
        run_id: int | None,
        at: float,
        measure: str,
        label: str,
        by: float,
    ) -> None:
        self._hours[source_id or ALL_SOURCES, measure, at - at % HOUR_S, label] += by
        if run_id is not None and measure in OF_RUNS:
            self.runs[run_id, measure, label] += by


def places(source_id: int, measure: str, at: float, label: str) -> tuple[Place, Place, Place]:
    """Where something that happened then is summed: in its hour, in its day, and for ever."""
    return (
        (source_id, measure, HOUR_S, at - at % HOUR_S, label),
        (source_id, measure, DAY_S, at - at % DAY_S, label),
        (source_id, measure, EVER, 0.0, label),
    )


def observed(measure: str, values: Sequence[float]) -> list[Amount]:
    """Values of a histogram as amounts: how many are in each bucket, and their sum."""
    counts = Counter(bucket(measure, value) for value in values)
    return [*((measure, label, n) for label, n in counts.items()), (SUMS[measure], "", sum(values))]


def _data(line: Line) -> dict[str, Any]:
    if line.data is not None:
        return _decode(line.data)
    return _old_data(line) if line.detail else {}


def _old_data(line: Line) -> dict[str, Any]:
    """Of a line that is older than the data of the journal: only such a line needs the old sentences."""
    from penstock.journal.old_lines import data_of

    return data_of(line.kind, line.detail)
