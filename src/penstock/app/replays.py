"""Replays: today's pipeline on the pages that were fetched, as a difference to commit or drop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.app import replay_service
from penstock.app.diffs import read_diff, record_changes, rejected
from penstock.app.noun import Noun, who
from penstock.app.unfinished import unfinished_run
from penstock.app.views.replays import (
    ChangeView,
    CommittedView,
    DiffView,
    RejectsShiftView,
    ReplayPagesView,
    ReplayStarted,
    TotalsView,
    change_view,
    committed_view,
    diff_view,
    rejects_view,
    replay_pages_view,
    totals_view,
)
from penstock.app.views.runs import run_view
from penstock.errors import Refused, UsageError
from penstock.jobs.record_changes import RecordChange, Totals
from penstock.jobs.run_policy import policy_of
from penstock.jobs.windows import moment
from penstock.pipeline.version import version_of

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.project.backfills import Moment
    from penstock.settings import SourceSettings
    from penstock.store.rows import RunRow


class Replays(Noun):
    """The replays of a project's runs. A replay is a run of its own; what it saves is staged."""

    def start(
        self,
        run: int | None = None,
        *,
        source: str | None = None,
        since: Moment | None = None,
        quarantined: bool = False,
        new: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> ReplayStarted:
        """Queue a replay of a run, or of everything that a source has fetched since a time.

        A replay of the same run that has not ended continues instead, unless `new`. One that was begun with
        another version of the pipeline is cancelled: half of it would be of another logic than the rest.
        """
        pages = self.pages(run, source=source, since=since, quarantined=quarantined)
        known = None if new or run is None else self._unfinished(run, quarantined)
        outdated = known if known is not None and self._is_outdated(known) else None
        if outdated is not None:
            known = None
            for _ in self._project.runs.cancel(
                outdated.id, actor=actor, reason="the pipeline has changed since"
            ):
                pass
        row = known or self._begun(run, source, since, quarantined, who(actor), reason)
        return ReplayStarted(
            run=run_view(row, self._store.now()),
            is_new=known is None,
            cancelled=None if outdated is None else outdated.id,
            missing_pages=pages.missing,
            unknown_steps=list(pages.unknown),
        )

    def pages(
        self,
        run: int | None = None,
        *,
        source: str | None = None,
        since: Moment | None = None,
        quarantined: bool = False,
    ) -> ReplayPagesView:
        """The pages that such a replay would process; refused if there are none."""
        found, since_at = self._replayed(run, source, since)
        what, runs = f"run {run}", [] if run is None else [run]
        if since_at is not None:
            runs = self._store.runs.since(self._project.source_ids[found.key], since_at)
            what = f"what {found.key} has fetched since then"
        plan = self._project.graph(found).plan(found.priority)
        there = replay_service.pages_of(self._store, runs, plan, what, quarantined_only=quarantined)
        return replay_pages_view(there)

    def diff(self, run: int, limit: int = 20) -> DiffView:
        """What a replay would change: the counts, and the first records."""
        row = staged(self._project, run)
        return diff_view(read_diff(self._store, row, limit), self._store.now())

    def changes(self, run: int) -> Changes:
        """Iterate over every record that a replay would change; its `totals` count them as you go."""
        row, totals = staged(self._project, run), Totals()
        return Changes(record_changes(self._store, row.id, totals), totals)

    def rejected(self, run: int) -> RejectsShiftView:
        """What only the replay rejects, and what only the replayed runs rejected."""
        return rejects_view(*rejected(self._store, self._project.require_run(run)))

    def commit(
        self, run: int, *, force: bool = False, actor: str | None = None, reason: str = ""
    ) -> CommittedView:
        """Write the staged changes of a replay. `force` also overwrites what others have changed since."""
        row = staged(self._project, run)
        if row.options.is_trial:
            raise Refused(
                f"run {run} is a trial: what it staged is only to be looked at",
                "activate the source; its first run saves them",
                code="trial_not_committed",
            )
        done = replay_service.commit(
            self._store, row.id, is_forced=force, actor=who(actor), reason=reason
        )
        return committed_view(done)

    def drop(self, run: int, *, actor: str | None = None, reason: str = "") -> int:
        """Drop the staged changes of a replay; returns how many records they were."""
        replay_service.require_staged(self._store, self._project.require_run(run))
        return self._store.replays.drop(run, who(actor), reason)

    def _is_outdated(self, row: RunRow) -> bool:
        return row.pipeline_version != self._project.version(row.source)

    def _unfinished(self, run: int, quarantined: bool) -> RunRow | None:
        def is_meant(row: RunRow) -> bool:
            options = row.options
            is_same = options.is_staged and options.is_quarantined_only == quarantined
            if options.by_release or options.canary is not None:
                return False
            return is_same and row.of_run_id == run

        source = self._project.require_run(run).source
        return unfinished_run(self._store, source, is_meant)

    def _begun(
        self,
        run: int | None,
        source: str | None,
        since: Moment | None,
        quarantined: bool,
        actor: str,
        reason: str,
    ) -> RunRow:
        found, since_at = self._replayed(run, source, since)
        graph = self._project.graph(found)
        run_id = replay_service.start_replay(
            self._store,
            self._project.source_ids[found.key],
            graph.plan(found.priority),
            version_of(graph, found),
            of_run_id=run,
            since_at=since_at,
            quarantined_only=quarantined,
            actor=actor,
            reason=reason,
        )
        return self._project.require_run(run_id)

    def _replayed(
        self, run: int | None, source: str | None, since: Moment | None
    ) -> tuple[SourceSettings, float | None]:
        if (run is None) == (source is None) or (source is None) != (since is None):
            raise UsageError("replay what? A run, or a source and since when")
        if run is None:
            return self._project.source(source or ""), moment(since or 0.0, "UTC")
        row = self._project.require_run(run)
        if row.options.is_undo or row.options.is_redrive:
            what = "an undo" if row.options.is_undo else "a replay of rejects"
            raise Refused(
                f"run {run} is {what}; it has no pages to replay", code="nothing_to_replay"
            )
        if not policy_of(row.kind).fetches:
            raise Refused(
                f"run {run} is a replay itself; replay what it replayed",
                code="run_is_replay",
            )
        if not row.is_ended:
            raise Refused(
                f"run {run} is {row.state}; a run can be replayed when it has ended",
                code="run_not_ended",
            )
        return self._project.source(row.source), None


class Changes:
    """The changes that a replay would make, read as you go; `totals` are those of what you have read."""

    def __init__(self, changes: Iterator[RecordChange], totals: Totals) -> None:
        self._changes = changes
        self._totals = totals

    def __iter__(self) -> Iterator[ChangeView]:
        return map(change_view, self._changes)

    @property
    def totals(self) -> TotalsView:
        return totals_view(self._totals)


def staged(project: Nouns, run: int) -> RunRow:
    """A replay that waits to be committed or dropped; refuses anything else."""
    row = project.require_run(run)
    replay_service.require_staged(project.connection, row)
    replay_service.seal(project.connection, run)
    return row
