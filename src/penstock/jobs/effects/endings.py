"""What the end of an attempt says of the attempt as a whole; others read it when they write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.jobs.effects.effect import Ended, Transaction, Wordless

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects


class DroppedEffect(Wordless):
    """A candidate of which nothing became. The accounts of its run count it."""

    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        pass

    def dry(self, effects: Effects, dried: Effects) -> None:
        dried.is_dropped = effects.is_dropped

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        pass


class ForgetEffect(Wordless):
    """The attempt ended as it wanted to: what the next one says is new. Who looks for repeats reads it."""

    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        pass

    def dry(self, effects: Effects, dried: Effects) -> None:
        """A probe has no second attempt."""

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        pass
