"""robots.txt by RFC 9309: what a site asks crawlers to leave alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.clock import Clock
from penstock.http import encoding
from penstock.http.addresses import Target, look_at
from penstock.http.failures import (
    AddressRefused,
    Disallowed,
    FetchError,
    HostClosed,
    RobotsUnreachable,
)
from penstock.http.network import Network, RawResponse, Request
from penstock.http.pace import Aside
from penstock.http.redirects import REDIRECTS, Hop, follow
from penstock.http.robots_rules import AgentRules, rules_for

if TYPE_CHECKING:
    from penstock.settings import FetchPolicy

FRESH_S = 24 * 3600.0
# Long enough to spare a struggling server, short enough that a retry may find it well again.
UNREACHABLE_S = 10.0
MAX_BYTES = 500 * 1024
MAX_REDIRECTS = 5
MAX_ORIGINS = 1000
# What all rules together may take in memory.
MAX_KNOWN_BYTES = 32_000_000
# What is longer is parsed in a thread: it may take more than a few milliseconds.
SHORT = 8_192

# Whose rules: those of an origin, for a user agent.
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """What is known of one origin. Without `parsed` everything is allowed, unless `unreachable` or `shut`.

    `shut`: who was asked, or would have been, is to be left alone until `opens`.
    """

    until: float
    parsed: AgentRules | None = None
    unreachable: str = ""
    shut: HostClosed | None = None
    opens: float = 0.0

    @property
    def size(self) -> int:
        return self.parsed.size if self.parsed else 0


# Told who answered and what; answers for how long that one is closed, None if it did not ask for a pause.
Pause = Callable[[Target, RawResponse], float | None]
# Sends a request to another host than the origin's, when that host's gates let it out.
Elsewhere = Callable[[Target, Request, "FetchPolicy"], Awaitable[RawResponse]]


def _no_pause(_: Target, __: RawResponse) -> None:
    """Nobody is there to close a host."""


class Robots:
    """Answers whether a URL may be fetched; reads each origin's robots.txt once a day.

    However many ask at once, one request goes out. An origin whose robots.txt can't be had is
    closed to us, except that rules read earlier go on holding until they can be read again.
    """

    def __init__(
        self,
        network: Network,
        clock: Clock,
        pause: Pause = _no_pause,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._network = network
        self._clock = clock
        self._pause = pause
        self._elsewhere = elsewhere
        self._known: dict[Key, RobotsRules] = {}
        self._known_bytes = 0
        self._reading: dict[Key, asyncio.Task[RobotsRules]] = {}
        self._aside = Aside()

    def is_known(self, target: Target, policy: FetchPolicy) -> bool:
        """Whether nothing has to be asked of its origin now."""
        rules = self._known.get((target.origin, policy.user_agent))
        return rules is not None and rules.until > self._clock.monotonic()

    async def is_allowed(self, target: Target, policy: FetchPolicy) -> bool:
        """Whether this user agent may fetch the target.

        Raises RobotsUnreachable if nobody knows, HostClosed if the one who knows may not be asked now, and
        Disallowed if it would cost too much to tell.
        """
        rules = self._known.get((target.origin, policy.user_agent))
        if rules is None or rules.until <= self._clock.monotonic():
            rules = await self._read_once(target, policy)
        if rules.shut is not None:
            delay_s = max(0.0, rules.opens - self._clock.monotonic())
            raise type(rules.shut)(rules.shut.host, delay_s, target.text)
        if rules.unreachable:
            message = f"robots.txt is unavailable ({rules.unreachable}), so nothing is fetched"
            raise RobotsUnreachable(message, target.text)
        if rules.parsed is None:
            return True
        _refuse_excess(rules.parsed, target)
        return rules.parsed.allows(target.text)

    async def close(self) -> None:
        reading = list(self._reading.values())
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)

    async def _read_once(self, target: Target, policy: FetchPolicy) -> RobotsRules:
        key = target.origin, policy.user_agent
        task = self._reading.get(key)
        if task is None:
            task = asyncio.create_task(self._read(key, policy))
            self._reading[key] = task
            task.add_done_callback(lambda done: self._finished(key, done))
        # Shielded: the attempt that happened to ask first may be cancelled, the others go on.
        return await asyncio.shield(task)

    def _finished(self, key: Key, task: asyncio.Task[RobotsRules]) -> None:
        del self._reading[key]
        if task.cancelled() or task.exception() is not None:
            return
        self._forget(key)
        if len(self._known) >= MAX_ORIGINS:
            self._forget(next(iter(self._known)))
        rules = task.result()
        while self._known and self._known_bytes + rules.size > MAX_KNOWN_BYTES:
            # The largest, not the oldest: who has large ones is in his own way, and in nobody else's.
            self._forget(max(self._known, key=lambda known: self._known[known].size))
        self._known[key] = rules
        self._known_bytes += rules.size

    def _forget(self, key: Key) -> None:
        rules = self._known.pop(key, None)
        if rules is not None:
            self._known_bytes -= rules.size

    async def _read(self, key: Key, policy: FetchPolicy) -> RobotsRules:
        hop = Hop("GET", look_at(f"{key[0]}/robots.txt"), _headers(policy))
        try:
            last, raw = await self._last_answer(hop, policy)
        except AddressRefused:
            raise
        except HostClosed as error:
            return self._shut(key, error)
        except FetchError as error:
            return self._unreachable(key, error.message)
        pause_s = self._pause(last, raw)
        if pause_s is not None:
            return self._shut(key, HostClosed(last.host_key, pause_s))
        if raw.status in REDIRECTS or (400 <= raw.status < 500 and raw.status != 429):
            return RobotsRules(self._clock.monotonic() + FRESH_S)
        if not 200 <= raw.status < 300:
            return self._unreachable(key, f"status {raw.status}")
        parsed = await self._parsed(raw.body, policy.user_agent)
        return RobotsRules(self._clock.monotonic() + FRESH_S, parsed)

    async def _parsed(self, body: bytes, user_agent: str) -> AgentRules:
        if len(body) <= SHORT:
            return rules_for(body, user_agent)
        return await self._aside.do(lambda: rules_for(body, user_agent))

    async def _last_answer(self, hop: Hop, policy: FetchPolicy) -> tuple[Target, RawResponse]:
        """Who answered, and what, after five redirects at most; by RFC 9309 a sixth means there is none."""
        home = hop.target.host_key
        raw = await self._network.send(_request(hop, policy))
        for _ in range(MAX_REDIRECTS):
            if raw.status not in REDIRECTS:
                break
            try:
                hop = follow(hop, raw.status, raw.headers.get("location", ""))
                raw = await self._send_on(home, hop, policy)
            except AddressRefused:
                raise FetchError("it redirects to a refused address") from None
        return hop.target, raw

    async def _send_on(self, home: str, hop: Hop, policy: FetchPolicy) -> RawResponse:
        request = _request(hop, policy)
        if self._elsewhere is None or hop.target.host_key == home:
            return await self._network.send(request)
        return await self._elsewhere(hop.target, request, policy)

    def _shut(self, key: Key, error: HostClosed) -> RobotsRules:
        # Remembered: each of ten thousand jobs would ask the origin again, to be sent on to nobody. And not
        # longer than it lasts: who waits for its end is not to be told that it is shut.
        now = self._clock.monotonic()
        until = now + min(error.delay_s, UNREACHABLE_S)
        return self._known_rules(key, until) or RobotsRules(
            until, shut=error, opens=now + error.delay_s
        )

    def _unreachable(self, key: Key, reason: str) -> RobotsRules:
        until = self._clock.monotonic() + UNREACHABLE_S
        return self._known_rules(key, until) or RobotsRules(until, unreachable=reason)

    def _known_rules(self, key: Key, until: float) -> RobotsRules | None:
        """The rules that were read last, if any were: they hold until they can be read again."""
        known = self._known.get(key)
        if known is None or known.unreachable or known.shut is not None:
            return None
        return RobotsRules(until, known.parsed)


def _headers(policy: FetchPolicy) -> dict[str, str]:
    return {
        "User-Agent": policy.user_agent,
        "Accept-Encoding": encoding.ACCEPTED,
        "Accept": "*/*",
    }


def _request(hop: Hop, policy: FetchPolicy) -> Request:
    return Request(
        hop.method,
        hop.target.text,
        hop.headers,
        timeout_s=policy.timeout_s,
        max_bytes=MAX_BYTES,
        allow_private=policy.allow_private,
        is_prefix_enough=True,
        proxy=policy.proxy,
    )


def _refuse_excess(rules: AgentRules, target: Target) -> None:
    if rules.too_many:
        message = f"robots.txt has {rules.too_many} for us, more than can be followed"
        raise Disallowed(message, target.text)
    if not rules.can_match(target.text):
        raise Disallowed("robots.txt has too many patterns for so long a URL", target.text)
