"""Notes: lines for the journal, in the step's own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from penstock.jobs.effects.effect import Ended, Repeatable, Transaction

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects
    from penstock.jobs.repeats import Sayings
    from penstock.settings.secrets import Masker

NOTE_LENGTH = 2000


class Note(msgspec.Struct, frozen=True):
    """A line for the journal, in the step's own words."""

    text: str
    key: str = ""


class NotesEffect(Repeatable):
    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        """They are told of a replay, too."""

    def dry(self, effects: Effects, dried: Effects) -> None:
        dried.notes += effects.notes

    def redact(self, effects: Effects, masker: Masker) -> None:
        if effects.notes:
            effects.notes = [
                replace(each, text=masker.mask_and_cut(each.text, NOTE_LENGTH))
                for each in effects.notes
            ]

    def key(self, effects: Effects, sayings: Sayings) -> None:
        effects.notes = [
            replace(each, key=sayings.next_key("note", each.text)) for each in effects.notes
        ]

    def keys(self, effects: Effects) -> Iterator[str]:
        return (each.key for each in effects.notes)

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        for end, job in ended:
            for note in end.effects.notes:
                if not transaction.is_repeat(job, note.key):
                    transaction.note(job, end.attempt, note.text)
