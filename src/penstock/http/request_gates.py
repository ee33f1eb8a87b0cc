"""The gates that every request passes before it goes out, whatever its protocol.

The host must be open, and its limits, the source's rate, the budgets and the host's breaker must have room.
What became of the request is reported to the same gates.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from penstock.clock import Clock
from penstock.gates.rates import LONGEST_WAIT_S, NOTHING_SENT, RateDecision, RateRequest, Sent
from penstock.http.addresses import Target
from penstock.http.failures import (
    BudgetSpent,
    ConnectionDropped,
    FetchError,
    HostBroken,
    HostClosed,
    HostOutside,
    Kind,
    Paced,
)
from penstock.http.host_slots import HostSlots
from penstock.http.network import RawResponse
from penstock.http.request_limiter import RequestLimiter
from penstock.http.retry_after import DEFAULT_S, MOST_S
from penstock.http.throttle import CLOSING, REFUSED_S, is_throttle, pause_s

if TYPE_CHECKING:
    from penstock.settings import FetchPolicy

# Who has missed so many places in a row leaves, and comes back later.
MOST_ASKS = 20
_AUTH = frozenset({401, 403, 407, 511})
_TRANSIENT = frozenset({408, 425})
Answer = TypeVar("Answer")


def uncounted(sent: Sent) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a request may take of budgets of money at the most, and `of` its answer what it has taken.

    The most is counted before it goes out, so that no budget is passed, whoever else asks at the same time.
    """

    most: float
    of: Callable[[RawResponse], float]


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose account a request goes out; `idle` stops the caller's time while others are waited for."""

    source: str = ""
    run_id: int = 0
    is_again: bool = False
    patience_s: float = inf
    count: Callable[[Sent], None] = uncounted
    idle: Callable[[], AbstractContextManager[None]] = nullcontext
    price: Price | None = None


NOBODY = Caller()


class Brought(NamedTuple):
    """What an answer says of its host (None: nothing), and how many bytes came with it."""

    is_well: bool | None
    bytes: int
    words: str
    money: float = 0.0


def brought_by(raw: RawResponse) -> Brought:
    # Who asks for a pause is heard in another way, and is there.
    is_asking = is_throttle(raw.status, raw.headers, raw.body)
    is_well = None if is_asking else raw.status < 500
    return Brought(is_well, len(raw.body) + raw.head_bytes, f"status {raw.status}")


def rate_request(target: Target, policy: FetchPolicy, caller: Caller) -> RateRequest:
    """What the gates are asked for a request of a source."""
    return RateRequest(
        caller.source or target.host_key,
        policy.rate_per_s,
        target.host_key,
        caller.run_id,
        policy.max_bytes,
        policy.timeout_s,
        most_money=caller.price.most if caller.price is not None else 0.0,
        has_breaker=policy.has_breaker,
        is_again=caller.is_again,
        patience_s=caller.patience_s,
    )


