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
