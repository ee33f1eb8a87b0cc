"""The journal for many readers at once: one look finds what is new, and each reader takes what it wants.

A cursor stands behind each event, so that a reader that was cut off goes on behind the last one it got.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING

import msgspec

from penstock.app.journal_place import journal_place
from penstock.app.paging import cursor_of
from penstock.app.privacy import shown
from penstock.app.progress import RunProgress
from penstock.app.views.journal import EventView, event_view
from penstock.errors import UsageError
from penstock.journal.condition import Condition, condition
from penstock.store.rows import Cursor

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.app.views.overview import OverviewView
    from penstock.app.views.progress import RunReport
    from penstock.store.rows import EventRow

AT_ONCE = 500
# A look takes no more than this: what is left comes with the next one.
MOST_AT_ONCE = 5_000


class EventFilter(msgspec.Struct, frozen=True):
    """Which events are wanted, as the journal's verbs take it."""

    source: str | None = None
    run: int | None = None
    job: int | None = None
    kind: str | None = None
    where: tuple[Condition, ...] = ()

    def wants(self, event: EventView) -> bool:
        return (
            (self.source is None or event.source == self.source)
            and (self.run is None or event.run_id == self.run)
            and (self.job is None or event.job_id == self.job)
            and (self.kind is None or Condition("kind", self.kind).holds(event))
            and all(each.holds(event) for each in self.where)
        )


def event_filter(
    project: Nouns,
    source: str | None = None,
    run: int | None = None,
    job: int | None = None,
    kind: str | None = None,
    where: Sequence[str] = (),
) -> EventFilter:
    """A filter; refused if it names what does not exist."""
    if run is not None:
        project.require_run(run)
    if job is not None:
        project.require_job(job)
    conditions = tuple(condition(text) for text in where)
    return EventFilter(project.source_key(source), run, job, kind, conditions)


class Placed(msgspec.Struct, frozen=True):
    """An event, and the cursor behind it."""

    cursor: str
    event: EventView


class Look(msgspec.Struct, frozen=True):
    """What has happened since the last look: events, their kinds, watched runs, and the project in numbers.

    Where nobody wants events there are only their kinds: those are all that a dashboard needs.
    """

    events: list[Placed] = []
    kinds: Set[str] = frozenset()
    reports: Mapping[int, RunReport] = {}
    overview: OverviewView | None = None


class JournalReader:
    """Reads what the journal gets, from one thread. It keeps how far it has come."""

    def __init__(self, project: Nouns) -> None:
        self._project = project
        self._position: Cursor | None = None
        self._has_looked = False
        # The last look stopped in the middle of what was new.
        self._is_behind = False

    @property
    def position(self) -> str:
        """The cursor behind all that was looked at."""
        return cursor_of(self._position)

    def look(
        self,
        runs: Iterable[int] = (),
        *,
        is_overview_wanted: bool = False,
        are_events_wanted: bool = True,
    ) -> Look:
        """Everything that is new; nothing of it is asked for if the file has not changed."""
        store = self._project.connection
        # A file is compared with the last look: one that failed says nothing, so that the next one asks.
        has_changed = store.has_changed() or store.is_shared or not self._has_looked
        has_changed = has_changed or self._is_behind
        self._has_looked = False
        if self._position is None:
            _, self._position = store.journal.follow_kinds(None, ())
        look = Look()
        if has_changed:
            events = self._new_events() if are_events_wanted else []
            look = Look(
                events,
                {each.event.kind for each in events} if are_events_wanted else self._new_kinds(),
                self._reports(sorted(set(runs))),
                self._project.overview() if is_overview_wanted else None,
            )
        self._has_looked = True
        return look

    def _new_events(self) -> list[Placed]:
        found: list[Placed] = []
        self._is_behind = True
        while len(found) < MOST_AT_ONCE:
            before = self._position
            assert before is not None  # noqa: S101  `look` has set it
            rows, end = self._project.connection.journal.follow(before, limit=AT_ONCE)
            self._position = end
            found += placed(self._project, before, end, rows)
            if len(rows) < AT_ONCE:
                self._is_behind = False
                break
        return found

    def _new_kinds(self) -> set[str]:
        assert self._position is not None  # noqa: S101  `look` has set it
        kinds, self._position = self._project.connection.journal.kinds_behind(self._position)
        # Where it stopped in the middle, that was the rest of what one look has seen.
        self._is_behind = False
        return kinds

    def _reports(self, runs: Sequence[int]) -> dict[int, RunReport]:
        if not runs:
            return {}
        try:
            reports = shown(self._project, RunProgress(self._project, runs).look())
            return {each.run: each for each in reports}
        except UsageError:
            # Retention has dropped one of them meanwhile.
            return {run: found for run in runs if (found := self._report(run)) is not None}

    def _report(self, run: int) -> RunReport | None:
        try:
            return self._project.runs.report(run)
        except UsageError:
            return None


def newest(project: Nouns, wanted: EventFilter, limit: int) -> tuple[list[Placed], str]:
    """The newest events, oldest of them first, and the cursor behind them."""
    about = (wanted.source, wanted.run, wanted.job)
    rows, end = project.connection.journal.follow(None, *about, limit, wanted.kind, wanted.where)
    # All of them are before the end: whoever is cut off here begins there.
    events = shown(project, [event_view(row) for row in rows])
    return [Placed(cursor_of(end), event) for event in events], cursor_of(end)


def between(
    project: Nouns, cursor: str, until: str, wanted: EventFilter
) -> tuple[list[Placed], str]:
    """Events behind a cursor, and the cursor behind them; all are read when that is `until`."""
    place, end = _place(project, cursor), _place(project, until)
    about = (wanted.source, wanted.run, wanted.job, AT_ONCE, wanted.kind, wanted.where)
    rows, reached = project.connection.journal.follow_until(place, end, *about)
    return placed(project, place, reached, rows), cursor_of(reached)


def _place(project: Nouns, cursor: str) -> Cursor:
    found = journal_place(project.connection, cursor)
    assert found is not None  # noqa: S101  only None is the beginning
    return found


def placed(project: Nouns, before: Cursor, end: Cursor, rows: Sequence[EventRow]) -> list[Placed]:
    """Each of these rows, which were read from `before` to `end`, with the cursor behind it."""
    upto = end.upto or end.seen
    events = shown(project, [event_view(row) for row in rows])
    return [Placed(cursor_of(Cursor(before.seen, upto, event.id)), event) for event in events]
