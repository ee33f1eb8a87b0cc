"""When a source runs by itself, as the program uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.settings.opening_hours import WeeklyWindow

SCHEDULED_KINDS = ("full", "incremental", "probe")
# Raised by another scheduler, about a source; its data names the schedule that is due.
SCHEDULE_DUE = "schedule.due"
ScheduleKind = Literal["manual", "every", "cron", "cadence", "session", "watch", "signal", "after"]


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """A moment of every session of an exchange: its open or close, and so much later (or earlier)."""

    calendar: str
    at: Literal["open", "close"] = "open"
    offset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """Files that start a run when they land: those that match, once nothing has changed for a while."""

    pattern: str
    debounce_s: float = 2.0
    rescan_s: float = 60.0


@dataclass(frozen=True, slots=True)
class NearSettings:
    """So long before and after a moment that a step has announced, look this often."""

    window_s: float
    every_s: float


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """When a source runs by itself: one policy, and what holds whatever the policy is.

    A cron expression is checked and its aliases are spelled out. A source may have several of these; each
    has a name of its own, and the kind of the runs that it starts.
    """

    kind: ScheduleKind = "manual"
    every_s: float | None = None
    cron: str | None = None
    timezone: str = "UTC"
    # The kind of the runs that it starts.
    run_kind: str = SCHEDULED_KINDS[0]
    name: str = "main"
    jitter_s: float = 0.0
    # high, medium, low, probe, or auto; `mode` says whether auto moves the source or only proposes to.
    cadence: str | None = None
    mode: Literal["apply", "suggest"] = "apply"
    # auto: so many runs in a row that say the same move it, between these classes.
    runs: int = 3
    slowest: str = "low"
    fastest: str = "high"
    session: SessionSettings | None = None
    watch: WatchSettings | None = None
    signals: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    near: NearSettings | None = None
    # When it may start at all: inside these windows, outside of those, by the schedule's time zone.
    windows: tuple[WeeklyWindow, ...] = ()
    blackouts: tuple[WeeklyWindow, ...] = ()
    during: Literal["", "in-session", "out-of-session"] = ""
    calendar: str | None = None
    # Ticks that were missed: one run for all of them, none, or one for each (so many a minute).
    missed: Literal["once", "skip", "all"] = "once"
    catch_up_per_min: float = 10.0
    # A tick that comes while the run before it has not ended.
    overlap: Literal["skip", "queue", "replace"] = "skip"
    # Another scheduler starts it, for which it was exported; or the signal that it raises instead.
    is_external: bool = False

    @property
    def is_by_time_alone(self) -> bool:
        """Whether a scheduler that knows nothing but the time could start it."""
        is_by_time = self.kind in ("every", "cron", "cadence") and self.cadence != "auto"
        return is_by_time and not (self.windows or self.blackouts or self.during)
