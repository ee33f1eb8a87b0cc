"""Sessions: whether an exchange trades at some time. Needs the extra `markets`."""

from __future__ import annotations

from bisect import bisect_right

from penstock.schedules.calendars import sessions


def is_open_at(calendar: str | None, at: float) -> bool:
    """Without a calendar it is always open; what no calendar knows yet counts as open, too."""
    if calendar is None:
        return True
    found = sessions(calendar, at)
    return at >= found.known_until or found.holds(at)


def is_fault(
    silent_s: float,
    heartbeat_s: float,
    calendar: str | None,
    now: float,
    *,
    is_closed: bool = False,
) -> bool:
    """Whether silence means that a stream is broken: not while the exchange is closed, or was said to be."""
    return silent_s >= heartbeat_s and not is_closed and is_open_at(calendar, now)


def is_open_within(calendar: str, start_at: float, end_at: float) -> bool:
    """Whether any session holds any of this time."""
    at = start_at
    while at < end_at:
        found = sessions(calendar, at)
        if end_at >= found.known_until:
            return True
        if found.holds(at) or _begins_before(found.begins, at, end_at):
            return True
        # The library tells a few years at once: what is longer is looked at in parts.
        at += 300 * 86_400.0
    return False


def opens_at(calendar: str, at: float) -> float:
    """When it opens next, after this time; this time itself if nothing is known."""
    begins = sessions(calendar, at).begins
    place = bisect_right(begins, at)
    return begins[place] if place < len(begins) else at


def _begins_before(begins: tuple[float, ...], at: float, end_at: float) -> bool:
    place = bisect_right(begins, at)
    return place < len(begins) and begins[place] < end_at
