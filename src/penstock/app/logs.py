"""Logs: what the steps of a run or a job printed and logged."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.app.noun import Noun
from penstock.app.paging import USUAL, each_item, page_of, place_of, size_of
from penstock.app.views.logs import LogLineView, log_line_view
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.views.view import Page
    from penstock.store.logs import LogRow

FOLLOW_S = 0.3
FOLLOWED = 1000
# Hosts that write at the same time may be seen in another order than they were numbered in.
OVERLAP = 1000


class Logs(Noun):
    """The lines that steps printed and logged, each kept with the attempt that it comes from."""

    def list(
        self,
        *,
        run: int | None = None,
        job: int | None = None,
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[LogLineView]:
        """Lines of a run or of a job, the newest first."""
        self._refuse_unknown(run, job)
        size = size_of(limit)
        rows = self._lines(run, job, 0, size + 1, place_of(cursor, int))
        return page_of(rows[::-1], size, log_line_view, lambda row: row.id)

    def each(
        self, *, run: int | None = None, job: int | None = None, limit: int | None = None
    ) -> Iterator[LogLineView]:
        """Iterate over all of them, or the newest `limit`, page by page."""
        return each_item(
            lambda cursor, size: self.list(run=run, job=job, cursor=cursor, limit=size), limit
        )

    def follow(
        self,
        *,
        run: int | None = None,
        job: int | None = None,
        limit: int = USUAL,
        on_wait: Callable[[], None] = lambda: None,
    ) -> Iterator[LogLineView]:
        """The newest lines, oldest of them first, then every new one until the run has ended.

        `on_wait` is called whenever all that is there has been given, before it waits for more.
        """
        self._refuse_unknown(run, job)
        return self._followed(run, job, limit, on_wait)

    def _followed(
        self, run: int | None, job: int | None, limit: int, on_wait: Callable[[], None]
    ) -> Iterator[LogLineView]:
        seen: deque[int] = deque(maxlen=2 * OVERLAP)
        rows = self._lines(run, job, 0, limit)
        while True:
            for row in rows:
                seen.append(row.id)
                yield log_line_view(row)
            on_wait()
            is_over = self._has_ended(run, job)
            time.sleep(FOLLOW_S)
            newest, known = max(seen, default=0), set(seen)
            found = self._lines(run, job, max(0, newest - OVERLAP), FOLLOWED)
            rows = [row for row in found if row.id not in known]
            if is_over and not rows:
                return

    def _lines(
        self,
        run: int | None,
        job: int | None,
        after: int,
        limit: int,
        before: int | None = None,
    ) -> Sequence[LogRow]:
        if run is not None:
            return self._store.logs.of_run(run, after, limit, before)
        return self._store.logs.of_job(job or 0, after, limit, before)

    def _refuse_unknown(self, run: int | None, job: int | None) -> None:
        if (run is None) == (job is None):
            raise UsageError("logs of what? Name a run or a job", code="no_target")
        if run is not None:
            self._project.require_run(run)
        if job is not None:
            self._project.require_job(job)

    def _has_ended(self, run: int | None, job: int | None) -> bool:
        if job is not None:
            run = self._project.require_job(job).run_id
        return self._project.require_run(run or 0).is_ended
