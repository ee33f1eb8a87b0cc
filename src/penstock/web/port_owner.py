"""Which process listens at a port of this machine, as far as the system tells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LISTENING = "0A"
PROC = Path("/proc")
LONGEST_COMMAND = 80


def port_owner(port: int, proc: Path = PROC) -> str:
    """`pid 4711 (penstock web)`; empty where nobody may know."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port, proc)}
    for pid in _pids(proc) if sockets else ():
        if _has_one_of(proc / pid / "fd", sockets):
            return f"pid {pid}{_command(proc / pid)}"
    return ""


def _inodes(port: int, proc: Path) -> Iterator[str]:
    for table in ("net/tcp", "net/tcp6"):
        with suppress(OSError):
            for line in (proc / table).read_text().splitlines()[1:]:
                words = line.split()
                at = int(words[1].rpartition(":")[2], 16)
                if at == port and words[3] == LISTENING:
                    yield words[9]


def _pids(proc: Path) -> list[str]:
    try:
        return sorted((name for name in os.listdir(proc) if name.isdecimal()), key=int)
    except OSError:
        return []


def _has_one_of(folder: Path, sockets: set[str]) -> bool:
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                if os.readlink(folder / name) in sockets:
                    return True
    return False


def _command(folder: Path) -> str:
    """The command in words; of ours, without the interpreter and its options."""
    try:
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return ""
    shown = " ".join(word for word in words if word)
    at = shown.rfind("penstock ")
    text = "".join(char for char in (shown[at:] if at >= 0 else shown) if char.isprintable())
    return f" ({text[:LONGEST_COMMAND].strip()})" if text.strip() else ""
