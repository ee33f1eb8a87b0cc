"""The journal: what happened, to what and by whom. It is only read here; every act writes its own events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.app.journal_place import journal_place
from penstock.app.noun import Noun
from penstock.app.paging import USUAL, cursor_of, each_item, page_of, place_of, size_of
from penstock.app.views.journal import EventView, event_view
from penstock.app.views.view import Page
from penstock.journal.condition import condition

if TYPE_CHECKING:
    from penstock.journal.condition import Condition

# How often a reader that follows looks for more, and how much it reads at once.
FOLLOW_S = 0.2
FOLLOWED = 500


class Journal(Noun):
    """The journal of a project.

    Every verb takes the same filters: a `source`, a `run`, a `job`, a `kind` (`job.retry_scheduled`, or
    `job` for all that begin so) and `where`, conditions such as `data.host=acme.com` or `actor=ann`.
    """

    def list(
        self,
        *,
        source: str | None = None,
        run: int | None = None,
        job: int | None = None,
        kind: str | None = None,
        where: Sequence[str] = (),
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[EventView]:
        """Events, the newest first.

        A page may have fewer than `limit`, or none, and a `next` all the same: one call looks through a part
        of the journal only, where what is wanted is rare in it.
        """
        conditions = [condition(text) for text in where]
        key, size = self._project.source_key(source), size_of(limit)
        rows, before = self._store.journal.page(
            key, run, job, size + 1, kind, conditions, place_of(cursor, int)
        )
        if not rows:
            self._refuse_unknown(run, job)
        page = page_of(rows[::-1], size, event_view, lambda row: row.id)
        return page if before is None else Page(page.items, cursor_of(before))

    def each(
        self,
        *,
        source: str | None = None,
        run: int | None = None,
        job: int | None = None,
        kind: str | None = None,
        where: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[EventView]:
        """Iterate over all of them, or the newest `limit`, page by page."""

        def read(cursor: str | None, size: int) -> Page[EventView]:
            return self.list(
                source=source, run=run, job=job, kind=kind, where=where, cursor=cursor, limit=size
            )

        return each_item(read, limit)

    def trail(
        self, run: int, *, kind: str | None = None, limit: int = USUAL
    ) -> Sequence[EventView]:
        """The newest events of a run and its jobs, newest first.

        Quicker than `list`, which also finds what happened to its jobs long after the run had ended.
        """
        row = self._project.require_run(run)
        return [event_view(each) for each in self._store.journal.trail(row, size_of(limit), kind)][
            ::-1
        ]

    def of_source(self, source: str, *, limit: int = USUAL) -> Sequence[EventView]:
        """What happened to a source itself, and not to its runs and jobs, newest first."""
        key = self._project.source_key(source)
        source_id = self._store.sources.ensure([key])[key] if key else 0
        rows = self._store.journal.of_source(source_id, size_of(limit))
        return [event_view(each) for each in rows][::-1]

    def acts(self, *, cursor: str | None = None, limit: int = USUAL) -> Page[EventView]:
        """Acts of people, from any front end, newest first."""
        size = size_of(limit)
        rows = self._store.journal.of_people(size + 1, place_of(cursor, int))
        return page_of(rows[::-1], size, event_view, lambda row: row.id)

    def tail(
        self,
        *,
        source: str | None = None,
        run: int | None = None,
        job: int | None = None,
        kind: str | None = None,
        where: Sequence[str] = (),
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[EventView]:
        """The newest events, oldest of them first; with the `next` of an earlier answer, what came since.

        There is always a `next`. Each event is answered once, also if its transaction ended later than
        those of events with higher numbers.
        """
        conditions = [condition(text) for text in where]
        self._refuse_unknown(run, job)
        about = (self._project.source_key(source), run, job)
        return self._since(cursor, about, size_of(limit), kind, conditions)

    def follow(
        self,
        *,
        source: str | None = None,
        run: int | None = None,
        job: int | None = None,
        kind: str | None = None,
        where: Sequence[str] = (),
        limit: int = USUAL,
        on_wait: Callable[[], None] = lambda: None,
    ) -> Iterator[EventView]:
        """The newest events, oldest of them first, then every new one as it happens. It does not end.

        `on_wait` is called whenever all that is there has been given, before it waits for more.
        """
        conditions = [condition(text) for text in where]
        self._refuse_unknown(run, job)
        about = (self._project.source_key(source), run, job)
        return self._followed(about, limit, kind, conditions, on_wait)

    def _followed(
        self,
        about: tuple[str | None, int | None, int | None],
        limit: int,
        kind: str | None,
        conditions: Sequence[Condition],
        on_wait: Callable[[], None],
    ) -> Iterator[EventView]:
        cursor, size = None, limit
        while True:
            page = self._since(cursor, about, size, kind, conditions)
            yield from page.items
            if len(page.items) < FOLLOWED:
                on_wait()
                self._wait_for_more()
            cursor, size = page.next, FOLLOWED

    def _since(
        self,
        cursor: str | None,
        about: tuple[str | None, int | None, int | None],
        limit: int,
        kind: str | None,
        conditions: Sequence[Condition],
    ) -> Page[EventView]:
        place = journal_place(self._store, cursor)
        rows, end = self._store.journal.follow(place, *about, limit, kind, conditions)
        return Page([event_view(row) for row in rows], cursor_of(end))

    def _wait_for_more(self) -> None:
        time.sleep(FOLLOW_S)
        # A file tells whether anybody has written; a server is asked for what was.
        while not self._store.is_shared and not self._store.has_changed():
            time.sleep(FOLLOW_S)

    def _refuse_unknown(self, run: int | None, job: int | None) -> None:
        if run is not None:
            self._project.require_run(run)
        if job is not None:
            self._project.require_job(job)
