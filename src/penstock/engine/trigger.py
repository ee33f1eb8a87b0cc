"""The trigger: signals over HTTP, with the same rules as the command that raises them.

One path and one method. A browser can't be made to use it: what it sends must be JSON by its type, for a host
that we are known by, and from no other origin. Whoever may not is not told why not.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from penstock.engine.connections import HEADER_S, Connections
from penstock.engine.worker.calls import Calls, InOneThread
from penstock.errors import ConfigError, PenstockError, Refused, StoreError, UsageError
from penstock.project import Project
from penstock.settings.unset import NEEDED_BY_TRIGGER, refuse_unset

BODY_S = 10.0
# What is left of a body that nobody wanted is read for so long, so that the answer arrives.
LINGER_S = 1.0
BACKLOG = 512
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
ACTOR = "http"
LONGEST_KEY = 200


def run_trigger(project: Project, host: str, port: int, tell: Callable[[str], None]) -> None:
    """Listen until stopped."""
    refuse_open_door(project, host)
    asyncio.run(_serve(project, host, port, tell))


def refuse_open_door(project: Project, host: str) -> None:
    """Without a token, nobody but this machine may knock; a token that can't be known is not none."""
    refuse_unset([each for each in project.settings.unset if each.section in NEEDED_BY_TRIGGER])
    if project.settings.trigger.token is None and not is_loopback(host):
        raise Refused(
            f"without a token it listens on loopback only, not on {host}",
            "trigger: {token: ${PENSTOCK_TRIGGER_TOKEN}} in penstock.yaml",
        )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _serve(project: Project, host: str, port: int, tell: Callable[[str], None]) -> None:
    calls = InOneThread("trigger")
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    try:
        await calls(
            lambda: project.source_ids
        )  # opens the store in its thread, or says what is wrong
        async with listening(project, calls, host, port, tell) as (name, bound):
            shown = f"[{name}]" if ":" in name else name
            tell(f"listening on http://{shown}:{bound}")
            await stopping.wait()
    finally:
        await calls(project.close)
        calls.close()


@asynccontextmanager
async def listening(
    project: Project, calls: Calls, host: str, port: int, tell: Callable[[str], None]
) -> AsyncIterator[tuple[str, int]]:
    """Serve for as long as this lasts; the address and port it listens at."""
    runner = web.AppRunner(
        application(project, calls, host),
        access_log=None,
        logger=_quiet(tell),
        keepalive_timeout=HEADER_S,
        lingering_time=LINGER_S,
    )
    await runner.setup()
    server = None
    try:
        assert runner.server is not None  # noqa: S101  it was set up
        connections = Connections(runner.server)
        try:
            loop = asyncio.get_running_loop()
            server = await loop.create_server(connections, host, port, backlog=BACKLOG)
        except OSError as error:
            raise ConfigError(f"can't listen on {host}:{port}: {error.strerror}") from None
        bound = server.sockets[0].getsockname()
        yield str(bound[0]), int(bound[1])
    finally:
        if server is not None:
            server.close()
        await runner.cleanup()


def _quiet(tell: Callable[[str], None]) -> logging.Logger:
    """What the server logs of requests that it can't read repeats them, with their tokens."""
    logger = logging.getLogger("penstock.trigger")
    logger.propagate = False
    logger.handlers = [_Telling(tell)]
    return logger


class _Telling(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0] if record.exc_info else None
        self._tell(f"a request could not be served ({kind.__name__ if kind else record.levelname})")


def application(project: Project, calls: Calls, host: str) -> web.Application:
    """The whole of it, to be served or tested."""
    settings = project.settings.trigger
    app = web.Application(client_max_size=settings.max_bytes)
    door = Door(settings.token, (*LOCAL_NAMES, host.lower(), *settings.hosts))
    app.router.add_post("/signals/{name}", partial(_raise, project, calls, door))
    return app


class Door:
    """Who may come in."""

    def __init__(self, token: str | None, hosts: tuple[str, ...]) -> None:
        self._token = None if token is None else token.encode()
        self._hosts = frozenset(hosts)

    def check(self, request: web.Request) -> None:
        host = request.headers.get("Host", "")
        if not self._is_known(host):
            raise _answer(web.HTTPForbidden, "this is not a host that it is known by")
        origin = request.headers.get("Origin")
        if origin is not None and not _is_same(origin, host):
            raise _answer(web.HTTPForbidden, "not from another origin")
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise _answer(web.HTTPForbidden, "not from another origin")
        if not self._is_trusted(request.headers.get("Authorization", "")):
            raise _answer(
                web.HTTPUnauthorized, "a bearer token is needed", {"WWW-Authenticate": "Bearer"}
            )

    def _is_known(self, place: str) -> bool:
        try:
            return (urlsplit(f"//{place}").hostname or "") in self._hosts
        except ValueError:
            return False

    def _is_trusted(self, header: str) -> bool:
        if self._token is None:
            return True
        scheme, _, given = header.partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self._token)
        return same and scheme.lower() == "bearer"


def _is_same(origin: str, host: str) -> bool:
    """Whether a page came from where it posts to: scheme, name and port. Behind a proxy that may be https."""
    try:
        at = urlsplit(origin)
        usual = {"http": 80, "https": 443}[at.scheme]
        to = urlsplit(f"//{host}")
        is_local = at.hostname in LOCAL_NAMES
        if is_local and at.scheme != "http":
            return False
        return (at.hostname, at.port or usual) == (to.hostname, to.port or usual)
    except (KeyError, ValueError):
        return False


async def _raise(project: Project, calls: Calls, door: Door, request: web.Request) -> web.Response:
    door.check(request)
    if request.content_type != "application/json":
        raise _answer(web.HTTPUnsupportedMediaType, "the body must be application/json")
    data = await _body(request)
    key = request.headers.get("Idempotency-Key") or None
    if key is not None and len(key) > LONGEST_KEY:
        raise _answer(
            web.HTTPBadRequest, f"an Idempotency-Key has at most {LONGEST_KEY} characters"
        )
    about = {"key": key, "source": request.query.get("source"), "actor": ACTOR}
    name = request.match_info["name"]
    try:
        raised = await calls(lambda: project.signal(name, data, **about))
    except StoreError:
        raise _answer(web.HTTPServiceUnavailable, "the database does not answer now") from None
    except UsageError as error:
        raise _answer(web.HTTPBadRequest, error.message) from None
    except PenstockError as error:
        raise _answer(web.HTTPConflict, error.message) from None
    return _json(202, {"signal": raised.id, "name": raised.name, "is_new": raised.is_new})


async def _body(request: web.Request) -> Any:
    try:
        async with asyncio.timeout(BODY_S):
            body = await request.read()
    except TimeoutError:
        raise _answer(web.HTTPRequestTimeout, "the body did not come in time") from None
    except web.HTTPRequestEntityTooLarge:
        raise _answer(_TooLarge, "the body is too large") from None
    if not body:
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise _answer(web.HTTPBadRequest, "the body is not JSON") from None


class _TooLarge(web.HTTPClientError):
    status_code = 413


def _answer(
    kind: type[web.HTTPError], error: str, headers: dict[str, str] | None = None
) -> web.HTTPError:
    text = msgspec.json.encode({"error": error}).decode()
    return kind(text=text, content_type="application/json", headers=headers)


def _json(status: int, answer: dict[str, object]) -> web.Response:
    text = msgspec.json.encode(answer).decode()
    return web.Response(status=status, text=text, content_type="application/json")
