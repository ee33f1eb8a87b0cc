"""Fetching: the only way out to the network, polite and on a short leash.

Every hop of a fetch passes the same gates in the same order: the URL is looked at, the host must
be open, robots.txt must allow it, the source's rate must have room; only then does it go out, to
an address that is checked again as it is resolved.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from penstock.clock import Clock
from penstock.gates.rates import LONGEST_WAIT_S, NOTHING_SENT, RateDecision, RateRequest, Sent
from penstock.http import encoding
from penstock.http.addresses import Target, host_key, look_at
from penstock.http.cookies import Cookie, Jar
from penstock.http.failures import (
    AddressRefused,
    BudgetSpent,
    ConnectionDropped,
    Disallowed,
    FetchError,
    HostBroken,
    HostClosed,
    HostOutside,
    Kind,
    Paced,
    RobotsUnreachable,
    safe_url,
)
from penstock.http.host_slots import HostSlots
from penstock.http.network import Network, RawResponse, Request, cookies_of
from penstock.http.reach import check_reach, headers_for, reach_of
from penstock.http.redirects import REDIRECTS, Hop, follow
from penstock.http.request_limiter import RequestLimiter
from penstock.http.response import Response
from penstock.http.retry_after import DEFAULT_S, MOST_S
from penstock.http.robots import Robots
from penstock.http.throttle import CLOSING, REFUSED_S, is_throttle, pause_s, renewal_s

if TYPE_CHECKING:
    from penstock.settings import FetchPolicy

__all__ = [
    "AddressRefused",
    "BudgetSpent",
    "Disallowed",
    "FetchError",
    "Fetcher",
    "HostClosed",
    "Paced",
    "Response",
    "RobotsUnreachable",
    "host_key",
    "safe_url",
]

_AUTH = frozenset({401, 403, 407, 511})
_TRANSIENT = frozenset({408, 425})
# Who has missed so many places in a row leaves, and comes back later.
MOST_ASKS = 20
# They change nothing at the server, so a dropped one may be sent once more.
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})


def _uncounted(sent: Sent) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class _Caller:
    """On whose account a request goes out; `idle` stops the caller's time while others are waited for."""

    source: str = ""
    run_id: int = 0
    is_again: bool = False
    patience_s: float = inf
    count: Callable[[Sent], None] = _uncounted
    idle: Callable[[], AbstractContextManager[None]] = nullcontext


NOBODY = _Caller()


