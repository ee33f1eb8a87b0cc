"""Signals that stand in the queues of a source: since when, and what they wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.cli.render.output import Output
from penstock.cli.render.tables import key_column, text
from penstock.cli.render.wording import count, duration, local_time

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.signals import QueuedSignalView

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

    def __init__(self, project: Project, source: int | str, schedule: str | None = None) -> None:
        from penstock.app.signals import queue_of

        found = (
            project.signals.queue(source, schedule)
            if isinstance(source, str)
            else queue_of(project, source, schedule)
        )
        self.rows, self.total = found.signals, found.total

    def tell(self, out: Output, now: float) -> None:
        tell_queue(out, self.rows, self.total, now)

    def shapes(self) -> list[dict[str, Any]]:
        return [row.as_json() for row in self.rows]


def tell_queue(out: Output, rows: Sequence[QueuedSignalView], total: int, now: float) -> None:
    """A table of the first of them; nothing where there are none."""
    if not rows:
        return
    out.line("Signals that wait")
    out.table(COLUMNS, [_line(row, now) for row in rows[:SHOWN]])
    more = total - min(len(rows), SHOWN)
    if more > 0:
        out.line(f"and {count(more, 'more signal')}")


def _line(row: QueuedSignalView, now: float) -> tuple[object, ...]:
    since = f"{local_time(row.at)} ({duration(now - row.at)})"
    return (row.signal_id, row.name, row.about or "", row.schedule, since, row.waits_for)
