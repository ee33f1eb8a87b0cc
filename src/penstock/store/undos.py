"""Undo: records go back to what they were before a run, as a new version; nothing is ever taken out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from penstock.errors import Remedy, UsageError
from penstock.jobs.run import Plan, PlannedStage, RunKind, RunOptions, RunState
from penstock.journal.run_events import RunCompleted, RunUndone, RunUndoStarted
from penstock.store.database import to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.record_rows import Present, Where, read_present, write_records

PAGE = 500
# As a connector writes it; see docs/connectors.
_TOMBSTONE = '"deleted":true'
UNDO_STAGE = "(undo)"

# `lost`: the version before the run is older than retention keeps them.
UndoKind = Literal["added", "removed", "changed", "lost"]


class UndoChange(msgspec.Struct, array_like=True, frozen=True):
    """A record as a run has left it, and the version before that run, where there is one."""

    id: int
    collection: str
    key: str
    version: int
    data: str
    score: float | None
    source_id: int
    snapshot_id: int | None
    is_removed: bool | int
    first_version: int
    old_version: int | None
    old_data: str | None
    old_score: float | None
    old_source_id: int | None
    old_snapshot_id: int | None
    old_pipeline_version: str | None
    was_removed: bool | int | None

    @property
    def where(self) -> Where:
        return self.collection, self.key

    @property
    def was_tombstone(self) -> bool:
        """Whether the run has left a tombstone, whose page is forgotten since."""
        return _TOMBSTONE in self.data.replace(" ", "")

    @property
    def kind(self) -> UndoKind:
        if self.old_version is None:
            return "removed" if self.first_version == 1 else "lost"
        if bool(self.was_removed) == bool(self.is_removed):
            return "changed"
        return "removed" if self.was_removed else "added"


class Later(msgspec.Struct, frozen=True):
    """Records that later runs have changed: how many, and the first (collection, key, run)."""

    count: int
    first: list[tuple[str, str, int]]


class Undone(msgspec.Struct):
    """What a batch of an undo did. `last_id` is None at the end."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    lost: int = 0
    last_id: int | None = None


# A record's id, newest version and the run that wrote it; and its versions before, each with its run.
_Written = tuple[int, int, int, list[tuple[int, int]]]


def _left_version(written: _Written, run_id: int, undone_by: Mapping[int, int]) -> int | None:
    """The version by which the run has left the record as it is now; None if it is as another left it."""
    _, newest, last_run, before = written
    if last_run == run_id:
        return newest
    runs = {**dict(before), newest: last_run}
    # Each version, and the one whose content it has: an undo has that of the version before what it undid.
    means: dict[int, int | None] = {}
    previous: int | None = None
    for version, run in sorted(runs.items()):
        means[version] = version
        if run in undone_by and previous is not None:
            undone = means[previous] or previous
            older = [v for v in runs if v < undone and runs[v] != undone_by[run]]
            means[version] = means.get(max(older)) if older else None
        previous = version
    left = means[newest]
    return left if left is not None and runs[left] == run_id else None


