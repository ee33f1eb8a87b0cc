"""What stands in quarantine, and what it has in common: the rows as they are read."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from penstock.jobs.job import JobState


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which entries are meant; what is not said does not matter."""

    source: str | None = None
    run_id: int | None = None
    stage: str | None = None
    kind: str | None = None
    cause: str | None = None
    since: float | None = None
    is_escalated: bool = False
    job_id: int | None = None
    # Failures of replays and probes, which nobody waits for, instead of those of the work itself.
    is_apart: bool = False
    # What has left quarantine for good, instead of what is there.
    is_closed: bool = False

    @property
    def is_all(self) -> bool:
        return self == EntryFilter()


class EntryNote(msgspec.Struct, frozen=True):
    at: float
    actor: str
    text: str


class EntrySnapshot(msgspec.Struct, frozen=True):
    """The page that the job fetched last, or that its item came from."""

    id: int
    url: str
    status: int
    fetched_at: float


class EntryRow(msgspec.Struct, frozen=True):
    """A quarantined job with all that is known of its failure.

    `quarantines`: how often this page came here, `first_at` and `last_at` when. A closed one says why.
    """

    id: int
    run_id: int
    source: str
    stage: str
    unit: str
    key: str
    state: JobState
    attempt: int
    tries: int
    deaths: int
    since: float
    kind: str
    error: str
    cause: str
    traceback: str
    quarantines: int
    first_at: float
    escalated_at: float | None
    notes: list[EntryNote]
    item: str | None
    snapshot: EntrySnapshot | None
    last_at: float
    closed_at: float | None = None
    closed_why: str = ""
    closed_by_job_id: int | None = None


class GroupRow(msgspec.Struct, frozen=True):
    """Entries of one source, kind and cause; `error` and `job_id` are those of the newest."""

    source: str
    kind: str
    cause: str
    jobs: int
    first_at: float
    last_at: float
    escalated_at: float | None
    error: str
    job_id: int


class CauseRow(msgspec.Struct, frozen=True):
    source: str
    cause: str
    failures: int
    pipeline_version: str
    first_at: float
    last_at: float
    escalated_at: float | None
