"""The next runs: when sources are due by their schedules, and when the hours of those begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.app.views.sources import NextRunView

if TYPE_CHECKING:
    from penstock.settings import SourceSettings
    from penstock.store.rows import SourceRow

# A run that is due and that nobody has started for so long.
OVERDUE_S = 60.0


def next_runs(
    settings: Mapping[str, SourceSettings], rows: Sequence[SourceRow], now: float, limit: int
) -> list[NextRunView]:
    """The first runs that are due, in the order of their time."""
    due = sorted((row.next_run_at, row.key) for row in rows if row.next_run_at)
    return [next_run(settings.get(key), key, at, now) for at, key in due[:limit]]


def next_run(source: SourceSettings | None, key: str, at: float, now: float) -> NextRunView:
    """A tick outside the hours of its schedule starts nothing: the run is not before they begin."""
    from penstock.app.hours import outside

    return NextRunView(
        source=key,
        at=at,
        begins_at=None if source is None else outside(source.schedules, at),
        is_overdue=now - at > OVERDUE_S,
    )