class Undos(Noun):
    """The verbs of undoing a run."""

    def changes(self, run_id: int, after_id: int = 0, limit: int = PAGE) -> list[UndoChange]:
        """A page of what undoing a run would change; changes nothing."""
        for left in self._left_by(run_id, after_id, limit):
            if left:
                return self._db.decoded(
                    "undoable", list[UndoChange], run_id=run_id, left=to_json(left)
                )
        return []

    def _left_by(self, run_id: int, after_id: int, limit: int) -> Iterator[list[tuple[int, int]]]:
        """Records that are as a run has left them, with the version by which it did, page by page.

        What an undo of a later run has brought back is as this run has left it, too.
        """
        undone_by = dict(self._db.decoded("undos_since", list[tuple[int, int]], run_id=run_id))
        undos = to_json([undo_id for undo_id in undone_by if undo_id != run_id])
        page: list[_Written] = []
        while not page or len(page) == limit:
            page = self._db.decoded(
                "last_written_by", list[_Written],
                run_id=run_id, undos=undos, after_id=after_id, limit=limit,
            )  # fmt: skip
            if not page:
                return
            after_id = page[-1][0]
            found = ((row[0], _left_version(row, run_id, undone_by)) for row in page)
            yield [(record_id, version) for record_id, version in found if version is not None]

    def changed_since(self, run_id: int, limit: int = 20) -> Later:
        """What the run has changed and cannot be undone, because later runs have changed it again."""
        undos = to_json([undo_id for undo_id, _ in self._undos(run_id)])
        back = [each for page in self._left_by(run_id, 0, PAGE) for each, _ in page]
        about = {"run_id": run_id, "undos": undos, "brought_back": to_json(back), "limit": limit}
        return self._db.decoded("changed_since", Later, **about)

    def is_undoing(self, run_id: int) -> bool:
        """Whether an undo of this run was begun and has not ended."""
        return any(state == "committing" for _, state in self._undos(run_id))

    def was_undone(self, run_id: int) -> bool:
        """Whether there is an undo of this run."""
        return bool(self._undos(run_id))

    def begin(self, run_id: int, actor: str, reason: str) -> int:
        """The run that an undo is written down as: a new one, or the one that was cut short."""
        with self._db.writing() as now:
            known = [undo_id for undo_id, state in self._undos(run_id) if state == "committing"]
            if known:
                return known[0]
            source_id, version = self._about(run_id)
            plan = Plan((PlannedStage(UNDO_STAGE, "run"),))
            number: int = self._db.value(
                "add_run",
                source_id=source_id,
                kind=RunKind.REPLAY,
                state=RunState.QUEUED,
                options=to_json(RunOptions(is_undo=True)),
                of_run_id=run_id,
                key=f"undo:{run_id}:{len(self._undos(run_id)) + 1}",
                plan=to_json(plan),
                pipeline_version=version,
                actor=actor,
                reason=reason,
                for_drains=False,
                now=now,
            )
            self._db.do("add_stages", run_id=number, stages=to_json(plan.stages))
            # It has no jobs, and is done as soon as it is written down: its batches are what is left.
            about = {"id": number, "state": RunState.COMPLETED, "end_reason": "undo", "now": now}
            self._db.do("end_run_if_active", **about)
            self._db.do("set_replay_state", run_id=number, state="committing", sealed="{}", now=now)
            self._db.do("uncover", source_id=source_id, run_id=run_id)
            ledger = Ledger(self._db, now)
            ledger.journal(RunUndoStarted(run_id, reason), source_id, number, actor=actor)
            ledger.write()
            return number

    def undo(self, run_id: int, undo_run_id: int, after_id: int = 0, limit: int = PAGE) -> Undone:
        """Bring one batch of records back. One that another run has changed meanwhile is left alone."""
        done = Undone()
        changes = self.changes(run_id, after_id, limit)
        if not changes:
            return done
        done.last_id = changes[-1].id
        with self._db.writing() as now:
            ledger = Ledger(self._db, now)
            present = read_present(self._db, [change.where for change in changes])
            again: set[tuple[int, int]] = set()
            for change in changes:
                record = present[change.where]
                if change.kind == "lost":
                    done.lost += 1
                elif record.version == change.version:
                    _bring_back(change, record, undo_run_id)
                    setattr(done, change.kind, getattr(done, change.kind) + 1)
                    if change.was_tombstone and record.snapshot_id is not None:
                        again.add((record.source_id, record.snapshot_id))
            write_records(self._db, ledger, present)
            if again:
                pages = to_json(sorted(again))
                self._db.do("know_pages_again", pages=pages, run_id=undo_run_id, now=now)
            self._db.do(
                "count_committed", run_id=undo_run_id, now=now,
                added=done.added, changed=done.changed, removed=done.removed,
            )  # fmt: skip
            ledger.write()
        return done

    def end(self, run_id: int, actor: str, done: RunUndone) -> None:
        with self._db.writing() as now:
            source_id, _ = self._about(run_id)
            about = {"run_id": done.undo_run, "state": "committed", "sealed": "{}", "now": now}
            self._db.do("set_replay_state", **about)
            ledger = Ledger(self._db, now)
            ledger.journal(done, source_id, run_id, actor=actor)
            own = RunCompleted(undo_of=run_id)
            ledger.journal(own, source_id, done.undo_run, actor=actor)
            ledger.write()

    def _undos(self, run_id: int) -> list[tuple[int, str]]:
        return self._db.decoded("undos_of", list[tuple[int, str]], run_id=run_id)

    def _about(self, run_id: int) -> tuple[int, str]:
        rows = self._db.rows("run_state", id=run_id)
        if not rows:
            raise UsageError(f"there is no run {run_id}", code="no_run", remedy=Remedy("runs.list"))
        versions: dict[str, str] = self._db.json("pipeline_versions", ids=to_json([run_id]))
        return int(rows[0][1]), versions[str(run_id)]


def _bring_back(change: UndoChange, record: Present, undo_run_id: int) -> None:
    record.is_changed, record.run_id = True, undo_run_id
    record.is_removed = change.old_version is None or bool(change.was_removed)
    record.adds = int(change.is_removed) - int(record.is_removed)
    record.source_id, record.snapshot_id = change.source_id, change.snapshot_id
    if change.old_version is not None and change.old_data is not None:
        record.data, record.score = change.old_data, change.old_score
        record.source_id = change.old_source_id or change.source_id
        record.snapshot_id = change.old_snapshot_id
        record.pipeline_version = change.old_pipeline_version
