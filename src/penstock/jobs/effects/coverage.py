"""Coverage: the stretches of time that a source has ingested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from penstock.jobs.effects.effect import Ended, Live, Transaction

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects


class Covered(msgspec.Struct, frozen=True):
    """A stretch of time of one partition that is ingested when the attempt succeeds."""

    partition: str
    start_at: float
    end_at: float


class CoverageEffect(Live):
    def clear(self, effects: Effects) -> None:
        effects.covered.clear()

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        transaction.cover([(job, each) for end, job in ended for each in end.effects.covered])
