"""Adaptive concurrency: how many jobs at once a source bears at present.

Judged in rounds: when enough jobs have ended, the level falls by a third if too many of them failed or
they took far longer than they usually do, else it rises by one, up to what the configuration allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FALL = 0.7
RISE = 1.0
ERROR_SHARE = 0.1
# Far above its usual: so many times as long, and at least so much longer. What a busy worker adds to
# jobs that take no time at all is less than that.
SLOWER = 3.0
SLOWER_BY_S = 1.0
LEAST_ROUND = 8
# What was seen longer ago says nothing about now.
LONGEST_ROUND_S = 60.0
# How quickly the usual follows: a source that has become slow for good is taken as it is after a while.
FOLLOWS = 0.1


@dataclass(slots=True)
class RoundResults:
    """What came of a source's jobs: how many went well or failed, and the seconds by stage."""

    ok: int = 0
    failed: int = 0
    seconds: dict[str, tuple[int, float]] = field(default_factory=dict)

    def took(self, stage: str, jobs: int, seconds: float) -> None:
        count, total = self.seconds.get(stage, (0, 0.0))
        self.seconds[stage] = (count + jobs, total + seconds)

    def pour(self, other: RoundResults) -> None:
        self.ok += other.ok
        self.failed += other.failed
        for stage, (count, total) in other.seconds.items():
            self.took(stage, count, total)


@dataclass(slots=True)
class AdaptiveLevel:
    """A source as one worker sees it: the round that is under way, and what is usual.

    `trouble` is why the level has fallen in the last round; "" when it has not.
    """

    level: float
    trouble: str = ""
    began_at: float = 0.0
    round: RoundResults = field(default_factory=RoundResults)
    usual_s: dict[str, float] = field(default_factory=dict)


def feel(pulse: AdaptiveLevel, seen: RoundResults, cap: int, now: float) -> float:
    """Take in what was seen; answers with the level from now on, between 1 and the cap."""
    if now - pulse.began_at > LONGEST_ROUND_S:
        pulse.round, pulse.began_at = RoundResults(), now
    pulse.round.pour(seen)
    pulse.level = min(max(1.0, pulse.level), float(cap))
    if pulse.round.ok + pulse.round.failed >= max(LEAST_ROUND, int(pulse.level)):
        ended, pulse.round, pulse.began_at = pulse.round, RoundResults(), now
        pulse.trouble = _trouble(ended, pulse.usual_s)
        wanted = pulse.level * FALL if pulse.trouble else pulse.level + RISE
        pulse.level = min(max(1.0, wanted), float(cap))
        _get_used(pulse.usual_s, ended)
    return pulse.level


def _trouble(ended: RoundResults, usual_s: Mapping[str, float]) -> str:
    if ended.failed > ERROR_SHARE * (ended.ok + ended.failed):
        return f"{ended.failed} of {ended.ok + ended.failed} failed"
    return "they take far longer than usual" if _is_slow(ended, usual_s) else ""


def _is_slow(ended: RoundResults, usual_s: Mapping[str, float]) -> bool:
    """Whether the jobs of the stages whose usual is known took far longer, in all."""
    known = {stage: told for stage, told in ended.seconds.items() if stage in usual_s}
    count = sum(number for number, _ in known.values())
    if count < LEAST_ROUND // 2:
        return False
    took = sum(total for _, total in known.values()) / count
    usual = sum(usual_s[stage] * number for stage, (number, _) in known.items()) / count
    return took > SLOWER * usual and took > usual + SLOWER_BY_S


def _get_used(usual_s: dict[str, float], ended: RoundResults) -> None:
    for stage, (count, total) in ended.seconds.items():
        mean = total / count
        usual_s[stage] = usual_s.get(stage, mean) + FOLLOWS * (mean - usual_s.get(stage, mean))
