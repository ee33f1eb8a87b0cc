"""Measures: what is summed by source, hour and label."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

HOUR_S = 3600
DAY_S = 86_400
STEPS: dict[str, int] = {"hour": HOUR_S, "day": DAY_S}
# The step of what is summed for ever, at one moment: 0.
EVER = 0
# The source of the sums of all sources.
ALL_SOURCES = 0

Kind = Literal["sum", "histogram", "gauge"]


class Measure(Struct, frozen=True, kw_only=True):
    """`label` says what its labels are; a gauge has the last value of its hour or day instead of a sum.

    `of` and `labels`: it is made of some labels of another measure, and not stored itself.
    """

    name: str
    about: str
    kind: Kind = "sum"
    label: str = ""
    unit: str = ""
    of: str = ""
    labels: tuple[str, ...] = ()

    @property
    def stored(self) -> str:
        return self.of or self.name


_ALL = (
    Measure(
        name="jobs",
        about="Jobs that ended, by stage and by how they ended.",
        label="`STAGE:OUTCOME`; outcomes: succeeded, skipped, quarantined, cancelled",
    ),
    Measure(
        name="attempts",
        about="Attempts that ended.",
        label="succeeded, retried, throttled, snoozed, skipped, quarantined, released or cancelled",
    ),
    Measure(name="retries", about="Attempts that failed and are retried."),
    Measure(name="throttles", about="Attempts that the provider asked to wait."),
    Measure(
        name="quarantines",
        about="Jobs that were quarantined.",
        label="the kind of failure",
    ),
    Measure(name="fetches", about="Requests that were sent."),
    Measure(
        name="fetch_seconds",
        about="Time from request to the last byte of the response.",
        kind="histogram",
        unit="s",
    ),
    Measure(
        name="attempt_seconds",
        about="Time from the claim of a job to the end of its attempt in the journal.",
        kind="histogram",
        unit="s",
    ),
    Measure(name="bytes", about="Bytes that were received.", unit="bytes"),
    Measure(name="records", about="Saved records.", label="new, changed or unchanged"),
    Measure(
        name="accepted",
        about="Saves that added or changed a record.",
        of="records",
        labels=("new", "changed"),
    ),
    Measure(name="rejected", about="Items that a step rejected."),
    Measure(
        name="duplicates",
        about="Saves that changed nothing.",
        of="records",
        labels=("unchanged",),
    ),
    Measure(name="quality", about="Scores of saved records.", kind="histogram"),
    Measure(name="runs", about="Runs that ended.", label="completed, partial, failed or cancelled"),
    Measure(name="starts", about="Runs that a schedule started."),
    Measure(name="misses", about="Scheduled starts at which no scheduler was running."),
    Measure(
        name="lateness_seconds",
        about="Time between a scheduled start and the moment that its run was queued, summed.",
        unit="s",
    ),
    Measure(name="breaches", about="Times that a source broke an SLA.", label="the rule"),
    Measure(name="worker_deaths", about="Workers that died or were given up."),
    Measure(
        name="turn_seconds",
        about="Time of a worker's turn: settling what ended and claiming what starts.",
        kind="histogram",
        unit="s",
    ),
    Measure(
        name="ended_runs",
        about="Runs by their last end, without replays and probes; one that is retried is taken back.",
        label="completed, partial, failed, or restarted: cancelled and started again",
    ),
    Measure(
        name="recovered_jobs", about="Jobs that were taken back from a worker and started again."
    ),
    Measure(
        name="recovery_seconds",
        about="Time between the last sign of a job's worker and its next start, summed.",
        unit="s",
    ),
    Measure(
        name="throttling_incidents",
        about="Times that a provider asked a source to wait; within 5 minutes they are one.",
    ),
    Measure(name="recoveries", about="Times that a source recovered from a run that ended badly."),
    Measure(name="operator_steps", about="Acts of people for these recoveries."),
    Measure(
        name="backlog",
        about="Jobs that are queued, waiting or running.",
        kind="gauge",
    ),
)
MEASURES: dict[str, Measure] = {each.name: each for each in _ALL}
# The sum of the values of a histogram is stored beside the counts of its buckets.
SUMS = {each.name: f"{each.name}_sum" for each in _ALL if each.kind == "histogram"}
STORED = (*(each.name for each in _ALL if not each.of), *SUMS.values())
# What is summed by run, too. A turn is for many runs.
_OF_RUNS = frozenset(SUMS) - {"turn_seconds"}
OF_RUNS = _OF_RUNS | {SUMS[name] for name in _OF_RUNS}
