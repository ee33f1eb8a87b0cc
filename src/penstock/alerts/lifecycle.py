"""What becomes of an alert: open, acknowledged, resolved, and what keeps it from flapping.

Of each rule and source one alert stands at a time. It resolves by itself when its condition has ended for
long enough. If the condition returns soon, the same alert is reopened. An alert that keeps returning is
flapping: no messages are sent about it, and it resolves only after a much longer calm.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from penstock.alerts.history import Finding
from penstock.alerts.rules import RULES, SEVERITIES
from penstock.counting import count

# An alert whose condition comes back within this is the same alert.
REOPEN_WITHIN_S = 24 * 3600.0
# Openings within a day from which on it is flapping, and how long it must then be calm.
FLAPPING_OPENINGS = 3
CALM_S = 6 * 3600.0

State = Literal["open", "acknowledged", "resolved"]
Verb = Literal["nothing", "open", "note", "remember", "reopen", "end", "let_go", "wake"]


class Memory(Struct, frozen=True, omit_defaults=True):
    """What is remembered between two looks: when it opened, and since when its condition has not held."""

    opened: tuple[float, ...] = ()
    clear_since: float | None = None

    def is_flapping(self, now: float) -> bool:
        return sum(at > now - REOPEN_WITHIN_S for at in self.opened) >= FLAPPING_OPENINGS


class Standing(Struct, frozen=True, kw_only=True):
    """The last alert of a rule and source. `is_held`: a person resolved it while its condition held."""

    rule: str
    state: State
    severity: str
    resolved_at: float | None = None
    snoozed_until: float | None = None
    is_held: bool = False
    memory: Memory = Memory()


class Step(Struct, frozen=True, kw_only=True):
    """What is to be done with an alert. `is_loud`: its routes get a message."""

    verb: Verb
    memory: Memory = Memory()
    is_loud: bool = False
    reason: str = ""


def next_step(
    standing: Standing | None, finding: Finding | None, now: float, *, is_judged: bool = True
) -> Step:
    """What becomes of an alert after a look. A rule that could not judge changes nothing."""
    if not is_judged:
        return Step(verb="nothing", memory=standing.memory if standing else Memory())
    if finding is not None:
        return _held(standing, finding, now)
    return Step(verb="nothing") if standing is None else _cleared(standing, now)


def _held(standing: Standing | None, finding: Finding, now: float) -> Step:
    """The condition holds."""
    if standing is None:
        return _opening("open", Memory(), now)
    if standing.state == "resolved":
        return _again(standing, now)
    memory = msgspec.structs.replace(standing.memory, clear_since=None)
    is_snoozed = standing.snoozed_until is not None and standing.snoozed_until > now
    if standing.snoozed_until is not None and not is_snoozed:
        return Step(verb="wake", memory=memory, is_loud=True, reason="its snooze is over")
    is_worse = _rank(finding.severity) > _rank(standing.severity)
    return Step(verb="note", memory=memory, is_loud=is_worse and not is_snoozed)


def _rank(severity: str) -> int:
    return [str(each) for each in SEVERITIES].index(severity)


def _again(standing: Standing, now: float) -> Step:
    if standing.is_held:
        return Step(verb="nothing", memory=standing.memory)
    if standing.resolved_at is not None and now - standing.resolved_at <= REOPEN_WITHIN_S:
        return _opening("reopen", standing.memory, now)
    return _opening("open", Memory(), now)


def _opening(verb: Literal["open", "reopen"], memory: Memory, now: float) -> Step:
    opened = (*(at for at in memory.opened if at > now - REOPEN_WITHIN_S), now)
    memory = Memory(opened=opened)
    is_flapping = memory.is_flapping(now)
    return Step(
        verb=verb,
        memory=memory,
        is_loud=not is_flapping,
        reason=f"flapping: opened {count(len(opened), 'time')} within a day" if is_flapping else "",
    )


def _cleared(standing: Standing, now: float) -> Step:
    """The condition does not hold."""
    memory = standing.memory
    if standing.state == "resolved":
        return Step(verb="let_go" if standing.is_held else "nothing", memory=memory)
    calm_s = CALM_S if memory.is_flapping(now) else RULES[standing.rule].clear_for_s
    since = now if memory.clear_since is None else memory.clear_since
    if now - since >= calm_s:
        return Step(verb="end", memory=memory, is_loud=True, reason="its condition has ended")
    memory = msgspec.structs.replace(memory, clear_since=since)
    return Step(verb="remember", memory=memory)
