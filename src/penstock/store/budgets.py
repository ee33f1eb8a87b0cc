"""Budgets in the store: what is used and reserved of each, by all workers, and what begins anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.gates.admission import run_of_usage
from penstock.gates.budget import BudgetUsage, key_of, open_account
from penstock.jobs.job import JobState
from penstock.jobs.run import RunState
from penstock.journal.job_events import JobRequeued
from penstock.journal.run_events import RunReopened
from penstock.journal.source_events import BudgetExhausted, BudgetReset, BudgetThresholdReached
from penstock.settings.budget import Bound
from penstock.store.database import LAST_ID, Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.rows import BudgetRow, RunUse

RELEASE_LIMIT = 1000
RUNS_AT_ONCE = 100
KEEP_S = 30 * 86_400.0
UPKEEP = "upkeep"
BudgetKey = tuple[str, str, str]


class Budgets(Noun):
    """The verbs of budgets, beside the door that reserves them."""

    def all(self, run_id: int | None = None) -> list[BudgetRow]:
        """Every budget of which something was used; if a run is named, of single runs only its own."""
        return self._db.decoded("budgets", list[BudgetRow], run_id=run_id)

    def exhausted(self) -> list[BudgetRow]:
        """The budgets that are used up, by the bounds they had when somebody was last turned away."""
        return self._db.decoded("exhausted_budgets", list[BudgetRow], now=self._db.now())

    def used_since(self, since: float, limit: int) -> RunUse:
        """What the newest runs that were active since then have used and brought in together."""
        ids = self._db.value("latest_runs", before_id=LAST_ID, limit=limit)
        return self._db.decoded("use_of_runs", RunUse, ids=ids, since=since)

    def used_by_sources(self, wanted: Sequence[tuple[int, float]], limit: int) -> list[RunUse]:
        """The same of each source, by its number, since a time of its own."""
        about = {"wanted": to_json(wanted), "limit": limit}
        return self._db.decoded("uses_of_sources", list[RunUse], **about)

    def used_by_run(self, run_id: int) -> RunUse:
        """The same of one run."""
        return self._db.decoded("use_of_runs", RunUse, ids=to_json([run_id]), since=0.0)

    def renew(self, bounds: Sequence[Bound], limit: int = RELEASE_LIMIT) -> int:
        """Begin periods anew whose time has come, and release what no budget stops any more.

        Bounds are held as they are configured now. Answers how many jobs were released; there may be more
        while it is not 0.
        """
        configured = {bound.key: bound for bound in bounds}
        with self._db.writing() as now:
            ledger = Ledger(self._db, now)
            accounts = Accounts(self._db, ledger, self._db.json("lock_lasting_budgets"))
            for key, account in accounts.all.items():
                account.is_wanted = key in configured
                if account.is_wanted:
                    account.bind(configured[key])
            accounts.begin_anew(now)
            accounts.write()
            self._db.do("drop_ended_budgets", before=now - KEEP_S)
            ledger.write()
            runs = self._db.rows("runs_set_aside", now=now, limit=RUNS_AT_ONCE)
        released = 0
        for (run_id,) in runs:
            released += self._release(run_id, limit - released)
            if released >= limit:
                break
        return released

    def _release(self, run_id: int, limit: int) -> int:
        with self._db.writing() as now:
            # Before its jobs, of which none is waited for: cancelled meanwhile, they would stay queued.
            self._db.lock_runs([run_id])
            [(state, source_id)] = self._db.rows("run_state", id=run_id)
            if state == RunState.CANCELLED:
                return 0
            ledger = Ledger(self._db, now)
            reason = "no budget stops it any more"
            jobs = self._db.rows("release_set_aside", run_id=run_id, limit=limit, now=now)
            for job_id, stage, attempt in jobs:
                ledger.moved(run_id, stage, JobState.QUARANTINED, JobState.QUEUED)
                ledger.journal(JobRequeued(reason), source_id, run_id, job_id, attempt, UPKEEP)
            reopen = "reopen_run_if_ended_badly"
            if jobs and self._db.value(reopen, id=run_id, now=now) is not None:
                ledger.journal(RunReopened(reason), source_id, run_id, actor=UPKEEP)
            ledger.write()
            return len(jobs)


def account_of(row: BudgetRow) -> BudgetUsage:
    bound = Bound(row.scope, row.measure, row.period, row.bound)
    return BudgetUsage(bound, row.period_at, row.resets_at, row.used, row.warned, row.held)


@dataclass(slots=True)
class _Kept:
    account: BudgetUsage
    before: tuple[object, ...]


class Accounts:
    """Some budgets, locked, for one transaction; what changes of them is written and journalled."""

    def __init__(self, db: Database, ledger: Ledger, rows: Iterable[Sequence[object]]) -> None:
        self._db = db
        self._ledger = ledger
        self._kept: dict[BudgetKey, _Kept] = {}
        for scope, measure, period, period_at, resets_at, used, amount, warned in rows:
            bound = Bound(str(scope), str(measure), str(period), float(str(amount)))
            account = BudgetUsage(
                bound,
                float(str(period_at)),
                None if resets_at is None else float(str(resets_at)),
                float(str(used)),
                int(str(warned)),
            )
            self._kept[bound.key] = _Kept(account, _row(account))

    @property
    def all(self) -> dict[BudgetKey, BudgetUsage]:
        return {key: kept.account for key, kept in self._kept.items()}

    def begin_anew(self, now: float) -> None:
        """What has come to the end of its period begins the next, and says so to who waits for it."""
        for account in self.all.values():
            account.come_back(now)
            if not account.is_over(now):
                continue
            if account.used > 0:
                self._tell_reset(account)
            account.begin_anew(now)

    def _tell_reset(self, account: BudgetUsage) -> None:
        bound = account.bound
        source_id, run_id = self._whose(bound.scope)
        event = BudgetReset(*bound.key, bound.amount, account.used)
        self._ledger.journal(event, source_id, actor=UPKEEP)
        data = {
            "scope": bound.scope,
            "measure": bound.measure,
            "period": bound.period,
            "used": account.used,
            "bound": bound.amount,
        }
        signal = ("budget.reset", to_json(data), source_id or 0, run_id or 0)
        self._db.do("add_signals", now=self._ledger.now, signals=to_json([signal]))

    def spend(self, spent: Iterable[tuple[Bound, float]]) -> None:
        for bound, amount in spent:
            account = self._kept[bound.key].account
            # What is given back may have been counted in a period that is over.
            account.used = max(0.0, account.used + amount)

    def write(self) -> None:
        """Put down what has changed, with a line for each warning that is due."""
        changed = []
        for kept in self._kept.values():
            level = kept.account.crossed()
            if level is not None:
                self._warn(kept.account, level)
            row = _row(kept.account)
            if row != kept.before:
                changed.append(row)
        if changed:
            self._db.do("set_budgets", budgets=to_json(changed))

    def _warn(self, account: BudgetUsage, level: int) -> None:
        source_id, run_id = self._whose(account.bound.scope)
        about = (*account.bound.key, account.bound.amount, account.used)
        event = BudgetExhausted(*about) if level >= 100 else BudgetThresholdReached(*about, level)
        self._ledger.journal(event, source_id, run_id)

    def _whose(self, scope: str) -> tuple[int | None, int | None]:
        """The source and the run that a scope is about."""
        kind, _, name = scope.partition(":")
        if kind == "source":
            ids: dict[str, int] = self._db.json("source_ids")
            return ids.get(name), None
        if kind != "run":
            return None, None
        rows = self._db.rows("run_state", id=int(name))
        return (rows[0][1] if rows else None), int(name)


def _row(account: BudgetUsage) -> tuple[object, ...]:
    bound = account.bound
    facts = (account.period_at, account.resets_at, account.used, bound.amount, account.warned)
    return (*bound.key, *facts)


def lock_accounts(db: Database, ledger: Ledger, bounds: Iterable[Bound]) -> Accounts | None:
    """The accounts of these budgets, each held to its bound; None if one of them is new."""
    wanted = {bound.key: bound for bound in bounds}
    keys = to_json(sorted(wanted))
    accounts = Accounts(db, ledger, db.json("lock_budgets", keys=keys) if wanted else ())
    found = accounts.all
    if len(found) < len(wanted):
        return None
    for key, account in found.items():
        account.bind(wanted[key])
    return accounts


def add_accounts(db: Database, bounds: Iterable[Bound], now: float) -> None:
    """Make budgets known of which nothing was used yet."""
    rows = []
    for bound in sorted({bound.key: bound for bound in bounds}.values(), key=lambda b: b.key):
        account = open_account(bound, now)
        rows.append((*bound.key, account.period_at, account.resets_at, bound.amount))
    if rows:
        db.do("add_budgets", budgets=to_json(rows))


def charge(db: Database, ledger: Ledger, charges: Sequence[tuple[Bound, float]]) -> None:
    """What attempts have spent beside their requests, in the transaction that settles them."""
    bounds = [bound for bound, _ in charges]
    accounts = lock_accounts(db, ledger, bounds)
    if accounts is None:
        add_accounts(db, bounds, ledger.now)
        accounts = lock_accounts(db, ledger, bounds)
    if accounts is not None:
        accounts.begin_anew(ledger.now)
        accounts.spend(charges)
        accounts.write()


def forfeit(db: Database, ledger: Ledger, worker: str) -> None:
    """What a worker that goes has reserved counts as used: nobody knows how far it came."""
    reserved: dict[BudgetKey, float] = {}
    for holding, amount in db.rows("drop_holdings", worker=worker):
        run_id = run_of_usage(holding)
        if run_id is not None and amount > 0:
            ledger.count(run_id, "requests", amount)
        key = key_of(holding)
        if key is not None and amount > 0:
            reserved[key] = amount
    if reserved:
        accounts = Accounts(db, ledger, db.json("lock_budgets", keys=to_json(sorted(reserved))))
        for key, account in accounts.all.items():
            account.used += reserved[key]
        accounts.write()


def stopped_by_budget(db: Database, run_id: int) -> Mapping[str, int]:
    """How many jobs of each stage of a run a budget has stopped."""
    found: dict[str, int] = db.json("stopped_by_budget", run_id=run_id)
    return found
