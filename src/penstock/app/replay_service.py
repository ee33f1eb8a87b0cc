"""What replays are made of: the pages they take, starting one, and committing what it has staged."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import msgspec

from penstock.errors import Refused, Remedy
from penstock.jobs.replay import REPLAY_STAGE, entry_stages, replay_plan
from penstock.jobs.run import RunKind, RunOptions
from penstock.jobs.run_policy import policy_of
from penstock.journal.run_events import RunCommitted
from penstock.store.replays import BEGINNING, Committed, Scope

if TYPE_CHECKING:
    from penstock.jobs.run import Plan
    from penstock.store.rows import RunRow
    from penstock.store.store import Store


class Pages(msgspec.Struct, frozen=True):
    """What there is to replay. `missing` pages have no job any more, `unknown` stages no step."""

    pages: int
    missing: int
    unknown: tuple[str, ...]


def pages_of(
    store: Store, run_ids: list[int], plan: Plan, what: str, *, quarantined_only: bool = False
) -> Pages:
    """What of these runs can be replayed with this pipeline; refuses where that is nothing."""
    scope = store.replays.scope(run_ids)
    entries = entry_stages(plan)
    known = [stage for stage in scope if stage.stage in entries]
    if not run_ids or not any(stage.ended for stage in scope if stage.stage != REPLAY_STAGE):
        raise Refused(f"{what} has no pages to replay")
    unknown = _unknown(scope, plan)
    if unknown and not any(stage.ended for stage in known):
        raise Refused(
            f"{what} has pages of {', '.join(unknown)}; the pipeline has {', '.join(entries)} now",
            "a step must have its old name for its pages to be replayed",
        )
    if quarantined_only:
        found = sum(stage.quarantined for stage in known)
        if not found:
            raise Refused(f"{what} has no quarantined pages")
        return Pages(found, 0, unknown)
    ended, found = sum(stage.ended for stage in known), sum(stage.found for stage in known)
    if not found:
        raise Refused(
            f"the jobs of {what} are no longer kept, so its pages can't be matched to their jobs",
            "retention.jobs says how long they are kept; a new run fetches the pages again",
        )
    return Pages(found, ended - found, unknown)


def _unknown(scope: list[Scope], plan: Plan) -> tuple[str, ...]:
    names = {stage.name for stage in plan.stages}
    pages = {s.stage for s in scope if s.unit == "page" and s.ended}
    return tuple(sorted(pages - names))


def start_replay(
    store: Store,
    source_id: int,
    plan: Plan,
    pipeline_version: str,
    *,
    of_run_id: int | None,
    since_at: float | None,
    quarantined_only: bool,
    actor: str,
    reason: str,
) -> int:
    options = RunOptions(is_staged=True, since_at=since_at, is_quarantined_only=quarantined_only)
    run_id, _ = store.runs.start(
        source_id,
        RunKind.REPLAY,
        replay_plan(plan),
        pipeline_version,
        key=f"replay:{uuid.uuid4().hex}",
        actor=actor,
        reason=reason,
        options=options,
        of_run_id=of_run_id,
    )
    return run_id


def require_staged(store: Store, run: RunRow) -> None:
    """Refuse what is no replay that waits to be committed or dropped."""
    if not policy_of(run.kind, run.options).is_staged:
        raise Refused(
            f"run {run.id} is not a replay; it has nothing staged",
            code="not_a_replay",
            remedy=Remedy("replays.start", run.id),
        )
    if not run.is_ended:
        raise Refused(f"replay {run.id} is {run.state}; it has not ended yet")
    state = store.replays.state(run.id).state
    if state in ("committed", "dropped") and not store.replays.has_staged(run.id):
        raise Refused(f"what replay {run.id} had staged was {state} already")


def seal(store: Store, run_id: int) -> None:
    """Find what is not made any more; quick when it was done before."""
    while store.replays.seal(run_id):
        pass


def commit(store: Store, run_id: int, *, is_forced: bool, actor: str, reason: str) -> Committed:
    """Apply what a replay has staged, batch by batch; one that is cut short is gone on with."""
    seal(store, run_id)
    store.replays.begin_commit(run_id, actor, reason)
    left = Committed()
    after = BEGINNING
    while (
        batch := store.replays.commit_batch(run_id, after, is_forced=is_forced)
    ).last is not None:
        left.conflicts += batch.conflicts
        left.newer += batch.newer
        after = batch.last
    # From the store: a part of it may have been applied by a commit that was cut short.
    row = store.replays.state(run_id)
    left.added, left.changed, left.removed = row.added, row.changed, row.removed
    about = (left.added, left.changed, left.removed, left.conflicts, left.newer, reason)
    store.replays.end_commit(run_id, actor, RunCommitted(*about))
    return left
