"""Quarantine: jobs that are not tried again by themselves, to be looked at, released or discarded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from penstock.app.noun import Noun, who
from penstock.app.paging import LARGEST, USUAL, each_item, page_of, page_within, place_of, size_of
from penstock.app.views.quarantine import (
    CauseView,
    DiscardedView,
    EntryFilter,
    EntryView,
    GroupView,
    ReleasedView,
    cause_view,
    entry_view,
)
from penstock.app.views.view import Page
from penstock.errors import Refused, Remedy, UsageError, nearest
from penstock.jobs.failures import KINDS, POISON
from penstock.jobs.windows import moment
from penstock.store import entries
from penstock.store.entries import CauseRow, EntryRow

# A project that has more causes than this has none: they are told apart by something that varies.
MOST_CAUSES = 10 * LARGEST
# Of so many entries groups are made.
MOST_GROUPED = 20_000
ALL = EntryFilter()
# How many jobs are done, and how many were meant.
OnProgress = Callable[[int, int], None]


class Quarantine(Noun):
    """The jobs in quarantine. Acts on many go in batches: each is whole, and work goes on between them."""

    def list(
        self,
        wanted: EntryFilter = ALL,
        *,
        is_whole: bool = False,
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[EntryView]:
        """Entries by run and job, closed ones newest first; `is_whole` adds their tracebacks."""
        size, after = size_of(limit), place_of(cursor, tuple[float, int])
        place = _place_of_closed if wanted.is_closed else _place
        rows = [*self._store.quarantine.each(self._checked(wanted), size + 1, after)]
        return page_of(rows, size, partial(entry_view, is_whole=is_whole), place)

    def each(
        self, wanted: EntryFilter = ALL, *, is_whole: bool = False, limit: int | None = None
    ) -> Iterator[EntryView]:
        """Iterate over all of them, or the first `limit`, page by page."""
        return each_item(
            lambda cursor, size: self.list(wanted, is_whole=is_whole, cursor=cursor, limit=size),
            limit,
        )

    def count(self, wanted: EntryFilter = ALL) -> int:
        """How many there are."""
        return self._store.quarantine.count(self._checked(wanted))

    def get(self, job: int) -> EntryView:
        """One entry in full, open or closed."""
        found = self._project.require_job(job)
        row = self._store.quarantine.get(job)
        if row is None:
            raise Refused(
                f"job {job} is {found.state}, not quarantined",
                code="not_quarantined",
                remedy=Remedy("jobs.get", job),
            )
        return entry_view(row, is_whole=True)

    def causes(
        self, source: str | None = None, *, cursor: str | None = None, limit: int = USUAL
    ) -> Page[CauseView]:
        """The causes of entries: escalated ones first, then the most frequent."""
        rows = self._store.quarantine.causes(self._project.source_key(source), limit=MOST_CAUSES)
        return page_within(
            rows, cursor, limit, cause_view, _place_of_cause, tuple[bool, int, str, str]
        )

    def groups(self, source: str | None = None, *, limit: int = USUAL) -> Sequence[GroupView]:
        """The entries by source, kind and cause: escalated ones first, then the largest groups.

        Of very many entries only the first are looked at. Those of replays and probes are left out.
        """
        key = self._project.source_key(source)
        rows = self._store.quarantine.groups(key, size_of(limit), MOST_GROUPED)
        return [GroupView(**msgspec.structs.asdict(row)) for row in rows]

    def release(
        self,
        wanted: EntryFilter = ALL,
        *,
        everything: bool = False,
        on_progress: OnProgress | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> ReleasedView:
        """Queue these jobs again, with all their tries; without a filter, pass `everything=True`.

        An ended run opens again; jobs of a cancelled run are not released. Refused for a degraded source.
        With `dry_run`, only counts them.
        """
        found, jobs = self._meant("release", wanted, everything)
        self._refuse_release(found)
        if dry_run:
            return ReleasedView(released=0, jobs=jobs, is_done=False)
        batches = self._store.quarantine.release(found, who(actor), reason)
        return ReleasedView(released=_summed(batches, jobs, on_progress), jobs=jobs, is_done=True)

    def discard(
        self,
        wanted: EntryFilter = ALL,
        *,
        everything: bool = False,
        on_progress: OnProgress | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> DiscardedView:
        """Cancel these jobs for good; without a filter, pass `everything=True`.

        Records saved before stay. With `dry_run`, only counts them.
        """
        found, jobs = self._meant("discard", wanted, everything)
        if dry_run:
            return DiscardedView(discarded=0, jobs=jobs, is_done=False)
        batches = self._store.quarantine.discard(found, who(actor), reason)
        return DiscardedView(discarded=_summed(batches, jobs, on_progress), jobs=jobs, is_done=True)

    def note(self, job: int, text: str, *, actor: str | None = None) -> None:
        """Add a note to an entry, for whoever looks at it next."""
        if not text.strip():
            raise UsageError("a note needs text", code="no_text")
        self._project.require_job(job)
        self._store.quarantine.note(job, text.strip(), who(actor))

    def nothing(self, wanted: EntryFilter) -> str:
        """Why nothing matches this filter, as a sentence."""
        if wanted.cause is not None:
            rows = self._store.quarantine.causes(
                self._project.source_key(wanted.source), limit=LARGEST
            )
            near = nearest(wanted.cause, [row.cause for row in rows])
            return f"nothing in quarantine has the cause {wanted.cause!r}; {near}"
        if wanted.is_closed:
            return "no matching closed entries"
        return "nothing in quarantine" if wanted.is_all else "no matching entries in quarantine"

    def _refuse_release(self, wanted: entries.EntryFilter) -> None:
        """Say why these entries can't be released now, if they can't: some are of a degraded source."""
        project, run_id = self._project, wanted.run_id
        if wanted.job_id is not None:
            run_id = project.require_job(wanted.job_id).run_id
        if run_id is not None:
            project.refuse_degraded_end(project.require_run(run_id))
            return
        for row in self._store.sources.all():
            is_meant = wanted.source in (None, row.key) and row.key in project.settings.sources
            if row.degraded_at is None or not is_meant:
                continue
            if self._store.quarantine.count(replace(wanted, source=row.key)):
                project.refuse_degraded(project.source(row.key))

    def _meant(
        self, verb: str, wanted: EntryFilter, everything: bool
    ) -> tuple[entries.EntryFilter, int]:
        if wanted.is_all != everything:
            raise UsageError(f"{verb} needs a filter, or everything", code="no_filter")
        found = self._checked(wanted)
        jobs = self._store.quarantine.count(found)
        if not jobs:
            raise Refused(self.nothing(wanted), code="nothing_quarantined")
        return found, jobs

    def _checked(self, wanted: EntryFilter) -> entries.EntryFilter:
        """What is meant, as the store has it; refuses what does not exist."""
        if wanted.run_id is not None:
            self._project.require_run(wanted.run_id)
        if wanted.job_id is not None:
            self._project.require_job(wanted.job_id)
        kinds = (*KINDS, POISON)
        if wanted.kind is not None and wanted.kind not in kinds:
            hint = nearest(wanted.kind, kinds)
            raise UsageError(f"there is no kind {wanted.kind!r}", hint, code="no_kind")
        return entries.EntryFilter(
            source=self._project.source_key(wanted.source),
            run_id=wanted.run_id,
            stage=wanted.stage,
            kind=wanted.kind,
            cause=wanted.cause,
            since=None if wanted.since is None else moment(wanted.since, "UTC"),
            is_escalated=wanted.is_escalated,
            job_id=wanted.job_id,
            is_apart=wanted.is_apart,
            is_closed=wanted.is_closed,
        )


def _summed(batches: Iterator[int], jobs: int, on_progress: OnProgress | None) -> int:
    done = 0
    for batch in batches:
        done += batch
        if on_progress is not None:
            on_progress(done, jobs)
    return done


def _place(row: EntryRow) -> tuple[float, int]:
    return row.run_id, row.id


def _place_of_closed(row: EntryRow) -> tuple[float, int]:
    return row.closed_at or 0.0, row.id


def _place_of_cause(row: CauseRow) -> tuple[bool, int, str, str]:
    return row.escalated_at is None, -row.failures, row.source, row.cause
