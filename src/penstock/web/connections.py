"""Connections to a small server, bounded: who is slow or has too many is let go, never whoever comes next.

A connection that has not sent its headers in time is closed. When there are too many, of one peer or in all,
the one that has waited longest for its headers makes room; one whose request is being answered stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

HEADER_S = 10.0
MOST = 256
MOST_PER_PEER = 128
END_OF_HEADERS = b"\r\n\r\n"


class Connections:
    """All that are open. `protocol` makes what speaks over one of them."""

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        header_s: float = HEADER_S,
        most: int = MOST,
        most_per_peer: int = MOST_PER_PEER,
    ) -> None:
        self._protocol = protocol
        self.header_s = header_s
        self._most = most
        self._most_per_peer = most_per_peer
        # In the order in which they came.
        self._open: dict[_Connection, str] = {}

    def __call__(self) -> asyncio.Protocol:
        return _Connection(self, self._protocol())

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: _Connection, peer: str) -> bool:
        """Whether there is room for it, or some could be made."""
        same = [each for each, known in self._open.items() if known == peer]
        if len(same) >= self._most_per_peer and not _let_go(same):
            return False
        if len(self._open) >= self._most and not _let_go(list(self._open)):
            return False
        self._open[connection] = peer
        return True

    def forget(self, connection: _Connection) -> None:
        self._open.pop(connection, None)


def _let_go(connections: list[_Connection]) -> bool:
    """Close the oldest that has not sent its headers; False if all have."""
    idle = next((each for each in connections if each.is_waiting), None)
    if idle is not None:
        idle.abort()
    return idle is not None


class _Connection(asyncio.Protocol):
    """One of them: everything is handed on to what speaks over it."""

    def __init__(self, all_of_them: Connections, inner: asyncio.Protocol) -> None:
        self._all = all_of_them
        self._inner = inner
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        # The last bytes that came: the end of the headers may come in pieces.
        self._end = b""
        self.is_waiting = True
        self._is_admitted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  a stream's
        self._transport = transport
        peer: Any = transport.get_extra_info("peername")
        self._is_admitted = self._all.admit(self, str(peer[0]) if peer else "")
        if not self._is_admitted:
            transport.abort()
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._all.header_s, self.abort)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self._is_admitted:
            return
        if self.is_waiting:
            seen = self._end + data
            self._end = seen[-len(END_OF_HEADERS) + 1 :]
            if END_OF_HEADERS in seen:
                self._has_sent_headers()
        self._inner.data_received(data)

    def _has_sent_headers(self) -> None:
        self.is_waiting = False
        if self._timer is not None:
            self._timer.cancel()

    def abort(self) -> None:
        self._all.forget(self)
        self.is_waiting = False
        if self._transport is not None:
            self._transport.abort()

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._is_admitted else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._all.forget(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._is_admitted:
            self._inner.connection_lost(error)
