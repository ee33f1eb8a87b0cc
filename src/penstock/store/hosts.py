"""Hosts: what all workers together may ask of each, and what requests tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from typing import NamedTuple

from penstock.gates.admission import NO_REPORT, Report
from penstock.gates.breaker import HOST_RAMP, Breaker, Tally, follow, half_open, part_of, ramp_at
from penstock.gates.rates import RateDecision, RateRequest
from penstock.jobs.job import JobState
from penstock.journal.job_events import JobDue
from penstock.settings.values import BreakerSettings
from penstock.store.breaker_rows import (
    HOST,
    HOST_RULE,
    REASON_LENGTH,
    chance_of,
    found_breakers,
    locked_breakers,
    write_breakers,
)
from penstock.store.budgets import add_accounts
from penstock.store.database import to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.reservations import bounds_of, pace_keys, reserve

# A request that was let through to a host that is tried is given up after so long.
TRYING_S = 120.0
# Whoever comes while others are trying a host asks again after so long.
ASK_AGAIN_S = 5.0
BATCH = 500


class HostTold(NamedTuple):
    """What became of requests to a host: what went well, how long ago, and how many failed.

    `back` of them were let through to a host that was tried, and are over. It is weighed by `rule`.
    """

    well: Sequence[tuple[float, int]] = ()
    failed: int = 0
    back: int = 0
    reason: str = ""
    is_answer: bool = False
    rule: BreakerSettings = HOST_RULE


class Hosts(Noun):
    """The door that every request passes before it goes out; the breakers and the hours of hosts."""

    def reserve(
        self, wants: Sequence[RateRequest], report: Report = NO_REPORT
    ) -> list[RateDecision]:
        """Take a place for each of these requests, as far as there is one soon: one verdict for each.

        The places are by the store's clock and the answers are spans, counted from when they arrive:
        who learns of its place late is late, and nobody is ever early. The report sets what the worker
        holds, and adds what it has used.
        """
        keys = to_json(sorted({key for want in wants for key in pace_keys(want)}))
        bounds = {bound.key: bound for bound in bounds_of(wants, report)}
        while (verdicts := reserve(self._db, wants, report, keys, list(bounds.values()))) is None:
            # In a transaction of its own: new rows among locked ones could make two hosts wait in a circle.
            with self._db.writing() as now:
                self._db.do("add_paces", keys=keys)
                add_accounts(self._db, bounds.values(), now)
        return verdicts

    def held(self) -> dict[str, float]:
        """How many requests all workers together have under way at each host that bounds them."""
        found: dict[str, float] = self._db.json("held_at_hosts")
        return {key.partition(":")[2]: amount for key, amount in found.items()}

    def close(self, closings: Mapping[str, float]) -> None:
        """These hosts asked to be left alone for so many seconds; never shortens a closure."""
        with self._db.writing() as now:
            for host, for_s in sorted(closings.items()):
                reason = f"{host} asked to wait {for_s:.0f} s"
                self._db.do("close_host", host=host, until=now + for_s, reason=reason)

    def closed(self) -> dict[str, float]:
        found: dict[str, float] = self._db.json("closed_hosts", now=self._db.now())
        return found

    def watched(self) -> dict[str, tuple[str, float]]:
        """Hosts that requests must ask about, or whose successes are to be told: state, and opens when."""
        found: dict[str, tuple[str, float]] = self._db.json("watched_hosts", now=self._db.now())
        return {host: (state, opens_at) for host, (state, opens_at) in found.items()}

    def note(self, told: Mapping[str, HostTold]) -> dict[str, tuple[str, float]]:
        """What became of requests to these hosts; answers with the hosts to be watched from now on."""
        with self._db.writing() as now:
            keys = {HOST + host: each for host, each in told.items()}
            before = locked_breakers(self._db, now, keys)
            after = {key: _after(before[key], key, each, now) for key, each in keys.items()}
            ledger = Ledger(self._db, now)
            write_breakers(self._db, ledger, before, after, {})
            ledger.write()
        return self.watched()

    def admit(self, hosts: Sequence[str]) -> list[RateDecision]:
        """May these requests go out, as far as their hosts' breakers go? One verdict for each.

        To a host that is tried again as many are let through as its ramp says, over all workers.
        """
        with self._db.writing() as now:
            before = found_breakers(self._db, sorted({HOST + host for host in hosts}))
            after = dict(before)
            verdicts = [self._admit(after, HOST + host, now) for host in hosts]
            ledger = Ledger(self._db, now)
            write_breakers(self._db, ledger, before, after, {})
            ledger.write()
        return verdicts

    def _admit(self, breakers: dict[str, Breaker], key: str, now: float) -> RateDecision:
        breaker = breakers.get(key)
        if breaker is None or breaker.state == "closed":
            return RateDecision(0.0)
        ramp = ramp_at(breaker.state, breaker.opens_at, breaker.ramp, now) or 0
        if not ramp:
            return RateDecision(breaker.opens_at - now, "breaker", breaker.reason)
        breaker = half_open(breaker, now)
        trying = breaker.trying if breaker.trying_until > now else 0
        if trying >= ramp:
            return RateDecision(ASK_AGAIN_S, "breaker", breaker.reason)
        breakers[key] = changed(breaker, trying=trying + 1, trying_until=now + TRYING_S)
        return RateDecision(0.0)

    def plan_hours(self, definitions: Mapping[str, str], actor: str) -> int:
        """Make these the hours of hosts; answers how many jobs are looked at again because theirs are others.

        Each of them is told the new time when it asks. Whoever is stopped on the way begins again: what a
        host's hours were is known until its last job is queued.
        """
        known: dict[str, str] = self._db.json("host_hours")
        woken = 0
        for host in sorted({*known, *definitions}):
            if known.get(host) != definitions.get(host):
                while batch := self._wake(host, actor):
                    woken += batch
                self._set_hours(host, definitions.get(host))
        return woken

    def _wake(self, host: str, actor: str) -> int:
        with self._db.writing() as now:
            found = self._db.json("put_off_for_host", host=host, limit=BATCH)
            ids = [job_id for job_id, _, _ in found]
            if not ids:
                return 0
            ledger = Ledger(self._db, now)
            self._db.do("wake_if_waiting", now=now, ids=to_json(ids))
            for _, run_id, stage in found:
                ledger.moved(run_id, stage, JobState.WAITING, JobState.QUEUED)
            ledger.journal_jobs(JobDue(host), ids, actor)
            ledger.write()
            return len(ids)

    def _set_hours(self, host: str, definition: str | None) -> None:
        with self._db.writing():
            if definition is None:
                self._db.do("drop_host_hours", host=host)
            else:
                self._db.do("set_host_hours", host=host, definition=definition)


def _after(breaker: Breaker, key: str, told: HostTold, now: float) -> Breaker:
    rule = told.rule
    buckets = [(part_of(rule, now - age_s), count, 0) for age_s, count in told.well]
    if told.failed:
        buckets.append((part_of(rule, now), 0, told.failed))
    if buckets:
        is_well = bool(told.well) and not told.failed
        reason = told.reason[:REASON_LENGTH]
        tally = Tally(tuple(buckets), 0, 0.0, reason, is_well, is_answer=told.is_answer)
        breaker = follow(breaker, tally, rule, HOST_RAMP, now, chance_of(key, now))
    if breaker.state != "half-open":
        return breaker
    return changed(breaker, trying=max(0, breaker.trying - told.back))
