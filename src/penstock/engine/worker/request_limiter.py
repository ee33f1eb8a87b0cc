"""The request limiter: requests that wait for what is bounded ask the store for it, all of them in one call.

While one call is under way, the next requests pile up and share the next one. The calls are made in the
thread and over the connection of the worker's turns: a second writer in the same process would wait
with it for the one lock of SQLite, and would look to it like somebody who has work for it.

What this worker has reserved and not used yet is known here, and is said in full with each call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import inf
from types import MappingProxyType

from penstock.engine.worker.calls import Calls
from penstock.engine.worker.hosts import HostWatch
from penstock.engine.worker.store_backoff import RETRY_S, StoreBackoff
from penstock.errors import StoreError
from penstock.gates.admission import IN_LINE, Report, reservations, spendings, usage_key
from penstock.gates.project_terms import NO_RULES, ProjectTerms
from penstock.gates.rates import (
    LONGEST_WAIT_S,
    NOTHING_SENT,
    RateDecision,
    RateRequest,
    Sent,
    latest_s,
)
from penstock.settings.budget import Bound
from penstock.store.hosts import HostTold
from penstock.store.store import Store

# Who waits for what others have reserved is told to come back after this long.
LONGEST_LINE_S = 30.0
# After a call as long as it took is waited for more to ask together, but no longer than this.
REST_S = 0.005
# What has settled is told after this long, with whatever else there is to say.
LET_GO_S = 0.25
# By more than this the store's clock does not run ahead of ours unless it was set.
JUMP_S = 0.5
# The quickest of so many calls says how long an answer of the store is on its way.
CALLS_KEPT = 8
NOTHING_TOLD: Mapping[str, HostTold] = MappingProxyType({})


@dataclass(eq=False, slots=True)
class _Asked:
    want: RateRequest
    answer: asyncio.Future[RateDecision]
    patience: asyncio.Timeout | None = None
    is_in_line: bool = False

    def bounded(self, wait_s: float) -> float:
        return min(wait_s, self.want.patience_s)

    def line_up(self) -> None:
        """There is nobody to blame for the wait but others like this one: it may take longer."""
        if not self.is_in_line and self.patience is not None and not self.patience.expired():
            ends_at = self.patience.when()
            if ends_at is not None:
                longer_s = self.bounded(LONGEST_LINE_S) - self.bounded(LONGEST_WAIT_S)
                self.patience.reschedule(ends_at + longer_s)
        self.is_in_line = True


class StoreRequestLimiter:
    """Limits the requests of all workers of all hosts; the store keeps the count."""

    def __init__(
        self,
        store: Store,
        calls: Calls,
        rules: ProjectTerms = NO_RULES,
        worker: str = "",
        backoff: StoreBackoff | None = None,
    ) -> None:
        self._store = store
        self._calls = calls
        self.rules = rules
        self._worker = worker
        self._asked: list[_Asked] = []
        self._in_line: list[_Asked] = []
        self._closings: dict[str, float] = {}
        self._held: dict[str, float] = {}
        self._spent: list[tuple[Bound, float]] = []
        self._has_news = False
        self._delays_s: deque[float] = deque(maxlen=CALLS_KEPT)
        self._ahead_s: float | None = None
        self._jumped_at = -inf
        # When each source was let out last, counted in requests.
        self._served: dict[str, int] = {}
        self._turn = 0
        self.hosts = HostWatch(rules.breakers)
        self._asking: asyncio.Task[None] | None = None
        self._looking: asyncio.TimerHandle | None = None
        self.backoff = backoff

    async def ask(self, want: RateRequest) -> RateDecision:
        """May this request go out, and when?

        Nothing goes out that the store did not let out. While it can't be asked, requests wait as
        long as they would for a place, and are then told to come back. Who is let out says afterwards
        what became of it, or keeps from others what was reserved for it.
        """
        want = self._with_terms(want)
        if not self._is_bounded(want):
            return RateDecision(0.0)
        asked = _Asked(want, asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        self._begin()
        try:
            async with asyncio.timeout(asked.bounded(LONGEST_WAIT_S)) as asked.patience:
                return await asked.answer
        except TimeoutError:
            self._forgo(asked)
            return RateDecision(LONGEST_WAIT_S, "turn" if asked.is_in_line else "store")
        except BaseException:
            self._forgo(asked)
            raise

    def is_late(self, want: RateRequest, verdict: RateDecision, now: float) -> bool:
        """Whether the place of this request is over: it stood still, or the store's clock was put forward.

        What the store's answers always take is no delay of this request, or a slow link would never send.
        """
        want = self._with_terms(want)
        if not want.rates:
            return False
        late_s = now - (verdict.given_at + verdict.wait_s)
        usual_s = min(self._delays_s, default=0.0)
        return verdict.given_at < self._jumped_at or late_s > usual_s + latest_s(want)

    def _note_time(self, verdict: RateDecision) -> None:
        self._delays_s.append(asyncio.get_running_loop().time() - verdict.given_at)
        ahead_s = verdict.now - verdict.given_at
        if self._ahead_s is not None and ahead_s > self._ahead_s + JUMP_S:
            # To the store the places that it gave before are past, and it gives them again.
            self._jumped_at = verdict.given_at
        self._ahead_s = ahead_s

    def _forgo(self, asked: _Asked) -> None:
        """Nobody waits for this answer any more: what it brought is given back."""
        if not asked.answer.done():
            asked.answer.cancel()
        elif not asked.answer.cancelled() and not asked.answer.result().gate:
            self.told(asked.want, NOTHING_SENT)

    def told(self, want: RateRequest, sent: Sent) -> None:
        """What became of a request that was let out: it gives back what it held, and says what it used."""
        want = self._with_terms(want)
        held = reservations(want)
        for key, amount in held.items():
            self._let_go(key, amount)
        if sent.is_void and want.run_id:
            self._let_go(usage_key(want.run_id), 1.0)
        spent = spendings(want, sent)
        if held or spent:
            self._spent += spent
            self._has_news = True
        with suppress(RuntimeError):  # its loop is gone, and this worker with it
            now = asyncio.get_running_loop().time()
            if self.hosts.note(want, sent, now) or held or spent:
                self._begin()

    def settled(self, run_id: int, requests: float) -> None:
        """These requests are put down with their run: they need not be remembered for it any more."""
        key = usage_key(run_id)
        if requests and key in self._held:
            self._let_go(key, requests)
            self._has_news = True
            if self._looking is None:
                self._look_again(LET_GO_S)

    def _let_go(self, key: str, amount: float) -> None:
        self._held[key] = max(0.0, self._held.get(key, 0.0) - amount)

    def _with_terms(self, want: RateRequest) -> RateRequest:
        if want.is_uncounted:
            terms = self.rules.hours(want.host)
        elif want.is_of_host:
            terms = self.rules.limits(want.host)
        else:
            terms = self.rules.terms(want.key, want.host, want.run_id)
        return replace(want, terms=terms) if terms else want

    def _is_bounded(self, want: RateRequest) -> bool:
        """Whether anything of this request is for the store to decide."""
        return bool(want.rate_per_s or want.terms) or self.hosts.is_guarded(want)

    def close(self, host: str, for_s: float) -> None:
        """Tell all workers of all hosts that this one asked to be left alone."""
        self._closings[host] = max(for_s, self._closings.get(host, 0.0))
        self._begin()

    def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        if self._asking is not None:
            self._asking.cancel()

    async def settle(self) -> None:
        """Say what was used last, before the worker goes: what it holds then counts as used."""
        while self._asking is not None and not self._asking.done():
            await asyncio.wait([self._asking])
        if self._has_news:
            report, self._spent, self._has_news = self._report(), [], False
            await self._calls(lambda: self._exchange([], {}, report))

    def _begin(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._ask_all())

    async def _ask_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._has_business():
            batch = self._waiting()
            closings, self._closings = self._closings, {}
            report, self._spent, self._has_news = self._report(), [], False
            self._asked, self._in_line = [], []
            began = loop.time()
            try:
                await self._ask_for(batch, closings, report)
                # Who asks next meanwhile shares the next call: each costs the same, for however few.
                await asyncio.sleep(min(loop.time() - began, REST_S))
            except StoreError as error:
                self._asked = [*batch, *self._asked]
                self._closings = closings | self._closings
                self._spent = [*report.spent, *self._spent]
                self._has_news = self._has_news or bool(report)
                await asyncio.sleep(self._wait_s(error))

    def _report(self) -> Report:
        return Report(self._worker, dict(self._held), list(self._spent))

    def _has_business(self) -> bool:
        is_asked = any(not asked.answer.done() for asked in self._asked)
        return is_asked or bool(self._closings) or self._has_news or self.hosts.has_news

    def _waiting(self) -> list[_Asked]:
        """Who waits for an answer, one of each source in turn, who was served least recently first.

        Who gave up needs nothing any more. Within a source, who stands in line comes first.
        """
        lines: dict[str, deque[_Asked]] = {}
        for asked in (*self._in_line, *self._asked):
            if not asked.answer.done():
                lines.setdefault(asked.want.key, deque()).append(asked)
        if len(lines) == 1:
            return list(*lines.values())
        order = sorted(lines, key=lambda key: self._served.get(key, 0))
        rounds = zip_longest(*(lines[key] for key in order))
        return [asked for each in rounds for asked in each if asked is not None]

    async def _ask_for(
        self, batch: list[_Asked], closings: dict[str, float], report: Report
    ) -> None:
        wants = [asked.want for asked in batch]
        told = self.hosts.take(asyncio.get_running_loop().time())
        try:
            verdicts = await self._calls(lambda: self._exchange(wants, closings, report, told))
        except StoreError:
            self.hosts.put_back(told)
            raise
        for key, amount in report.held.items():
            if amount <= 0 and self._held.get(key) == 0.0:
                del self._held[key]  # it was said that nothing is held of it
        timed = next((verdict for verdict in verdicts if verdict.now), None)
        if timed is not None:
            self._note_time(timed)
        looks_in_s = []
        for asked, verdict in zip(batch, verdicts, strict=True):
            if not verdict.gate:
                self._served[asked.want.key] = self._turn = self._turn + 1
                for key, amount in _taken_by(asked.want).items():
                    self._held[key] = self._held.get(key, 0.0) + amount
            if asked.answer.done():
                if not verdict.gate:
                    self.told(asked.want, NOTHING_SENT)
            elif verdict.gate in IN_LINE:
                asked.line_up()
                self._in_line.append(asked)
                looks_in_s.append(verdict.wait_s)
            else:
                asked.answer.set_result(verdict)
        if looks_in_s:
            self._look_again(min(looks_in_s))

    def _look_again(self, in_s: float) -> None:
        """What is reserved by other workers comes free without our hearing of it."""
        if self._looking is not None:
            self._looking.cancel()
        self._looking = asyncio.get_running_loop().call_later(in_s, self._look)

    def _look(self) -> None:
        self._looking = None
        self._has_news = self._has_news or bool(self._in_line)
        self._begin()

    def _exchange(
        self,
        wants: list[RateRequest],
        closings: dict[str, float],
        report: Report,
        told: Mapping[str, HostTold] = NOTHING_TOLD,
    ) -> list[RateDecision]:
        """In the store's thread."""
        if self.backoff is not None:
            self.backoff.mend()
        if closings:
            self._store.hosts.close(closings)
        if told:
            self.hosts.learn(self._store.hosts.note(told))
        shut = self.hosts.admit(self._store, wants)
        left = [want for index, want in enumerate(wants) if index not in shut]
        given = iter(self._reserve(left, report))
        return [shut[index] if index in shut else next(given) for index in range(len(wants))]

    def _reserve(self, wants: list[RateRequest], report: Report) -> list[RateDecision]:
        if not report and not any(want.rate_per_s or want.terms for want in wants):
            return [RateDecision(0.0) for _ in wants]
        verdicts = self._store.hosts.reserve(wants, report)
        for want, verdict in zip(wants, verdicts, strict=True):
            if verdict.gate:
                self.hosts.give_back(want)
        return verdicts

    def _wait_s(self, error: StoreError) -> float:
        # What can't be waited for ends the worker: its next turn meets it too.
        with suppress(StoreError):
            if self.backoff is not None:
                return self.backoff.wait_s(error)
        return RETRY_S


def _taken_by(want: RateRequest) -> dict[str, float]:
    """All that is held for a request from when the store lets it out."""
    usage = {usage_key(want.run_id): 1.0} if want.run_id else {}
    return reservations(want) | usage
