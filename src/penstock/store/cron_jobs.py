"""The jobs of pg_cron that belong to a project, as the database has them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CronJobRow:
    """A job by its name: when it starts, what it does, and whether somebody has switched it off."""

    name: str
    schedule: str
    command: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class CronJobs:
    """Of one database: the version of pg_cron, None without it; who has looked; the schema of the views.

    pg_cron shows a role its own jobs alone.
    """

    database: str
    role: str
    version: str | None
    views: str | None
    rows: tuple[CronJobRow, ...]
