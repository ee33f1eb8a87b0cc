"""Signals that stand in the queues of a source: since when, and what they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.cli.output import Output
from penstock.cli.tables import key_column, text
from penstock.cli.wording import count, duration, iso, local_time

if TYPE_CHECKING:
    from penstock.project import Project
    from penstock.store.delivering import StandingRow

COLUMNS = (
    *(
        "signal",
        key_column("name", least=14),
        key_column("of", 3, 10),
        key_column("schedule", 2, 8),
        "since",
    ),
    text("waits for", 0, 20),
)
SHOWN = 20


class Queue:
    """What stands in the queues of one source, or of one of its schedules."""

    def __init__(self, project: Project, source_id: int, schedule: str | None = None) -> None:
        rows, self.total = project.store.standing_deliveries(source_id)
        self.rows = [row for row in rows if schedule in (None, row.schedule)]
        if schedule is not None and len(rows) == self.total:
            self.total = len(self.rows)
        self._needs = _needs(project, source_id)

    def tell(self, out: Output, now: float) -> None:
        """A table of the first of them; nothing where there are none."""
        if not self.rows:
            return
        out.line("Signals that wait")
        out.table(COLUMNS, [self._line(row, now) for row in self.rows[:SHOWN]])
        more = self.total - min(len(self.rows), SHOWN)
        if more > 0:
            out.line(f"and {count(more, 'more signal')}")

    def shapes(self) -> list[dict[str, Any]]:
        return [
            {
                "signal": row.signal_id,
                "name": row.name,
                "source": row.about,
                "run": row.run_id or None,
                "schedule": row.schedule,
                "state": row.state,
                "since": iso(row.at),
                "waits_for": self.waits_for(row),
            }
            for row in self.rows
        ]

    def waits_for(self, row: StandingRow) -> str:
        if row.state == "waiting":
            there = {each.about for each in self._of(row) if each.state == "waiting"}
            missing = [key for key in self._needs.get(row.schedule, ()) if key not in there]
            return f"{' and '.join(missing) or 'others'} to complete"
        ahead = [each for each in self._of(row) if each.state == "queued"]
        if ahead[0].signal_id != row.signal_id:
            return f"signal {ahead[0].signal_id} before it"
        return row.reason or "its turn: `penstock up` or `penstock scheduler` starts it"

    def _of(self, row: StandingRow) -> list[StandingRow]:
        return [each for each in self.rows if each.schedule == row.schedule]

    def _line(self, row: StandingRow, now: float) -> tuple[object, ...]:
        since = f"{local_time(row.at)} ({duration(now - row.at)})"
        about = (row.signal_id, row.name, row.about or "", row.schedule)
        return (*about, since, self.waits_for(row))


def _needs(project: Project, source_id: int) -> dict[str, tuple[str, ...]]:
    from penstock.schedules.definition import settings_of

    return {
        row.name: settings_of(row.definition).after for row in project.store.schedules(source_id)
    }
