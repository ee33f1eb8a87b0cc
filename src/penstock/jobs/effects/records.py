"""Records: what was ingested, saved by collection and key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from penstock.jobs.effects.effect import Ended, Transaction, Wordless
from penstock.jobs.effects.notes import Note

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects

Merge = Literal["replace", "keep", "merge"]
# So many of the records that a probe would have saved are named.
SHOWN = 20


class Save(msgspec.Struct, frozen=True):
    """A record to save. `data` is JSON with its fields in a fixed order, so equal means equal.

    `is_staged`: a replay saves it, so it is put aside for a person to look at.
    """

    collection: str
    key: str
    data: bytes
    score: float | None
    merge: Merge
    snapshot: int | None = None
    is_staged: bool = False
    # Of the code and configuration that made it; empty: that of its run.
    version: str = ""


class Basis(msgspec.Struct, frozen=True):
    """What a save was based on: fields of the record as they were read, as JSON; null: no record."""

    collection: str
    key: str
    fields: bytes


class RecordsEffect(Wordless):
    """`bases` are compared before anything of the attempt is written; see `store/turn/bases.py`.

    `saved_before`, which the accounts read, counts what the attempt saved in commits of its own.
    """

    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        """Those of a redrive are meant to be saved: it was asked for because something is mended."""
        if not is_redrive:
            effects.bases = []
            effects.saves = [replace(save, is_staged=True) for save in effects.saves]

    def dry(self, effects: Effects, dried: Effects) -> None:
        would_save = len(effects.saves)
        dried.notes += [
            Note(f"would save {save.collection} {save.key}") for save in effects.saves[:SHOWN]
        ]
        # For the accounts: it came to something.
        dried.saved_before = effects.saved_before + would_save
        if would_save:
            dried.probed["would_save"] = would_save

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        saves = [(job, save) for end, job in ended for save in end.effects.saves]
        if staged := [pair for pair in saves if pair[1].is_staged]:
            transaction.stage_records(staged)
        if live := [pair for pair in saves if not pair[1].is_staged]:
            transaction.save_records(live)

    def weigh(self, effects: Effects) -> int:
        return sum([len(save.data) for save in effects.saves])
