"""Schedules: when a source runs by itself.

In:    a source's schedule settings, and a moment.
Out:   the first due moment after it, or None; and the policy in words.
Never: reading the clock, sleeping, the database, deciding what to do about a moment that is past.
"""

from penstock.schedules.cron import Cron
from penstock.schedules.every import Every
from penstock.schedules.manual import Manual
from penstock.schedules.schedule import Schedule, schedule_from

__all__ = ["Cron", "Every", "Manual", "Schedule", "schedule_from"]
