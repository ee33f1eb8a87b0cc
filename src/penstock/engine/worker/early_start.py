"""A worker that was started early: it has loaded Penstock, and waits at a socket for what it is told."""

from __future__ import annotations

import json
import socket

EARLY = "--early"
# Beside its arguments a worker is given these, in this order.
DESCRIPTORS = ("--control", "--deadlines")
MOST = 65_536


def told_at(line: int) -> list[str] | None:
    """What a process that was started early is told at its line; None if nobody has taken it."""
    with socket.socket(fileno=line) as waiting:
        text, descriptors, _, _ = socket.recv_fds(waiting, MOST, len(DESCRIPTORS))
    if not text:
        return None
    arguments: list[str] = json.loads(text)
    for name, descriptor in zip(DESCRIPTORS, descriptors, strict=True):
        arguments += (name, str(descriptor))
    return arguments
