"""Retry classes, and where each outcome leads."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as changed

from msgspec.structs import replace

from penstock.jobs.effects import Effects, Rejection
from penstock.jobs.failures import FAIL_FAST
from penstock.jobs.job import Claimed, JobState, Unit
from penstock.jobs.outcome import (
    REJECTED,
    Cancelled,
    Failed,
    Outcome,
    Settlement,
    Skipped,
    Snoozed,
    Succeeded,
    Throttled,
)
from penstock.settings import RetryChoice

MAX_THROTTLES = 100
MAX_DEATHS = 3
MAX_SNOOZE_S = 365 * 86_400.0
# What nobody can put a name to is tried once more, no more.
UNKNOWN_TRIES = 2


@dataclass(frozen=True, slots=True)
class RetryClass:
    """How often a failed job is tried in all, and how long it waits between tries.

    `unknown_tries` is for failures of no known kind; those that can't pass by themselves have one try.
    """

    name: str
    tries: int
    base_s: float
    cap_s: float
    unknown_tries: int = UNKNOWN_TRIES

    def tries_for(self, kind: str) -> int:
        if kind in FAIL_FAST:
            return 1
        return min(self.tries, self.unknown_tries) if kind == "unknown" else self.tries

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


def retry_classes(own: Mapping[str, RetryChoice]) -> dict[str, RetryClass]:
    """All classes of a project by name: the built-in ones, and its own, each made from one of those."""
    made = {
        name: changed(_altered(RETRY_CLASSES[each.name or DEFAULT_RETRY], each), name=name)
        for name, each in own.items()
    }
    return {**RETRY_CLASSES, **made}


def choose_retry(classes: Mapping[str, RetryClass], *choices: RetryChoice | None) -> RetryClass:
    """The class that holds when these were chosen, the weightiest last: a later one's name replaces
    what stands before it, and each of its numbers alone replaces that number."""
    chosen = classes[DEFAULT_RETRY]
    for choice in choices:
        if choice is not None:
            chosen = _altered(classes[choice.name] if choice.name else chosen, choice)
    return chosen


def _altered(retry: RetryClass, choice: RetryChoice) -> RetryClass:
    base_s = retry.base_s if choice.base_s is None else choice.base_s
    cap_s = retry.cap_s if choice.cap_s is None else choice.cap_s
    return RetryClass(
        retry.name,
        retry.tries if choice.tries is None else choice.tries,
        base_s,
        # Whoever asks for a longer first wait means it.
        max(base_s, cap_s),
        retry.unknown_tries if choice.unknown_tries is None else choice.unknown_tries,
    )


OVERTAKEN = Failed(
    "a record that this attempt was based on has changed meanwhile: it starts over",
    kind="transient",
    cause="the record was changed by others",
    is_answer=True,
)


def settle(
    job: Claimed,
    outcome: Outcome,
    retry: RetryClass,
    rng: random.Random,
    unit: Unit | None = None,
    took_s: float = 0.0,
    useful_for_s: float | None = None,
) -> Settlement:
    """Where this outcome takes the job: its next state, its delay, and whether a try was spent."""
    if isinstance(outcome, Succeeded):
        ended = _succeeded(job, outcome.effects, unit, took_s)
        if not outcome.effects.is_conditional:
            return ended
        otherwise = _settle_failed(replace(ended, effects=Effects()), job, OVERTAKEN, retry, rng)
        return replace(ended, otherwise=otherwise)
    base = _succeeded(job, Effects(spent=dict(outcome.spent)), unit, took_s)
    match outcome:
        case Skipped(reason, is_rejection=True):
            # Judged and not wanted: the job did its work, exactly as when a step returns None.
            rejection = Rejection(outcome.code or REJECTED, reason, outcome.score)
            return replace(base, effects=Effects(rejections=[rejection], spent=base.effects.spent))
        case Skipped(reason):
            ended = replace(base, state=JobState.SKIPPED, reason=reason, skip=outcome.why)
            return replace(ended, effects=outcome.effects) if outcome.effects else ended
        case Cancelled(reason):
            return replace(base, state=JobState.QUEUED, reason=reason)
        case Snoozed(delay_s, reason):
            delay_s = min(max(0.0, delay_s), MAX_SNOOZE_S)
            put_off = replace(base, state=JobState.WAITING, delay_s=delay_s, reason=reason)
            if not outcome.outside:
                return put_off
            return replace(put_off, host=outcome.outside, gate="window")
        case Throttled():
            return _settle_throttled(replace(base, useful_for_s=useful_for_s), job, outcome, rng)
        case Failed():
            return _settle_failed(
                replace(base, useful_for_s=useful_for_s), job, outcome, retry, rng
            )


def _succeeded(job: Claimed, effects: Effects, unit: Unit | None, took_s: float) -> Settlement:
    return Settlement(
        job.id, job.attempt, JobState.SUCCEEDED, unit=unit, took_s=took_s, effects=effects
    )


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
        is_again=job.tries > 0,
        is_answer=failed.is_answer,
    )
    if failed.kind == "budget":
        # Nothing was tried: it is set aside, with all its tries, until there is something to spend again.
        return replace(ended, spends_try=False)
    if failed.is_permanent or failures >= retry.tries_for(failed.kind):
        return ended
    return replace(ended, state=JobState.WAITING, delay_s=retry.delay_s(failures, rng))


def _settle_throttled(
    base: Settlement, job: Claimed, throttled: Throttled, rng: random.Random
) -> Settlement:
    who = throttled.host or "the provider"
    if not throttled.is_answer:
        return _settle_away(base, throttled, rng)
    if job.throttles + 1 >= MAX_THROTTLES:
        error = f"{who} throttled this job {MAX_THROTTLES} times"
        return replace(
            base,
            state=JobState.QUARANTINED,
            reason="throttled",
            error=error,
            cause=f"throttled {who}",
            host=throttled.host,
        )
    # The jitter goes on top: a herd that comes back at the very second it was allowed to is still a herd.
    delay_s = throttled.delay_s * (1.0 + 0.25 * rng.random()) + rng.random()
    return replace(
        base,
        state=JobState.WAITING,
        delay_s=delay_s,
        is_throttle=True,
        reason=f"{who} asked to wait {throttled.delay_s:.0f} s",
        closes_host=throttled.host,
        closes_for_s=throttled.delay_s,
    )


def _settle_away(base: Settlement, throttled: Throttled, rng: random.Random) -> Settlement:
    """Nobody was asked, so nothing is counted: a provider may be away for as long as it likes."""
    delay_s = throttled.delay_s * (1.0 + 0.25 * rng.random()) + rng.random()
    is_broken = bool(throttled.gate)
    return replace(
        base,
        state=JobState.WAITING,
        delay_s=delay_s,
        reason=f"{throttled.host} is closed for {throttled.delay_s:.0f} s",
        host=throttled.host,
        gate=throttled.gate,
        # Its breaker keeps a host from being asked; of the source's own, this is one of the facts.
        closes_host="" if is_broken else throttled.host,
        closes_for_s=throttled.delay_s,
    )
