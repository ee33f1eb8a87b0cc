"""Rejections: items that were judged and are not wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from penstock.jobs.effects.effect import Ended, Repeatable, Transaction
from penstock.jobs.effects.notes import Note
from penstock.jobs.effects.records import SHOWN

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects
    from penstock.jobs.repeats import Sayings
    from penstock.settings.secrets import Masker

REASON_LENGTH = 2000


class Rejection(msgspec.Struct, frozen=True):
    """Something that was judged and is not wanted; it is kept, with the item it was made from.

    `code` is a word that programs can go by; `reason` is for people.
    """

    code: str
    reason: str
    score: float | None = None
    key: str = ""


class RejectionsEffect(Repeatable):
    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        """What today's logic rejects is a result of the replay."""

    def dry(self, effects: Effects, dried: Effects) -> None:
        dried.notes += [Note(f"would reject: {each.reason}") for each in effects.rejections[:SHOWN]]
        if effects.rejections:
            dried.probed["rejected"] = len(effects.rejections)

    def redact(self, effects: Effects, masker: Masker) -> None:
        if effects.rejections:
            effects.rejections = [
                replace(each, reason=masker.mask_and_cut(each.reason, REASON_LENGTH))
                for each in effects.rejections
            ]

    def key(self, effects: Effects, sayings: Sayings) -> None:
        effects.rejections = [
            replace(each, key=sayings.next_key("reject", (each.code, each.reason, each.score)))
            for each in effects.rejections
        ]

    def keys(self, effects: Effects) -> Iterator[str]:
        return (each.key for each in effects.rejections)

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        rejections = [
            (job, each)
            for end, job in ended
            for each in end.effects.rejections
            if not transaction.is_repeat(job, each.key)
        ]
        if rejections:
            transaction.add_rejects(rejections)
