"""Hosts as one worker sees them: which of them must be asked about, and what became of requests to them.

A host is asked about only while its breaker is not closed, and what went well is told only with something
that failed or while others count it: requests to hosts that are well cost the store nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from penstock.gates.breaker import PARTS, part_of, part_s
from penstock.gates.rates import RateDecision, RateRequest, Sent
from penstock.settings.values import BreakerSettings
from penstock.store.breaker_rows import HOST_RULE
from penstock.store.hosts import HostTold
from penstock.store.store import Store

# Hosts are forgotten, not counted for ever, by a worker that meets thousands of them.
MANY = 10_000


NO_RULES: Mapping[str, BreakerSettings | None] = MappingProxyType({})


class HostWatch:
    """Belongs to the loop, except for what is called in the store's thread and says so.

    `rules` are of the hosts whose breaker is not the usual one, None for those where it is off.
    """

    def __init__(self, rules: Mapping[str, BreakerSettings | None] = NO_RULES) -> None:
        self._rules = rules
        self._watched: Mapping[str, tuple[str, float]] = {}
        self._well: dict[str, Counter[int]] = {}
        self._failed: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self._unanswered: set[str] = set()
        self._trying: Counter[str] = Counter()
        self._back: Counter[str] = Counter()

    def learn(self, watched: Mapping[str, tuple[str, float]]) -> None:
        """Which hosts are watched, by the store."""
        self._watched = watched

    def is_guarded(self, want: RateRequest) -> bool:
        """Whether this request must ask before it goes out."""
        return want.has_breaker and self._is_broken(want.host)

    def _is_broken(self, host: str) -> bool:
        return host in self._watched and self._watched[host][0] != "closed"

    def _rule(self, host: str) -> BreakerSettings | None:
        """What its breaker is weighed by; None where it is off, and nobody has opened it by hand."""
        own = self._rules.get(host, HOST_RULE)
        if own is None and (self._is_broken(host) or self._trying[host] or self._back[host]):
            return HOST_RULE
        return own

    @property
    def has_news(self) -> bool:
        """Whether there is something to tell now."""
        return bool(self._failed or self._back) or any(host in self._watched for host in self._well)

    def note(self, want: RateRequest, sent: Sent, monotonic: float) -> bool:
        """What became of a request; True if the store should hear of it soon."""
        host = want.host
        if not host or not want.has_breaker or (rule := self._rule(host)) is None:
            return False
        is_a_try = self._trying[host] > 0
        if is_a_try:
            self._trying[host] -= 1
            self._back[host] += 1
        if sent.is_well is False and (is_a_try or not want.is_again):
            self._failed[host] += 1
            self._reasons[host] = sent.error
            if not sent.is_answer:
                self._unanswered.add(host)
        elif sent.is_well:
            self._count_well(host, part_of(rule, monotonic))
        return bool(self._back[host] or self._failed[host] or host in self._watched)

    def _count_well(self, host: str, part: int) -> None:
        if len(self._well) >= MANY and host not in self._well:
            self._well.clear()
        parts = self._well.setdefault(host, Counter())
        parts[part] += 1
        if len(parts) > PARTS + 1:
            del parts[min(parts)]

    def take(self, monotonic: float) -> dict[str, HostTold]:
        """What is to be told; it is told once."""
        hosts = {
            *self._failed,
            *self._back,
            *(host for host in self._well if host in self._watched),
        }
        told = {host: self._told(host, monotonic) for host in sorted(hosts)}
        for host in hosts:
            self._well.pop(host, None)
        self._failed.clear()
        self._reasons.clear()
        self._unanswered.clear()
        self._back.clear()
        return told

    def put_back(self, told: Mapping[str, HostTold]) -> None:
        """It could not be told: failures and places given back are kept for the next time."""
        for host, each in told.items():
            self._failed[host] += each.failed
            self._back[host] += each.back
        self._failed += Counter()
        self._back += Counter()

    def _told(self, host: str, monotonic: float) -> HostTold:
        rule = self._rule(host) or HOST_RULE
        ages = {part: monotonic - part * part_s(rule) for part in self._well.get(host, ())}
        # What went well longer ago than the window says nothing about now.
        well = [
            (max(0.0, age_s), self._well[host][part])
            for part, age_s in ages.items()
            if age_s <= rule.window_s
        ]
        is_answer = host not in self._unanswered
        reason = self._reasons.get(host, "")
        return HostTold(well, self._failed[host], self._back[host], reason, is_answer, rule)

    # In the store's thread.

    def admit(self, store: Store, wants: Sequence[RateRequest]) -> dict[int, RateDecision]:
        """Those of these requests whose host lets nothing more pass, by their place among them."""
        guarded = [index for index, want in enumerate(wants) if self.is_guarded(want)]
        if not guarded:
            return {}
        verdicts = store.hosts.admit([wants[index].host for index in guarded])
        shut = {}
        for index, verdict in zip(guarded, verdicts, strict=True):
            if verdict.gate:
                shut[index] = verdict
            else:
                self._trying[wants[index].host] += 1
        return shut

    def give_back(self, want: RateRequest) -> None:
        """It was let through here, and held back by something else."""
        if self._trying[want.host] > 0:
            self._trying[want.host] -= 1
            self._back[want.host] += 1
