"""One hop over the wire, to an address that was checked.

A name is resolved once; every address it has must be public and not our own (unless the request
allows others), and the connection goes to one of those very addresses, with Host and SNI kept. The socket is
checked a last time as it is opened, so that no path around the resolver exists. Requests that may
reach private addresses have their own pool: a guarded request can't inherit their connections.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Protocol, runtime_checkable

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from penstock.clock import Clock, SystemClock
from penstock.http.access import Access, AllowPrivate, Anywhere, access_of, not_public
from penstock.http.addresses import Target, look_at
from penstock.http.encoding import Body, BrokenCoding, UnknownCoding
from penstock.http.failures import AddressRefused, ConnectionDropped, FetchError
from penstock.http.kept_headers import keep_headers
from penstock.http.localhost import LocalhostNames
from penstock.http.nat64 import Nat64
from penstock.http.pace import rest_after
from penstock.http.sockets import OpenSocket, connected
from penstock.http.websocket import CLOSE_S, HEARTBEAT_S, Line

DNS_TTL_S = 60
KEEP_ALIVE_S = 30.0
MAX_DRAIN = 65536
MAX_HEADER_BYTES = 16384
MAX_HEADERS = 128
# Headers beyond this are paid for, by what a byte of them takes to read: aiohttp does it, out of our sight.
MANY_HEADER_BYTES = 65_536
_HEADER_BYTE_S = 2e-9
# Unpacks to a quarter of a megabyte at most: half a millisecond of work.
_PACKED_SLICE = 256
_UNPACKED_AT_ONCE = 262_144
_WEBSOCKET = "Sec-WebSocket-Key"


class Request(msgspec.Struct, frozen=True):
    """One hop. `is_prefix_enough`: a body over `max_bytes` is cut there instead of refused."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None = None
    timeout_s: float = 20.0
    max_bytes: int = 16_000_000
    allow_private: AllowPrivate = False
    is_prefix_enough: bool = False
    # The proxy that it goes through, as a URL; empty for none.
    proxy: str = ""

    def __repr__(self) -> str:
        # Headers and query may carry credentials, and a repr ends up in logs.
        return f"Request({self.method} {self.url.partition('?')[0].rpartition('@')[2]})"


class RawResponse(msgspec.Struct, frozen=True):
    """What came back: header names in lower case, the body decoded. Redirects come without body."""

    status: int
    headers: dict[str, str]
    body: bytes
    # What its headers were on the wire, with those that were not kept.
    head_bytes: int = 0
    # Its Set-Cookie headers one by one, which `headers` has as one.
    cookies: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"RawResponse({self.status})"


def cookies_of(raw: RawResponse) -> Sequence[str]:
    """Its Set-Cookie headers."""
    joined = raw.headers.get("set-cookie")
    return raw.cookies or ((joined,) if joined else ())


class Network(Protocol):
    """Sends one request and returns its answer; follows nothing, remembers nothing."""

    async def send(self, request: Request) -> RawResponse: ...

    async def close(self) -> None: ...


@runtime_checkable
class ConnectionNetwork(Protocol):
    """Opens connections for other protocols, by the same rules for addresses."""

    async def connect(self, target: Target, allow_private: AllowPrivate) -> socket.socket:
        """A socket to the host and port of the target, not blocking; OSError if there is none."""
        ...

    async def websocket(self, request: Request) -> Line | RawResponse:
        """An open websocket, or the answer of a server that opens none."""
        ...

    def tls_context(self) -> ssl.SSLContext:
        """By what certificates are checked."""
        ...


