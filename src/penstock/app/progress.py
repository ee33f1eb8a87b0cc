"""How far some runs have come, looked at again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.app.views.progress import RunReport, run_report

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.store.rows import RunRow

CURSOR_S = 1.0
# Looks take about this share of the time at most; but there is one at least this often.
LOOKING_SHARE = 0.05
LONGEST_REST_S = 1.0


class RunProgress:
    """Looks at some runs: one query for all of them, and one a second for the cursors of those without pages.

    Many runs are looked at less often, so that looking takes a small share of the time.
    """

    def __init__(self, project: Project, run_ids: Sequence[int]) -> None:
        self._project = project
        self._run_ids = run_ids
        self._rows: list[RunRow] = []
        self._cursors: dict[int, str] = {}
        self._next_look_at = self._next_cursors_at = float("-inf")
        # On a server the store's time is a query of its own: it is asked once, and counted from there.
        self._clock_offset = project.connection.now() - project.clock.monotonic()

    @property
    def have_ended(self) -> bool:
        """Whether all of them had ended at the last look."""
        return all(row.is_ended for row in self._rows)

    def is_due(self) -> bool:
        return self._project.clock.monotonic() >= self._next_look_at

    def look(self) -> list[RunReport]:
        """The runs as they are now, in the order in which they were asked for."""
        began = self._project.clock.monotonic()
        self._rows = self._project.require_runs(self._run_ids)
        self._look_at_cursors(began)
        now = began + self._clock_offset
        reports = [run_report(row, now, self._cursors.get(row.id, "")) for row in self._rows]
        ended = self._project.clock.monotonic()
        self._next_look_at = ended + min((ended - began) / LOOKING_SHARE, LONGEST_REST_S)
        return reports

    def _look_at_cursors(self, now: float) -> None:
        without_pages = [row.id for row in self._rows if not row.pages]
        if without_pages and now >= self._next_cursors_at:
            self._cursors = self._project.connection.checkpoints.newest_of_runs(without_pages)
            self._next_cursors_at = now + CURSOR_S
