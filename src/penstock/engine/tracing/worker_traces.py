"""The traces of one worker: its notes become spans in the sender's thread, with a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from penstock.engine.tracing.attempts import AttemptNote, AttemptTracer
from penstock.engine.tracing.sender import Sender
from penstock.engine.tracing.traced_run import trace_of_run
from penstock.jobs.trace_context import RunTrace
from penstock.project import Project
from penstock.project.host import host_name
from penstock.settings.secrets import masker_for
from penstock.store.store import Store

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from penstock.engine.tracing.spans import SpanMaker

KNOWN_RUNS = 10_000


class WorkerTraces:
    """`tracer` is for the loop; the rest is the sender's."""

    def __init__(self, project: Project, worker: str, tell: Callable[[str], None]) -> None:
        self._project = project
        self._worker = worker
        self._store: Store | None = None
        self._runs: dict[int, RunTrace] = {}
        self._sender: Sender[AttemptNote] = Sender(
            project.settings.tracing, self._spans, tell, project.clock, "attempt", self._close
        )
        self.tracer = AttemptTracer(project.clock, self._sender.add)

    def start(self) -> None:
        self._sender.start()

    def stop(self) -> None:
        self._sender.stop()

    @cached_property
    def _maker(self) -> SpanMaker:
        from penstock.engine.tracing.spans import SpanMaker

        process = {"service.instance.id": self._worker, "host.name": host_name()}
        settings = self._project.settings
        masker = masker_for(settings.secrets)
        return SpanMaker(settings.project, process, masker, settings.private_sources)

    def _spans(self, notes: list[AttemptNote]) -> Iterator[ReadableSpan]:
        if self._store is None:
            self._store = self._project.open_store()
        self._learn({note.job.run_id for note in notes})
        traced = [note for note in notes if self._is_traced(note)]
        parents = self._store.jobs.parents([note.job.id for note in traced if note.ends_job])
        for note in traced:
            parent = parents.get(note.job.id)
            yield from self._maker.of_attempt(note, self._runs[note.job.run_id], parent)

    def _is_traced(self, note: AttemptNote) -> bool:
        trace = self._runs.get(note.job.run_id)
        return trace is not None and trace.is_sampled

    def _learn(self, run_ids: set[int]) -> None:
        unknown = sorted(run_ids - self._runs.keys())
        if not unknown or self._store is None:
            return
        if len(self._runs) > KNOWN_RUNS:
            self._runs = {run_id: self._runs[run_id] for run_id in run_ids & self._runs.keys()}
        settings = self._project.settings
        for facts in self._store.runs.facts(unknown).values():
            about = (facts.id, facts.created_at, facts.options)
            self._runs[facts.id] = trace_of_run(settings, *about)

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
