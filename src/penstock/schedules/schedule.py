"""What every schedule can answer, and the schedule that a source's settings ask for."""

from __future__ import annotations

from typing import Protocol, cast

from penstock.errors import ConfigError
from penstock.schedules.after import After
from penstock.schedules.cadence import Cadence, CadenceClass
from penstock.schedules.cron import Cron
from penstock.schedules.every import Every
from penstock.schedules.manual import Manual
from penstock.schedules.near import Near
from penstock.schedules.session import Session
from penstock.schedules.signal import OnSignal
from penstock.schedules.watch import OnFiles
from penstock.settings import ScheduleSettings
from penstock.settings.values import SessionSettings, WatchSettings


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


def schedule_from(
    settings: ScheduleSettings, key: str = "", auto_class: str = "medium"
) -> Schedule:
    """The schedule of these settings, for the source with this key.

    `auto_class` is the class that a source with `cadence: auto` has at present (see `auto.py`). What waits
    for signals, files or other sources is never due by time.
    """
    match settings:
        case ScheduleSettings(kind="manual"):
            return Manual()
        case ScheduleSettings(kind="every", every_s=float(every_s)):
            every = Every(every_s, settings.jitter_s, key)
            return every if settings.near is None else Near(every, settings.near)
        case ScheduleSettings(kind="cadence", cadence=str(cadence)):
            return Cadence(cast(CadenceClass, auto_class if cadence == "auto" else cadence), key)
        case ScheduleSettings(kind="session", session=SessionSettings(calendar, at, offset_s)):
            return Session(calendar, at, offset_s)
        case ScheduleSettings(kind="signal", signals=signals):
            return OnSignal(signals)
        case ScheduleSettings(kind="after", after=sources):
            return After(sources)
        case ScheduleSettings(kind="watch", watch=WatchSettings(pattern)):
            return OnFiles(pattern)
        case ScheduleSettings(kind="cron", cron=str(cron), timezone=zone):
            return Cron(cron, zone)
        case _:
            raise ConfigError(f"a schedule of kind {settings.kind!r} lacks its {settings.kind}")
