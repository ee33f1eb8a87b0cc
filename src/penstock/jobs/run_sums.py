"""A run's two sums: what was found is what became of it, and nothing is left over.

    discovered = extracted + skipped + failed + cancelled              (pages)
    candidates = accepted + rejected + duplicate + dropped + failed    (candidates)

The left side is counted when a job is enqueued, the right side when it ends, so that the difference
tells of something that was lost or counted twice. While a run goes on, what is open stands on the right too.
A candidate that was handed on to a further stage is `passed`: what it became is counted there.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.counting import count
from penstock.jobs.effects import Effects
from penstock.jobs.run import StageCount

Fate = Literal["accepted", "duplicate", "rejected", "passed", "dropped"]


def fate_of(effects: Effects, has_changed: bool | None) -> Fate:
    """What became of a candidate whose job succeeded.

    `has_changed` says whether one of the records that it saved was new or different; None if nobody
    looked. One that came through to the end without saving anything was accepted all the same: what
    its last step did with it is the pipeline's business.
    """
    if not effects:
        return "accepted"
    if effects.saves or effects.saved_before or effects.probed.get("would_save"):
        is_duplicate = has_changed is False and not effects.saved_before
        return "duplicate" if is_duplicate else "accepted"
    if effects.rejections or effects.probed.get("rejected"):
        return "rejected"
    if effects.children:
        return "passed"
    return "dropped" if effects.is_dropped else "accepted"


class PageSum(msgspec.Struct, frozen=True):
    discovered: int
    extracted: int
    skipped: int
    failed: int
    cancelled: int
    open: int

    @property
    def unaccounted(self) -> int:
        return self.discovered - (
            self.extracted + self.skipped + self.failed + self.cancelled + self.open
        )


class CandidateSum(msgspec.Struct, frozen=True):
    candidates: int
    accepted: int
    rejected: int
    duplicate: int
    dropped: int
    failed: int
    passed: int
    cancelled: int
    open: int

    @property
    def unaccounted(self) -> int:
        ended = self.accepted + self.rejected + self.duplicate + self.dropped + self.failed
        return self.candidates - (ended + self.passed + self.cancelled + self.open)


class RunSums(msgspec.Struct, frozen=True):
    """`is_kept`: all that worked on the run knew how to count."""

    pages: PageSum
    candidates: CandidateSum
    is_kept: bool = True

    @property
    def unaccounted(self) -> int:
        """How many pages and candidates nobody knows anything of; what was counted twice counts too."""
        return abs(self.pages.unaccounted) + abs(self.candidates.unaccounted) if self.is_kept else 0

    @property
    def difference(self) -> str:
        pages, candidates = self.pages.unaccounted, self.candidates.unaccounted
        return f"{count(pages, 'page')}, {count(candidates, 'candidate')}"


class Fates(msgspec.Struct, frozen=True):
    """How many candidates of a run came to what, as its row counts them."""

    added: int = 0
    accepted: int = 0
    duplicate: int = 0
    rejected: int = 0
    passed: int = 0
    dropped: int = 0


def account_of(
    pages: StageCount,
    candidates: StageCount,
    *,
    pages_added: int,
    fates: Fates,
    is_kept: bool = True,
) -> RunSums:
    """The sums of a run, from the states of its jobs and what was counted beside them.

    Of a run whose sums were not kept only the states are known: its candidates that succeeded are
    taken for accepted.
    """
    page_sum = PageSum(
        discovered=pages_added if is_kept else pages.total,
        extracted=pages.succeeded,
        skipped=pages.skipped,
        failed=pages.quarantined,
        cancelled=pages.cancelled,
        open=pages.open,
    )
    if not is_kept:
        fates = Fates(added=candidates.total, accepted=candidates.succeeded)
    candidate_sum = CandidateSum(
        candidates=fates.added,
        accepted=fates.accepted,
        rejected=fates.rejected,
        duplicate=fates.duplicate,
        # There was nothing to do for it, which is how a step drops a candidate and says why.
        dropped=fates.dropped + candidates.skipped,
        failed=candidates.quarantined,
        passed=fates.passed,
        cancelled=candidates.cancelled,
        open=candidates.open,
    )
    return RunSums(page_sum, candidate_sum, is_kept)
