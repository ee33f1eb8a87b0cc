"""What a dry run came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.jobs.effects import Rejection
from penstock.jobs.job import NewJob
from penstock.jobs.outcome import Cancelled, Failed, Outcome, Skipped, Snoozed, Succeeded, Throttled
from penstock.jobs.record_changes import RecordChange, Totals


@dataclass(frozen=True, slots=True)
class TriedPage:
    """A page that a step asked for; a status of None is an error that came without one."""

    url: str
    status: int | None
    bytes: int
    is_from_snapshot: bool


@dataclass(frozen=True, slots=True)
class TriedJob:
    """One job and what it came to, in the words that its run would have for it."""

    stage: str
    key: str
    state: str
    reason: str = ""
    kind: str = ""
    traceback: str = ""


@dataclass(slots=True)
class Tried:
    """What a dry run came to."""

    source: str
    stage: str
    item: Any
    pages: list[TriedPage] = field(default_factory=list)
    jobs: list[TriedJob] = field(default_factory=list)
    changes: list[RecordChange] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    rejections: list[Rejection] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    signals: list[str] = field(default_factory=list)
    # Pages that would be enqueued, by stage.
    enqueued: dict[str, list[str]] = field(default_factory=dict)
    is_cut: bool = False
    # Of a sample: the data of the records that would be saved.
    saved: list[dict[str, Any]] = field(default_factory=list)
    # Collection, key, data and score of each record that would be saved.
    contents: list[tuple[str, str, Any, float | None]] = field(default_factory=list)
    # Of a sample: what the connector says of the place.
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> list[TriedJob]:
        return [job for job in self.jobs if job.state == "failed"]


def tried_job(job: NewJob, outcome: Outcome) -> TriedJob:
    about = (job.stage, job.key)
    match outcome:
        case Succeeded():
            return TriedJob(*about, "succeeded")
        case Skipped():
            return TriedJob(
                *about, "rejected" if outcome.is_rejection else "skipped", outcome.reason
            )
        case Failed():
            return TriedJob(*about, "failed", outcome.error, outcome.kind, outcome.traceback)
        case Throttled():
            reason = f"{outcome.host or 'the provider'} asked to wait {outcome.delay_s:.0f} s"
            return TriedJob(*about, "failed", reason, "throttled")
        case Snoozed():
            return TriedJob(*about, "snoozed", outcome.reason or f"for {outcome.delay_s:g} s")
        case Cancelled():
            return TriedJob(*about, "failed", outcome.reason)
