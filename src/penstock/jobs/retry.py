"""Retry classes, and where each outcome leads."""

from __future__ import annotations

import random
from dataclasses import dataclass

from msgspec.structs import replace

from penstock.jobs.job import Claimed, JobState, Unit
from penstock.jobs.outcome import (
    Cancelled,
    Effects,
    Failed,
    Note,
    Outcome,
    Settlement,
    Skipped,
    Snoozed,
    Succeeded,
    Throttled,
)

MAX_THROTTLES = 100
MAX_DEATHS = 3
MAX_SNOOZE_S = 365 * 86_400.0


@dataclass(frozen=True, slots=True)
class RetryClass:
    """How often a failed job is tried in all, and how long it waits between tries."""

    name: str
    tries: int
    base_s: float
    cap_s: float

    def ceiling_s(self, failures: int) -> float:
        """The longest wait after this many failures."""
        return min(self.cap_s, self.base_s * 2.0 ** min(failures - 1, 60))

    def delay_s(self, failures: int, rng: random.Random) -> float:
        """Full jitter: anywhere between now and the ceiling, so that retries never arrive together."""
        return rng.uniform(0.0, self.ceiling_s(failures))


RETRY_CLASSES: dict[str, RetryClass] = {
    "fast": RetryClass("fast", tries=4, base_s=0.5, cap_s=10.0),
    "conservative": RetryClass("conservative", tries=4, base_s=30.0, cap_s=900.0),
    "provider-safe": RetryClass("provider-safe", tries=6, base_s=10.0, cap_s=3600.0),
}
DEFAULT_RETRY = "fast"


def settle(
    job: Claimed,
    outcome: Outcome,
    retry: RetryClass,
    rng: random.Random,
    unit: Unit | None = None,
    took_s: float = 0.0,
) -> Settlement:
    """Where this outcome takes the job: its next state, its delay, and whether a try was spent."""
    base = Settlement(job.id, job.attempt, JobState.SUCCEEDED, unit=unit, took_s=took_s)
    if isinstance(outcome, Succeeded):
        return replace(base, effects=outcome.effects) if outcome.effects else base
    match outcome:
        case Skipped(reason, is_rejection=True):
            # Judged and not wanted: the job did its work, exactly as when a step returns None.
            return replace(base, effects=Effects(rejected=1, notes=[Note(f"rejected: {reason}")]))
        case Skipped(reason):
            return replace(base, state=JobState.SKIPPED, reason=reason, skip=outcome.why)
        case Cancelled(reason):
            return replace(base, state=JobState.QUEUED, reason=reason)
        case Snoozed(delay_s, reason):
            delay_s = min(max(0.0, delay_s), MAX_SNOOZE_S)
            return replace(base, state=JobState.WAITING, delay_s=delay_s, reason=reason)
        case Throttled():
            return _settle_throttled(base, job, outcome, rng)
        case Failed():
            return _settle_failed(base, job, outcome, retry, rng)


def _settle_failed(
    base: Settlement, job: Claimed, failed: Failed, retry: RetryClass, rng: random.Random
) -> Settlement:
    failures = job.tries + 1
    ended = replace(
        base,
        state=JobState.QUARANTINED,
        spends_try=True,
        reason=failed.kind,
        error=failed.error,
        traceback=failed.traceback,
        cause=failed.cause,
        host=failed.host,
    )
    if failed.is_permanent or failures >= retry.tries:
        return ended
    return replace(ended, state=JobState.WAITING, delay_s=retry.delay_s(failures, rng))


def _settle_throttled(
    base: Settlement, job: Claimed, throttled: Throttled, rng: random.Random
) -> Settlement:
    if job.throttles + 1 >= MAX_THROTTLES:
        error = f"{throttled.host} throttled this job {MAX_THROTTLES} times"
        return replace(base, state=JobState.QUARANTINED, reason="throttled", error=error)
    # The jitter goes on top: a herd that comes back at the very second it was allowed to is still a herd.
    delay_s = throttled.delay_s * (1.0 + 0.25 * rng.random()) + rng.random()
    return replace(
        base,
        state=JobState.WAITING,
        delay_s=delay_s,
        is_throttle=True,
        reason=f"{throttled.host} asked to wait {throttled.delay_s:.0f} s",
        closes_host=throttled.host,
        closes_for_s=throttled.delay_s,
    )
