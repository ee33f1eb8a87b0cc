"""The body of a request, bounded in size and time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.app.verbs.problems import Problem

if TYPE_CHECKING:
    from starlette.types import Message, Receive

BODY_S = 10.0


class Body:
    """What a request sends, bounded in size and time. As a receive callable it can be read again once."""

    def __init__(self, receive: Receive, most_bytes: int) -> None:
        self._receive = receive
        self._most = most_bytes
        self._read = 0
        self._is_whole = False
        self._deadline: float | None = None
        self._again: Message | None = None

    def expect(self, length: str | None) -> None:
        """Refuse what says beforehand that it is too large."""
        if length is not None and (not length.isdecimal() or int(length) > self._most):
            raise _too_large(self._most)

    async def __call__(self) -> Message:
        if self._again is not None:
            message, self._again = self._again, None
            return message
        if self._is_whole:
            return await self._receive()  # waits until the client goes away
        return await self._next()

    async def whole(self) -> bytes:
        """All of it; whoever reads after this is given it again."""
        pieces = []
        while not self._is_whole:
            message = await self._next()
            if message["type"] == "http.disconnect":
                break
            pieces.append(message.get("body", b""))
        body = b"".join(pieces)
        self._again = {"type": "http.request", "body": body, "more_body": False}
        return body

    async def _next(self) -> Message:
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + BODY_S
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise Problem(
                408, "body_timeout", "The body did not arrive in time.", headers=_CLOSE
            ) from None
        self._read += len(message.get("body", b""))
        if self._read > self._most:
            raise _too_large(self._most)
        self._is_whole = not message.get("more_body", False)
        return message


_CLOSE = {"Connection": "close"}


def _too_large(most: int) -> Problem:
    return Problem(413, "body_too_large", f"The body has more than {most:,} B.", headers=_CLOSE)
