"""Runs: start, draft, continue, pause, cancel; what became of each, as an operator sees it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.errors import UsageError
from penstock.gates.capacity import DrainScope
from penstock.jobs.job import JobState
from penstock.jobs.run import (
    NO_OPTIONS,
    Plan,
    RunFacts,
    RunKind,
    RunOptions,
    RunState,
    continued_stages,
)
from penstock.jobs.run_policy import policy_of
from penstock.jobs.run_sums import RunSums
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.journal.event import Reasoned
from penstock.journal.job_events import JobCancelled, JobRequeued
from penstock.journal.run_events import (
    RunHandedOver,
    RunPaused,
    RunQueued,
    RunResumed,
    RunVersionChanged,
)
from penstock.store.accounts import account_of_run, runs_made_of
from penstock.store.continuation import Started, carry, run_to_continue
from penstock.store.database import LAST_ID, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.rows import CauseOfRun, LeftOfShard, RunRow, StageRow
from penstock.store.run_transitions import add_run, cancel_run, reopen
from penstock.store.sources import source_id_of
from penstock.store.turn.run_progress import advance_runs

RETRY_LIMIT = 1000


class Runs(Noun):
    """The verbs that start, steer and end runs, and those that look at them."""

    def start(
        self,
        source_id: int,
        kind: RunKind,
        plan: Plan,
        pipeline_version: str,
        *,
        key: str,
        actor: str,
        reason: str = "",
        options: RunOptions = NO_OPTIONS,
        of_run_id: int | None = None,
        is_draft: bool = False,
        joins_active: bool = False,
        for_drains: bool = False,
    ) -> tuple[int, bool]:
        """Start a run, or answer with the one that this key has started already.

        Answers (run, is_new). The run and the jobs of its first stages exist together or not at all. With
        `joins_active` an active run of the same kind is the answer, if there is one. Workers leave a run
        that is `for_drains` alone.
        """
        with self._db.writing() as now:
            known = self._db.value("known_run", source_id=source_id, key=key)
            if known is None and joins_active:
                # Under its lane's lock: of many who start the same source at once, one does.
                self._db.lock_lanes([source_id])
                known = self._db.value("active_run_of_kind", source_id=source_id, kind=kind)
            if known is None:
                about = (source_id, kind, plan, pipeline_version, key, actor, reason)
                run_id = add_run(self._db, now, *about, options, of_run_id, is_draft, for_drains)
                if run_id is not None:
                    return run_id, True
                # Somebody else was faster by a moment, and has committed by now.
                known = self._db.value("known_run", source_id=source_id, key=key)
            return int(known), False

    def start_draft(self, run_id: int, actor: str, reason: str) -> bool:
        """Let a draft begin: from now on its jobs may start."""
        with self._db.writing() as now:
            source_id = self._db.value("start_run_if_draft", id=run_id, now=now)
            if source_id is None:
                return False
            ledger = Ledger(self._db, now)
            ledger.journal(RunQueued(reason), source_id, run_id, actor=actor)
            # What became of its jobs while it was a draft may have left a stage with nothing to do.
            ledger.touch(run_id)
            advance_runs(self._db, ledger, now)
            ledger.write()
            return True

    def start_recovered(self, actor: str) -> list[int]:
        """Start what was put off because its source was degraded, where it is not any more."""
        found: list[int] = self._db.json("recovered_drafts")
        return [
            run_id
            for run_id in found
            if self.start_draft(run_id, actor, "its source has recovered")
        ]

    def continue_(
        self, run_id: int, plan: Plan, pipeline_version: str, actor: str, reason: str
    ) -> tuple[int, bool]:
        """Start a run that does what this one has left undone; answers (run, is_new).

        In batches, as a draft until all is carried over: whoever is stopped on the way asks again and
        goes on where it was. What this run has done is done in that one, too: a job with the key of
        one that was done ends skipped.
        """
        left = run_to_continue(self._db, run_id)
        while left.state is RunState.CANCELLED and self.sweep_cancelled():
            pass
        stages = continued_stages(plan) if policy_of(left.kind).skips_what_was_done else ()
        states = [JobState.QUARANTINED]
        if left.state is RunState.CANCELLED:
            # With it; in any other run, a person meant that very job. Some may not be swept yet.
            states += [JobState.CANCELLED, *OPEN_JOB_STATES]
        options = msgspec.structs.replace(
            left.options, continues=run_id, continued_stages=stages, waits_for_recovery=False
        )
        new_id, _ = self.start(
            left.source_id,
            left.kind,
            plan,
            pipeline_version,
            key=f"continues:{run_id}",
            actor=actor,
            reason=reason or f"continues run {run_id}",
            options=options,
            of_run_id=left.of_run_id,
            is_draft=True,
        )
        try:
            carry(self._db, run_id, new_id, left.source_id, stages, states, actor)
        except Started:
            return new_id, False
        return new_id, self.start_draft(new_id, actor, reason or f"continues run {run_id}")

    def restamp(self, run_id: int, known: str, version: str, actor: str) -> bool:
        """A worker performs a run with another version than the run says: from now on it says that one.

        False if somebody else has changed it meanwhile.
        """
        with self._db.writing() as now:
            rows = self._db.rows("restamp_if_known", id=run_id, known=known, version=version)
            if rows:
                ledger = Ledger(self._db, now)
                ledger.journal(RunVersionChanged(version, known), rows[0][0], run_id, actor=actor)
                ledger.write()
            return bool(rows)

    def hand_over(self, run_id: int, actor: str, reason: str) -> bool:
        """Let workers perform a run that was prepared for drains; False if it is theirs already."""
        return self._steer("hand_over_if_prepared", RunHandedOver(reason), run_id, actor)

    def pause(self, run_id: int, actor: str, reason: str) -> bool:
        return self._steer("pause_run_if_active", RunPaused(reason), run_id, actor)

    def resume(self, run_id: int, actor: str, reason: str) -> bool:
        return self._steer("resume_run_if_paused", RunResumed(reason), run_id, actor)

    def _steer(self, query: str, event: Reasoned, run_id: int, actor: str) -> bool:
        with self._db.writing() as now:
            source_id = self._db.value(query, id=run_id, now=now)
            if source_id is None:
                return False
            ledger = Ledger(self._db, now)
            ledger.journal(event, source_id, run_id, actor=actor)
            ledger.write()
            return True

    def cancel(self, run_id: int, actor: str, reason: str) -> bool:
        """End a run now: running attempts are fenced off, the rest is swept in batches.

        Until `sweep_cancelled` is done the queued jobs still stand in their old state, but nothing
        claims a job of a cancelled run.
        """
        with self._db.writing() as now:
            ledger = Ledger(self._db, now)
            if not cancel_run(self._db, ledger, run_id, actor, reason):
                return False
            ledger.write()
        return True

    def sweep_cancelled(self, limit: int = 2000) -> int:
        """Cancel a batch of the open jobs of cancelled runs; answers how many, 0 when none is left."""
        while (run_id := self._db.value("unswept_run")) is not None:
            swept, is_swept = self._sweep(run_id, limit)
            if swept or not is_swept:  # what is left is in somebody's hands just now: next time
                return swept
        return 0

    def _sweep(self, run_id: int, limit: int) -> tuple[int, bool]:
        with self._db.writing() as now:
            jobs = self._db.json("open_of_run", run_id=run_id, limit=limit)
            ledger = Ledger(self._db, now)
            ids = [job_id for job_id, _, _ in jobs]
            self._db.do("cancel_jobs_if_open", now=now, ids=to_json(ids))
            for _, stage, state in jobs:
                ledger.moved(run_id, stage, JobState(state), JobState.CANCELLED)
            ledger.journal_jobs(JobCancelled(with_run=run_id), ids, "upkeep")
            ledger.write()
            is_swept = len(jobs) < limit and self._db.do("mark_swept", run_id=run_id, now=now) > 0
            return len(jobs), is_swept

    def retry_failed(
        self, run_id: int, actor: str, reason: str, scope: DrainScope | None = None
    ) -> int:
        """Queue a run's quarantined jobs again, or those of a part of it, in batches; answers how many."""
        part = DrainScope(run_id) if scope is None else scope
        with self._db.writing():
            self._db.do("forget_causes_of_run", run_id=run_id)
        total = 0
        while True:
            retried = self._retry_batch(part, actor, reason)
            total += retried
            if retried < RETRY_LIMIT:
                return total

    def _retry_batch(self, part: DrainScope, actor: str, reason: str) -> int:
        run_id = part.run_id
        about = {"stage": part.stage or None, "shard": part.shard, "shards": part.shards}
        with self._db.writing() as now:
            # Before its jobs, of which none is waited for: cancelled meanwhile, they would stay queued.
            self._db.lock_runs([run_id])
            found = self._db.rows("run_state", id=run_id)
            if not found:
                raise UsageError(f"there is no run {run_id}")
            state, source_id = found[0]
            if state == RunState.CANCELLED:
                return 0
            ledger = Ledger(self._db, now)
            jobs = self._db.rows(
                "retry_quarantined_of_run", run_id=run_id, limit=RETRY_LIMIT, now=now, **about
            )
            for job_id, stage, attempt in jobs:
                ledger.moved(run_id, stage, JobState.QUARANTINED, JobState.QUEUED)
                ledger.journal(JobRequeued(reason), source_id, run_id, job_id, attempt, actor)
            if jobs:
                reopen(self._db, ledger, run_id, actor, reason)
            ledger.write()
            return len(jobs)

    def newest(
        self,
        source: str | None = None,
        active_only: bool = False,
        limit: int = 20,
        before_id: int | None = None,
    ) -> list[RunRow]:
        """The newest runs first; with `before_id`, those that are older than this one."""
        source_id = source_id_of(self._db, source)
        where = {"limit": limit, "before_id": LAST_ID if before_id is None else before_id}
        if active_only:
            ids = self._db.value("latest_active_runs", source_id=source_id, **where)
        elif source_id is not None:
            ids = self._db.value("latest_runs_of", source_id=source_id, **where)
        else:
            ids = self._db.value("latest_runs", **where)
        return self._db.decoded("runs", list[RunRow], ids=ids)

    def get(self, run_id: int) -> RunRow | None:
        found = self.by_id([run_id])
        return found[0] if found else None

    def by_id(self, run_ids: Sequence[int]) -> list[RunRow]:
        """Those of these runs that there are, with one query."""
        return self._db.decoded("runs", list[RunRow], ids=to_json(sorted(set(run_ids))))

    def plan(self, run_id: int) -> Plan:
        """The stages that a run was started with."""
        return self._db.decoded("run_plan", Plan, id=run_id)

    def stages(self, run_id: int) -> list[StageRow]:
        """How many jobs each stage of a run has, by state."""
        return self._db.decoded("stage_counts", list[StageRow], run_id=run_id)

    def facts(self, run_ids: Sequence[int]) -> dict[int, RunFacts]:
        """What workers need to know of these runs."""
        found = self._db.decoded("run_facts", list[RunFacts], ids=to_json(sorted(run_ids)))
        return {facts.id: facts for facts in found}

    def since(self, source_id: int, since_at: float) -> list[int]:
        """The runs of a source that were begun since then and have ended, the newest first."""
        return self._db.decoded("runs_since", list[int], source_id=source_id, since_at=since_at)

    def made_of(self, run_id: int) -> list[RunRow]:
        """The runs that were made from this one: replays, reconciliations, linked backfills."""
        return runs_made_of(self._db, run_id)

    def account(self, row: RunRow) -> RunSums:
        """The sums of a run, from its rows."""
        return account_of_run(self._db, row)

    def failures_by_kind(self, run_id: int) -> dict[str, int]:
        """How many jobs of a run are in quarantine for what kind of failure, the most first."""
        found: dict[str, int] = self._db.json("failures_by_kind", run_id=run_id)
        return found

    def failures_by_cause(
        self, run_id: int, limit: int = 10, stage: str | None = None
    ) -> list[CauseOfRun]:
        """Why jobs of a run, or of a stage of it, are in quarantine: the most frequent causes.

        Each is told with its first job.
        """
        where = {"run_id": run_id, "limit": limit, "stage": stage}
        return self._db.decoded("failures_by_cause", list[CauseOfRun], **where)

    def left_of(self, scope: DrainScope) -> LeftOfShard:
        """What is left to do of a stage of a run, or of a part of it."""
        where = {"run_id": scope.run_id, "stage": scope.stage}
        part = {"shard": scope.shard, "shards": scope.shards}
        return self._db.decoded("open_in_shard", LeftOfShard, **where, **part)

    def backlog(self, run_id: int, planner: str) -> tuple[int, int]:
        """How many jobs of a run wait or run, beside the one that plans them, and how many have ended."""
        [(waiting, ended)] = self._db.rows("backlog", run_id=run_id, planner=planner)
        return int(waiting), int(ended)
