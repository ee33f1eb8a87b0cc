"""Checkpoints as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.view import Content, ContentKey, Hidden, Time, View

if TYPE_CHECKING:
    from penstock.store.checkpoints import CheckpointMove, CheckpointRow


class CheckpointView(View, frozen=True, kw_only=True):
    """The checkpoint of one partition of a source, and the run that moved it there."""

    partition: ContentKey[str]
    cursor: Content[Any]
    last_offset: Content[Any] = msgspec.field(name="offset")
    run_id: int = msgspec.field(name="run")
    at: Time
    moves: int


class CheckpointMoveView(View, frozen=True, kw_only=True):
    """One move of a checkpoint: `act` is `moved`, `refused` or `rewound`."""

    number: int
    act: str
    cursor: Content[Any]
    last_offset: Content[Any] = msgspec.field(name="offset")
    run_id: int = msgspec.field(name="run")
    at: Time
    actor: str
    reason: str


class RewindView(View, frozen=True, kw_only=True):
    """A rewind, or its dry run: how much the next run fetches again.

    `units` counts windows exactly where the partition has them, else pages of all partitions, which is an
    upper bound. `moves` is how many moves it goes back.
    """

    partition: ContentKey[str]
    start: Content[Any] = msgspec.field(name="from")
    to: Content[Any]
    units: int
    moves: int
    is_done: bool
    is_exact: Hidden[bool]


def checkpoint_view(row: CheckpointRow) -> CheckpointView:
    return CheckpointView(**msgspec.structs.asdict(row))


def move_view(row: CheckpointMove) -> CheckpointMoveView:
    return CheckpointMoveView(**msgspec.structs.asdict(row))
