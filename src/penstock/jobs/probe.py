"""A probe: one item through the whole pipeline, nothing saved, and a verdict on the source."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from penstock.jobs.effects.effects import dry
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import RunState

Verdict = Literal["ok", "degraded", "failed"]

# A job that takes more than this part of its time is slow.
SLOW_SHARE = 0.5
STATES: dict[Verdict, RunState] = {
    "ok": RunState.COMPLETED,
    "degraded": RunState.PARTIAL,
    "failed": RunState.FAILED,
}


class ProbeResult(msgspec.Struct, frozen=True):
    """What a probe has come to, once nothing of it is left to do."""

    would_save: int = 0
    rejected: int = 0
    throttled: int = 0
    slow: int = 0
    failed: int = 0
    error: str = ""


def without_retries(end: Settlement, timeout_s: float) -> Settlement:
    """Where an attempt of a probe leads: never to another try, and never to a wait for a host."""
    effects = dry(end.effects)
    if end.took_s > SLOW_SHARE * timeout_s:
        effects.probed["slow"] = 1
    end = replace(end, effects=effects, is_final=True)
    if end.state is not JobState.WAITING:
        return end
    if end.is_throttle or end.closes_for_s > 0:
        effects.probed["throttled"] = 1
        return replace(end, state=JobState.SKIPPED, delay_s=0.0)
    if end.spends_try:
        return replace(end, state=JobState.QUARANTINED, delay_s=0.0)
    return end


def verdict_of(seen: ProbeResult) -> tuple[Verdict, str]:
    """The verdict, and the words for it that the run ends with."""
    if seen.failed:
        return "failed", f"failed: {seen.error}" if seen.error else "failed"
    if seen.throttled:
        return "degraded", "degraded: it was asked to wait"
    if seen.slow:
        return "degraded", "degraded: it was slow"
    if seen.rejected:
        return "degraded", "degraded: what it found was rejected"
    if not seen.would_save:
        return "degraded", "degraded: nothing came out"
    return "ok", "ok"


def is_good(seen: ProbeResult) -> bool:
    """Whether it speaks for a source that failed before.

    An item that the pipeline itself dropped does: were it to count against the source, one whose first
    page is never wanted would stay degraded for ever.
    """
    return not (seen.failed or seen.throttled or seen.slow)
