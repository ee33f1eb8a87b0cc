"""Findings: what a probe has seen, by name; see `Seen` in jobs/probe.py."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.jobs.effects.effect import Ended, Transaction, Wordless

if TYPE_CHECKING:
    from penstock.jobs.effects.effects import Effects


class FindingsEffect(Wordless):
    def stage(self, effects: Effects, *, is_redrive: bool) -> None:
        """Only a probe has any."""

    def dry(self, effects: Effects, dried: Effects) -> None:
        dried.probed.update(effects.probed)

    def write(self, ended: Sequence[Ended], transaction: Transaction) -> None:
        found: dict[int, Counter[str]] = defaultdict(Counter)
        for end, job in ended:
            found[job.run_id].update(end.effects.probed)
        transaction.add_findings(found)
