"""Runs: start, list, pause, resume, cancel, retry, continue and undo them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, place_of, size_of
from penstock.app.prepared_runs import Prepared, prepare_run
from penstock.app.refusals import refuse_by_release, refuse_opening
from penstock.app.run_start import RunStart, Wanted
from penstock.app.undo import UndoReport, preview_undo
from penstock.app.undo import undo as undo_run
from penstock.app.views.progress import RunReport, run_report
from penstock.app.views.replays import UndoView, undo_view
from penstock.app.views.runs import (
    RunCauseView,
    RunDetail,
    RunView,
    StageView,
    Started,
    StartedMany,
    cause_view,
    run_detail,
    run_view,
)
from penstock.errors import Refused, Remedy
from penstock.project.run_starter import Asked

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.app.views.view import Page
    from penstock.store.rows import RunRow


class Runs(Noun):
    """The runs of a project."""

    def start(
        self,
        source: str,
        kind: str | None = None,
        *,
        new: bool = False,
        draft: bool = False,
        awaited: bool = False,
        params: dict[str, Any] | None = None,
        pages: int | None = None,
        by_hand: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> Started:
        """Queue a run of a source; an unfinished run of this kind continues instead, unless `new`.

        Without a `kind` it is `full`, and `incremental` for a source with a connector.
        `params` override those of the source, `pages` limits how many pages it takes. A `draft` waits for
        `begin`. `awaited`: you wait for its end, so a paused or held source is refused. `by_hand`: a trial,
        so a failure does not count against the source. `dry_run` only checks whether it would be refused.
        """
        asked = Asked(params or {}, pages, by_hand)
        wanted = Wanted(kind, new, draft, awaited, asked, actor, reason)
        return RunStart(self._project, wanted).of([source], dry_run)[0]

    def prepare(
        self,
        source: str,
        kind: str | None = None,
        *,
        key: str | None = None,
        between: tuple[str, str] | None = None,
        params: dict[str, Any] | None = None,
        pages: int | None = None,
        actor: str | None = None,
        reason: str = "",
    ) -> Started:
        """Make a run that workers leave alone: `drain` performs it, stage by stage.

        `key` is the orchestrator's name for it: prepared again under the same key, it is the same run, and
        not new. `between` are the first and last day of a `backfill`.
        """
        asked = Prepared(key, kind, between, Asked(params or {}, pages), actor, reason)
        return prepare_run(self._project, source, asked)

    def hand_over(self, run: int, *, actor: str | None = None, reason: str = "") -> RunView:
        """Let workers perform what is left of a prepared run, when no orchestrator will."""
        row = self._project.require_run(run)
        refuse_by_release(row)
        if not self._store.runs.hand_over(run, who(actor), reason):
            raise Refused(
                f"run {row.id} is not prepared for drains: workers perform it already",
                code="run_not_prepared",
            )
        return self.get(run)

    def probe(self, source: str, *, actor: str | None = None, reason: str = "") -> Started:
        """Queue a run of kind `probe`: one item through the whole pipeline, of a degraded source too."""
        return self.start(source, "probe", actor=actor, reason=reason)

    def start_many(
        self,
        sources: Sequence[str] | None = None,
        kind: str | None = None,
        *,
        new: bool = False,
        draft: bool = False,
        awaited: bool = False,
        params: dict[str, Any] | None = None,
        pages: int | None = None,
        by_hand: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> StartedMany:
        """The same for several sources; each is started once, even if it is named twice.

        All sources are checked before any is started. Without `sources`, every source that can run is
        started; the others are in `left_out`, each with its error.
        """
        asked = Asked(params or {}, pages, by_hand)
        starting = RunStart(self._project, Wanted(kind, new, draft, awaited, asked, actor, reason))
        if sources is None:
            return starting.of_all(dry_run)
        return StartedMany(starting.of(sources, dry_run), [])

    def perform(
        self,
        source: str,
        kind: str | None = None,
        *,
        new: bool = False,
        params: dict[str, Any] | None = None,
        pages: int | None = None,
        on_progress: Callable[[RunReport], None] | None = None,
        tell: Callable[[str], None] = lambda text: None,
        actor: str | None = None,
        reason: str = "",
    ) -> RunReport:
        """Start a run as `start` does, perform it with workers of its own, and return when it has ended.

        If workers are already running on this host, they do the work and this waits. It also works inside a
        running event loop, such as a notebook's, and blocks it. Ctrl-C stops the workers; the next `perform`,
        `penstock run` or `penstock up` continues the run.
        """
        from penstock.app.run_performer import performed

        begun = self.start(
            source,
            kind,
            new=new,
            awaited=True,
            params=params,
            pages=pages,
            actor=actor,
            reason=reason,
        )
        run_ids = [] if begun.run is None else [begun.run.id]
        show = None if on_progress is None else lambda reports: on_progress(reports[0])
        return performed(self._project, run_ids, show, tell)[0]

    def finish(
        self,
        runs: Sequence[int],
        *,
        on_progress: Callable[[list[RunReport]], None] | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> list[RunReport]:
        """Work on runs that have been started until all of them have ended, as `perform` does for one.

        `on_progress` is called with the reports of all of them, in this order. Ctrl-C raises
        `Interrupted`, a KeyboardInterrupt that has the reports of what is left.
        """
        from penstock.app.run_performer import performed

        return performed(self._project, runs, on_progress, tell)

    def watch(self, runs: Sequence[int], *, every_s: float = 1.0) -> Iterator[list[RunReport]]:
        """Reports of these runs until all of them have ended, one query each time.

        It does none of the work: `penstock up`, `service.up` or a `perform` elsewhere does.
        """
        from penstock.app.run_performer import watched

        return watched(self._project, runs, every_s)

    def begin(self, run: int, *, actor: str | None = None, reason: str = "") -> RunView:
        """Start a draft."""
        row = self._project.require_run(run)
        self._project.refuse_degraded_run(row)
        if not self._store.runs.start_draft(run, who(actor), reason):
            raise Refused(
                f"run {run} is {row.state}; only a draft can be started", code="run_not_draft"
            )
        return self.get(run)

    def list(
        self,
        source: str | None = None,
        *,
        active: bool = False,
        cursor: str | None = None,
        limit: int = USUAL,
    ) -> Page[RunView]:
        """Runs, newest first; only those of a source, or only `active` ones."""
        store, size = self._store, size_of(limit)
        key = self._project.source_key(source)
        rows = store.runs.newest(key, active, size + 1, place_of(cursor, int))
        now = store.now()
        return page_of(rows, size, lambda row: run_view(row, now), lambda row: row.id)

    def each(
        self, source: str | None = None, *, active: bool = False, limit: int | None = None
    ) -> Iterator[RunView]:
        """Iterate over all of them, or the first `limit`, page by page."""
        return each_item(
            lambda cursor, size: self.list(source, active=active, cursor=cursor, limit=size), limit
        )

    def get(self, run: int) -> RunView:
        """One run."""
        return run_view(self._project.require_run(run), self._store.now())

    def detail(self, run: int) -> RunDetail:
        """One run in full: its counts, cost, failures, rejects and linked runs."""
        store, row = self._store, self._project.require_run(run)
        options = row.options
        is_staging = options.is_staged or options.is_undo
        return run_detail(
            row,
            store.now(),
            replay=(store.replays.state(run), store.replays.has_staged(run))
            if is_staging
            else None,
            account=store.runs.account(row),
            failures=store.runs.failures_by_kind(run),
            causes=store.runs.failures_by_cause(run),
            rejects=store.rejects.by_code(run),
            made_from=None if row.of_run_id is None else store.runs.get(row.of_run_id),
            led_to=store.runs.made_of(run),
        )

    def stages(self, run: int) -> Sequence[StageView]:
        """How many jobs each stage of a run has, by state, in the order of the pipeline."""
        self._project.require_run(run)
        order = {stage.name: at for at, stage in enumerate(self._store.runs.plan(run).stages)}
        rows = sorted(
            self._store.runs.stages(run), key=lambda row: order.get(row.stage, len(order))
        )
        return [StageView(**msgspec.structs.asdict(row)) for row in rows]

    def causes(self, run: int, limit: int = 10) -> Sequence[RunCauseView]:
        """Why jobs of a run are in quarantine: the most frequent causes, each with its first job."""
        return [cause_view(each) for each in self._store.runs.failures_by_cause(run, limit)]

    def report(self, run: int) -> RunReport:
        """The report of a run, as `perform` returns it."""
        return run_report(self._project.require_run(run), self._store.now())

    def pause(self, run: int, *, actor: str | None = None, reason: str = "") -> bool:
        """Pause a run: no more of its jobs start until `resume`. False if it is already paused."""
        row = self._project.require_run(run)
        if row.is_ended or row.state == "draft":
            raise Refused(
                f"run {run} is {row.state}; only an active run can be paused", code="run_not_active"
            )
        return self._store.runs.pause(run, who(actor), reason)

    def resume(self, run: int, *, actor: str | None = None, reason: str = "") -> bool:
        """Resume a paused run; False if it is not paused."""
        row = self._project.require_run(run)
        if row.state in ("partial", "failed", "cancelled"):
            raise Refused(
                f"run {run} has ended: it is {row.state}",
                code="run_ended",
                remedy=Remedy("runs.continue_from", run),
            )
        return self._store.runs.resume(run, who(actor), reason)

    def cancel(self, run: int, *, actor: str | None = None, reason: str = "") -> Iterator[int]:
        """Cancel a run now. Iterate over the result to cancel its queued jobs: it yields each batch's size.

        If you do not, `penstock up` cancels them.
        """
        row = self._project.require_run(run)
        store = self._store
        if not store.runs.cancel(run, who(actor), reason):
            raise Refused(f"run {run} is {row.state} already", code="run_ended")
        return iter(store.runs.sweep_cancelled, 0)

    def retry(self, run: int, *, actor: str | None = None, reason: str = "") -> int:
        """Queue a run's quarantined jobs again, with all their tries; returns how many."""
        refuse_opening(self._project, run)
        queued = self._store.runs.retry_failed(run, who(actor), reason)
        if not queued:
            state = self._project.require_run(run).state
            raise Refused(
                f"run {run} is {state} and has nothing in quarantine", code="nothing_quarantined"
            )
        return queued

    def continue_from(self, run: int, *, actor: str | None = None, reason: str = "") -> RunView:
        """Start a run that does what is left of an ended one; finished work is not repeated."""
        row, is_new = self._project.continue_run(run, actor, reason)
        if not is_new:
            raise Refused(
                f"run {row.id} continues run {run} already; it is {row.state}",
                code="run_continued",
                remedy=_way_on(row),
            )
        return run_view(row, self._store.now())

    def undo(
        self,
        run: int,
        *,
        limit: int = 20,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> UndoView:
        """Bring records back to what they were before a run; with `dry_run`, only say what that would do.

        Records that later runs have changed are not touched.
        """
        return undo_view(undo_report(self._project, run, limit, dry_run, who(actor), reason))


def undo_report(
    project: Nouns, run: int, limit: int, dry_run: bool, actor: str, reason: str
) -> UndoReport:
    """What undoing a run would do, or did, as the store has it."""
    row, store = project.require_run(run), project.connection
    if not row.is_ended:
        raise Refused(
            f"run {run} is {row.state}; only a run that has ended can be undone",
            code="run_not_ended",
        )
    if dry_run:
        return preview_undo(store, run, limit)
    return undo_run(store, run, limit, actor=actor, reason=reason)


def _way_on(row: RunRow) -> Remedy:
    if row.state in ("partial", "failed", "cancelled"):
        return Remedy("runs.continue_from", row.id)
    return Remedy("runs.resume" if row.state == "paused" else "runs.get", row.id)
