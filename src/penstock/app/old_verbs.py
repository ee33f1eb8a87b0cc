"""The verbs of earlier releases: each calls its noun, and goes when that has had it for one release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from penstock.app.noun import who
from penstock.app.nouns import Nouns
from penstock.errors import Refused

if TYPE_CHECKING:
    from penstock.app.diffs import Diff
    from penstock.app.undo import UndoReport
    from penstock.app.views.progress import RunReport
    from penstock.app.views.replays import CommittedView, ReplayPagesView
    from penstock.engine.dry_run import Tried
    from penstock.jobs.record_changes import RecordChange, Totals
    from penstock.project.backfills import Moment
    from penstock.store.entries import EntryFilter
    from penstock.store.reject_rows import Redriven, RejectFilter


class OldVerbs(Nouns):
    """What a project had before it had nouns."""

    # Runs and sources.

    def perform(
        self,
        name: str,
        kind: str | None = None,
        *,
        actor: str | None = None,
        reason: str = "",
        params: dict[str, Any] | None = None,
        pages: int | None = None,
        on_progress: Callable[[RunReport], None] | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> RunReport:
        """`runs.perform`."""
        return self.runs.perform(
            name,
            kind,
            params=params,
            pages=pages,
            on_progress=on_progress,
            tell=tell,
            actor=actor,
            reason=reason,
        )

    def pause(self, target: str | int, actor: str | None = None, reason: str = "") -> bool:
        """`sources.pause` of a name, `runs.pause` of a number."""
        if isinstance(target, int):
            return self.runs.pause(target, actor=actor, reason=reason)
        return self.sources.pause(target, actor=actor, reason=reason)

    def resume(self, target: str | int, actor: str | None = None, reason: str = "") -> bool:
        """`sources.resume` of a name, `runs.resume` of a number."""
        if isinstance(target, int):
            return self.runs.resume(target, actor=actor, reason=reason)
        return self.sources.resume(target, actor=actor, reason=reason)

    def cancel(self, run_id: int, actor: str | None = None, reason: str = "") -> Iterator[int]:
        """`runs.cancel`."""
        return self.runs.cancel(run_id, actor=actor, reason=reason)

    def retry_failed(self, run_id: int, actor: str | None = None, reason: str = "") -> int:
        """`runs.retry`, which refuses where there is nothing to retry."""
        return _count_of(lambda: self.runs.retry(run_id, actor=actor, reason=reason))

    def undo(
        self,
        run_id: int,
        *,
        dry_run: bool = False,
        limit: int = 20,
        actor: str | None = None,
        reason: str = "",
    ) -> UndoReport:
        """`runs.undo`."""
        from penstock.app.runs import undo_report

        return undo_report(self, run_id, limit, dry_run, who(actor), reason)

    def hold(self, name: str | None = None, actor: str | None = None, reason: str = "") -> bool:
        """`sources.hold`."""
        return self.sources.hold(name, actor=actor, reason=reason)

    def unhold(self, name: str | None = None, actor: str | None = None, reason: str = "") -> bool:
        """`sources.unhold`."""
        return self.sources.unhold(name, actor=actor, reason=reason)

    # Jobs.

    def cancel_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        """`jobs.cancel`, which refuses what has ended."""
        return _is_done(lambda: self.jobs.cancel(job_id, actor=actor, reason=reason))

    def retry_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        """`jobs.retry`, which refuses what has not failed."""
        return _is_done(lambda: self.jobs.retry(job_id, actor=actor, reason=reason))

    def hold_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        """`jobs.hold`."""
        return self.jobs.hold(job_id, actor=actor, reason=reason)

    def unhold_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        """`jobs.unhold`."""
        return self.jobs.unhold(job_id, actor=actor, reason=reason)

    # Replays.

    def replay(
        self,
        run_id: int | None = None,
        *,
        source: str | None = None,
        since: Moment | None = None,
        quarantined: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> int:
        """`replays.start` of a new one; answers with its number."""
        return self.replays.start(
            run_id,
            source=source,
            since=since,
            quarantined=quarantined,
            new=True,
            actor=actor,
            reason=reason,
        ).run.id

    def replayable(
        self,
        run_id: int | None = None,
        *,
        source: str | None = None,
        since: Moment | None = None,
        quarantined: bool = False,
    ) -> ReplayPagesView:
        """`replays.pages`."""
        return self.replays.pages(run_id, source=source, since=since, quarantined=quarantined)

    def diff(self, run_id: int, limit: int = 20) -> Diff:
        """`replays.diff`."""
        from penstock.app.diffs import read_diff
        from penstock.app.replays import staged

        return read_diff(self.connection, staged(self, run_id), limit)

    def changes(self, run_id: int, totals: Totals | None = None) -> Iterator[RecordChange]:
        """`replays.changes`."""
        from penstock.app.diffs import record_changes
        from penstock.app.replays import staged
        from penstock.jobs.record_changes import Totals

        return record_changes(self.connection, staged(self, run_id).id, totals or Totals())

    def commit_replay(
        self, run_id: int, *, force: bool = False, actor: str | None = None, reason: str = ""
    ) -> CommittedView:
        """`replays.commit`."""
        return self.replays.commit(run_id, force=force, actor=actor, reason=reason)

    def drop_replay(self, run_id: int, actor: str | None = None, reason: str = "") -> int:
        """`replays.drop`."""
        return self.replays.drop(run_id, actor=actor, reason=reason)

    # Pages.

    def release(
        self, wanted: EntryFilter, actor: str | None = None, reason: str = ""
    ) -> Iterator[int]:
        """`quarantine.release`, batch by batch: iterate over the result to do it."""
        self.quarantine._refuse_release(wanted)
        return self.connection.quarantine.release(wanted, who(actor), reason)

    def discard(
        self, wanted: EntryFilter, actor: str | None = None, reason: str = ""
    ) -> Iterator[int]:
        """`quarantine.discard`, batch by batch: iterate over the result to do it."""
        return self.connection.quarantine.discard(wanted, who(actor), reason)

    def note(self, job_id: int, text: str, actor: str | None = None) -> None:
        """`quarantine.note`."""
        self.quarantine.note(job_id, text, actor=actor)

    def redrive(
        self, name: str, wanted: RejectFilter, actor: str | None = None, reason: str = ""
    ) -> Redriven:
        """`rejects.redrive` of a named source."""
        return self.rejects._start(name, wanted, who(actor), reason)

    def breaker_key(self, name: str) -> str:
        """`breakers.key`."""
        return self.breakers.key(name)

    def open_breaker(
        self, name: str, for_s: float, actor: str | None = None, reason: str = ""
    ) -> bool:
        """`breakers.open`."""
        return self.breakers.open(name, for_s, actor=actor, reason=reason)

    def close_breaker(self, name: str, actor: str | None = None, reason: str = "") -> bool:
        """`breakers.close`."""
        return self.breakers.close(name, actor=actor, reason=reason)

    def try_page(
        self,
        name: str,
        target: str | int,
        *,
        step: str | None = None,
        item: Any = None,
        offline: bool = False,
    ) -> Tried:
        """`pages.try_`."""
        from penstock.app.run_performer import in_own_loop
        from penstock.engine.dry_run import try_page

        return in_own_loop(
            lambda: try_page(self, name, str(target), stage=step, item=item, is_offline=offline)
        )


def _is_done(act: Callable[[], None]) -> bool:
    """Whether it could be done; these verbs answered False where their nouns refuse."""
    try:
        act()
    except Refused as refused:
        if refused.code not in ("job_ended", "job_not_failed"):
            raise
        return False
    return True


def _count_of(act: Callable[[], int]) -> int:
    try:
        return act()
    except Refused as refused:
        if refused.code != "nothing_quarantined":
            raise
        return 0
