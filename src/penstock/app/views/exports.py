"""Exports as front ends see them: the files for another program, and what they can't say."""

from __future__ import annotations

from typing import Literal

from penstock.app.views.view import Hidden, View

Target = Literal[
    "github-actions",
    "crontab",
    "systemd",
    "pg-cron",
    "supabase",
    "grafana",
    "metabase",
    "prometheus",
    "deploy",
]


class ExportView(View, frozen=True, kw_only=True):
    """The schedules of a project as another scheduler reads them, or dashboards and rules on its metrics.

    `files` are the texts by their names. `left_out` are schedules that the target can't express, `otherwise`
    those that it starts in another way than Penstock would, a line each. `notes` are what else to do. Not in
    the JSON: whether the chosen sources have any schedule, where that matters.
    """

    target: Target
    files: dict[str, str]
    left_out: list[str]
    otherwise: list[str]
    notes: list[str]
    has_schedules: Hidden[bool]

    @property
    def is_whole(self) -> bool:
        """Every schedule is in it, and starts as Penstock would start it."""
        return not self.left_out and not self.otherwise


class CronDifferenceView(View, frozen=True, kw_only=True):
    """A job of pg_cron that is not as the script would make it.

    `state` is missing, changed (its schedule or its command), or gone (from penstock.yaml). `wanted` is what
    the script has, `found` what the database has.
    """

    job: str
    state: Literal["missing", "changed", "gone"]
    wanted: str
    found: str


class CronCheckView(View, frozen=True, kw_only=True):
    """Whether pg_cron has the jobs of the script. `role` has looked, and sees its own jobs alone.

    `pg_cron` is the version of the extension, null without it; `version` is that of the script, `jobs` how
    many it makes. `problems` are in the way of the script, `notes` are not.
    """

    database: str
    role: str
    pg_cron: str | None
    version: str
    jobs: int
    differences: list[CronDifferenceView]
    problems: list[str]
    notes: list[str]

    @property
    def is_current(self) -> bool:
        return not self.differences and not self.problems