class AiohttpNetwork:
    """The real network. `resolver`, `open_socket` and `tls` are there to be replaced in tests."""

    def __init__(
        self,
        resolver: AbstractResolver | None = None,
        open_socket: OpenSocket | None = None,
        tls: ssl.SSLContext | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._resolver = resolver
        self._clock = clock or SystemClock()
        self._open_socket = open_socket or _open_socket
        self._tls = tls
        self._sessions: dict[AllowPrivate, _Session] = {}
        self._resolvers: dict[AllowPrivate, CheckedResolver] = {}
        self._through: _Session | None = None
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}

    async def send(self, request: Request) -> RawResponse:
        target = look_at(request.url)
        access_of(request.allow_private).check_literal(target)
        try:
            return await self._exchange(target, request)
        except AddressRefused as error:
            raise AddressRefused(error.message, request.url) from None
        except FetchError:
            raise
        except (aiohttp.ClientError, OSError, ValueError, EOFError) as error:
            # Without its cause: aiohttp's texts and frames quote the URL and headers as they are.
            raise _failure(error, request) from None

    async def connect(self, target: Target, allow_private: AllowPrivate) -> socket.socket:
        access = access_of(allow_private)
        access.check_literal(target)
        resolver = self._resolvers.setdefault(allow_private, self._checked(access))
        port = target.url.port or 0
        if target.is_literal:
            await resolver.check(target.host, target.host)
            family = socket.AF_INET6 if ":" in target.host else socket.AF_INET
            addresses = [(target.host, family)]
        else:
            answers = await resolver.resolve(target.host, port, socket.AF_UNSPEC)
            addresses = [(each["host"], socket.AddressFamily(each["family"])) for each in answers]
        infos = [
            (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))
            for address, family in addresses
        ]
        return await connected(infos, partial(self._open_checked_socket, access))

    def tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    async def websocket(self, request: Request) -> Line | RawResponse:
        target = look_at(request.url)
        access_of(request.allow_private).check_literal(target)
        try:
            async with asyncio.timeout(request.timeout_s):
                return await self._upgrade(target, request)
        except _NoUpgrade as refused:
            return refused.answer
        except AddressRefused as error:
            raise AddressRefused(error.message, request.url) from None
        except (aiohttp.ClientError, OSError, ValueError, EOFError) as error:
            raise _failure(error, request) from None

    async def _upgrade(self, target: Target, request: Request) -> Line:
        session = await self._session_for(target, request)
        return await session.http.ws_connect(
            target.url,
            headers=request.headers,
            proxy=request.proxy or None,
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),
            heartbeat=HEARTBEAT_S,
            max_msg_size=request.max_bytes,
        )

    async def close(self) -> None:
        sessions = [*self._sessions.values(), *([self._through] if self._through else ())]
        self._sessions, self._through = {}, None
        for session in sessions:
            await session.http.close()

    async def _session_for(self, target: Target, request: Request) -> _Session:
        session = self._session(request.allow_private)
        if target.is_literal and ":" in target.host:
            await session.resolver.check(target.host, target.host)
        if request.proxy:
            # The proxy resolves the name again; what it must not reach by our rules is refused here.
            if not target.is_literal:
                await session.resolver.resolve(target.host, target.url.port or 0)
            session = self._proxied()
        return session

    async def _exchange(self, target: Target, request: Request) -> RawResponse:
        session = await self._session_for(target, request)
        async with session.http.request(
            request.method,
            target.url,
            headers=request.headers,
            data=request.body,
            allow_redirects=False,
            proxy=request.proxy or None,
            timeout=self._timeout(request.timeout_s),
        ) as answer:
            headers, head_bytes = keep_headers(answer.headers.items())
            if head_bytes > MANY_HEADER_BYTES:
                await rest_after(head_bytes * _HEADER_BYTE_S)
            cookies = tuple(answer.headers.getall("Set-Cookie", ()))
            if not 200 <= answer.status < 300:
                await _drain(answer)
                return RawResponse(answer.status, headers, b"", head_bytes, cookies)
            try:
                body = await _read(answer, request, headers)
            except FetchError as error:
                error.received = request.max_bytes
                raise
            except (aiohttp.ClientError, OSError, ValueError, EOFError) as error:
                failure = _failure(error, request)
                failure.received = answer.content.total_bytes
                raise failure from None
            return RawResponse(answer.status, headers, body, head_bytes, cookies)

    def _session(self, allow_private: AllowPrivate) -> _Session:
        session = self._sessions.get(allow_private)
        if session is None:
            session = self._sessions[allow_private] = self._open_session(access_of(allow_private))
        return session

    def _proxied(self) -> _Session:
        """For requests through proxies alone: a proxy is named by the configuration, wherever it is."""
        if self._through is None:
            self._through = self._open_session(Anywhere())
        return self._through

    def _checked(self, access: Access) -> CheckedResolver:
        plain = LocalhostNames(self._resolver or aiohttp.ThreadedResolver())
        return CheckedResolver(plain, access, Nat64(plain, self._clock))

    def _open_session(self, access: Access) -> _Session:
        resolver = self._checked(access)
        connector = aiohttp.TCPConnector(
            resolver=resolver,
            socket_factory=partial(self._open_checked_socket, access),
            ssl=self._tls or True,
            limit=0,
            ttl_dns_cache=DNS_TTL_S,
            keepalive_timeout=KEEP_ALIVE_S,
        )
        http = aiohttp.ClientSession(
            connector=connector,
            middlewares=(_send_once,),
            cookie_jar=_NoCookies(),
            auto_decompress=False,
            trust_env=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )
        return _Session(http, resolver)

    def _open_checked_socket(self, access: Access, info: aiohttp.AddrInfoType) -> socket.socket:
        address = str(info[4][0])
        if access.refuses_socket(address):
            raise AddressRefused(not_public(address, address))
        return self._open_socket(info)

    def _timeout(self, total_s: float) -> aiohttp.ClientTimeout:
        timeout = self._timeouts.get(total_s)
        if timeout is None:
            timeout = self._timeouts[total_s] = aiohttp.ClientTimeout(total=total_s)
        return timeout


class _DroppedError(aiohttp.ClientError):
    """Under another name, so that aiohttp does not send the request a second time without our counting it."""


class _NoUpgrade(Exception):
    """The answer to a request for a websocket is not one; redirects are not followed either."""

    def __init__(self, answer: RawResponse) -> None:
        super().__init__()
        self.answer = answer


