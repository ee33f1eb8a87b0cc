"""The server: uvicorn, with bounds and a log of its own, for as long as nobody stops it."""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from penstock.errors import AlreadyRunning, ConfigError
from penstock.web.port_owner import port_owner
from penstock.web.protocol import HEADERS_BYTES, Connections, TimedProtocol

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from penstock.web.settings import WebSettings

BACKLOG = 512
KEEP_ALIVE_S = 15
DRAIN_S = 5
TLS_HANDSHAKE_S = 10.0


class Listener(uvicorn.Server):
    """Serves one application at one address. `stop` may be called by any thread."""

    def __init__(
        self,
        app: Starlette,
        settings: WebSettings,
        tell: Callable[[str], None],
        connections: Connections | None = None,
    ) -> None:
        self._settings = settings
        self._connections = Connections() if connections is None else connections
        self.port = settings.port
        self.on_listening: Callable[[int], None] = lambda port: None
        self.on_stopping: Callable[[], None] = lambda: None
        _quiet(tell)
        super().__init__(
            uvicorn.Config(
                app,
                http=TimedProtocol,
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=DRAIN_S,
                h11_max_incomplete_event_size=HEADERS_BYTES,
                ssl_certfile=settings.certificate,
                ssl_keyfile=settings.key,
            )
        )

    def stop(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: Any = None) -> None:
        """What does not end by itself is ended first: it would use up the time to drain."""
        self.on_stopping()
        await super().shutdown(sockets)

    async def startup(self, sockets: object = None) -> None:
        await self.lifespan.startup()
        made = functools.partial(
            TimedProtocol, self.config, self.server_state, {}, all_of_them=self._connections
        )
        host, port = self._settings.host, self._settings.port
        tls = self.config.ssl
        try:
            server = await asyncio.get_running_loop().create_server(
                made,
                host,
                port,
                ssl=tls,
                backlog=BACKLOG,
                ssl_handshake_timeout=TLS_HANDSHAKE_S if tls else None,
            )
        except OSError as error:
            raise _why_not(error, host, port) from None
        self.servers = [server]
        self.port = int(server.sockets[0].getsockname()[1])
        self.started = True
        self.on_listening(self.port)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Being stopped is how it ends: signals are not raised again when it has."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_or_hurry)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _stop_or_hurry(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def _why_not(error: OSError, host: str, port: int) -> ConfigError | AlreadyRunning:
    if error.errno == errno.EADDRINUSE:
        owner = port_owner(port)
        return AlreadyRunning(
            f"port {port} is in use{f' by {owner}' if owner else ''}",
            "use that one, stop it, or choose another port: --port",
            code="port_in_use",
        )
    return ConfigError(f"can't listen on {host}:{port}: {error.strerror or error}")


def _quiet(tell: Callable[[str], None]) -> None:
    """What uvicorn logs may repeat what it was sent; only the kind of an error is told."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.asgi", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.handlers = []
    logging.getLogger("uvicorn.error").handlers = [_Telling(tell)]
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


class _Telling(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._tell(f"a request failed: {type(error).__name__} in {_place(error)}")


def _place(error: BaseException) -> str:
    """The function of ours, or of a library, that has raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place"
    return f"{trace.tb_frame.f_globals.get('__name__', '?')}, line {trace.tb_lineno}"
