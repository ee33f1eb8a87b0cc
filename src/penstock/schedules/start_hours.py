"""Start hours: the hours in which a schedule may start something, whatever it is due by.

Windows say when it may, blackouts when it may not, `during` whether an exchange must be open or shut.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta

from penstock.schedules.calendars import known_until, sessions
from penstock.settings import ScheduleSettings
from penstock.settings.opening_hours import OpeningHours, allowed_windows, window_opens_at

NEVER = float("inf")
# So long before a calendar ends it is said: a newer library has to be installed by then.
WARNING_S = 30 * 86_400.0
# A slot is where all of them agree; they are asked in turn, so often at most.
ROUNDS = 1000


def slot_opens_at(settings: ScheduleSettings, now: float) -> float | None:
    """None while it may start, else when it next may; infinite if it never may."""
    opens_at = _first_open(settings, now)
    return None if opens_at == now else opens_at


def calendar_of(settings: ScheduleSettings) -> str | None:
    """The exchange that a schedule goes by, whether for its ticks or for its hours."""
    if settings.session is not None:
        return settings.session.calendar
    return settings.calendar if settings.during else None


def calendar_warns_at(until: float) -> float:
    """From when on it is said that a calendar ends then."""
    return until - WARNING_S


def calendar_warning(settings: ScheduleSettings, now: float) -> str:
    """That its calendar ends soon or has ended, and what to do; empty while there is no need to."""
    calendar = calendar_of(settings)
    if calendar is None or now < calendar_warns_at(until := known_until(calendar)):
        return ""
    last = datetime.fromtimestamp(until, UTC) - timedelta(days=1)
    verb = "is" if now < until else "was"
    return (
        f"the calendar {calendar} {verb} known until {last:%Y-%m-%d}, and its schedules start nothing "
        "after that: install a newer exchange-calendars"
    )


def is_bounded(settings: ScheduleSettings) -> bool:
    """Whether there are hours in which it may not start."""
    return bool(settings.windows or settings.blackouts or settings.during)


def _first_open(settings: ScheduleSettings, moment: float) -> float:
    for _ in range(ROUNDS):
        later = _window(settings, moment) or _session(settings, moment)
        if later is None:
            return moment
        if later == NEVER:
            return NEVER
        moment = later
    return NEVER


def _window(settings: ScheduleSettings, moment: float) -> float | None:
    if not settings.windows and not settings.blackouts:
        return None
    allowed = allowed_windows(settings.windows, settings.blackouts)
    return window_opens_at(OpeningHours(allowed, settings.timezone), moment)


def _session(settings: ScheduleSettings, moment: float) -> float | None:
    if not settings.during or settings.calendar is None:
        return None
    found = sessions(settings.calendar, moment)
    if moment >= found.known_until:
        return NEVER  # it may be open or shut: nobody knows
    is_open = found.holds(moment)
    if is_open == (settings.during == "in-session"):
        return None
    times = found.ends if is_open else found.begins
    place = bisect_right(times, moment)
    return times[place] if place < len(times) else NEVER
