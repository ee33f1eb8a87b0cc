"""The decision: which gates stand between a lane and its next job, and which of them are closed.

The claim asks `decide`, the explanation asks `gates_before`; both go through the same gates in the same
order, so the one can't say what the other does not do.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.gates.breaker import ramp_at
from penstock.gates.lane import UNLIMITED, Allowance, Closed, Lane, Slot
from penstock.gates.onboarding import SHUT, first_gap, is_elsewhere, state_of
from penstock.gates.rates import LONGEST_WAIT_S, places_soon
from penstock.settings.opening_hours import window_opens_at

Gate = Callable[[Lane, Slot, float], Closed | None]


def decide(lane: Lane, now: float) -> Allowance | Closed:
    """What this lane may start now, or the gate that holds all of it back."""
    slots = {head.slot for head in lane.heads}
    closed: dict[Slot, Closed] = {}
    for slot in slots:
        gate = first_closed(lane, slot, now)
        if gate is not None:
            closed[slot] = gate
    if closed and closed.keys() == slots:
        return min(closed.values(), key=_opening)
    pages = 0 if "page" in closed else slots_free(lane, "page", now)
    candidates = 0 if "candidate" in closed else slots_free(lane, "candidate", now)
    background = 0
    if "background" in slots and "background" not in closed:
        background = slots_free(lane, "background", now)
    return Allowance(max(pages, background), candidates, background)


def first_closed(lane: Lane, slot: Slot, now: float) -> Closed | None:
    """The gate that holds back the jobs of this lane that take such a slot; None if they may start."""
    for gate in _LIMITS if _is_usual(lane, now) else _GATES:
        closed = gate(lane, slot, now)
        if closed is not None:
            return closed
    return None


def _is_usual(lane: Lane, now: float) -> bool:
    """Whether nothing but its limits could hold a lane back: so it is with nearly all of them."""
    if lane.is_held or lane.is_paused or lane.breaker is not None:
        return False
    terms = lane.limits.compliance
    if lane.onboarding is not None or terms.is_required or terms.is_placed_only:
        return False
    return lane.cooldown_until <= now and lane.limits.windows is None


def gates_before(lane: Lane, slot: Slot, now: float) -> list[tuple[str, Closed | None]]:
    """Every gate before such a job, in order, each with None where it is open."""
    return [(name, gate(lane, slot, now)) for name, gate in GATES.items()]


def slots_free(lane: Lane, slot: Slot, now: float) -> int:
    """How many more such jobs have a slot, as far as limits and rates go."""
    if slot == "candidate":
        return max(0, lane.limits.candidates - lane.running_candidates)
    pages = max(0, concurrency_of(lane, now) + lane.ahead - lane.running)
    if slot == "background":
        pages = min(pages, max(0, background_of(lane) - lane.running_background))
    return min(pages, _places_soon(lane, now))


def concurrency_of(lane: Lane, now: float) -> int:
    """How many jobs may touch the source at once, at present."""
    allowed = lane.limits.concurrency
    if lane.level is not None and lane.limits.adaptive:
        allowed = min(allowed, max(1, int(lane.level)))
    ramp = None if lane.breaker is None else _ramp(lane, now)
    return allowed if ramp is None else min(allowed, ramp)


def background_of(lane: Lane) -> int:
    """How many of them may be a backfill's: never none, or it would never end."""
    return max(1, int(lane.limits.concurrency * lane.limits.background))


def _cell(lane: Lane, slot: Slot, now: float) -> Closed | None:
    return Closed("cell") if is_elsewhere(lane.onboarding, lane.limits.compliance) else None


def _legal_hold(lane: Lane, slot: Slot, now: float) -> Closed | None:
    known = lane.onboarding
    return Closed("legal_hold") if known is not None and known.legal_hold_at is not None else None


def _lifecycle(lane: Lane, slot: Slot, now: float) -> Closed | None:
    return (
        Closed("lifecycle") if state_of(lane.onboarding, lane.limits.compliance) in SHUT else None
    )


def _compliance(lane: Lane, slot: Slot, now: float) -> Closed | None:
    if slot == "candidate":
        return None
    gap = first_gap(lane.onboarding, lane.limits.compliance, now)
    return None if gap is None else Closed("compliance")


def _held(lane: Lane, slot: Slot, now: float) -> Closed | None:
    return Closed("held") if lane.is_held else None


def _paused(lane: Lane, slot: Slot, now: float) -> Closed | None:
    return Closed("paused") if lane.is_paused else None


def _cooldown(lane: Lane, slot: Slot, now: float) -> Closed | None:
    return Closed("cooldown", lane.cooldown_until) if lane.cooldown_until > now else None


def _breaker(lane: Lane, slot: Slot, now: float) -> Closed | None:
    if lane.breaker is None or slot == "candidate":
        return None
    ramp = _ramp(lane, now)
    if ramp is None or lane.running < ramp:
        return None
    # Open until its time; half-open until one of those that try it has come back.
    return Closed("breaker", None if ramp else lane.breaker.opens_at)


def _ramp(lane: Lane, now: float) -> int | None:
    breaker = lane.breaker
    if breaker is None:
        return None
    return ramp_at(breaker.state, breaker.opens_at, breaker.ramp, now)


def _window(lane: Lane, slot: Slot, now: float) -> Closed | None:
    windows = lane.limits.windows
    if slot == "candidate" or windows is None:
        return None
    opens_at = window_opens_at(windows, now)
    return None if opens_at is None else Closed("window", opens_at)


def _slots(lane: Lane, slot: Slot, now: float) -> Closed | None:
    if slot == "candidate":
        return None if lane.running_candidates < lane.limits.candidates else Closed("slots")
    if lane.running >= concurrency_of(lane, now) + lane.ahead:
        return Closed("slots")
    if slot == "background" and lane.running_background >= background_of(lane):
        return Closed("slots")
    return None


def _rate(lane: Lane, slot: Slot, now: float) -> Closed | None:
    if slot == "candidate" or _places_soon(lane, now):
        return None
    return Closed("rate", lane.next_place_at - LONGEST_WAIT_S)


# In the order in which they are asked, and told.
GATES: dict[str, Gate] = {
    "cell": _cell,
    "legal_hold": _legal_hold,
    "lifecycle": _lifecycle,
    "compliance": _compliance,
    "held": _held,
    "paused": _paused,
    "window": _window,
    "breaker": _breaker,
    "cooldown": _cooldown,
    "slots": _slots,
    "rate": _rate,
}
_GATES = tuple(GATES.values())
_LIMITS = (_slots, _rate)


def _opening(closed: Closed) -> float:
    return float("inf") if closed.opens_at is None else closed.opens_at


def _places_soon(lane: Lane, now: float) -> int:
    """How many jobs may start that are likely to send a request.

    A guess, for a job may send none or many: it only spares those the start that would be sent back.
    """
    rate_per_s = lane.limits.rate_per_s
    return UNLIMITED if not rate_per_s else places_soon(lane.next_place_at, rate_per_s, now)
