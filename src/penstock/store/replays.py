"""Replays: which pages they bring, what they stage, and how that is committed or dropped."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec

from penstock.errors import Refused
from penstock.jobs.record_changes import ChangeKind, Obstacle
from penstock.jobs.replay import REPLAY_STAGE
from penstock.jobs.run import RunState
from penstock.journal.event import Event
from penstock.journal.run_events import RunCommitStarted, RunCommitted, RunDropped
from penstock.store.database import Overtaken, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.record_rows import Present, Where, read_present, write_records
from penstock.store.replayed_pages import forget_pages, mark_pages
from penstock.store.rows import SnapshotRow
from penstock.store.turn.answered_entries import close_answered, close_of_replay

PAGE = 1000
COMMIT_PAGE = 500
DROP_PAGE = 5000

ReplayState = Literal["staged", "committing", "committed", "dropped"]
BEGINNING: Where = ("", "")


class Scope(msgspec.Struct, frozen=True, array_like=True):
    """The jobs of one stage of a run: how many came to an end, and how many of those are still there."""

    run_id: int
    stage: str
    unit: str
    ended: int
    found: int
    quarantined: int


class ReplayedJob(msgspec.Struct, frozen=True, array_like=True):
    """A job to do again: its key, its item as JSON, and the last page it has fetched."""

    key: str
    item: str
    snapshot: int | None


class ReplayRow(msgspec.Struct, frozen=True):
    """What became of what a replay has staged."""

    state: ReplayState = "staged"
    sealed: dict[str, Any] = {}
    added: int = 0
    changed: int = 0
    removed: int = 0
    at: float = 0.0


class Undecided(msgspec.Struct, frozen=True):
    """A replay that waits to be committed or dropped; or a commit or undo that was cut short."""

    run_id: int
    source: str
    of_run_id: int | None
    is_undo: bool
    is_cut_short: bool
    finished_at: float


class StagedChange(msgspec.Struct, array_like=True):
    """What a replay would do to one record, beside the record as it is now."""

    collection: str
    key: str
    merge: str
    data: str | None
    score: float | None
    source_id: int
    snapshot_id: int | None
    base_version: int
    version: int | None
    old_data: str | None
    old_score: float | None
    old_snapshot_id: int | None
    is_removed: bool | int | None

    @property
    def where(self) -> Where:
        return self.collection, self.key

    @property
    def kind(self) -> ChangeKind:
        is_there = self.version is not None and not self.is_removed
        if self.merge == "remove":
            return "removed" if is_there else "same"
        if not is_there:
            return "added"
        return "same" if (self.data, self.score) == (self.old_data, self.old_score) else "changed"

    @property
    def obstacle(self) -> Obstacle:
        if (self.version or 0) != self.base_version:
            return "conflict"
        if self.kind == "changed" and _is_before(self.snapshot_id, self.old_snapshot_id):
            return "newer"
        return ""


class Rejects(msgspec.Struct, frozen=True):
    """How much was rejected, how much of it only here, and the first of that."""

    count: int
    only: int
    first: list[dict[str, str]]


class Committed(msgspec.Struct):
    """What a batch of a commit did; what another has changed meanwhile stays staged."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    conflicts: int = 0
    newer: int = 0
    last: Where | None = None


