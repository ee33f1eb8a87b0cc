"""Rejects: what was judged and not wanted, to be looked at, and judged again after something was mended."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.jobs.job import NewJob
from penstock.jobs.run import Plan, RunKind, RunOptions
from penstock.journal.run_events import RejectsRedriven
from penstock.store.database import LAST_ID, to_json
from penstock.store.ledger import Ledger
from penstock.store.new_jobs import add_jobs
from penstock.store.noun import Noun
from penstock.store.reject_rows import Redriven, RejectFilter, RejectRow
from penstock.store.run_transitions import add_run

# In one transaction, with their items.
REDRIVE_LIMIT = 10_000


class _Wanted(msgspec.Struct, array_like=True, frozen=True):
    id: int
    run_id: int
    stage: str
    key: str
    item: str
    snapshot: int | None


class Rejects(Noun):
    """The verbs of rejects."""

    def newest(
        self, wanted: RejectFilter, limit: int = 50, before_id: int | None = None
    ) -> list[RejectRow]:
        """The newest first; with `before_id`, those that are older than this one."""
        values = wanted.as_values() | {"open_only": wanted.open_only, "limit": limit}
        values["before_id"] = LAST_ID if before_id is None else before_id
        return self._db.decoded("rejects", list[RejectRow], **values)

    def count(self, wanted: RejectFilter) -> int:
        values = wanted.as_values() | {"open_only": wanted.open_only}
        return int(self._db.value("count_rejects", **values))

    def item(self, reject_id: int) -> str:
        """The item that was rejected, as JSON."""
        return str(self._db.value("reject_item", id=reject_id))

    def stages(self, wanted: RejectFilter) -> list[str]:
        """The stages that have rejected these."""
        values = wanted.as_values() | {"open_only": wanted.open_only}
        found: list[str] = self._db.json("stages_of_rejects", **values)
        return found

    def by_code(self, run_id: int) -> dict[str, int]:
        """How many things a run rejected under each code, the most first."""
        found: dict[str, int] = self._db.json("rejects_by_code", run_id=run_id)
        return found

    def redrive(
        self,
        source_id: int,
        plan: Plan,
        pipeline_version: str,
        wanted: RejectFilter,
        *,
        key: str,
        actor: str,
        reason: str,
        limit: int = REDRIVE_LIMIT,
    ) -> Redriven | None:
        """Start a run whose jobs are rejected items, at the stages that rejected them; else None.

        An item that was rejected several times is judged once, as it was last. The run, its jobs, and
        the marks on the rejects exist together or not at all.
        """
        with self._db.writing() as now:
            values = wanted.as_values() | {"source_id": source_id, "limit": limit}
            stages = to_json([stage.name for stage in plan.stages])
            found = self._db.decoded("rejects_to_redrive", list[_Wanted], stages=stages, **values)
            if not found:
                return None
            last = {(each.stage, each.key): each for each in found}
            run_id = self._add_redrive(
                now, source_id, plan, pipeline_version, key, actor, reason, found
            )
            ledger = Ledger(self._db, now)
            jobs = [(None, _as_job(each, plan)) for each in last.values()]
            add_jobs(self._db, ledger, run_id, source_id, jobs)
            ids = to_json([each.id for each in found])
            self._db.do("mark_redriven", run_id=run_id, ids=ids)
            event = RejectsRedriven(len(found), len(last))
            ledger.journal(event, source_id, run_id, actor=actor)
            ledger.write()
            return Redriven(run_id, len(found), len(last))

    def _add_redrive(
        self,
        now: float,
        source_id: int,
        plan: Plan,
        pipeline_version: str,
        key: str,
        actor: str,
        reason: str,
        found: Sequence[_Wanted],
    ) -> int:
        runs = {each.run_id for each in found}
        # Of several runs: whatever the source has fetched may be asked for again.
        of_run_id = runs.pop() if len(runs) == 1 else None
        options = RunOptions(is_redrive=True, since_at=0.0 if of_run_id is None else None)
        about = (source_id, RunKind.REPLAY, plan, pipeline_version, key, actor, reason)
        run_id = add_run(self._db, now, *about, options, of_run_id)
        assert run_id is not None, "the key of a redrive is made for it"  # noqa: S101
        return run_id


def _as_job(wanted: _Wanted, plan: Plan) -> NewJob:
    stage = plan.stage(wanted.stage)
    priority = stage.priority if stage is not None else 0
    return NewJob(wanted.stage, wanted.key, wanted.item.encode(), priority, wanted.snapshot)
