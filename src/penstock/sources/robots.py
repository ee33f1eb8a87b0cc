"""robots.txt by RFC 9309: what a site asks crawlers to leave alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from protego import Protego

from penstock.clock import Clock
from penstock.sources import encoding
from penstock.sources.addresses import Target, look_at
from penstock.sources.failures import AddressRefused, FetchError, HostClosed, RobotsUnreachable
from penstock.sources.network import Network, RawResponse, Request
from penstock.sources.redirects import REDIRECTS, Hop, follow

if TYPE_CHECKING:
    from penstock.settings import FetchPolicy

FRESH_S = 24 * 3600.0
# Long enough to spare a struggling server, short enough that a retry may find it well again.
UNREACHABLE_S = 10.0
MAX_BYTES = 500 * 1024
MAX_REDIRECTS = 5
MAX_ORIGINS = 1000


@dataclass(frozen=True, slots=True)
class Rules:
    """What is known of one origin. Without `parsed` everything is allowed, unless `unreachable` or `shut`.

    `shut`: who was asked, or would have been, is to be left alone until `opens`.
    """

    until: float
    parsed: Protego | None = None
    unreachable: str = ""
    shut: HostClosed | None = None
    opens: float = 0.0


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
        self._known: dict[str, Rules] = {}
        self._reading: dict[str, asyncio.Task[Rules]] = {}

    def is_known(self, target: Target) -> bool:
        """Whether nothing has to be asked of its origin now."""
        rules = self._known.get(target.origin)
        return rules is not None and rules.until > self._clock.monotonic()

    async def is_allowed(self, target: Target, policy: FetchPolicy) -> bool:
        """Whether this user agent may fetch the target.

        Raises RobotsUnreachable if nobody knows, and HostClosed if the one who knows may not be asked now.
        """
        rules = self._known.get(target.origin)
        if rules is None or rules.until <= self._clock.monotonic():
            rules = await self._read_once(target, policy)
        if rules.shut is not None:
            delay_s = max(0.0, rules.opens - self._clock.monotonic())
            raise type(rules.shut)(rules.shut.host, delay_s, target.text)
        if rules.unreachable:
            message = f"robots.txt can't be had ({rules.unreachable}), so nothing is fetched"
            raise RobotsUnreachable(message, target.text)
        if rules.parsed is None:
            return True
        return bool(rules.parsed.can_fetch(target.text, policy.user_agent))

    async def close(self) -> None:
        reading = list(self._reading.values())
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)

    async def _read_once(self, target: Target, policy: FetchPolicy) -> Rules:
        origin = target.origin
        task = self._reading.get(origin)
        if task is None:
            task = asyncio.create_task(self._read(origin, policy))
            self._reading[origin] = task
            task.add_done_callback(lambda done: self._finished(origin, done))
        # Shielded: the attempt that happened to ask first may be cancelled, the others go on.
        return await asyncio.shield(task)

    def _finished(self, origin: str, task: asyncio.Task[Rules]) -> None:
        del self._reading[origin]
        if task.cancelled() or task.exception() is not None:
            return
        self._known.pop(origin, None)
        self._known[origin] = task.result()
        if len(self._known) > MAX_ORIGINS:
            del self._known[next(iter(self._known))]

    async def _read(self, origin: str, policy: FetchPolicy) -> Rules:
        hop = Hop("GET", look_at(f"{origin}/robots.txt"), _headers(policy))
        try:
            last, raw = await self._last_answer(hop, policy)
        except AddressRefused:
            raise
        except HostClosed as error:
            return self._shut(origin, error)
        except FetchError as error:
            return self._unreachable(origin, error.message)
        pause_s = self._pause(last, raw)
        if pause_s is not None:
            return self._shut(origin, HostClosed(last.host_key, pause_s))
        if raw.status in REDIRECTS or (400 <= raw.status < 500 and raw.status != 429):
            return Rules(self._clock.monotonic() + FRESH_S)
        if not 200 <= raw.status < 300:
            return self._unreachable(origin, f"status {raw.status}")
        return Rules(self._clock.monotonic() + FRESH_S, _parsed(raw.body))

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

    def _shut(self, origin: str, error: HostClosed) -> Rules:
        # Remembered: each of ten thousand jobs would ask the origin again, to be sent on to nobody. And not
        # longer than it lasts: who waits for its end is not to be told that it is shut.
        now = self._clock.monotonic()
        until = now + min(error.delay_s, UNREACHABLE_S)
        return self._known_rules(origin, until) or Rules(
            until, shut=error, opens=now + error.delay_s
        )

    def _unreachable(self, origin: str, reason: str) -> Rules:
        until = self._clock.monotonic() + UNREACHABLE_S
        return self._known_rules(origin, until) or Rules(until, unreachable=reason)

    def _known_rules(self, origin: str, until: float) -> Rules | None:
        """The rules that were read last, if any were: they hold until they can be read again."""
        known = self._known.get(origin)
        if known is None or known.unreachable or known.shut is not None:
            return None
        return Rules(until, known.parsed)


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
        connections=policy.connections,
        is_prefix_enough=True,
    )


def _parsed(body: bytes) -> Protego:
    return Protego.parse(body.decode("utf-8", "replace").removeprefix("\ufeff"))
