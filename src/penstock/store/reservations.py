"""Pacing: what is bounded for all workers together, given out in order, whoever asks.

Places in time, places at hosts and shares of budgets. The store's clock is the only one that counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.gates.admission import Book, Report, admit, reservations, run_of_usage
from penstock.gates.rates import LONGEST_WAIT_S, RateDecision, RateRequest
from penstock.settings.budget import Bound
from penstock.store.budgets import Accounts, lock_accounts
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger


def reserve(
    db: Database, wants: Sequence[RateRequest], report: Report, keys: str, bounds: Sequence[Bound]
) -> list[RateDecision] | None:
    """Give places under the locks of their keys; None when a key is new and there is nothing to lock."""
    with db.writing() as now:
        if report.worker and db.value("is_registered", id=report.worker) is None:
            # What it held was counted as used when it was buried, and what it takes now nobody would free.
            return [RateDecision(LONGEST_WAIT_S, "store") for _ in wants]
        ledger = Ledger(db, now)
        next_at: dict[str, float] = db.json("lock_paces", keys=keys)
        if any(key not in next_at for want in wants for key in pace_keys(want)):
            return None
        accounts = lock_accounts(db, ledger, bounds)
        if accounts is None:
            return None
        # Read when nobody else can reserve: a time from before the wait for the locks has been lived
        # through by others already, and would be given to two.
        ledger.now = now = db.now()
        given_at = db.monotonic()
        accounts.begin_anew(now)
        accounts.spend(report.spent)
        book = _open_book(db, wants, report, dict(next_at), accounts)
        verdicts = admit(wants, book, now)
        _write(db, report, book, next_at)
        accounts.write()
        ledger.write()
    return [replace(verdict, now=now, given_at=given_at) for verdict in verdicts]


def _open_book(
    db: Database,
    wants: Sequence[RateRequest],
    report: Report,
    next_at: dict[str, float],
    accounts: Accounts,
) -> Book:
    held = dict(report.held)
    wanted = sorted({key for want in wants for key in reservations(want)})
    if wanted:
        others = db.json("held_by_others", keys=to_json(wanted), worker=report.worker)
        for key, amount in others.items():
            held[key] = held.get(key, 0.0) + amount
    for account in accounts.all.values():
        account.held = held.get(account.bound.holding, 0.0)
    return Book(next_at, accounts.all, held)


def _write(db: Database, report: Report, book: Book, next_at: Mapping[str, float]) -> None:
    changed = {key: at for key, at in book.next_at.items() if next_at.get(key) != at}
    if changed:
        db.do("set_paces", paces=to_json(sorted(changed.items())))
    holdings = dict(report.held)
    for key, amount in book.given.items():
        holdings[key] = holdings.get(key, 0.0) + amount
    if holdings and report.worker:
        db.do("set_holdings", worker=report.worker, holdings=to_json(sorted(holdings.items())))
    if any(amount <= 0 and run_of_usage(key) is not None for key, amount in holdings.items()):
        # Runs come and go while a worker stays.
        db.do("drop_empty_usage", worker=report.worker)


def pace_keys(want: RateRequest) -> list[str]:
    """The rows that are locked for it. A host's limits have one even without a rate: it is their lock."""
    keys = [want.key] if want.rate_per_s or not want.terms else []
    return [*keys, want.terms.host.key] if want.terms.host is not None else keys


def bounds_of(wants: Sequence[RateRequest], report: Report) -> list[Bound]:
    spent = [bound for bound, _ in report.spent]
    return [*spent, *(bound for want in wants for bound in want.terms.bounds)]
