"""Samples: what runs of a source are like, from its own history, or from assumptions where it has none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.counting import count
from penstock.jobs.run import RunState
from penstock.jobs.run_policy import policy_of
from penstock.store.rows import RunRow
from penstock.store.store import Store

# So many of a source's newest runs are looked at.
NEWEST_RUNS = 50


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: its pages, and for each attempt at one of them (and at finding them) its requests, its
    seconds and whether it fails; the bytes of a request; the share of what it saw that was new; and the
    candidates of a page."""

    pages: float = 100.0
    requests: float = 1.0
    seconds: float = 0.5
    bytes: float = 20_000.0
    failures: float = 0.01
    changed: float = 0.1
    candidates: float = 1.0


ASSUMED = Sample()
MOST = {
    "pages": 1e7,
    "requests": 1e4,
    "seconds": 1e5,
    "bytes": 1e12,
    "failures": 1,
    "changed": 1,
    "candidates": 1e4,
}


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of a source's runs: at least one sample, assumed or seen."""

    samples: tuple[Sample, ...]
    is_assumed: bool
    # When a run last ended well, or in part.
    good_at: float | None = None


def words(sample: Sample) -> str:
    """The assumptions as they are printed."""
    return (
        f"{count(sample.pages, 'page')} of {sample.seconds:g} s and "
        f"{count(sample.requests, 'request')} each, {count(round(sample.bytes), 'byte')} a request, "
        f"{count(sample.candidates, 'candidate')} a page, "
        f"{sample.failures:.1%} of attempts that fail, {sample.changed:.0%} of what they see new"
    )


def read_past(store: Store, keys: Iterable[str], assumed: Sample) -> dict[str, Past]:
    """What is known of these sources; each is one bounded read."""
    known = {row.key for row in store.sources.all()}
    return {
        key: _past(store.runs.newest(key, limit=NEWEST_RUNS), assumed)
        if key in known
        else Past((assumed,), True)
        for key in keys
    }


def _past(rows: list[RunRow], assumed: Sample) -> Past:
    ended = [row for row in rows if policy_of(row.kind).is_compared and row.finished_at is not None]
    good = [row.finished_at for row in ended if row.state in (RunState.COMPLETED, RunState.PARTIAL)]
    good_at = max((at for at in good if at is not None), default=None)
    # One that a person stopped does not say how long it would have been; one that a budget stopped does
    # when it has found its pages, but nothing of how it ends.
    found = [row for row in ended if row.state is not RunState.CANCELLED]
    whole = [row for row in found if row.end_reason != "budget"]
    samples = tuple(sample_of(row) for row in whole or [row for row in found if _fetched(row)])
    return Past(samples or (assumed,), not samples, good_at)


def sample_of(row: RunRow) -> Sample:
    """What one run was like."""
    is_stopped = row.end_reason == "budget"
    # What a budget stopped was never tried, and is in quarantine.
    attempts = 1 + row.retried + (_fetched(row) if is_stopped else row.pages)
    failed = row.retried + (0 if is_stopped else row.quarantined)
    wall_s = max(0.0, (row.finished_at or 0.0) - (row.started_at or row.created_at))
    # What requests took is measured; where there are none, no job took longer than the whole.
    seconds = row.seconds / attempts if row.seconds > 0 else wall_s / attempts
    changed = row.inserted + row.updated
    seen = changed + row.unchanged + row.pages_unchanged
    return Sample(
        pages=float(row.pages),
        requests=row.requests / attempts,
        seconds=seconds,
        bytes=row.bytes / row.requests if row.requests else 0.0,
        failures=min(1.0, failed / attempts),
        changed=min(1.0, changed / seen) if seen else 0.0,
        candidates=row.candidates / fetched if (fetched := _fetched(row)) else 0.0,
    )


def _fetched(row: RunRow) -> int:
    """The pages of a run that came to something."""
    return max(0, row.pages_done - row.quarantined)
