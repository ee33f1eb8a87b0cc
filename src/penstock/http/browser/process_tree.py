"""Processes below one, by /proc: which they are, what memory they have of their own, and their end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """`memory` is in bytes, without what it shares with files: the program itself."""

    pid: int
    memory: int
    is_page: bool


def below(pid: int) -> list[int]:
    """The processes that it has started, and those that these have."""
    parents = dict(_parents())
    found, waiting = [], [pid]
    while waiting:
        above = waiting.pop()
        children = [each for each, parent in parents.items() if parent == above]
        found += children
        waiting += children
    return found


def looked_at(pid: int) -> Process | None:
    """A process as it is now; None if it has ended."""
    try:
        status = (_PROC / str(pid) / "status").read_text("ascii", "replace")
        command = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    sizes = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Rss"))
    memory = sum(_kilobytes(sizes.get(name, "")) for name in ("RssAnon", "RssShmem"))
    return Process(pid, memory * 1024, b"--type=renderer" in command)


def marked(mark: str) -> list[int]:
    """The processes that were started with this text among their arguments."""
    return [pid for pid in _pids() if mark.encode() in _command(pid)]


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _pids() -> Iterator[int]:
    with suppress(OSError):
        yield from (int(name) for name in os.listdir(_PROC) if name.isdecimal())


def _parents() -> Iterator[tuple[int, int]]:
    for pid in _pids():
        with suppress(OSError, ValueError, IndexError):
            # The name of the program stands in parentheses, and may hold anything.
            rest = (_PROC / str(pid) / "stat").read_text("ascii", "replace").rpartition(")")[2]
            yield pid, int(rest.split()[1])


def _command(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def _kilobytes(text: str) -> int:
    number = text.strip().partition(" ")[0]
    return int(number) if number.isdecimal() else 0
