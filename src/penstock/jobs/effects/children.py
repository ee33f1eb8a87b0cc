"""Children: the jobs that an attempt hands on to the stages after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.jobs.effects.effect import Ended, Transaction, Wordless

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects


class ChildrenEffect(Wordless):
    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        """A replay and a probe walk through the whole pipeline."""

    def dry(self, effects: Effects, dried: Effects) -> None:
        dried.children += effects.children

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        children = [(job, child) for end, job in ended for child in end.effects.children]
        transaction.add_children(children)

    def weigh(self, effects: Effects) -> int:
        return sum([len(child.item) for child in effects.children])
