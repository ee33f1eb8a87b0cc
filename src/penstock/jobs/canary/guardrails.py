"""Guardrails: five rates of a canary's pages against those of the control, and when they stop it.

A guardrail is crossed if the canary is worse by more than its tolerance, and if so large a difference is
not chance. Each asks of a page whether it is bad: what is bad is said against the pages of both releases
together, so that it does not depend on which of them performed a page. The looks at a growing canary, and
the five rates, share one probability of a false stop: see `alpha_at`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median_high, median_low
from typing import Literal

import msgspec

from penstock.jobs.canary.exact_test import Stratum, chance_of_more

Guard = Literal["failures", "yield", "rejections", "duplicates", "quality"]
GUARDS: tuple[Guard, ...] = ("failures", "yield", "rejections", "duplicates", "quality")


class Limits(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How much worse a canary may be, and how sure one has to be to stop it.

    `failures`, `rejections` and `duplicates` are shares of pages, items and records, as differences;
    `yields` is a share of the control's records per page, `quality` a difference of mean scores. `alpha` is
    the probability that a canary which makes no difference is stopped at any of its looks.
    """

    alpha: float = 0.05
    min_pages: int = 50
    failures: float = 0.02
    yields: float = 0.10
    rejections: float = 0.05
    duplicates: float = 0.02
    quality: float = 0.02
    # The share of records that may be different because of the release; None does not ask.
    diff: float | None = None
    # So many pages of the canary without a limit crossed, and it has passed.
    pages: int = 400
    # Alerts of its sources that stop it: from this severity on, or "none".
    alerts: str = "high"

    def tolerance(self, guard: Guard) -> float:
        return float(getattr(self, "yields" if guard == "yield" else guard))


class PageSample(msgspec.Struct):
    """What came of one page: the hashed keys of its records, how much was rejected, its scores."""

    source: int
    is_canary: bool
    has_failed: bool = False
    rejected: int = 0
    keys: set[str] = msgspec.field(default_factory=set)
    scores: float = 0.0
    scored: int = 0
    # What it is compared with where both releases have performed the same page; else pages of its source.
    pair: str = ""
    # Which page of its source: one that several runs have performed is no duplicate of itself.
    name: str = ""

    @property
    def saved(self) -> int:
        return len(self.keys)


class GuardResult(msgspec.Struct, frozen=True):
    """One guardrail at a look: the rates, how much worse the canary is, and how likely that is by chance."""

    guard: Guard
    canary: float | None
    control: float | None
    worse_by: float
    tolerance: float
    p: float
    alpha: float
    is_crossed: bool

    @property
    def words(self) -> str:
        if self.canary is None or self.control is None:
            return f"{self.guard}: nothing to compare"
        shown = ".2f" if self.guard in ("yield", "quality") else ".1%"
        rates = f"{self.canary:{shown}}, control {self.control:{shown}}"
        return f"{self.guard} {rates} (p {self.p:.2g})"


class Look(msgspec.Struct, frozen=True):
    """All guardrails at one look; `has_enough` is false until both releases have enough pages."""

    number: int
    canary_pages: int
    control_pages: int
    has_enough: bool
    results: tuple[GuardResult, ...] = ()
    # The share of records that are different because of the release.
    diff: float | None = None

    @property
    def crossed(self) -> tuple[GuardResult, ...]:
        return tuple(each for each in self.results if each.is_crossed)

    def diff_is_crossed(self, limits: Limits) -> bool:
        return limits.diff is not None and self.diff is not None and self.diff > limits.diff

    def words(self, limits: Limits) -> str:
        """Which limits are crossed, with the figures."""
        told = [each.words for each in self.crossed]
        if self.diff is not None and limits.diff is not None and self.diff > limits.diff:
            told.append(f"{self.diff:.1%} of the records differ, {limits.diff:.1%} may")
        return "; ".join(told) or "no limit crossed"


def look_due(pages: int, looks: int, min_pages: int) -> bool:
    """Whether so many pages are to be looked at: at the least sample, at twice that, and so on."""
    return pages >= min_pages << looks


def alpha_at(alpha: float, look: int) -> float:
    """What one guardrail may spend at look k: 1/(k(k+1)) of its share, so that all looks spend no more."""
    return alpha / len(GUARDS) / (look * (look + 1))


