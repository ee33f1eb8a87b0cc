"""Budgets: how much may be used of what, in which stretch of time, and what is left of it.

What is counted before it happens (requests, and the money they cost) never passes its bound. What is
known only afterwards (bytes, seconds) is reserved by its upper estimate while there is enough for that;
when there is not, one request at a time is let through, so that the bound is passed by one at the most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from math import inf
from zoneinfo import ZoneInfo

from penstock.counting import count
from penstock.settings.budget import Bound

# Known before a request goes out; the others are known when it is over.
COUNTED = ("requests", "money")
LEVELS = (100, 95, 80)
PROJECT = "project"
# Money is added up from small amounts, none of which a float holds exactly.
SLACK = 1e-9


def key_of(holding: str) -> tuple[str, str, str] | None:
    """The budget that such a holding is reserved of; None for another kind of holding."""
    kind, *rest = holding.split(":", 3)
    if kind != "budget" or len(rest) != 3:
        return None
    return rest[2], rest[0], rest[1]


@dataclass(slots=True)
class BudgetUsage:
    """A budget in its present period: what is used of it, and what all workers have reserved."""

    bound: Bound
    period_at: float
    resets_at: float | None
    used: float = 0.0
    warned: int = 0
    held: float = 0.0
    # Somebody was turned away for it, whatever little is left.
    has_refused: bool = False
    # Whether the configuration still asks for it.
    is_wanted: bool = True

    @property
    def left(self) -> float:
        return max(0.0, self.bound.amount - self.used)

    def verdict(self, takes: float) -> str:
        """ "" when so much may be taken, "budget" when it is used up, "turn" while others may leave some."""
        amount = self.bound.amount
        if self.used >= amount * (1 - SLACK):
            return "budget"
        if self.bound.measure in COUNTED:
            return "" if self.used + takes <= amount * (1 + SLACK) else "budget"
        if self.used + self.held + takes <= amount or self.held <= amount * SLACK:
            return ""
        return "turn"

    def crossed(self) -> int | None:
        """The level that was reached since it was last said; None if there is nothing new to say."""
        if not self.is_wanted:
            self.warned = 0
            return None
        level = 100 if self.has_refused else level_of(self.used, self.bound.amount)
        if level <= self.warned:
            return None
        self.warned = level
        return level

    def is_over(self, now: float) -> bool:
        return self.resets_at is not None and now >= self.resets_at

    def begin_anew(self, now: float) -> None:
        self.period_at, self.resets_at = period_of(self.bound.period, self.bound.timezone, now)
        self.used, self.warned = 0.0, 0

    def come_back(self, now: float) -> None:
        """A clock that was set back must not keep a budget for as long as it had been ahead."""
        if self.resets_at is not None and now < self.period_at:
            self.period_at, self.resets_at = period_of(self.bound.period, self.bound.timezone, now)

    def bind(self, bound: Bound) -> None:
        """Hold it to the bound as it is configured now; one that was raised has more to give."""
        if bound.amount != self.bound.amount:
            self.warned = min(self.warned, level_of(self.used, bound.amount))
        self.bound = bound


def open_account(bound: Bound, now: float) -> BudgetUsage:
    """One of which nothing is used yet."""
    period_at, resets_at = period_of(bound.period, bound.timezone, now)
    return BudgetUsage(bound, period_at, resets_at)


def level_of(used: float, amount: float) -> int:
    """The highest of 80, 95 and 100 percent that is reached; 0 below."""
    return next((level for level in LEVELS if used * 100 >= amount * level * (1 - SLACK)), 0)


@lru_cache(maxsize=64)
def period_of(period: str, timezone: str, now: float) -> tuple[float, float | None]:
    """When the present period began and when the next one begins; a run's never does.

    Days and months are cut at the zone's midnights. Where a midnight is skipped or comes twice, there is
    still exactly one cut, so that each moment is in one period.
    """
    if period == "run":
        return now, None
    zone = _zone(timezone)
    today = datetime.fromtimestamp(now, zone).date()
    cuts = sorted({_midnight(day, zone) for day in _around(period, today)})
    began = max(cut for cut in cuts if cut <= now)
    return began, min(cut for cut in cuts if cut > now)


def next_reset(bounds: Iterable[Bound], now: float) -> float:
    """When the first of these budgets begins anew; never, if none does."""
    ends = (period_of(bound.period, bound.timezone, now)[1] for bound in bounds)
    return min((end for end in ends if end is not None), default=inf)


def _around(period: str, today: date) -> list[date]:
    if period == "day":
        return [today + timedelta(days=days) for days in (-2, -1, 0, 1, 2)]
    first = today.replace(day=1)
    before, after = (first - timedelta(days=1)).replace(day=1), _next_month(first)
    return [(before - timedelta(days=1)).replace(day=1), before, first, after, _next_month(after)]


def _next_month(first: date) -> date:
    return (first + timedelta(days=32)).replace(day=1)


def _midnight(day: date, zone: ZoneInfo) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def exhausted_at(account: BudgetUsage, now: float) -> float | None:
    """When it will be used up if it goes on like this; None if not before it begins anew."""
    if account.left <= 0:
        return now
    elapsed_s = now - account.period_at
    if account.used <= 0 or elapsed_s <= 0:
        return None
    at = now + account.left * elapsed_s / account.used
    return None if account.resets_at is not None and at >= account.resets_at else at


def words(bound: Bound) -> str:
    """A budget as people call it: `5,000 requests a day of acme.com`."""
    return f"{amount_words(bound.measure, bound.amount)} {period_words(bound)}"


def used_up(bound: Bound) -> str:
    """Why nothing more goes out."""
    return f"the budget of {words(bound)} is exhausted"


def period_words(bound: Bound) -> str:
    if bound.period == "run":
        return f"of run {bound.scope.removeprefix('run:')}"
    whose = "the project" if bound.scope == PROJECT else bound.scope.removeprefix("source:")
    return f"a {bound.period} of {whose}"


def amount_words(measure: str, amount: float) -> str:
    if measure == "money":
        return f"{amount:,.2f} of money" if amount >= 0.01 or not amount else f"{amount:g} of money"
    if measure == "seconds":
        return count(round(amount) if amount >= 10 else amount, "second")
    return count(round(amount), measure.removesuffix("s"))
