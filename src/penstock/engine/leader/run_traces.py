"""The traces of runs: whoever leads sends the span of each run that has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from penstock.engine.tracing.sender import Sender
from penstock.engine.tracing.traced_run import trace_of_run
from penstock.jobs.trace_context import RunTrace
from penstock.project import Project
from penstock.project.host import host_name
from penstock.settings.secrets import masker_for
from penstock.store.rows import Cursor, RunRow
from penstock.store.store import Store

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from penstock.engine.tracing.spans import SpanMaker

ENDS = ("run.completed", "run.partial", "run.failed", "run.cancelled")
# A run, its trace, and that of the run whose signal started it.
Ended = tuple[RunRow, RunTrace, RunTrace | None]


class RunTraces:
    """Follows the journal from when it is first asked; the spans are made and sent in the sender's thread."""

    def __init__(self, project: Project, store: Store, tell: Callable[[str], None]) -> None:
        self._project = project
        self._store = store
        self._cursor: Cursor | None = None
        self._sender: Sender[Ended] = Sender(
            project.settings.tracing, self._spans, tell, project.clock, "run"
        )
        self._sender.start()

    def look(self) -> None:
        """Hand over the runs that have ended since the last look."""
        events, self._cursor = self._store.journal.follow_kinds(self._cursor, ENDS)
        ended = {event.run_id for event in events if event.run_id is not None}
        if not ended:
            return
        rows = self._store.runs.by_id(sorted(ended))
        raisers = self._store.runs.by_id(sorted({_raiser(row) for row in rows} - {0}))
        linked = {raiser.id: self._trace(raiser) for raiser in raisers}
        for row in rows:
            trace = self._trace(row)
            if trace.is_sampled:
                self._sender.add((row, trace, linked.get(_raiser(row))))

    def _trace(self, row: RunRow) -> RunTrace:
        return trace_of_run(self._project.settings, row.id, row.created_at, row.options)

    def close(self) -> None:
        self._sender.stop()

    @cached_property
    def _maker(self) -> SpanMaker:
        from penstock.engine.tracing.spans import SpanMaker

        settings = self._project.settings
        about = {"host.name": host_name()}
        masker = masker_for(settings.secrets)
        return SpanMaker(settings.project, about, masker, settings.private_sources)

    def _spans(self, ended: list[Ended]) -> Iterator[ReadableSpan]:
        return (self._maker.of_run(*each) for each in ended)


def _raiser(row: RunRow) -> int:
    """The run whose signal started this one, or 0."""
    signal = row.options.signal
    return 0 if signal is None else signal.run or 0