def _is_before(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one < other


class Replays(Noun):
    """The verbs of replays. None of them touches what a replay has not staged."""

    # What is replayed.

    def scope(self, run_ids: Sequence[int]) -> list[Scope]:
        return self._db.decoded("replay_scope", list[Scope], run_ids=to_json(list(run_ids)))

    def jobs(
        self,
        run_id: int,
        stage: str,
        after_key: str | None,
        *,
        quarantined_only: bool = False,
        limit: int = PAGE,
    ) -> list[ReplayedJob]:
        """A page of the jobs of a stage that came to an end, in the order of their keys."""
        return self._db.decoded(
            "replayed_jobs",
            list[ReplayedJob],
            run_id=run_id,
            stage=stage,
            after_key=after_key or "",
            is_first=after_key is None,
            quarantined_only=quarantined_only,
            limit=limit,
        )

    def snapshot(
        self,
        url: str,
        *,
        of_run_id: int | None,
        since_at: float | None,
        source_id: int,
        stage: str,
        key: str,
        snapshot_id: int | None,
        is_sole: bool = False,
    ) -> SnapshotRow | None:
        """What the replayed runs know of an address; None if they know nothing.

        A run that found a page unchanged knows it from the run before. `is_sole`: more than the address was
        sent, which snapshots don't keep; what came back is known where it was the only thing.
        """
        found = self._db.json(
            "replayed_snapshot",
            url=url,
            run_id=of_run_id,
            since_at=since_at,
            source_id=source_id,
            snapshot_id=snapshot_id,
            is_sole=is_sole,
        )
        if found is None and of_run_id is not None and not is_sole:
            found = self._db.json(
                "snapshot_before", url=url, run_id=of_run_id, stage=stage, key=key
            )
        return None if found is None else msgspec.convert(found, SnapshotRow)

    # What is staged.

    def state(self, run_id: int) -> ReplayRow:
        found = self._db.json("replay_state", run_id=run_id)
        return ReplayRow() if found is None else msgspec.convert(found, ReplayRow)

    def undecided(self, limit: int = 100) -> list[Undecided]:
        """What waits for a person's decision, the oldest first."""
        return self._db.decoded("undecided", list[Undecided], limit=limit)

    def has_staged(self, run_id: int) -> bool:
        return bool(self._db.value("has_staged", run_id=run_id))

    def seal(self, run_id: int, limit: int = PAGE) -> bool:
        """Look for records that were made of the replayed pages once and were not made of them now.

        One batch of pages; True if there is more to do. A replay that was opened again after its end
        is looked through again.
        """
        with self._db.writing() as now:
            run = self._db.decoded("replay_run", _ReplayRun, id=run_id)
            before = self.state(run_id)
            place = msgspec.convert(before.sealed, _Place)
            # Of a cancelled one, nobody knows what its pages would have come to; and once something was
            # committed, what is not on the stage may have left it for the records.
            if place.is_final or run.state == RunState.CANCELLED:
                return False
            if place.finished_at != run.finished_at:
                place = _Place(run.finished_at)
            stages = [name for name in self._entries(now, run_id) if name >= place.stage]
            if place.is_done or not stages:
                return False
            place = self._seal(now, run_id, run.source_id, stages, place, limit)
            self._set_state(now, run_id, before.state, place)
            return not place.is_done

    def _entries(self, now: float, run_id: int) -> list[str]:
        stages = Ledger(self._db, now).stages(run_id)
        names = [name for name, facts in stages.items() if facts.unit == "page"]
        names = names or [name for name, facts in stages.items() if facts.unit == "run"]
        return sorted(name for name in names if name != REPLAY_STAGE)

    def _seal(
        self, now: float, run_id: int, source_id: int, stages: list[str], place: _Place, limit: int
    ) -> _Place:
        is_first = stages[0] != place.stage or place.key is None
        after_key = "" if is_first else place.key
        jobs = self._db.json(
            "sealable",
            run_id=run_id, stage=stages[0], after_key=after_key, is_first=is_first, limit=limit,
        )  # fmt: skip
        snapshots = [
            snapshot
            for _, snapshot, state in jobs
            if snapshot is not None and state in ("succeeded", "skipped")
        ]
        if snapshots:
            self._db.do(
                "stage_removals",
                now=now, run_id=run_id, source_id=source_id, snapshots=to_json(snapshots),
            )  # fmt: skip
        if len(jobs) == limit:
            return _Place(place.finished_at, stages[0], jobs[-1][0])
        if len(stages) > 1:
            return _Place(place.finished_at, stages[1])
        return _Place(place.finished_at, stages[0], is_done=True)

    def staged_changes(
        self, run_id: int, after: Where = BEGINNING, limit: int = PAGE
    ) -> list[StagedChange]:
        """A page of what would change, in the order of collections and keys."""
        return self._db.decoded(
            "staged_changes",
            list[StagedChange],
            run_id=run_id,
            after_collection=after[0],
            after_key=after[1],
            limit=limit,
        )

    def staged_same(self, run_id: int) -> int:
        """How many records the replay has made just as they are."""
        return int(self._db.value("staged_same", run_id=run_id))

    def staged_quality(self, run_id: int) -> float | None:
        """The mean score of what a run has staged; None where nothing has one."""
        found = self._db.value("staged_quality", run_id=run_id)
        return None if found is None else float(found)

    def reject_shift(
        self, these: Sequence[int], those: Sequence[int], replay_id: int, limit: int = 20
    ) -> Rejects:
        """What is rejected in these runs, and not in those; of what this replay has done again alone."""
        return self._db.decoded(
            "reject_shift",
            Rejects,
            these=to_json(list(these)),
            those=to_json(list(those)),
            replay_id=replay_id,
            limit=limit,
        )

    # What becomes of it.

    def begin_commit(self, run_id: int, actor: str, reason: str) -> None:
        """Say in the journal who commits and why; a commit that was cut short is gone on with."""
        with self._db.writing() as now:
            self._db.lock_runs([run_id])
            state = self.state(run_id).state
            if state in ("committed", "dropped") and not self.has_staged(run_id):
                raise Refused(f"what replay {run_id} had staged was {state} already")
            if state != "committing":
                self._enter(now, run_id, "committing", RunCommitStarted(reason), actor)

    def commit_batch(
        self, run_id: int, after: Where = BEGINNING, *, is_forced: bool = False,
        limit: int = COMMIT_PAGE,
    ) -> Committed:  # fmt: skip
        """Apply one batch: what is applied leaves the stage with it. `last` is None at the end.

        What another run has changed since it was staged, or knows from a later page, is left alone.
        """
        with self._db.writing() as now:
            ledger = Ledger(self._db, now)
            # First, so that two who commit the same replay do so one after the other.
            self._db.do("count_committed", run_id=run_id, added=0, changed=0, removed=0, now=now)
            while True:
                done = Committed()
                with suppress(Overtaken), self._db.nested():
                    self._commit(ledger, run_id, after, is_forced, limit, done)
                    break
            self._db.do(
                "count_committed",
                run_id=run_id, added=done.added, changed=done.changed, removed=done.removed, now=now,
            )  # fmt: skip
            ledger.write()
            return done

    def _commit(
        self,
        ledger: Ledger,
        run_id: int,
        after: Where,
        is_forced: bool,
        limit: int,
        done: Committed,
    ) -> None:
        changes = self.staged_changes(run_id, after, limit)
        if not changes:
            return
        done.last = changes[-1].where
        # Records before what is staged, as turns lock them.
        present = read_present(self._db, [change.where for change in changes])
        chosen = []
        for change in changes:
            record = present.get(change.where)
            _bring_up_to_date(change, record)
            obstacle = "" if is_forced or change.kind == "same" else change.obstacle
            if obstacle:
                done.conflicts += obstacle == "conflict"
                done.newer += obstacle == "newer"
            else:
                chosen.append(change)
        # Whoever takes a row off the stage applies it: two who commit at once do it once.
        taken = self._db.rows(
            "unstage", run_id=run_id, keys=to_json([change.where for change in chosen])
        )
        mine = {(collection, key) for collection, key in taken}
        for change in chosen:
            if change.where in mine and change.kind != "same":
                present[change.where] = _changed(change, run_id, present.get(change.where), done)
        write_records(self._db, ledger, present)

    def end_commit(self, run_id: int, actor: str, done: RunCommitted) -> None:
        """The rest of what was staged is what did not change: it goes. What was left alone stays."""
        while self._drop_batch(run_id, same_only=True):
            pass
        mark_pages(self._db, run_id)
        is_left = self.has_staged(run_id)
        if not is_left:
            forget_pages(self._db, run_id)
        with self._db.writing() as now:
            state: ReplayState = "staged" if is_left else "committed"
            self._enter(now, run_id, state, done, actor)
        close_answered(self._db, [run_id], is_committed=True)
        if not is_left:
            close_of_replay(self._db, run_id, "committed")

    def drop(self, run_id: int, actor: str, reason: str) -> int:
        """Forget what a replay has staged, in batches; answers how much that was."""
        dropped = 0
        while batch := self._drop_batch(run_id, same_only=False):
            dropped += batch
        forget_pages(self._db, run_id)
        with self._db.writing() as now:
            self._enter(now, run_id, "dropped", RunDropped(reason), actor)
        close_of_replay(self._db, run_id, "dropped")
        return dropped

    def drop_old(self, keep_s: float, limit: int = DROP_PAGE) -> int:
        """A batch of what a replay has staged that nobody has wanted for so long; 0 when there is none."""
        before = self._db.now() - keep_s
        for run_id, source_id in self._db.json("old_replays", before=before):
            dropped = self._drop_batch(run_id, same_only=False, limit=limit)
            if not self.has_staged(run_id):
                forget_pages(self._db, run_id)
                reason = "it was not committed within retention.staged"
                with self._db.writing() as now:
                    self._enter(now, run_id, "dropped", RunDropped(reason), "upkeep", source_id)
                close_of_replay(self._db, run_id, "dropped")
            return dropped
        return 0

    def _drop_batch(self, run_id: int, *, same_only: bool, limit: int = DROP_PAGE) -> int:
        with self._db.writing():
            return self._db.do("drop_staged", run_id=run_id, same_only=same_only, limit=limit)

    def _enter(
        self,
        now: float,
        run_id: int,
        state: ReplayState,
        event: Event,
        actor: str,
        source_id: int | None = None,
    ) -> None:
        if source_id is None:
            source_id = self._db.decoded("replay_run", _ReplayRun, id=run_id).source_id
        self._set_state(now, run_id, state, _Place(is_final=True))
        ledger = Ledger(self._db, now)
        ledger.journal(event, source_id, run_id, actor=actor)
        ledger.write()

    def _set_state(self, now: float, run_id: int, state: ReplayState, sealed: _Place) -> None:
        self._db.do("set_replay_state", run_id=run_id, state=state, sealed=to_json(sealed), now=now)


class _ReplayRun(msgspec.Struct):
    source_id: int
    state: RunState
    finished_at: float | None


class _Place(msgspec.Struct, omit_defaults=True):
    """How far a replay is sealed, and as of which end of it."""

    finished_at: float | None = None
    stage: str = ""
    key: str | None = None
    is_done: bool = False
    is_final: bool = False


def _bring_up_to_date(change: StagedChange, record: Present | None) -> None:
    """The record may have changed between the look at the stage and the lock."""
    change.version = None if record is None else record.version
    if record is not None:
        change.old_data, change.old_score = record.data, record.score
        change.is_removed = record.is_removed


def _changed(change: StagedChange, run_id: int, record: Present | None, done: Committed) -> Present:
    """The record as the replay would have it."""
    is_removal = change.merge == "remove"
    record = record or Present(None, 0, "", None)
    if not is_removal:
        record.data, record.score = change.data or "null", change.score
    record.is_removed, record.is_changed = is_removal, True
    record.source_id, record.run_id, record.snapshot_id = (
        change.source_id, run_id, change.snapshot_id,
    )  # fmt: skip
    match change.kind:
        case "added":
            done.added += 1
            record.adds = 1
        case "removed":
            done.removed += 1
            record.adds = -1
        case _:
            done.changed += 1
    return record
