"""Revising what was ingested: replay with a diff, undo, and judging rejects again."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from dataclasses import replace

from penstock.errors import Refused, UsageError
from penstock.jobs.redrive import redrive_plan
from penstock.jobs.run_policy import policy_of
from penstock.jobs.windows import moment
from penstock.pipeline.version import version_of
from penstock.project.opened import Opened, default_actor
from penstock.settings import SourceSettings
from penstock.store import rehearsal
from penstock.store.backfills import Moment
from penstock.store.diffs import Diff, RecordChange, Totals, read_diff, record_changes
from penstock.store.rejected import Redriven, RejectFilter
from penstock.store.replays import Committed
from penstock.store.rows import RunRow


class Revising(Opened):
    """The verbs that change what earlier runs have left."""

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
        """Queue a replay of a run, or of all that a source has fetched since then; answers with its number.

        What it saves is staged: `diff` shows it, `commit_replay` applies it, `drop_replay` forgets it.
        """
        found, since_at = self._replayed(run_id, source, since)
        self.replayable(run_id, source=source, since=since, quarantined=quarantined)
        graph = self.graph(found)
        return rehearsal.start_replay(
            self.store,
            self.source_ids[found.key],
            graph.plan(found.priority),
            version_of(graph, found),
            of_run_id=run_id,
            since_at=since_at,
            quarantined_only=quarantined,
            actor=actor or default_actor(),
            reason=reason,
        )

    def replayable(
        self,
        run_id: int | None = None,
        *,
        source: str | None = None,
        since: Moment | None = None,
        quarantined: bool = False,
    ) -> rehearsal.Pages:
        """What such a replay would bring; refuses where that is nothing."""
        found, since_at = self._replayed(run_id, source, since)
        what, runs = f"run {run_id}", [] if run_id is None else [run_id]
        if since_at is not None:
            runs = self.store.runs_since(self.source_ids[found.key], since_at)
            what = f"what {found.key} has fetched since then"
        plan = self.graph(found).plan(found.priority)
        return rehearsal.pages_of(self.store, runs, plan, what, quarantined_only=quarantined)

    def _replayed(
        self, run_id: int | None, source: str | None, since: Moment | None
    ) -> tuple[SourceSettings, float | None]:
        if (run_id is None) == (source is None) or (source is None) != (since is None):
            raise UsageError("replay what? A run, or a source and since when")
        if run_id is None:
            return self.source(source or ""), moment(since or 0.0, "UTC")
        run = self.require_run(run_id)
        if run.options.is_undo or run.options.is_redrive:
            what = "an undo" if run.options.is_undo else "a replay of rejects"
            raise Refused(f"run {run_id} is {what}; it has no pages to replay")
        if not policy_of(run.kind).fetches:
            raise Refused(f"run {run_id} is a replay itself; replay what it replayed")
        if not run.is_ended:
            raise Refused(f"run {run_id} is {run.state}; a run can be replayed when it has ended")
        return self.source(run.source), None

    def diff(self, run_id: int, limit: int = 20) -> Diff:
        """What a replay would change: all of it in numbers, and the first records of it."""
        run = self._staged(run_id)
        return read_diff(self.store, run, limit)

    def changes(self, run_id: int, totals: Totals | None = None) -> Iterator[RecordChange]:
        """Every record that a replay would change, one by one; `totals` counts along."""
        run = self._staged(run_id)
        return record_changes(self.store, run.id, totals or Totals())

    def commit_replay(
        self, run_id: int, *, force: bool = False, actor: str | None = None, reason: str = ""
    ) -> Committed:
        """Apply what a replay has staged. `force` overwrites what others have changed since, too."""
        run = self._staged(run_id)
        who = actor or default_actor()
        return rehearsal.commit(self.store, run.id, is_forced=force, actor=who, reason=reason)

    def drop_replay(self, run_id: int, actor: str | None = None, reason: str = "") -> int:
        """Forget what a replay has staged; answers how many records that was about."""
        run = self.require_run(run_id)
        rehearsal.require_staged(self.store, run)
        return self.store.drop_replay(run_id, actor or default_actor(), reason)

    def _staged(self, run_id: int) -> RunRow:
        run = self.require_run(run_id)
        rehearsal.require_staged(self.store, run)
        rehearsal.seal(self.store, run_id)
        return run

    def undo(
        self,
        run_id: int,
        *,
        dry_run: bool = False,
        limit: int = 20,
        actor: str | None = None,
        reason: str = "",
    ) -> rehearsal.UndoReport:
        """Bring records back to what they were before a run; with `dry_run`, only say what that would do.

        What later runs have changed is left alone.
        """
        run = self.require_run(run_id)
        if not run.is_ended:
            raise Refused(f"run {run_id} is {run.state}; only a run that has ended can be undone")
        if dry_run:
            return rehearsal.preview_undo(self.store, run_id, limit)
        who = actor or default_actor()
        return rehearsal.undo(self.store, run_id, limit, actor=who, reason=reason)

    def redrive(
        self, name: str, wanted: RejectFilter, actor: str | None = None, reason: str = ""
    ) -> Redriven:
        """Judge rejected items of a source again, with today's pipeline, in a run of their own."""
        source = self.source(name)
        graph = self.graph(source)
        wanted = replace(wanted, source_id=self.source_ids[source.key], open_only=True)
        rejecting = set(self.store.stages_of_rejects(wanted))
        plan = redrive_plan(graph.plan(source.priority), rejecting)
        redriven = plan.stages and self.store.redrive(
            self.source_ids[source.key],
            plan,
            version_of(graph, source),
            wanted,
            key=f"redrive:{uuid.uuid4().hex}",
            actor=actor or default_actor(),
            reason=reason,
        )
        if not redriven:
            known = ", ".join(stage.name for stage in graph.stages)
            raise Refused(
                f"nothing to judge again: {source.key} has no reject of a stage that there is today",
                f"its pipeline has {known}" + _rejected_by(rejecting),
            )
        return redriven


def _rejected_by(stages: Collection[str]) -> str:
    return f"; it was rejected by {', '.join(sorted(stages))}" if stages else ""
