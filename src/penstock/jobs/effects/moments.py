"""Moments around which a source is to be looked at more often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.jobs.effects.effect import Ended, Live, Transaction

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects


class MomentsEffect(Live):
    def clear(self, effects: Effects) -> None:
        effects.moments.clear()

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        moments = [(job, moment) for end, job in ended for moment in end.effects.moments]
        transaction.announce_moments(moments)
