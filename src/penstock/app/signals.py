"""Signals: named facts that start runs of the schedules that wait for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, place_of, size_of
from penstock.app.views.signals import (
    QueueView,
    RaisedView,
    SignalView,
    WaitingView,
    queued_view,
    signal_view,
)
from penstock.app.views.view import Page
from penstock.jobs.trace_context import with_traceparent
from penstock.project import Project
from penstock.schedules.definition import settings_of
from penstock.settings.unset import NEEDED_BY_TRIGGER, refuse_unset
from penstock.settings.values import TriggerSettings
from penstock.store.deliveries import DeliveryRow, StandingRow


class Signals(Noun):
    """Signals that steps, the engine, files and people have raised."""

    def list(
        self, name: str | None = None, *, cursor: str | None = None, limit: int = USUAL
    ) -> Page[SignalView]:
        """Signals with their deliveries, newest first."""
        size = size_of(limit)
        rows = self._store.signals.newest(name, size + 1, place_of(cursor, int))
        became: dict[int, list[DeliveryRow]] = {}
        for each in self._store.deliveries.of_signals([row.id for row in rows]):
            became.setdefault(each.signal_id, []).append(each)
        return page_of(
            rows,
            size,
            lambda row: signal_view(row, became.get(row.id, ())),
            lambda row: row.id,
        )

    def each(self, name: str | None = None, *, limit: int | None = None) -> Iterator[SignalView]:
        """Iterate over all of them, or the newest `limit`, page by page."""
        return each_item(lambda cursor, size: self.list(name, cursor=cursor, limit=size), limit)

    def raise_(
        self,
        name: str,
        data: Any = None,
        *,
        key: str | None = None,
        source: str | None = None,
        actor: str | None = None,
        traceparent: str | None = None,
    ) -> RaisedView:
        """Raise a signal: each schedule that waits for it starts one run.

        It is durable when this returns; the scheduler delivers it, now or when it runs next. With a `key` it
        is raised once: raising it again returns the first. Where traces are sent, the runs that it starts
        belong to the trace of `traceparent`, which becomes a field of `data`.
        """
        if self._project.settings.tracing.endpoint is not None:
            data = with_traceparent(data, traceparent)
        raised = self._project.signal(name, data, key=key, source=source, actor=who(actor))
        waiting = self._project.waiting_for(name, raised.source)
        return RaisedView(
            id=raised.id,
            name=raised.name,
            source=raised.source,
            key=raised.key,
            is_new=raised.is_new,
            waiting=tuple(WaitingView(source=of, schedule=by) for of, by in waiting),
        )

    def trigger(self) -> TriggerSettings:
        """The settings of `trigger:`; refused while a variable that they name is not set."""
        settings = self._project.settings
        refuse_unset([each for each in settings.unset if each.section in NEEDED_BY_TRIGGER])
        return settings.trigger

    def queue(self, source: str, schedule: str | None = None) -> QueueView:
        """The first signals in the queues of a source, or of one of its schedules."""
        key = self._project.source_key(source) or ""
        return queue_of(self._project, self._store.sources.ensure([key])[key], schedule)


def queue_of(project: Project, source_id: int, schedule: str | None = None) -> QueueView:
    """The first signals in the queues of a source, or of one of its schedules."""
    found, total = project.connection.deliveries.standing(source_id)
    rows = [row for row in found if schedule in (None, row.schedule)]
    if schedule is not None and len(found) == total:
        total = len(rows)
    needs = {
        row.name: settings_of(row.definition).after
        for row in project.connection.schedules.all(source_id)
    }
    return QueueView(
        signals=tuple(queued_view(row, _waits_for(row, rows, needs)) for row in rows), total=total
    )


def _waits_for(
    row: StandingRow, rows: Sequence[StandingRow], needs: Mapping[str, Sequence[str]]
) -> str:
    beside = [each for each in rows if each.schedule == row.schedule]
    if row.state == "waiting":
        there = {each.about for each in beside if each.state == "waiting"}
        missing = [key for key in needs.get(row.schedule, ()) if key not in there]
        return f"{' and '.join(missing) or 'others'} to complete"
    first = next(each for each in beside if each.state == "queued")
    if first.signal_id != row.signal_id:
        return f"signal {first.signal_id} before it"
    return row.reason or "its turn: the next scheduler that runs starts it"