async def _send_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    try:
        answer = await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _DroppedError(type(error).__name__) from None
    if _WEBSOCKET in request.headers and answer.status != 101:
        headers, head_bytes = keep_headers(answer.headers.items())
        answer.close()
        raise _NoUpgrade(RawResponse(answer.status, headers, b"", head_bytes))
    return answer


class CheckedResolver(AbstractResolver):
    """Answers only if every address of the name may be reached: one that may not spoils the name."""

    def __init__(self, resolver: AbstractResolver, access: Access, nat64: Nat64) -> None:
        self._resolver = resolver
        self._access = access
        self._nat64 = nat64

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        answers = await self._resolver.resolve(host, port, family)
        for answer in answers:
            await self.check(host, answer["host"])
        return answers

    async def check(self, host: str, address: str) -> None:
        """Refuse an address, or the one behind it, that may not be reached for this host."""
        if self._access.refuses(address, host):
            raise AddressRefused(not_public(host, address))
        behind = await self._nat64.behind(address)
        if behind is not None and self._access.refuses(behind, host):
            raise AddressRefused(not_public(host, address))

    async def close(self) -> None:
        await self._resolver.close()


class _NoCookies(aiohttp.DummyCookieJar):
    """Keeps no cookie, and does not read those that come either."""

    def update_cookies_from_headers(self, headers: Sequence[str], response_url: URL) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Session:
    http: aiohttp.ClientSession
    resolver: CheckedResolver


def _open_socket(info: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = info
    opened = socket.socket(family, kind, protocol)
    opened.setblocking(False)
    return opened


async def _drain(answer: aiohttp.ClientResponse) -> None:
    """Read a small unwanted body, undecoded, to keep the connection; else let the connection go."""
    length = answer.content_length
    if length is not None and length <= MAX_DRAIN:
        await answer.read()
    else:
        answer.close()


async def _read(answer: aiohttp.ClientResponse, request: Request, headers: dict[str, str]) -> bytes:
    if request.method == "HEAD":
        return b""
    coding = headers.get("content-encoding", "")
    if not coding and (answer.content_length or request.max_bytes + 1) <= request.max_bytes:
        return await answer.read()
    body = Body(coding, request.max_bytes)
    unpacking = Unpacking(body)
    while chunk := await answer.content.readany():
        await unpacking.add(chunk)
        if body.is_overfull:
            answer.close()
            if request.is_prefix_enough:
                return body.so_far()
            raise FetchError(
                f"the body is larger than {request.max_bytes} bytes",
                request.url,
                answer.status,
                is_permanent=True,
                kind="data",
            )
    return await unpacking.finish()


class Unpacking:
    """Adds chunks to a body, and lets others work in between: a kilobyte may unpack to a megabyte.

    What was unpacked counts from the first chunk to the last, however small a server sends them.
    """

    def __init__(self, body: Body) -> None:
        self._body = body
        self._rested_at = 0
        self._held_s = 0.0

    async def add(self, chunk: bytes) -> None:
        if not self._body.is_coded:
            self._body.add(chunk)
            return
        for at in range(0, len(chunk), _PACKED_SLICE):
            began = perf_counter()
            self._body.add(chunk[at : at + _PACKED_SLICE])
            self._held_s += perf_counter() - began
            if self._body.size - self._rested_at > _UNPACKED_AT_ONCE:
                await self._rest()

    async def finish(self) -> bytes:
        began = perf_counter()
        whole = self._body.finish()
        self._held_s += perf_counter() - began
        if len(whole) > _UNPACKED_AT_ONCE:
            await self._rest()
        return whole

    async def _rest(self) -> None:
        held_s, self._held_s, self._rested_at = self._held_s, 0.0, self._body.size
        await rest_after(held_s)


def _failure(error: Exception, request: Request) -> FetchError:
    url = request.url
    match error:
        case TimeoutError():
            return FetchError(f"no answer within {request.timeout_s:g} s", url)
        case UnknownCoding():
            return FetchError(str(error), url, is_permanent=True, kind="data")
        case BrokenCoding():
            return FetchError(str(error), url, kind="data")
        case aiohttp.ClientConnectorCertificateError():
            return FetchError("the certificate is not valid for this host", url, is_permanent=True)
        case aiohttp.ClientHttpProxyError():
            return FetchError(f"the proxy answered {error.status}", url)
        case aiohttp.ClientProxyConnectionError():
            return FetchError("the proxy can't be reached", url)
        case aiohttp.ClientConnectorDNSError():
            return FetchError("the host name does not resolve", url)
        case aiohttp.ClientResponseError() | aiohttp.ClientPayloadError():
            return FetchError("the answer is not well-formed HTTP or was cut off", url, kind="data")
        case aiohttp.InvalidURL():
            return FetchError("not a URL that can be fetched", url, is_permanent=True)
        case _DroppedError():
            return ConnectionDropped(f"the connection broke ({error})", url)
        case OSError():
            return FetchError(f"no connection ({error.strerror or type(error).__name__})", url)
        case aiohttp.ClientError() | EOFError():
            return FetchError(f"the connection broke ({type(error).__name__})", url)
    return FetchError(f"can't be requested ({type(error).__name__})", url, is_permanent=True)