class RequestGates:
    """The gates of one worker; hosts that ask for a pause close for all of its sources."""

    def __init__(self, clock: Clock, rng: random.Random, limiter: RequestLimiter) -> None:
        self._clock = clock
        self._rng = rng
        self._limiter = limiter
        self._closed: dict[str, float] = {}
        self.slots = HostSlots()

    def close_host(self, host: str, until: float) -> None:
        """Send nothing to this host before `until` (UTC, seconds); never shortens a closure."""
        self._closed[host] = max(until, self._closed.get(host, 0.0))

    def closed_until(self, host: str) -> float:
        """When the host opens again (UTC, seconds); 0.0 if it is open."""
        until = self._closed.get(host, 0.0)
        if until and until <= self._clock.now():
            del self._closed[host]
            return 0.0
        return until

    def pause(self, host: str, delay_s: float | None = None, least_s: float = DEFAULT_S) -> float:
        """Close a host that asks for a pause, for everybody; answers for how long.

        Where nobody named a time, workers that were turned away together need not return together.
        """
        if delay_s is None:
            delay_s = least_s * (1.0 + 0.25 * self._rng.random())
        delay_s = min(MOST_S, delay_s)
        self.close_host(host, self._clock.now() + delay_s)
        # Here and not where the attempt ends: a step may catch the error, and go on.
        self._limiter.close(host, delay_s)
        return delay_s

    def pause_if_asked(self, target: Target, raw: RawResponse) -> float | None:
        """The same for an answer that asks for it."""
        if not is_throttle(raw.status, raw.headers, raw.body):
            return None
        asked_s = pause_s(raw.headers, self._clock.now())
        least_s = DEFAULT_S if raw.status in CLOSING else REFUSED_S
        return self.pause(target.host_key, asked_s, least_s)

    def failure_of(self, target: Target, raw: RawResponse) -> FetchError:
        """What an answer means that is none of those asked for."""
        delay_s = self.pause_if_asked(target, raw)
        if delay_s is not None:
            return HostClosed(target.host_key, delay_s, target.text, raw.status)
        is_permanent = raw.status < 500 and raw.status not in _TRANSIENT
        kind: Kind | None = "auth" if raw.status in _AUTH else None
        return FetchError(f"status {raw.status}", target.text, raw.status, is_permanent, kind)

    def check_open(self, target: Target) -> None:
        if self._closed and (until := self.closed_until(target.host_key)):
            raise HostClosed(target.host_key, until - self._clock.now(), target.text)

    async def let_out(
        self,
        target: Target,
        want: RateRequest,
        caller: Caller,
        send: Callable[[], Awaitable[Answer]],
        judge: Callable[[Answer], Brought],
        *,
        is_last: bool = True,
    ) -> Answer:
        """What `send` answers, once it may go out. `is_last`: that it is dropped counts against the host."""
        with caller.idle():
            await self._wait_for_place(target, want)
        meter = _Meter(self._clock, is_last)
        try:
            self.check_open(target)
            return await meter.measure(send, judge)
        finally:
            # Whatever became of it: what was reserved for it is given back.
            self._limiter.told(want, meter.sent)
            if not meter.sent.is_void:
                caller.count(meter.sent)

    async def ask(self, target: Target, want: RateRequest) -> RateDecision:
        """When it may go out."""
        verdict = await self._limiter.ask(want)
        if verdict.gate == "window":
            raise HostOutside(target.host_key, verdict.wait_s, target.text)
        if verdict.gate == "budget":
            raise BudgetSpent(verdict.reason, target.text)
        if verdict.gate == "breaker":
            raise HostBroken(target.host_key, verdict.wait_s, target.text)
        if verdict.gate:
            raise Paced(target.host_key, verdict.wait_s, target.text)
        return verdict

    async def _wait_for_place(self, target: Target, want: RateRequest) -> None:
        """Return when it may go out. Who comes too late for its place gives it back, and asks again."""
        for _ in range(MOST_ASKS):
            verdict = await self.ask(target, want)
            is_in_time = False
            try:
                if verdict.wait_s > 0.0:
                    await asyncio.sleep(verdict.wait_s)
                is_in_time = not self._limiter.is_late(want, verdict, self._clock.monotonic())
            finally:
                if not is_in_time:
                    self._limiter.told(want, NOTHING_SENT)
            if is_in_time:
                return
        raise Paced(target.host_key, LONGEST_WAIT_S, target.text)


class _Meter:
    """What one request took, and what it brought as far as is known."""

    def __init__(self, clock: Clock, is_last: bool) -> None:
        self._clock = clock
        self._is_last = is_last
        self.sent = NOTHING_SENT

    async def measure(
        self, send: Callable[[], Awaitable[Answer]], judge: Callable[[Answer], Brought]
    ) -> Answer:
        began = self._clock.monotonic()
        brought, is_answer = Brought(None, 0, ""), False
        try:
            answer = await send()
            brought, is_answer = judge(answer), True
            return answer
        except (FetchError, TimeoutError) as error:
            is_judged = self._is_last or not isinstance(error, ConnectionDropped)
            is_well = None if getattr(error, "is_permanent", False) or not is_judged else False
            brought = Brought(is_well, getattr(error, "received", 0), str(error) or "timed out")
            raise
        finally:
            seconds = self._clock.monotonic() - began
            self.sent = Sent(
                brought.is_well,
                brought.bytes,
                seconds,
                brought.words,
                is_answer,
                money=brought.money,
            )
