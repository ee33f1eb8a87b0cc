"""Fetching: the only way out to the network, polite and on a short leash.

Every hop of a fetch passes the same gates in the same order: the URL is looked at, the host must
be open, robots.txt must allow it, the source's rate must have room; only then does it go out, to
an address that is checked again as it is resolved.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from penstock.clock import Clock
from penstock.gates.rates import LONGEST_WAIT_S, RateRequest, Sent
from penstock.http import encoding
from penstock.http.addresses import Target, host_key, look_at
from penstock.http.cookies import Cookie, Jar
from penstock.http.door import Door
from penstock.http.failures import (
    AddressRefused,
    BudgetSpent,
    ConnectionDropped,
    Disallowed,
    FetchError,
    HostClosed,
    Paced,
    RobotsUnreachable,
    safe_url,
)
from penstock.http.network import Network, RawResponse, Request, cookies_of
from penstock.http.reach import check_reach, headers_for, merged, reach_of
from penstock.http.redirects import REDIRECTS, Hop, follow
from penstock.http.request_gates import (
    NOBODY,
    Brought,
    Caller,
    Price,
    RequestGates,
    brought_by,
    rate_request,
    uncounted,
)
from penstock.http.request_limiter import RequestLimiter
from penstock.http.response import Response
from penstock.http.robots import Robots
from penstock.http.throttle import renewal_s

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

# They change nothing at the server, so a dropped one may be sent once more.
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})


class Fetcher:
    """Fetches pages for every source of one worker; hosts that ask for a pause close for them all."""

    def __init__(
        self, network: Network, clock: Clock, rng: random.Random, limiter: RequestLimiter
    ) -> None:
        self._network = network
        self._clock = clock
        self._gates = RequestGates(clock, rng, limiter)
        self._robots = Robots(network, clock, self._gates.pause_if_asked, self._send_elsewhere)

    async def fetch(
        self,
        url: str,
        policy: FetchPolicy,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,
        max_bytes: int | None = None,
        etag: str | None = None,
        last_modified: str | None = None,
        source: str = "",
        run_id: int = 0,
        is_again: bool = False,
        patience_s: float = inf,
        count: Callable[[Sent], None] = uncounted,
        idle: Callable[[], AbstractContextManager[None]] = nullcontext,
        session: Sequence[Cookie] | None = None,
        price: Price | None = None,
    ) -> Response:
        """Fetch one page, following redirects; anything but a 2xx (or a 304 asked for) raises.

        `source` names whose rate and budgets this request counts against; without it, the host's. Each
        request that went out is told to `count`. Nobody is waited for in line longer than `patience_s`.
        `idle` is entered while what others share is waited for. `session` are the cookies to go by; those
        that come are in the response. What has a `price` is an interface that is paid for, no page of a site:
        robots.txt says nothing of it.
        """
        if timeout_s is not None:
            policy = replace(policy, timeout_s=timeout_s)
        if max_bytes is not None:
            policy = replace(policy, max_bytes=min(max_bytes, policy.max_bytes))
        caller = Caller(source, run_id, is_again, patience_s, count, idle, price)
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

    def door(
        self,
        host: str,
        port: int,
        policy: FetchPolicy,
        caller: Caller = NOBODY,
        *,
        tls: bool = True,
        begin: Callable[[], Awaitable[None]] | None = None,
    ) -> Door:
        """The way out to one host for a protocol that is not HTTP; `begin` is awaited before each request."""
        return Door(self._network, self._gates, host, port, policy, caller, tls=tls, begin=begin)

    def close_host(self, host: str, until: float) -> None:
        """Send nothing to this host before `until` (UTC, seconds); never shortens a closure."""
        self._gates.close_host(host, until)

    def closed_until(self, host: str) -> float:
        """When the host opens again (UTC, seconds); 0.0 if it is open."""
        return self._gates.closed_until(host)

    async def close(self) -> None:
        await self._robots.close()
        await self._network.close()

    async def _send(self, hop: Hop, policy: FetchPolicy, caller: Caller) -> RawResponse:
        target = hop.target
        check_reach(target, policy)
        self._gates.check_open(target)
        if policy.robots and caller.price is None:
            await self._ask_robots(target, policy)
        async with self._gates.slots.taken((target.host_key, caller.source), policy.connections):
            return await self._send_in_slot(hop, policy, caller)

    async def _send_in_slot(self, hop: Hop, policy: FetchPolicy, caller: Caller) -> RawResponse:
        target = hop.target
        want, request = rate_request(target, policy, caller), _request(hop, policy)
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
        self._gates.check_open(target)
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
        caller: Caller,
        is_last: bool = True,
    ) -> RawResponse:
        send = partial(self._network.send, request)
        judge = brought_by if caller.price is None else partial(_priced, caller.price)
        return await self._gates.let_out(target, want, caller, send, judge, is_last=is_last)

    async def _ask_robots(self, target: Target, policy: FetchPolicy) -> None:
        if not self._robots.is_known(target, policy):
            host = target.host_key
            await self._gates.ask(
                target, RateRequest(host, None, host, has_breaker=False, is_uncounted=True)
            )
        if not await self._robots.is_allowed(target, policy):
            raise Disallowed("robots.txt disallows it", target.text)

    def _answer(self, url: str, hop: Hop, raw: RawResponse, is_conditional: bool) -> Response:
        is_unchanged = raw.status == 304 and is_conditional
        if not (200 <= raw.status < 300 or is_unchanged):
            raise self._gates.failure_of(hop.target, raw)
        if (renewal := renewal_s(raw.headers, self._clock.now())) is not None:
            # This was the last request of its limit: the next one would be refused.
            self._gates.pause(hop.target.host_key, renewal)
        return Response(
            hop.target.text,
            url,
            raw.status,
            raw.headers,
            raw.body,
            self._clock.now(),
            not_modified=is_unchanged,
        )


def _priced(price: Price, raw: RawResponse) -> Brought:
    return brought_by(raw)._replace(money=price.of(raw))


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
    """All request headers."""
    usual = {
        "Accept": "*/*",
        "Accept-Encoding": encoding.ACCEPTED,
        "User-Agent": policy.user_agent,
    }
    return merged(usual, *headers_for(target, policy), own or {}, conditions)


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
