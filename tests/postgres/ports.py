"""Ports on loopback for servers that come back on the same port after they were stopped."""

from __future__ import annotations

import random
import socket
from urllib.parse import urlsplit, urlunsplit

# Below the range from which the system gives ports to outgoing connections: while a server is down,
# one of those could take its port, or even connect to itself and be taken for the server.
FIRST, LAST = 20_000, 30_000


def free_port() -> int:
    """A port nobody listens on now. Somebody may, by the time it is used: then take another."""
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(FIRST, LAST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def at_port(url: str, port: int) -> str:
    """The same database for the same user, by another door on loopback."""
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{port}"))
