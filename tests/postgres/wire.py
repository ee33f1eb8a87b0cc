"""As much of the Postgres protocol as a proxy must understand: where messages end, and what they run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

PLAIN_PLEASE = (80877103, 80877104)  # asks whether TLS, or GSSAPI, could be had
CANCEL = 80877102

# From the client.
QUERY, PARSE, BIND, EXECUTE, SYNC, CALL = b"Q", b"P", b"B", b"E", b"S", b"F"
ANSWERED_WITH_READY = {QUERY, SYNC, CALL}
# From the server.
READY, NOTIFICATION = b"Z", b"A"


class Message(NamedTuple):
    kind: bytes
    body: bytes

    @property
    def whole(self) -> bytes:
        return self.kind + (len(self.body) + 4).to_bytes(4, "big") + self.body


@dataclass
class Splitter:
    """Cuts a stream of bytes into messages; what is not whole yet waits for the rest."""

    rest: bytearray = field(default_factory=bytearray)

    def feed(self, more: bytes) -> list[Message]:
        self.rest += more
        found, at = [], 0
        while len(self.rest) >= at + 5:
            end = at + 1 + int.from_bytes(self.rest[at + 1 : at + 5], "big")
            if len(self.rest) < end:
                break
            kind, body = self.rest[at : at + 1], self.rest[at + 5 : end]
            found.append(Message(bytes(kind), bytes(body)))
            at = end
        del self.rest[:at]
        return found


@dataclass
class Statements:
    """Knows which statement a message makes the server run, also when it was prepared long before."""

    prepared: dict[bytes, str] = field(default_factory=dict)
    portals: dict[bytes, str] = field(default_factory=dict)

    def run_by(self, message: Message) -> str | None:
        first, _, rest = message.body.partition(b"\0")
        second = rest.partition(b"\0")[0]
        if message.kind == QUERY:
            return first.decode(errors="replace")
        if message.kind == PARSE:
            self.prepared[first] = second.decode(errors="replace")
        if message.kind == BIND:
            self.portals[first] = self.prepared.get(second, "")
        return self.portals.get(first) if message.kind == EXECUTE else None


async def read_start_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """The packet that opens a connection; who asks for encryption is told that there is none."""
    while True:
        size = await reader.readexactly(4)
        packet = size + await reader.readexactly(int.from_bytes(size, "big") - 4)
        if code_of(packet) not in PLAIN_PLEASE:
            return packet
        writer.write(b"N")


def code_of(start_up: bytes) -> int:
    return int.from_bytes(start_up[4:8], "big")
