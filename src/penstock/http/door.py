"""A door: the way out to one host for protocols that are not HTTP.

What goes through it passes the gates of every request: address rules, hours, host limits, rate, budgets and
breaker. A connection and each request on it count as one request each.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from penstock.errors import PipelineError
from penstock.http.addresses import Target, look_at
from penstock.http.failures import AddressRefused, FetchError, FetchRefused, HostClosed
from penstock.http.network import ConnectionNetwork, RawResponse, Request
from penstock.http.reach import check_reach, headers_for, merged
from penstock.http.request_gates import Brought, Caller, RequestGates, brought_by, rate_request
from penstock.http.sockets import secured
from penstock.http.websocket import Line, WebSocket

if TYPE_CHECKING:
    from penstock.settings import FetchPolicy

MAX_MESSAGE_BYTES = 4_000_000
Answer = TypeVar("Answer")
_SCHEMES = {"ws": "http", "wss": "https"}


def _nothing() -> int:
    return 0


async def _at_once() -> None:
    """Nothing has to be done before a request."""


class Door:
    """The way to `host:port` for the attempt that asked for it. Connections may outlive it."""

    def __init__(
        self,
        network: object,
        gates: RequestGates,
        host: str,
        port: int,
        policy: FetchPolicy,
        caller: Caller,
        *,
        tls: bool = True,
        begin: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        if not isinstance(network, ConnectionNetwork):
            raise PipelineError("this network answers HTTP requests only; it opens no connections")
        self._network = network
        self._gates = gates
        self._policy = policy
        self._caller = caller
        self._begin = begin or _at_once
        self._is_tls = tls
        self._target = _target_of(host, port, tls)
        self.host, self.port = self._target.host, port
        self._where = f"{self.host}:{port}"
        check_reach(self._target, policy)

    @property
    def host_key(self) -> str:
        """The host as limits, breakers and closures name it."""
        return self._target.host_key

    @property
    def timeout_s(self) -> float:
        return self._policy.timeout_s

    def tls_context(self) -> ssl.SSLContext:
        """By what certificates are checked, for protocols that begin TLS later (STARTTLS)."""
        return self._network.tls_context()

    async def connect(self) -> socket.socket:
        """A blocking socket with the source's timeout, behind TLS if the door has it.

        The host is resolved once, and each of its addresses is checked. Use it in threads (`ctx.in_thread`),
        and `ask` for each request on it.
        """
        if self._policy.proxy:
            raise FetchRefused("connections can't go through fetch.proxy; remove it", self._where)
        return await self._out(self._connected, lambda _: Brought(True, 0, "connected"), _nothing)

    async def ask(
        self,
        work: Callable[[], Awaitable[Answer]],
        *,
        received: Callable[[], int] = _nothing,
        max_bytes: int | None = None,
    ) -> Answer:
        """What `work` answers: one request on a connection, made when the gates let it pass.

        `received` says how many bytes came, also when it failed. An OSError or EOFError counts against the
        host's breaker; any other error of `work` does not. It brings no more than `max_bytes`.
        """
        return await self._out(
            work, lambda _: Brought(True, received(), "answered"), received, max_bytes
        )

    async def websocket(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> WebSocket:
        """An open websocket at a `ws://` or `wss://` URL of this host. Redirects are not followed.

        Opening it counts as one request. Its messages are not counted: `ctx.spend(bytes=…)` does that.
        """
        target = self._target_at(url)
        request = Request(
            "GET",
            target.text,
            _headers(target, self._policy, headers or {}),
            None,
            self._policy.timeout_s,
            max_message_bytes,
            self._policy.allow_private,
            proxy=self._policy.proxy,
        )
        opened = await self._out(
            partial(self._network.websocket, request), _judge_upgrade, _nothing
        )
        if isinstance(opened, RawResponse):
            raise self._gates.failure_of(target, opened)
        return WebSocket(opened, self._where, max_message_bytes)

    def pause(self, delay_s: float | None = None) -> HostClosed:
        """Close the host for everybody: it asked for that. Raise what this answers."""
        return HostClosed(self.host_key, self._gates.pause(self.host_key, delay_s))

    async def _out(
        self,
        send: Callable[[], Awaitable[Answer]],
        judge: Callable[[Answer], Brought],
        received: Callable[[], int],
        max_bytes: int | None = None,
    ) -> Answer:
        await self._begin()
        policy, caller = self._policy, self._caller
        if max_bytes is not None:
            policy = replace(policy, max_bytes=max_bytes)
        # What the gates say names the host already.
        target = replace(self._target, text="")
        self._gates.check_open(target)
        want, place = rate_request(target, policy, caller), (self.host_key, caller.source)
        sending = partial(self._translated, send, received)
        async with self._gates.slots.taken(place, policy.connections):
            return await self._gates.let_out(target, want, caller, sending, judge)

    async def _translated(
        self, send: Callable[[], Awaitable[Answer]], received: Callable[[], int]
    ) -> Answer:
        try:
            return await send()
        except FetchError:
            raise
        except (OSError, EOFError) as error:
            # Without its cause: what it was about may be in its frames.
            failure = self._failure(error)
            failure.received = received()
            raise failure from None

    async def _connected(self) -> socket.socket:
        async with asyncio.timeout(self._policy.timeout_s):
            try:
                opened = await self._network.connect(self._target, self._policy.allow_private)
            except AddressRefused as error:
                raise AddressRefused(error.message) from None
            if self._is_tls:
                opened = await secured(opened, self.tls_context(), self.host)
        opened.settimeout(self._policy.timeout_s)
        return opened

    def _failure(self, error: Exception) -> FetchError:
        match error:
            case TimeoutError():
                words = f"no answer within {self._policy.timeout_s:g} s"
            case ssl.SSLCertVerificationError():
                words = "the certificate is not valid for this host"
                return FetchError(words, self._where, is_permanent=True)
            case ssl.SSLError():
                words = f"no TLS connection ({error.reason or type(error).__name__})"
            case socket.gaierror():
                words = "the host name does not resolve"
            case OSError() if not isinstance(error, ConnectionError) or error.errno:
                words = f"no connection ({error.strerror or type(error).__name__})"
            case _:
                words = f"the connection broke ({type(error).__name__})"
        return FetchError(words, self._where)

    def _target_at(self, url: str) -> Target:
        scheme, _, rest = url.partition("://")
        if scheme.lower() not in _SCHEMES:
            raise AddressRefused("a websocket has a ws:// or wss:// URL", url)
        target = look_at(f"{_SCHEMES[scheme.lower()]}://{rest}")
        if target.origin != self._target.origin:
            raise AddressRefused(f"this door leads to {self._target.host_key}", url)
        return target


def _target_of(host: str, port: int, is_tls: bool) -> Target:
    """Hosts are read as in URLs, so they have the same names there and here."""
    scheme = "https" if is_tls else "http"
    shown = f"[{host}]" if ":" in host else host
    if not isinstance(port, int) or not 0 < port < 65536:
        raise AddressRefused(f"a port is a number from 1 to 65535, not {port!r}")
    try:
        target = look_at(f"{scheme}://{shown}:{port}/")
    except AddressRefused as error:
        raise AddressRefused(error.message, f"{host}:{port}") from None
    # A URL loses its line breaks, and a path would be more than a host.
    if not host.isprintable() or target.url.path != "/" or target.url.port != port:
        raise AddressRefused("the host is neither a name nor an address", f"{host}:{port}")
    return target


def _judge_upgrade(opened: Line | RawResponse) -> Brought:
    return brought_by(opened) if isinstance(opened, RawResponse) else Brought(True, 0, "status 101")


def _headers(target: Target, policy: FetchPolicy, own: Mapping[str, str]) -> dict[str, str]:
    return merged({"User-Agent": policy.user_agent}, *headers_for(target, policy), own)
