"""Checkpoints: how far each partition of a source has come, and moving one back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import UNSET, structs

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, page_within, place_of, size_of
from penstock.app.privacy import shown_key
from penstock.app.views.checkpoints import (
    CheckpointMoveView,
    CheckpointView,
    RewindView,
    checkpoint_view,
    move_view,
)
from penstock.app.views.view import Page
from penstock.errors import Refused, Remedy, UsageError, nearest
from penstock.jobs.cursor import compared, is_empty, refusal
from penstock.jobs.windows import moment
from penstock.store.checkpoints import CheckpointMove, CheckpointRow, as_it_was, last_upto
from penstock.store.store import Store


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """One checkpoint with everything that is known of it, by one connection."""

    store: Store
    source: str
    source_id: int
    row: CheckpointRow
    history: Sequence[CheckpointMove]

    @property
    def partition(self) -> str:
        return self.row.partition

    def moved_at(self, move: CheckpointMove) -> float:
        """From when on what was fetched came after this move.

        What its run fetched belongs to it, unless the same run has moved the checkpoint on.
        """
        newer = [each for each in self.history if each.number > move.number and each.act == "moved"]
        run = self.store.runs.get(move.run_id)
        if run is None or run.finished_at is None or (newer and newer[-1].run_id == move.run_id):
            return move.at
        return max(move.at, run.finished_at)


class Checkpoints(Noun):
    """The checkpoints of a source, one for each partition."""

    def list(
        self, source: str, *, cursor: str | None = None, limit: int = USUAL
    ) -> Page[CheckpointView]:
        """The checkpoints of a source, by partition."""
        rows = self._store.checkpoints.all(self._id_of(source))
        rows.sort(key=lambda row: row.partition)
        return page_within(rows, cursor, limit, checkpoint_view, lambda row: row.partition, str)

    def each(self, source: str) -> Iterator[CheckpointView]:
        """Iterate over all of them, page by page."""
        return each_item(lambda cursor, limit: self.list(source, cursor=cursor, limit=limit))

    def get(self, source: str, partition: str) -> CheckpointView:
        """The checkpoint of one partition."""
        return checkpoint_view(self._row(source, self._id_of(source), partition))

    def history(
        self, source: str, partition: str, *, cursor: str | None = None, limit: int = USUAL
    ) -> Page[CheckpointMoveView]:
        """The moves of a checkpoint, newest first."""
        source_id, size = self._id_of(source), size_of(limit)
        self._row(source, source_id, partition)
        before = place_of(cursor, int)
        rows = self._store.checkpoints.history(source_id, partition, size + 1, before)
        return page_of(rows, size, move_view, lambda row: row.number)

    def each_move(
        self, source: str, partition: str, limit: int | None = None
    ) -> Iterator[CheckpointMoveView]:
        """Iterate over all its moves, or the newest `limit`, page by page."""
        return each_item(
            lambda cursor, size: self.history(source, partition, cursor=cursor, limit=size), limit
        )

    def rewind(
        self,
        source: str,
        partition: str,
        *,
        to: Any = UNSET,
        to_run: int | None = None,
        to_time: float | datetime | None = None,
        force: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> RewindView:
        """Move a checkpoint back, so that the next run fetches again what came after it.

        To a cursor, or to where it was when a run had left it, or at a time. Refused while a run that may
        move it is active, for a cursor that is empty or of another kind, and for one that is further on,
        which would leave out what lies between; `force` does it all the same. With `dry_run`, only says
        how much would be fetched again.
        """
        if sum((to is not UNSET, to_run is not None, to_time is not None)) != 1:
            raise UsageError("a rewind needs a target: a cursor, a run or a time", code="no_target")
        found = self._found(source, partition)
        target, since = self._target(found, to, to_run, to_time)
        _refuse_unfit(found, target.cursor, force)
        seen = _preview(found, target, since)
        if dry_run:
            return seen
        self._store.checkpoints.rewind(
            found.source_id, partition, target, actor=who(actor), reason=reason, is_forced=force
        )
        return structs.replace(seen, is_done=True)

    def _found(self, source: str, partition: str) -> _Checkpoint:
        source_id, store = self._id_of(source), self._store
        row = self._row(source, source_id, partition)
        history = store.checkpoints.history(source_id, partition)
        return _Checkpoint(store, source, source_id, row, history)

    def _target(
        self, found: _Checkpoint, to: Any, to_run: int | None, to_time: float | datetime | None
    ) -> tuple[CheckpointMove, float]:
        """Where it is to go, and since when it has been further on than that."""
        if to is not UNSET:
            return _to_cursor(found, to)
        if to_run is not None:
            self._project.require_run(to_run)
            move, when = as_it_was(found.history, run_id=to_run), f"run {to_run} moved it"
        else:
            at = moment(to_time or 0.0, "UTC")
            move = as_it_was(found.history, at=at)
            when = f"it was there at {datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"
        if move is None:
            raise UsageError(
                f"the history does not show that {when}",
                code="not_in_history",
                remedy=Remedy("checkpoints.history", found.source),
            )
        return move, found.moved_at(move)

    def _row(self, source: str, source_id: int, partition: str) -> CheckpointRow:
        rows = {row.partition: row for row in self._store.checkpoints.all(source_id)}
        if partition not in rows:
            raise UsageError(
                f"{source} has no checkpoint {partition!r}",
                nearest(partition, [shown_key(self._project, each, source) for each in rows]),
                code="no_checkpoint",
            )
        return rows[partition]

    def _id_of(self, source: str) -> int:
        key = self._project.source_key(source) or ""
        return self._store.sources.ids()[key]


def _to_cursor(found: _Checkpoint, cursor: Any) -> tuple[CheckpointMove, float]:
    run_id = found.history[0].run_id if found.history else 0
    last = last_upto(found.history, cursor)
    since = 0.0 if last is None else found.moved_at(last)
    return CheckpointMove(0, cursor, None, run_id, found.store.now(), "", "rewound"), since


def _refuse_unfit(found: _Checkpoint, new: Any, is_forced: bool) -> None:
    old = found.row.cursor
    if new == old:
        raise Refused(
            f"{found.partition} of {found.source} has this cursor already", code="cursor_is_there"
        )
    why, way = refusal(old, new), compared(old, new)
    if is_forced:
        return
    if why and (is_empty(new) or way is None):
        raise Refused(
            f"{cursor_words(new)} can't replace {cursor_words(old)}: {why}",
            "`force` moves the checkpoint anyway",
            code="cursor_unfit",
        )
    if way == 1:
        raise Refused(
            f"{cursor_words(new)} is ahead of {cursor_words(old)}: what lies between would never be"
            " fetched",
            "a backfill fetches it; `force` moves the checkpoint anyway",
            code="cursor_further_on",
        )


def _preview(found: _Checkpoint, target: CheckpointMove, since: float) -> RewindView:
    store, source_id, partition = found.store, found.source_id, found.partition
    return RewindView(
        partition=partition,
        start=found.row.cursor,
        to=target.cursor,
        units=store.checkpoints.units_since(source_id, partition, since),
        moves=sum(each.act == "moved" and each.at > since for each in found.history),
        is_done=False,
        is_exact=store.checkpoints.has_windows(source_id, partition),
    )


def cursor_words(cursor: Any) -> str:
    """A cursor as it was written, on one line."""
    return "" if cursor is None else json.dumps(cursor, ensure_ascii=False)
