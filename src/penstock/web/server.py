"""A small server: bounded connections, and a log that repeats nothing of what it was sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from penstock.errors import ConfigError
from penstock.web.connections import HEADER_S, Connections

# What is left of a body that nobody wanted is read for so long, so that the answer arrives.
LINGER_S = 1.0
BACKLOG = 512


@asynccontextmanager
async def serving(
    application: web.Application, host: str, port: int, tell: Callable[[str], None]
) -> AsyncIterator[tuple[str, int]]:
    """Serve for as long as this lasts; the address and port it listens at."""
    runner = web.AppRunner(
        application,
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
