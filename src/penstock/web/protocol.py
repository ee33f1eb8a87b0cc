"""HTTP/1.1 over one connection, with what uvicorn does not have: time limits for both sides, and caps.

A connection that does not send its request's headers in time is closed, the first request's and each that
follows. When there are too many connections, of one address or in all, the one that has waited longest for
headers makes room; one whose request is being answered stays.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.app.verbs.problems import Problem
from penstock.web.problem_response import MEDIA_TYPE

HEADER_S = 10.0
# Of the first line and all headers together.
HEADERS_BYTES = 32_768
# A client that reads nothing of its answer for so long is cut off.
STALLED_S = 30.0
MOST = 512
MOST_PER_ADDRESS = 256


class Connections:
    """All connections of one server, in the order in which they came."""

    def __init__(
        self,
        header_s: float = HEADER_S,
        most: int = MOST,
        most_per_address: int = MOST_PER_ADDRESS,
        stalled_s: float = STALLED_S,
    ) -> None:
        self.header_s = header_s
        self.stalled_s = stalled_s
        self._most = most
        self._most_per_address = most_per_address
        self._open: dict[TimedProtocol, str] = {}

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, connection: TimedProtocol, address: str) -> bool:
        """Whether there is room for it, or some could be made."""
        same = [each for each, known in self._open.items() if known == address]
        if len(same) >= self._most_per_address and not _make_room(same):
            return False
        if len(self._open) >= self._most and not _make_room(list(self._open)):
            return False
        self._open[connection] = address
        return True

    def forget(self, connection: TimedProtocol) -> None:
        self._open.pop(connection, None)


def _make_room(connections: list[TimedProtocol]) -> bool:
    idle = next((each for each in connections if each.is_waiting), None)
    if idle is not None:
        idle.abort()
    return idle is not None


class TimedProtocol(H11Protocol):
    """One connection. `all_of_them` is the server's."""

    def __init__(self, *args: Any, all_of_them: Connections, **options: Any) -> None:
        super().__init__(*args, **options)
        self._all = all_of_them
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._is_admitted = False
        # No request is under way: it waits for the headers of the next one.
        self.is_waiting = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        peer = transport.get_extra_info("peername")
        self._is_admitted = self._all.admit(self, str(peer[0]) if peer else "")
        if not self._is_admitted:
            transport.abort()
            return
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        if self._is_admitted:
            super().data_received(data)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self.is_waiting = self.cycle.response_complete
            self._stop_waiting()

    def send_400_response(self, msg: str) -> None:
        """What can't be read is refused as everything else is; `msg` may repeat what was sent."""
        problem = Problem(
            400,
            "bad_request",
            f"The request can't be read, or its head has more than {HEADERS_BYTES:,} B.",
        )
        body = msgspec.json.encode(problem.as_json())
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def on_response_complete(self) -> None:
        # Before the next request that has arrived already is begun.
        self._wait_for_headers()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.forget(self)
        self._stop_waiting()
        self._stop_stalled()
        if self._is_admitted:
            super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads nothing while an answer waits to be sent: it has a while to catch up."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self._all.stalled_s, self.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stalled()

    def _stop_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def abort(self) -> None:
        self._all.forget(self)
        self.is_waiting = False
        if self.transport is not None:
            self.transport.abort()

    def _wait_for_headers(self) -> None:
        self._stop_waiting()
        self.is_waiting = True
        self._timer = self.loop.call_later(self._all.header_s, self.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
