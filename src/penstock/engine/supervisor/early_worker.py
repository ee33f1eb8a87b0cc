"""A worker process that is started before anything is known of its project.

To start an interpreter and load Penstock takes as long as to open a project and its database. A command that
is about to work has both done at once: the process loads, and waits for what a worker is told. This imports
hardly anything of Penstock, so that it can be the first thing that a command does.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from penstock.engine.worker.early_start import DESCRIPTORS, EARLY


class EarlyWorker:
    """One process that waits until somebody takes it; what nobody takes is ended."""

    def __init__(self) -> None:
        self._circumstances = _circumstances(os.environ)
        self.line, theirs = socket.socketpair()
        with theirs:
            line = theirs.fileno()
            self.process = spawned([EARLY, str(line)], [line], os.environ)

    def tell(
        self, arguments: Sequence[str], descriptors: Sequence[int], environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes] | None:
        """The process, told what it is; None where it is not as one that is started now would be."""
        if self._circumstances == _circumstances(environment) and self.process.poll() is None:
            with self.line as line:
                try:
                    socket.send_fds(line, [json.dumps(arguments).encode()], descriptors)
                    return self.process
                except OSError:
                    pass  # it has died just now
        self.end()
        return None

    def end(self) -> None:
        self.line.close()
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


# At most one, until somebody takes it.
_waiting: list[EarlyWorker] = []


def start_early() -> None:
    """Start one for whoever needs a worker in this process; where it can't be had, one is started later."""
    if _waiting or not hasattr(socket, "send_fds"):
        return
    with suppress(OSError):
        _waiting.append(EarlyWorker())
        atexit.register(end_early)


def end_early() -> None:
    """Nobody needs it any more."""
    while _waiting:
        _waiting.pop().end()


@contextmanager
def no_early_left() -> Iterator[None]:
    """Who has not needed it by the end of this does not need it."""
    try:
        yield
    finally:
        end_early()


def worker_process(
    arguments: Sequence[str], descriptors: Sequence[int], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """A worker's process: the one that was started early, or a new one.

    `descriptors` are those of its control and its deadlines. The caller keeps its own copies of them.
    """
    if _waiting:
        told = _waiting.pop().tell(arguments, descriptors, environment)
        if told is not None:
            return told
    named = [
        word
        for name, each in zip(DESCRIPTORS, descriptors, strict=True)
        for word in (name, str(each))
    ]
    return spawned([*arguments, *named], descriptors, environment)


def spawned(
    arguments: Sequence[str], descriptors: Sequence[int], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  our own interpreter and module
        [sys.executable, "-P", "-m", "penstock.engine.worker", *arguments],
        # A step that reads gets nothing, instead of what is meant for the worker.
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=descriptors,
        start_new_session=True,
        env={**environment, "PYTHONUNBUFFERED": "1"},
    )


def _circumstances(environment: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """What a process gets of whoever starts it, beside its arguments."""
    return dict(environment), os.getcwd()
