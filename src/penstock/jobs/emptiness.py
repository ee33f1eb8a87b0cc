"""Runs of which less came than usual: a sharp fall, and the three ends of one of which nothing came.

Those are as expected, unexpected, and not allowed to look.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

from penstock.jobs.run import RunKind, RunOptions, RunState
from penstock.jobs.run_policy import policy_of
from penstock.jobs.run_sums import RunSums

AS_EXPECTED = "empty: as expected"
UNEXPECTED = "empty though it usually yields"
NOT_ALLOWED = "not allowed to look"
ZERO_YIELD = "quality.zero_yield"
ANOMALY = "quality.anomaly"

# What is usual is judged by so many runs of the same source and kind, of which so many must have yielded.
LOOKED_AT, USUAL = 5, 3
# Less than this share of what is usual is a sharp fall; of less than so many any number may come by chance.
FALL, LEAST = 0.5, 10
# Other kinds have their own idea of an end: a backfill may find no gap, a probe saves nothing.
# A run that has failed is told of as that.
_COUNTING = (RunState.COMPLETED, RunState.PARTIAL)


class Yield(msgspec.Struct, frozen=True):
    """What came of a run: records saved or seen to be unchanged, and pages looked at.

    `brought` counts each record once, whether it was saved or only accepted, and a page that is as it was
    for one: its records are known.
    """

    records: int
    pages: int
    brought: int = 0


class Ending(msgspec.Struct, frozen=True):
    """A run that is about to end, as the rows tell it.

    `refused` are jobs that we were not allowed to do: robots.txt forbade it, or we were not let in.
    `turned_away` are all that ended without being done.
    """

    kind: RunKind
    options: RunOptions
    account: RunSums
    found: Yield
    pages_unchanged: int = 0
    refused: int = 0
    turned_away: int = 0

    @property
    def is_empty(self) -> bool:
        """Nothing came of it, and nobody meant it to be so."""
        return (
            policy_of(self.kind).can_be_empty
            and self._is_whole
            and not (self.found.records or self.pages_unchanged)
        )

    @property
    def is_compared(self) -> bool:
        """There are runs like it, of which about as much comes each time."""
        return policy_of(self.kind).is_compared and self._is_whole

    @property
    def _is_whole(self) -> bool:
        """Nobody has taken something of it away, or done it before."""
        cancelled = self.account.pages.cancelled + self.account.candidates.cancelled
        return self.options.continues is None and not cancelled


def end_of_empty(state: RunState, run: Ending, before: Sequence[Yield]) -> tuple[RunState, str]:
    """The state in which an empty run ends, and why; `before` are the runs before it, the newest first."""
    if run.refused and not run.account.pages.extracted and run.refused >= run.turned_away:
        return RunState.FAILED, NOT_ALLOWED
    if state is RunState.FAILED:
        return state, ""
    if policy_of(run.kind).is_compared and _usually_yields(run.found, before):
        return RunState.PARTIAL, UNEXPECTED
    has_looked_only = run.found.pages and not run.account.candidates.candidates
    if state is RunState.COMPLETED and not has_looked_only:
        return state, AS_EXPECTED
    return state, ""


def _usually_yields(found: Yield, before: Sequence[Yield]) -> bool:
    recent = before[:LOOKED_AT]
    if sum(each.records > 0 for each in recent) >= USUAL:
        return True
    return not found.pages and sum(each.pages > 0 for each in recent) >= USUAL


def fallen_from(state: RunState, run: Ending, before: Sequence[Yield]) -> float | None:
    """What is usual, the median of the runs before, if far less came of this one; None if not.

    Only those that brought something are usual: after a week of failures the first good run is no fall.
    """
    if state not in _COUNTING or not run.is_compared:
        return None
    brought = [each.brought for each in before[:LOOKED_AT] if each.brought]
    if len(brought) < USUAL:
        return None
    usual = median(brought)
    return usual if usual >= LEAST and run.found.brought < usual * FALL else None
