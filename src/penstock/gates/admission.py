"""Admission: may a request go out now, by everything that is bounded for all workers together?

All that a request needs is taken together or not at all: places in time, a place at its host, and its
share of every budget that it counts against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.counting import count
from penstock.gates.budget import COUNTED, SLACK, BudgetUsage, amount_words, used_up, words
from penstock.gates.project_terms import outside
from penstock.gates.rates import (
    LONGEST_WAIT_S,
    RateDecision,
    RateRequest,
    Sent,
    give_place,
    place_of,
)
from penstock.settings.budget import Bound
from penstock.settings.opening_hours import window_opens_at

# Who waits for what another request has reserved asks again after this long, and at once when one ends.
TURN_S = 0.25
# Gates that open as soon as requests that are under way have ended: worth waiting for.
IN_LINE = frozenset({"turn", "slots", "pace"})


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker says of itself when it asks: all that it holds just now, and what it has used since.

    All of it and not only what has changed: an answer that was lost on its way leaves nothing behind.
    """

    worker: str = ""
    held: Mapping[str, float] = field(default_factory=dict)
    spent: Sequence[tuple[Bound, float]] = ()

    def __bool__(self) -> bool:
        return bool(self.held or self.spent)


NO_REPORT = Report()


@dataclass(slots=True)
class Book:
    """What is free, used and reserved at one moment, by all workers; `given` is what is reserved now."""

    next_at: dict[str, float]
    accounts: dict[tuple[str, str, str], BudgetUsage] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
    given: dict[str, float] = field(default_factory=dict)

    def reserve(self, key: str, amount: float) -> None:
        self.held[key] = self.held.get(key, 0.0) + amount
        self.given[key] = self.given.get(key, 0.0) + amount


def admit(wants: Sequence[RateRequest], book: Book, now: float) -> list[RateDecision]:
    """One verdict for each request, first come, first served; the book is brought up to date."""
    return [_admit(want, book, now) for want in wants]


def _admit(want: RateRequest, book: Book, now: float) -> RateDecision:
    for gate in (_in_hours, _at_host, _within_budget):
        closed = gate(want, book, now)
        if closed is not None:
            return closed
    verdict = give_place(want, book.next_at, now)
    if verdict.gate:
        return _for_host(want, book, verdict, now)
    for key, amount in reservations(want).items():
        book.reserve(key, amount)
    if want.run_id:
        book.reserve(usage_key(want.run_id), 1.0)
    for bound in want.terms.bounds:
        account = book.accounts[bound.key]
        if bound.measure in COUNTED:
            account.used += takes(want, bound)
        else:
            account.held += takes(want, bound)
    return verdict


def _for_host(want: RateRequest, book: Book, verdict: RateDecision, now: float) -> RateDecision:
    """A host's place is waited for: the claim, which spares a source's jobs the start, knows no hosts."""
    limit = want.terms.host
    if limit is None or book.next_at.get(limit.key, 0.0) - now < verdict.wait_s:
        return verdict
    return RateDecision(max(TURN_S, verdict.wait_s - LONGEST_WAIT_S), "pace")


def _in_hours(want: RateRequest, book: Book, now: float) -> RateDecision | None:
    """Both now and when it would go out: who is given a place in the last seconds would leave it late."""
    limit = want.terms.host
    if limit is None or limit.windows is None:
        return None
    for at in (now, place_of(want, book.next_at, now)):
        opens_at = window_opens_at(limit.windows, at)
        if opens_at is not None:
            return RateDecision(opens_at - now, "window", outside(limit.host))
    return None


def _at_host(want: RateRequest, book: Book, now: float) -> RateDecision | None:
    limit = want.terms.host
    if limit is None or limit.concurrency is None:
        return None
    if book.held.get(limit.key, 0.0) < limit.concurrency:
        return None
    return RateDecision(
        TURN_S, "slots", f"{limit.host} has {count(limit.concurrency, 'request')} already"
    )


def _within_budget(want: RateRequest, book: Book, now: float) -> RateDecision | None:
    waits: RateDecision | None = None
    for bound in want.terms.bounds:
        account = book.accounts[bound.key]
        if _is_too_dear(want, bound, account):
            return RateDecision(0.0, "budget", _too_dear(want, bound, account))
        gate = account.verdict(takes(want, bound))
        if gate == "budget":
            account.has_refused = True
            return RateDecision(_opens_in(account, now), gate, used_up(bound))
        if gate:
            waits = RateDecision(
                TURN_S, gate, f"what is left of {words(bound)} is reserved by others"
            )
    return waits


def _is_too_dear(want: RateRequest, bound: Bound, account: BudgetUsage) -> bool:
    """What it may take would exhaust the budget: a cheaper one may still go out, so nothing is exhausted."""
    if bound.measure != "money" or not want.most_money or not account.left:
        return False
    return takes(want, bound) >= account.left * (1 - SLACK)


def _too_dear(want: RateRequest, bound: Bound, account: BudgetUsage) -> str:
    left, most = (amount_words("money", each) for each in (account.left, takes(want, bound)))
    return f"it may take {most}, and {left} is left of the budget of {words(bound)}"


def _opens_in(account: BudgetUsage, now: float) -> float:
    return 0.0 if account.resets_at is None else max(0.0, account.resets_at - now)


def takes(want: RateRequest, bound: Bound) -> float:
    """What a request takes of a budget: exactly, or at the most where only its end will tell."""
    match bound.measure:
        case "requests":
            return 1.0
        case "money":
            return want.terms.cost + want.most_money
        case "bytes":
            return float(want.max_bytes)
    return want.timeout_s


def usage_key(run_id: int) -> str:
    """The holding of requests that went out for a run and are not put down there yet.

    Held until the attempt that sent them settles: if its worker dies before, they are put down then.
    """
    return f"usage:{run_id}"


def run_of_usage(holding: str) -> int | None:
    """The run that such a holding is about; None for another kind of holding."""
    kind, _, run_id = holding.partition(":")
    return int(run_id) if kind == "usage" and run_id.isdecimal() else None


def reservations(want: RateRequest) -> dict[str, float]:
    """What a worker holds for a request until it is over, by the name of the holding."""
    found = {
        bound.holding: takes(want, bound)
        for bound in want.terms.bounds
        if bound.measure not in COUNTED
    }
    limit = want.terms.host
    if limit is not None and limit.concurrency is not None:
        found[limit.key] = 1.0
    return found


def spendings(want: RateRequest, sent: Sent) -> list[tuple[Bound, float]]:
    """What a request has used of the budgets that are counted when it is over.

    Of one that never went out: what was counted for it before, to be taken off again.
    """
    bounds = want.terms.bounds
    if sent.is_void:
        return [(b, -takes(want, b)) for b in bounds if b.measure in COUNTED and takes(want, b)]
    amounts = {"bytes": sent.bytes, "seconds": sent.seconds}
    if want.most_money:
        amounts["money"] = sent.money - want.most_money
    return [(b, amounts[b.measure]) for b in bounds if b.measure in amounts]
