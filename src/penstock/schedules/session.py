"""Session: a moment of every session of an exchange."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from penstock.schedules.calendars import sessions
from penstock.settings.calendars import parse_calendar


@dataclass(frozen=True, slots=True)
class Session:
    """Due so long after (or before) each open or close of a calendar; half days close early, and count."""

    calendar: str
    at: Literal["open", "close"] = "open"
    offset_s: float = 0.0

    def __post_init__(self) -> None:
        parse_calendar(self.calendar)

    def next_due(self, after: float) -> float | None:
        moment = after - self.offset_s
        # A calendar that knows no more of next year is asked once more when that year has come.
        found = sessions(self.calendar, moment)
        times = found.opens if self.at == "open" else found.closes
        place = bisect_right(times, moment)
        return times[place] + self.offset_s if place < len(times) else None

    def words(self) -> str:
        what = f"the {self.at} of {self.calendar}"
        if not self.offset_s:
            return f"at {what}"
        minutes = abs(self.offset_s) / 60.0
        return f"{minutes:g} min {'after' if self.offset_s > 0 else 'before'} {what}"