class Fetcher:
    """Fetches pages for every source of one worker; hosts that ask for a pause close for them all."""

    def __init__(
        self, network: Network, clock: Clock, rng: random.Random, limiter: RequestLimiter
    ) -> None:
        self._network = network
        self._clock = clock
        self._rng = rng
        self._limiter = limiter
        self._robots = Robots(network, clock, self._pause, self._send_elsewhere)
        self._closed: dict[str, float] = {}
        self._slots = HostSlots()

    async def fetch(
        self,
        url: str,
        policy: FetchPolicy,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,
        etag: str | None = None,
        last_modified: str | None = None,
        source: str = "",
        run_id: int = 0,
        is_again: bool = False,
        patience_s: float = inf,
        count: Callable[[Sent], None] = _uncounted,
        idle: Callable[[], AbstractContextManager[None]] = nullcontext,
        session: Sequence[Cookie] | None = None,
    ) -> Response:
        """Fetch one page, following redirects; anything but a 2xx (or a 304 asked for) raises.

        `source` names whose rate and budgets this request counts against; without it, the host's. Each
        request that went out is told to `count`. Nobody is waited for in line longer than `patience_s`.
        `idle` is entered while what others share is waited for. `session` are the cookies to go by; those
        that come are in the response.
        """
        if timeout_s is not None:
            policy = replace(policy, timeout_s=timeout_s)
        caller = _Caller(source, run_id, is_again, patience_s, count, idle)
        conditions = _conditions(etag, last_modified)
        target = look_at(url)
        hop = Hop(method.upper(), target, _headers(target, policy, headers, conditions), body)
        own = reach_of(policy.addresses, policy.hosts).own
        jar = None if session is None else Jar(session, own, self._clock.now())
        for _ in range(policy.max_redirects + 1):
            raw = await self._send(hop if jar is None else jar.on(hop), policy, caller)
            if jar is not None:
                jar.learn(hop.target, cookies_of(raw))
            if raw.status not in REDIRECTS:
                found = self._answer(url, hop, raw, bool(conditions))
                return found if jar is None else replace(found, cookies=tuple(jar.learned))
            hop = follow(hop, raw.status, raw.headers.get("location", ""))
        message = f"more than {policy.max_redirects} redirects"
        raise FetchError(message, url, raw.status, is_permanent=True)

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

    async def close(self) -> None:
        await self._robots.close()
        await self._network.close()

    async def _send(self, hop: Hop, policy: FetchPolicy, caller: _Caller) -> RawResponse:
        target = hop.target
        check_reach(target, policy)
        self._check_open(target)
        if policy.robots:
            await self._ask_robots(target, policy)
        async with self._slots.taken((target.host_key, caller.source), policy.connections):
            return await self._send_in_slot(hop, policy, caller)

    async def _send_in_slot(self, hop: Hop, policy: FetchPolicy, caller: _Caller) -> RawResponse:
        target = hop.target
        want, request = _want(target, policy, caller), _request(hop, policy)
        if hop.method not in _REPEATABLE:
            return await self._let_out(target, want, request, caller)
        try:
            return await self._let_out(target, want, request, caller, is_last=False)
        except ConnectionDropped:
            # Servers close kept connections at any moment. The repetition is a request like any other.
            return await self._let_out(target, want, request, caller)

    async def _send_elsewhere(
        self, target: Target, request: Request, policy: FetchPolicy
    ) -> RawResponse:
        """Of robots.txt, which counts against no source: the host that it was moved to has its gates, too."""
        check_reach(target, policy)
        self._check_open(target)
        host = target.host_key
        # All who need it wait for it together, and one of them may have little time left.
        want = RateRequest(
            host,
            None,
            host,
            has_breaker=policy.has_breaker,
            is_of_host=True,
            patience_s=LONGEST_WAIT_S,
        )
        return await self._let_out(target, want, request, NOBODY)

    async def _let_out(
        self,
        target: Target,
        want: RateRequest,
        request: Request,
        caller: _Caller,
        is_last: bool = True,
    ) -> RawResponse:
        with caller.idle():
            await self._wait_for_place(target, want)
        meter = _Meter(self._clock, is_last)
        try:
            self._check_open(target)
            return await meter.send(self._network, request)
        finally:
            # Whatever became of it: what was reserved for it is given back.
            self._limiter.told(want, meter.sent)
            if not meter.sent.is_void:
                caller.count(meter.sent)

    async def _wait_for_place(self, target: Target, want: RateRequest) -> None:
        """Return when it may go out. Who comes too late for its place gives it back, and asks again."""
        for _ in range(MOST_ASKS):
            verdict = await self._ask(target, want)
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

    def _check_open(self, target: Target) -> None:
        if self._closed and (until := self.closed_until(target.host_key)):
            raise HostClosed(target.host_key, until - self._clock.now(), target.text)

    async def _ask_robots(self, target: Target, policy: FetchPolicy) -> None:
        if not self._robots.is_known(target, policy):
            host = target.host_key
            await self._ask(
                target, RateRequest(host, None, host, has_breaker=False, is_uncounted=True)
            )
        if not await self._robots.is_allowed(target, policy):
            raise Disallowed("robots.txt disallows it", target.text)

    async def _ask(self, target: Target, want: RateRequest) -> RateDecision:
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

    def _answer(self, url: str, hop: Hop, raw: RawResponse, is_conditional: bool) -> Response:
        is_unchanged = raw.status == 304 and is_conditional
        if not (200 <= raw.status < 300 or is_unchanged):
            raise self._failure(hop.target, raw)
        if (renewal := renewal_s(raw.headers, self._clock.now())) is not None:
            # This was the last request of its limit: the next one would be refused.
            self._close(hop.target, renewal)
        return Response(
            hop.target.text,
            url,
            raw.status,
            raw.headers,
            raw.body,
            self._clock.now(),
            not_modified=is_unchanged,
        )

    def _failure(self, target: Target, raw: RawResponse) -> FetchError:
        delay_s = self._pause(target, raw)
        if delay_s is not None:
            return HostClosed(target.host_key, delay_s, target.text, raw.status)
        is_permanent = raw.status < 500 and raw.status not in _TRANSIENT
        kind: Kind | None = "auth" if raw.status in _AUTH else None
        return FetchError(f"status {raw.status}", target.text, raw.status, is_permanent, kind)

    def _pause(self, target: Target, raw: RawResponse) -> float | None:
        """Close a host that asks for a pause, for everybody; answers for how long."""
        if not is_throttle(raw.status, raw.headers, raw.body):
            return None
        delay_s = self._delay_s(raw)
        self._close(target, delay_s)
        return delay_s

    def _close(self, target: Target, delay_s: float) -> None:
        self.close_host(target.host_key, self._clock.now() + delay_s)
        # Here and not where the attempt ends: a step may catch the error, and go on.
        self._limiter.close(target.host_key, delay_s)

    def _delay_s(self, raw: RawResponse) -> float:
        asked_s = pause_s(raw.headers, self._clock.now())
        if asked_s is not None:
            return asked_s
        # Nobody named a time, so workers that were turned away together need not return together.
        least_s = DEFAULT_S if raw.status in CLOSING else REFUSED_S
        return min(MOST_S, least_s * (1.0 + 0.25 * self._rng.random()))


