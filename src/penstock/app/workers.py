"""Workers: their hosts, load, leases and code, and the leading processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.app.noun import Noun
from penstock.app.paging import USUAL, page_within
from penstock.app.views.workers import (
    SCHEDULER,
    LeaderView,
    NotLoadedView,
    StaleWorkerView,
    WorkerView,
    leader_view,
    not_loaded_view,
    stale_worker_view,
    worker_view,
)

if TYPE_CHECKING:
    from penstock.app.views.view import Page
    from penstock.store.rows import WorkerRow


class Workers(Noun):
    """The workers of a project, on all its hosts."""

    def list(self, *, cursor: str | None = None, limit: int = USUAL) -> Page[WorkerView]:
        """Workers that hold a lease, or held one that nobody has noticed yet, by host."""
        store = self._store
        now = store.now()
        return page_within(
            by_host(store.workers.all()),
            cursor,
            limit,
            lambda row: worker_view(row, now),
            _place,
            tuple[str, float, str],
        )

    def each(self) -> Iterator[WorkerView]:
        """All of them, by host."""
        store = self._store
        now = store.now()
        return (worker_view(row, now) for row in by_host(store.workers.all()))

    def leaders(self) -> Sequence[LeaderView]:
        """Who acts for all hosts, by matter; a term that is over is still named."""
        return [leader_view(row) for row in self._store.leaders.all()]

    def scheduler(self) -> LeaderView | None:
        """Which process schedules now; None if no term lasts."""
        now = self._store.now()
        return next((each for each in self.leaders() if leads(each, now)), None)

    def stale(self) -> Sequence[StaleWorkerView]:
        """Workers of this host whose code is older than the files of the project."""
        from penstock.project.stale_code import stale_workers

        return [stale_worker_view(each) for each in stale_workers(self._project)]

    def not_loaded(self) -> Sequence[NotLoadedView]:
        """Queued work that waits because no live worker has loaded it; none while nobody works."""
        from penstock.project.stale_code import unknown_work

        return [not_loaded_view(each) for each in unknown_work(self._store)]


def by_host(rows: Sequence[WorkerRow]) -> list[WorkerRow]:
    return sorted(rows, key=_place)


def leads(leader: LeaderView, now: float) -> bool:
    """Whether it schedules now."""
    return leader.name == SCHEDULER and leader.expires_at > now


def _place(row: WorkerRow) -> tuple[str, float, str]:
    return row.host, row.started_at, row.id
