"""Spans as OpenTelemetry has them, made of what was noted."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from penstock.engine.tracing.attempts import AttemptNote, FetchNote
from penstock.http.failures import safe_url
from penstock.jobs.job import JobState
from penstock.jobs.run import RunState
from penstock.jobs.trace_context import RunTrace
from penstock.private_words import hashed
from penstock.settings.secrets import Masker
from penstock.store.rows import RunRow
from penstock.version import __version__

SCOPE = InstrumentationScope("penstock", __version__)
LONGEST = 500
Value = str | int | float | bool
_GOOD_RUNS = (RunState.COMPLETED, RunState.PARTIAL, RunState.CANCELLED)
_GOOD_JOBS = (JobState.SUCCEEDED, JobState.SKIPPED, JobState.CANCELLED)


def context(trace_id: int, span_id: int, *, is_remote: bool = True) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote, TraceFlags(TraceFlags.SAMPLED))


class SpanMaker:
    """Makes the spans of one process; text is masked here, on its way out.

    Of private sources, keys and addresses are the hashes that the journal has, and texts are left out.
    """

    def __init__(
        self,
        project: str,
        process: Mapping[str, Value],
        masker: Masker,
        private: Container[str] = (),
    ) -> None:
        about = {"service.name": project, "service.version": __version__, **process}
        self._resource = Resource.create(about)
        self._masker = masker
        self._private = private

    def of_run(self, row: RunRow, trace: RunTrace, raised_by: RunTrace | None) -> ReadableSpan:
        """From when the run was created to when it ended."""
        attributes: dict[str, Value] = {
            "penstock.source": row.source,
            "penstock.run": row.id,
            "penstock.run.kind": str(row.kind),
            "penstock.run.state": str(row.state),
            "penstock.run.started_by": self._text(row.actor),
            "penstock.records.new": row.inserted,
            "penstock.records.changed": row.updated,
            "penstock.records.unchanged": row.unchanged,
            "penstock.jobs.succeeded": row.succeeded,
            "penstock.jobs.quarantined": row.quarantined,
        }
        links = [raised_by] if raised_by is not None else []
        outside = trace.parent
        return self._span(
            f"run {row.source}",
            trace,
            trace.span_id,
            None if outside is None else outside.span_id,
            (row.created_at, row.finished_at or row.created_at),
            attributes,
            links=[Link(context(each.trace_id, each.span_id)) for each in links],
            error=""
            if row.state in _GOOD_RUNS
            else self._error(row.source, row.end_reason, row.state),
        )

    def of_attempt(
        self, note: AttemptNote, trace: RunTrace, parent_job: int | None
    ) -> Iterator[ReadableSpan]:
        """An attempt and its fetches; its job as well, if that has ended with it."""
        job = note.job
        for number, fetch in enumerate(note.fetches):
            yield self._of_fetch(note, fetch, number, trace)
        about: dict[str, Value] = {
            "penstock.source": note.source,
            "penstock.run": job.run_id,
            "penstock.job": job.id,
            "penstock.stage": job.stage,
        }
        own: dict[str, Value] = {
            "penstock.attempt": job.attempt,
            "penstock.attempt.state": note.state,
            "penstock.fetches.left_out": note.left_out,
        }
        spent = (note.began_at, note.ended_at)
        is_good = note.state in _GOOD_JOBS
        error = "" if is_good else self._error(note.source, note.error, note.state)
        of_attempt, of_job = trace.attempt(job.id, job.attempt), trace.job(job.id)
        yield self._span(
            f"attempt {job.stage}", trace, of_attempt, of_job, spent, about | own, error=error
        )
        if note.ends_job:
            key: dict[str, Value] = {
                "penstock.job.key": self._place(note.source, job.key),
                "penstock.job.state": note.state,
            }
            links = [] if parent_job is None else [trace.job(parent_job)]
            yield self._span(
                f"job {job.stage}",
                trace,
                of_job,
                trace.span_id,
                (note.job_began_at, note.ended_at),
                about | key,
                links=[Link(context(trace.trace_id, each)) for each in links],
                error=error,
            )

    def _of_fetch(
        self, note: AttemptNote, fetch: FetchNote, number: int, trace: RunTrace
    ) -> ReadableSpan:
        job = note.job
        attributes: dict[str, Value] = {
            "http.request.method": "GET",
            "url.full": self._place(note.source, safe_url(fetch.url)),
            "server.address": _host(fetch.url),
            "penstock.from_snapshot": fetch.is_from_snapshot,
        }
        if fetch.status is not None:
            attributes["http.response.status_code"] = fetch.status
        if fetch.size is not None:
            attributes["http.response.body.size"] = fetch.size
        if fetch.error:
            attributes["error.type"] = fetch.error
        return self._span(
            f"fetch {_host(fetch.url)}",
            trace,
            trace.fetch(job.id, job.attempt, number),
            trace.attempt(job.id, job.attempt),
            (fetch.began_at, fetch.ended_at),
            attributes,
            kind=SpanKind.CLIENT,
            error=fetch.error,
        )

    def _span(
        self,
        name: str,
        trace: RunTrace,
        span_id: int,
        parent: int | None,
        spent: tuple[float, float],
        attributes: Mapping[str, Value],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[Link] = (),
        error: str = "",
    ) -> ReadableSpan:
        began_at, ended_at = spent
        status = Status(StatusCode.ERROR, self._text(error)) if error else Status(StatusCode.OK)
        return ReadableSpan(
            name,
            context=context(trace.trace_id, span_id, is_remote=False),
            parent=None if parent is None else context(trace.trace_id, parent),
            resource=self._resource,
            attributes=dict(attributes),
            links=links,
            kind=kind,
            status=status,
            start_time=_nanoseconds(began_at),
            end_time=_nanoseconds(max(began_at, ended_at)),
            instrumentation_scope=SCOPE,
        )

    def _place(self, source: str, place: str) -> str:
        return hashed(place, source) if source in self._private else self._text(place)

    def _error(self, source: str, error: str | None, state: str) -> str:
        return str(state) if source in self._private else (error or str(state))

    def _text(self, text: str) -> str:
        return self._masker.mask_and_cut(text, LONGEST)


def _nanoseconds(at: float) -> int:
    return int(at * 1_000_000) * 1_000


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
