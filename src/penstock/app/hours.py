"""The hours of schedules: outside of them a tick starts nothing."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.schedules.start_hours import NEVER, is_bounded, slot_opens_at
from penstock.settings import ScheduleSettings

__all__ = ["NEVER", "outside", "schedule_hours"]


def outside(schedules: Sequence[ScheduleSettings], at: float) -> float | None:
    """When the first of these schedules may start something, if none of them may at this moment."""
    opens = [slot_opens_at(each, at) for each in schedules]
    known = [each for each in opens if each is not None]
    return min(known) if known and len(known) == len(opens) else None


def schedule_hours(schedule: ScheduleSettings, now: float) -> tuple[bool, float | None]:
    """Whether a schedule has hours, and when they begin; None is now."""
    return is_bounded(schedule), slot_opens_at(schedule, now)
