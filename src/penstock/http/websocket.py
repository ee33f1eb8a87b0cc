"""A websocket: messages over one connection, of a bounded size."""

from __future__ import annotations

import asyncio
from typing import Self

import aiohttp

from penstock.http.failures import FetchError

HEARTBEAT_S = 30.0
CLOSE_S = 5.0
_ENDS = frozenset({aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED})
_TOO_BIG = aiohttp.WSCloseCode.MESSAGE_TOO_BIG

Line = aiohttp.ClientWebSocketResponse[bool]


class WebSocket:
    """One open websocket. A dead peer is noticed by pings; `received` are the bytes of all messages."""

    def __init__(self, line: Line, where: str, max_bytes: int) -> None:
        self._line = line
        self._where = where
        self._max_bytes = max_bytes
        self.received = 0

    @property
    def close_code(self) -> int | None:
        """Why it was closed, by RFC 6455; None while it is open."""
        return self._line.close_code

    async def receive(self, timeout_s: float | None = None) -> str | bytes | None:
        """The next message; None when the other side has closed. Raises TimeoutError after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                message = await self._line.receive()
        except TimeoutError:
            raise TimeoutError(f"{self._where}: no message within {timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            raise self._broken(error) from None
        if message.type is aiohttp.WSMsgType.ERROR:
            raise self._broken(message.data)
        if message.type in _ENDS:
            if self._line.close_code == _TOO_BIG:
                raise self._too_big()
            return None
        content: str | bytes = message.data
        self.received += len(content)
        return content

    async def send(self, message: str | bytes) -> None:
        try:
            if isinstance(message, str):
                await self._line.send_str(message)
            else:
                await self._line.send_bytes(message)
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            raise self._broken(error) from None

    async def close(self) -> None:
        await self._line.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _broken(self, error: object) -> FetchError:
        if getattr(error, "code", None) == _TOO_BIG:
            return self._too_big()
        return FetchError(f"the connection broke ({type(error).__name__})", self._where)

    def _too_big(self) -> FetchError:
        return FetchError(
            f"a message is larger than {self._max_bytes} bytes", self._where, None, True, "data"
        )
