"""The budgets of a simulation: what is used of each, by the rules of the accounts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.engine.simulation.figures import BudgetFigures
from penstock.engine.simulation.samples import Sample
from penstock.gates.budget import COUNTED, BudgetUsage, level_of, open_account, words
from penstock.gates.project_terms import ProjectTerms
from penstock.settings.budget import Bound

Key = tuple[str, str, str]


@dataclass(slots=True, eq=False)
class _Book:
    """An account, and what is told of it; that of a single run is not told of."""

    account: BudgetUsage
    figures: BudgetFigures | None = None
    peak: float = 0.0
    is_exhausted: bool = False

    def exhaust(self, now: float) -> None:
        """It is used up, as the journal has it: nothing is left of it, or somebody was turned away."""
        if not self.is_exhausted and self.figures is not None:
            self.figures.exhausted_at.append(now)
        self.is_exhausted = True

    def take(self, amount: float, now: float) -> None:
        account = self.account
        account.used += amount
        self.peak = max(self.peak, account.used)
        if level_of(account.used, account.bound.amount) == 100:
            self.exhaust(now)


class SimulatedBudgets:
    """What is used of every budget."""

    def __init__(self, rules: ProjectTerms, known: Iterable[BudgetUsage], now: float) -> None:
        self._rules = rules
        self._books: dict[Key, _Book] = {}
        self._books_of: dict[tuple[str, int], list[_Book]] = {}
        self.requests: dict[str, float] = {}
        self.bytes = 0.0
        before = {account.bound.key: account for account in known}
        for bound in rules.lasting():
            account = open_account(bound, now)
            seen = before.get(bound.key)
            about = (words(bound), bound.scope, bound.measure, bound.period, bound.amount)
            book = self._books[bound.key] = _Book(account, BudgetFigures(*about))
            if seen is not None and not seen.is_over(now):
                book.take(seen.used, now)

    def lasting(self) -> list[BudgetUsage]:
        accounts = (book.account for book in self._books.values())
        return [account for account in accounts if account.resets_at is not None]

    def spend(self, source: str, run: int, sample: Sample, jobs: int, now: float) -> int:
        """Take what so many jobs need of every budget; answers how many of them there is enough for."""
        books = self._books_for(source, run, now)
        allowed = self._take(books, source, sample, jobs, now) if books else jobs
        requests = allowed * sample.requests
        self.requests[source] = self.requests.get(source, 0.0) + requests
        self.bytes += requests * sample.bytes
        return allowed

    def is_stopped(self, source: str, run: int, now: float) -> bool:
        return any(book.account.has_refused for book in self._books_for(source, run, now))

    def begin_anew(self, account: BudgetUsage, now: float) -> None:
        account.begin_anew(now)
        account.has_refused = False
        self._books[account.bound.key].is_exhausted = False

    def forget(self, source: str, run: int) -> None:
        """This run has ended, and with it the budgets of it alone."""
        if self._number(source, run):
            for book in self._books_of.pop((source, run), ()):
                if book.account.bound.period == "run":
                    self._books.pop(book.account.bound.key, None)

    def end_day(self) -> None:
        for book in self._books.values():
            if book.figures is not None:
                book.figures.by_day.append(book.peak)
                book.figures.most_used = max(book.figures.most_used, book.peak)
                book.peak = book.account.used

    def told(self) -> list[BudgetFigures]:
        return [book.figures for book in self._books.values() if book.figures is not None]

    def _number(self, source: str, run: int) -> int:
        """0 for all runs of a source together, where none has a budget of its own."""
        terms = self._rules.sources.get(source)
        return run if terms is not None and terms.of_each_run else 0

    def _books_for(self, source: str, run: int, now: float) -> list[_Book]:
        where = (source, self._number(source, run))
        found = self._books_of.get(where)
        if found is None:
            found = [self._book(bound, now) for bound in self._rules.bounds(*where)]
            self._books_of[where] = found
        return found

    def _book(self, bound: Bound, now: float) -> _Book:
        if bound.key not in self._books:
            self._books[bound.key] = _Book(open_account(bound, now))
        return self._books[bound.key]

    def _take(
        self, books: Sequence[_Book], source: str, sample: Sample, jobs: int, now: float
    ) -> int:
        cost = self._rules.cost(source)
        allowed, block = 0, jobs
        while allowed < jobs:
            block = min(block, jobs - allowed)
            refusing = _refusing(books, sample, cost, block)
            if refusing is None:
                allowed += block
                for book in books:
                    book.take(_takes(book.account.bound, sample, cost, block), now)
            elif block > 1:
                block //= 2
            else:
                refusing.account.has_refused = True
                refusing.exhaust(now)
                break
        return allowed


def _refusing(books: Sequence[_Book], sample: Sample, cost: float, jobs: int) -> _Book | None:
    for book in books:
        account = book.account
        takes = _takes(account.bound, sample, cost, jobs)
        if takes and account.verdict(takes):
            return book
        # What is only known afterwards is passed by one at the most.
        is_counted = account.bound.measure in COUNTED
        if not is_counted and jobs > 1 and account.used + takes > account.bound.amount:
            return book
    return None


def _takes(bound: Bound, sample: Sample, cost: float, jobs: int) -> float:
    requests = jobs * sample.requests
    match bound.measure:
        case "requests":
            return requests
        case "money":
            return requests * cost
        case "bytes":
            return requests * sample.bytes
    return jobs * sample.seconds if sample.requests else 0.0
