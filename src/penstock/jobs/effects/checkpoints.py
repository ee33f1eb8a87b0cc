"""Checkpoints: how far each partition of a source has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from penstock.jobs.effects.effect import Ended, Live, Transaction

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects


class Mark(msgspec.Struct, frozen=True):
    """A checkpoint to move: the last durable cursor of one partition of a source.

    `is_ordered`: cursors of this partition can be told to go on or back.
    """

    partition: str
    cursor: bytes
    offset: bytes = b"null"
    is_ordered: bool = True


class CheckpointsEffect(Live):
    def clear(self, effects: Effects) -> None:
        effects.marks.clear()

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        marks = [(job, mark) for end, job in ended for mark in end.effects.marks]
        transaction.move_checkpoints(marks)
