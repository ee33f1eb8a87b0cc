"""Checkpoints: how far each partition of a source has come, and how it came there.

A live run's marks move them, forwards only; those of a backfill, a replay or a probe go to cursors of
the run's own. Every move is numbered, and the newest of them are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from penstock.errors import Refused, Remedy, UsageError
from penstock.jobs.cursor import compared, refusal
from penstock.jobs.effects import Mark
from penstock.jobs.job import Owned
from penstock.jobs.run import RunKind
from penstock.jobs.run_policy import policy_of
from penstock.journal.source_events import CheckpointRefused, CheckpointRewound
from penstock.store.database import LAST_ID, Database, bounded_text, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.record_rows import NAME_BYTES

KEPT_MOVES = 1000

Act = Literal["moved", "refused", "rewound"]
_Key = tuple[int, str]
_decode = msgspec.json.decode


class CheckpointRow(msgspec.Struct, frozen=True):
    """One partition of a source as it stands."""

    partition: str
    cursor: Any
    last_offset: Any
    run_id: int
    at: float
    moves: int


class CheckpointMove(msgspec.Struct, frozen=True):
    """What became of a checkpoint: it moved on, was moved back by a person, or stayed where it was."""

    number: int
    cursor: Any
    last_offset: Any
    run_id: int
    at: float
    actor: str
    act: Act
    reason: str = ""


@dataclass(slots=True)
class _Moving:
    """A checkpoint as this transaction has it so far."""

    cursor: str
    last_offset: str
    moves: int
    refused_run_id: int | None = None
    run_id: int = 0
    is_marked: bool = False
    is_changed: bool = False


class Checkpoints(Noun):
    """The verbs of an operator who looks at checkpoints, or moves one back."""

    def cursors(self, source_id: int) -> dict[str, Any]:
        found: dict[str, Any] = self._db.json("checkpoints", source_id=source_id)
        return found

    def all(self, source_id: int) -> list[CheckpointRow]:
        return self._db.decoded("checkpoint_rows", list[CheckpointRow], source_id=source_id)

    def history(
        self,
        source_id: int,
        partition: str,
        limit: int = KEPT_MOVES,
        before: int | None = None,
    ) -> list[CheckpointMove]:
        """What became of a checkpoint, the newest first; with `before`, what came before that move."""
        return self._db.decoded(
            "checkpoint_history",
            list[CheckpointMove],
            source_id=source_id,
            partition=partition,
            before=LAST_ID if before is None else before,
            limit=limit,
        )

    def of_run(self, run_id: int) -> dict[str, Any]:
        """The cursors that a run keeps for itself."""
        found: dict[str, Any] = self._db.json("run_cursors", run_id=run_id)
        return found

    def newest_of_runs(self, run_ids: Sequence[int]) -> dict[int, str]:
        """Of each of these runs that has set one: its newest cursor, as JSON."""
        found: dict[str, str] = self._db.json("newest_cursors", ids=to_json(run_ids))
        return {int(run_id): cursor for run_id, cursor in found.items()}

    def units_since(self, source_id: int, partition: str, since: float) -> int:
        """How many units live runs have ingested since then: windows where there are any, else pages."""
        where = {"source_id": source_id, "since": since}
        [(windows, since_then)] = self._db.rows("windows_since", partition=partition, **where)
        return int(since_then if windows else self._db.value("pages_since", **where))

    def has_windows(self, source_id: int, partition: str) -> bool:
        """Whether its units are windows, which are counted exactly, and not pages of all its partitions."""
        [(windows, _)] = self._db.rows(
            "windows_since", partition=partition, source_id=source_id, since=0.0
        )
        return bool(windows)

    def rewind(
        self,
        source_id: int,
        partition: str,
        target: CheckpointMove,
        *,
        actor: str,
        reason: str,
        is_forced: bool = False,
    ) -> None:
        """Move a checkpoint back, or wherever a person wants it; the one way that is not forwards.

        Refused while a run that may move it goes on: it would at once move it on from here, or be
        refused what it has in hand.
        """
        with self._db.writing() as now:
            running = self._db.value("live_run_of", source_id=source_id)
            if running is not None and not is_forced:
                raise Refused(
                    f"run {running} of this source has not ended and may move the checkpoint",
                    code="run_may_move_it",
                    remedy=Remedy("runs.cancel", running),
                )
            found = _locked(self._db, now, [(source_id, partition)], is_new=False)
            if not found:
                raise UsageError(f"the source has no checkpoint {partition!r}")
            [old] = found.values()
            cursor, offset = to_json(target.cursor), to_json(target.last_offset)
            row = (source_id, partition, cursor, offset, target.run_id, old.moves + 1)
            self._db.do("move_checkpoints", now=now, marks=to_json([row]))
            about = (cursor, offset, target.run_id, actor, "rewound", reason)
            _note_moves(self._db, now, [(source_id, partition, old.moves + 1, *about)])
            ledger = Ledger(self._db, now)
            event = CheckpointRewound(partition, _short(old.cursor), _short(cursor), reason)
            ledger.journal(event, source_id, actor=actor)
            ledger.write()


def move_checkpoints(
    db: Database, ledger: Ledger, actor: str, marks: Sequence[tuple[Owned, Mark]]
) -> None:
    """Write the marks of accepted attempts: the last of each partition that may be moved to."""
    kinds = kinds_of(db, {job.run_id for job, _ in marks})
    live: list[tuple[Owned, Mark]] = []
    own: dict[_Key, tuple[object, ...]] = {}
    for job, mark in marks:
        if not policy_of(kinds[job.run_id]).moves_checkpoints:
            partition = bounded_text(mark.partition, NAME_BYTES)
            where = (job.run_id, partition)
            own[where] = (*where, mark.cursor.decode(), mark.offset.decode())
        else:
            live.append((job, mark))
    if live:
        _move_live(db, ledger, actor, live)
    if own:
        cursors = [own[where] for where in sorted(own)]
        db.do("set_run_cursors", now=ledger.now, cursors=to_json(cursors))


def kinds_of(db: Database, run_ids: Iterable[int]) -> dict[int, RunKind]:
    found: dict[str, str] = db.json("run_kinds", ids=to_json(sorted(run_ids)))
    return {int(run_id): RunKind(kind) for run_id, kind in found.items()}


def _move_live(
    db: Database, ledger: Ledger, actor: str, marks: Sequence[tuple[Owned, Mark]]
) -> None:
    keyed = [((j.source_id, bounded_text(m.partition, NAME_BYTES)), j, m) for j, m in marks]
    moving = _locked(db, ledger.now, sorted({key for key, _, _ in keyed}))
    refused: dict[_Key, tuple[object, ...]] = {}
    for key, job, mark in keyed:
        state, cursor = moving[key], mark.cursor.decode()
        why = refusal(_decode(state.cursor), _decode(cursor), is_ordered=mark.is_ordered)
        if not why:
            offset = mark.offset.decode()
            if cursor == state.cursor and offset == "null":
                offset = state.last_offset  # said again, by somebody who has nothing to add
            state.is_changed |= (cursor, offset) != (state.cursor, state.last_offset)
            state.cursor, state.last_offset, state.run_id = cursor, offset, job.run_id
            state.is_marked = True
        elif key not in refused and (state.is_changed or state.refused_run_id != job.run_id):
            # Once, and not for each mark of a run that begins again from the beginning.
            refused[key] = (cursor, mark.offset.decode(), job.run_id, actor, "refused", why)
            event = CheckpointRefused(key[1], _short(cursor), why, _short(state.cursor))
            ledger.journal(event, job.source_id, job.run_id, job.id, job.attempt, actor)
    _write(db, ledger.now, actor, moving, refused)


def _locked(
    db: Database, now: float, keys: Sequence[_Key], *, is_new: bool = True
) -> dict[_Key, _Moving]:
    """These checkpoints, which nobody else moves before the transaction ends."""
    found = db.json("lock_checkpoints", keys=to_json(keys))
    if is_new and len(found) < len(keys):
        db.do("add_checkpoints", now=now, keys=to_json(keys))
        found = db.json("lock_checkpoints", keys=to_json(keys))
    return {(source_id, partition): _Moving(*state) for source_id, partition, *state in found}


def _write(
    db: Database,
    now: float,
    actor: str,
    moving: dict[_Key, _Moving],
    refused: dict[_Key, tuple[object, ...]],
) -> None:
    marked, counted = [], []
    moves: list[tuple[Any, ...]] = []
    for key, state in sorted(moving.items()):
        if state.is_changed:
            state.moves += 1
            about = (state.cursor, state.last_offset, state.run_id, actor, "moved", "")
            moves.append((*key, state.moves, *about))
        if key in refused:
            state.moves += 1
            moves.append((*key, state.moves, *refused[key]))
        if state.is_marked:
            marked.append((*key, state.cursor, state.last_offset, state.run_id, state.moves))
        elif key in refused:
            counted.append((*key, state.moves))
    if marked:
        db.do("move_checkpoints", now=now, marks=to_json(marked))
    if counted:
        db.do("count_checkpoint_moves", counts=to_json(counted))
    if moves:
        _note_moves(db, now, moves)


def _note_moves(db: Database, now: float, moves: Sequence[tuple[Any, ...]]) -> None:
    db.do("add_checkpoint_moves", now=now, moves=to_json(moves))
    too_many = [(*row[:2], row[2] - KEPT_MOVES) for row in moves if row[2] > KEPT_MOVES]
    if too_many:
        db.do("drop_checkpoint_moves", upto=to_json(too_many))


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"


def as_it_was(
    history: Sequence[CheckpointMove], *, run_id: int | None = None, at: float | None = None
) -> CheckpointMove | None:
    """Where a checkpoint stood when this run had left it, or at this time; None if nobody knows.

    A rewind names the run that it goes back behind; it was not that run which left it there.
    """
    for move in history:
        if run_id is not None:
            is_meant = move.act == "moved" and move.run_id == run_id
        else:
            is_meant = move.act != "refused" and move.at <= (at or 0.0)
        if is_meant:
            return move
    return None


def last_upto(history: Sequence[CheckpointMove], cursor: Any) -> CheckpointMove | None:
    """The last move of a checkpoint to this cursor or to one before it; None when nobody knows of any."""
    for move in history:
        way = compared(move.cursor, cursor) if move.act != "refused" else None
        if way is not None and way >= 0:
            return move
    return None
