"""Spending: what an attempt cost, and the budgets that pay for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.jobs.effects.effect import Ended, Transaction, Wordless

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects


class SpendingEffect(Wordless):
    """Money is spent whatever the run is for; what is charged is known only when it is committed."""

    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        pass

    def dry(self, effects: Effects, dried: Effects) -> None:
        dried.spent, dried.latencies = effects.spent, effects.latencies

    def outlast(self, effects: Effects, left: Effects) -> None:
        """What was spent is paid for all the same."""
        left.spent, left.charges = effects.spent, effects.charges
        left.latencies = effects.latencies

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        for end, job in ended:
            for measure, amount in end.effects.spent.items():
                transaction.count(job.run_id, measure, amount)
            if end.effects.latencies:
                transaction.measure_fetches(job.run_id, end.effects.latencies)
        if charges := [charge for end, _ in ended for charge in end.effects.charges]:
            transaction.charge(charges)