class _Meter:
    """What one request took, and what it brought as far as is known."""

    def __init__(self, clock: Clock, is_last: bool) -> None:
        self._clock = clock
        self._is_last = is_last
        self.sent = NOTHING_SENT

    async def send(self, network: Network, request: Request) -> RawResponse:
        began, received = self._clock.monotonic(), 0
        is_well: bool | None = None
        told, is_answer = "", False
        try:
            raw = await network.send(request)
            received = len(raw.body) + raw.head_bytes
            told, is_answer = f"status {raw.status}", True
            # Who asks for a pause is heard in another way, and is there.
            is_asking = is_throttle(raw.status, raw.headers, raw.body)
            is_well = None if is_asking else raw.status < 500
            return raw
        except (FetchError, TimeoutError) as error:
            received, told = getattr(error, "received", 0), str(error) or "timed out"
            is_judged = self._is_last or not isinstance(error, ConnectionDropped)
            is_well = None if getattr(error, "is_permanent", False) or not is_judged else False
            raise
        finally:
            seconds = self._clock.monotonic() - began
            self.sent = Sent(is_well, received, seconds, told, is_answer)


def _want(target: Target, policy: FetchPolicy, caller: _Caller) -> RateRequest:
    return RateRequest(
        caller.source or target.host_key,
        policy.rate_per_s,
        target.host_key,
        caller.run_id,
        policy.max_bytes,
        policy.timeout_s,
        has_breaker=policy.has_breaker,
        is_again=caller.is_again,
        patience_s=caller.patience_s,
    )


def _conditions(etag: str | None, last_modified: str | None) -> dict[str, str]:
    conditions = {}
    if etag:
        conditions["If-None-Match"] = etag
    if last_modified:
        conditions["If-Modified-Since"] = last_modified
    return conditions


def _headers(
    target: Target,
    policy: FetchPolicy,
    own: Mapping[str, str] | None,
    conditions: dict[str, str],
) -> dict[str, str]:
    """All request headers; a later one replaces an earlier of the same name in any case."""
    headers = {
        "Accept": "*/*",
        "Accept-Encoding": encoding.ACCEPTED,
        "User-Agent": policy.user_agent,
    }
    for extra in (*headers_for(target, policy), own or {}, conditions):
        for name, value in extra.items():
            same = next((known for known in headers if known.lower() == name.lower()), name)
            headers.pop(same, None)
            headers[name] = value
    return headers


def _request(hop: Hop, policy: FetchPolicy) -> Request:
    return Request(
        hop.method,
        hop.target.text,
        hop.headers,
        hop.body,
        policy.timeout_s,
        policy.max_bytes,
        policy.allow_private,
        proxy=policy.proxy,
    )
