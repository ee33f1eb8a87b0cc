"""What every schedule can answer, and the schedule that a source's settings ask for."""

from __future__ import annotations

from typing import Protocol

from penstock.errors import ConfigError
from penstock.schedules.cron import Cron
from penstock.schedules.every import Every
from penstock.schedules.manual import Manual
from penstock.settings import ScheduleSettings


class Schedule(Protocol):
    """A pure rule: the same question always has the same answer."""

    def next_due(self, after: float) -> float | None:
        """The first due moment strictly after this one (UTC epoch seconds); None if there is none.

        Asked with the moment that was last due, the answer may lie in the past: then the source is
        due now, once, however many moments were missed.
        """
        ...

    def words(self) -> str:
        """The rule as an operator would say it."""
        ...


def schedule_from(settings: ScheduleSettings) -> Schedule:
    """The schedule of these settings."""
    match settings:
        case ScheduleSettings(kind="manual"):
            return Manual()
        case ScheduleSettings(kind="every", every_s=float(every_s)):
            return Every(every_s)
        case ScheduleSettings(kind="cron", cron=str(cron), timezone=zone):
            return Cron(cron, zone)
        case _:
            raise ConfigError(f"a schedule of kind {settings.kind!r} lacks its {settings.kind}")