def judge(pages: Sequence[PageSample], limits: Limits, look: int) -> Look:
    """Compare what both releases have done so far."""
    canary = [page for page in pages if page.is_canary]
    control = [page for page in pages if not page.is_canary]
    if min(len(canary), len(control)) < limits.min_pages:
        return Look(look, len(canary), len(control), has_enough=False)
    sample = _Sample(pages, canary, control)
    alpha = alpha_at(limits.alpha, look)
    results = tuple(sample.result(guard, limits.tolerance(guard), alpha) for guard in GUARDS)
    return Look(look, len(canary), len(control), has_enough=True, results=results)


class _Sample:
    """What both releases have done, and which keys more than one page has saved."""

    def __init__(
        self,
        pages: Sequence[PageSample],
        canary: Sequence[PageSample],
        control: Sequence[PageSample],
    ) -> None:
        self._canary, self._control = canary, control
        groups: dict[tuple[int, str], list[PageSample]] = defaultdict(list)
        for page in pages:
            groups[page.source, page.pair].append(page)
        self._groups = list(groups.values())
        self._repeated = _repeated(pages)

    def result(self, guard: Guard, tolerance: float, alpha: float) -> GuardResult:
        canary, control = self._rate(guard, self._canary), self._rate(guard, self._control)
        worse_by = _worse_by(guard, canary, control)
        p = chance_of_more(self._stratum(guard, group) for group in self._groups)
        is_crossed = worse_by > tolerance and p < alpha
        return GuardResult(guard, canary, control, worse_by, tolerance, p, alpha, is_crossed)

    def _rate(self, guard: Guard, pages: Sequence[PageSample]) -> float | None:
        """The figure that people know; None where nothing can be said."""
        saved = sum(page.saved for page in pages)
        match guard:
            case "failures":
                return sum(page.has_failed for page in pages) / len(pages)
            case "yield":
                return saved / len(pages)
            case "rejections":
                rejected = sum(page.rejected for page in pages)
                return rejected / (saved + rejected) if saved + rejected else None
            case "duplicates":
                return sum(self._duplicates(page) for page in pages) / saved if saved else None
            case "quality":
                scored = sum(page.scored for page in pages)
                return sum(page.scores for page in pages) / scored if scored else None

    def _stratum(self, guard: Guard, group: Sequence[PageSample]) -> Stratum:
        if guard == "quality":
            group = [page for page in group if page.scored]
        bad = self._bad(guard, group)
        ours = [is_bad for page, is_bad in zip(group, bad, strict=True) if page.is_canary]
        others = [is_bad for page, is_bad in zip(group, bad, strict=True) if not page.is_canary]
        return Stratum(len(ours), sum(ours), len(others), sum(others))

    def _bad(self, guard: Guard, group: Sequence[PageSample]) -> list[bool]:
        """Which pages are bad: for amounts, those on the wrong side of the median page of their group."""
        if not group:
            return []
        match guard:
            case "failures":
                return [page.has_failed for page in group]
            case "duplicates":
                return [self._duplicates(page) > 0 for page in group]
            case "yield":
                saved = [page.saved for page in group]
                usual = median_high(saved)
                return [each < usual for each in saved]
            case "rejections":
                shares = [_rejected_share(page) for page in group]
                most = median_low(shares)
                return [each > most for each in shares]
            case "quality":
                scores = [page.scores / page.scored for page in group]
                middle = median_high(scores)
                return [each < middle for each in scores]

    def _duplicates(self, page: PageSample) -> int:
        return len(page.keys & self._repeated)


def _repeated(pages: Iterable[PageSample]) -> set[str]:
    """Keys that more than one page has saved, whoever performed them; a page performed again is one page."""
    first: dict[str, tuple[int, str]] = {}
    repeated = set()
    for number, page in enumerate(pages):
        who = (page.source, page.name) if page.name else (number, "")
        for key in page.keys:
            if first.setdefault(key, who) != who:
                repeated.add(key)
    return repeated


def _worse_by(guard: Guard, canary: float | None, control: float | None) -> float:
    if canary is None or control is None:
        return 0.0
    if guard == "yield":
        return (control - canary) / control if control else 0.0
    return control - canary if guard == "quality" else canary - control


def _rejected_share(page: PageSample) -> float:
    total = page.saved + page.rejected
    return page.rejected / total if total else 0.0
