"""Output that nobody reads, as in `penstock up | less`, or a terminal that was stopped, holds up no work.

Whoever writes only appends to a queue; a thread hands it on, and waits in its stead. When the queue is
full, what comes is left out and counted. The thread writes to the descriptor itself: a lock of Python's
that it held would keep the process from ending.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from penstock.cli.render.output import Output
from penstock.counting import count

MOST_CHARS = 1_000_000
# When the work has ended, whoever reads is given this long from the last that it took.
LAST_S = 1.0
AGAIN_S = 0.1


@contextmanager
def unblocked(out: Output) -> Iterator[None]:
    """Within this, notes and progress never wait for their reader."""
    usual = out.stderr
    try:
        descriptor = usual.fileno()
    except (OSError, ValueError):  # memory, in a test or a notebook: nobody has to read it
        yield
        return
    usual.flush()
    stream = UnblockedStream(usual, descriptor)
    out.stderr = cast(TextIO, stream)
    try:
        yield
    finally:
        # Where nobody reads, the last words of the command must not wait for it either.
        if stream.end():
            out.stderr = usual


class UnblockedStream:
    """As much of a text stream as notes, tables and progress need."""

    def __init__(self, usual: TextIO, descriptor: int, most_chars: int = MOST_CHARS) -> None:
        self._usual = usual
        self._descriptor = descriptor
        self._most_chars = most_chars
        self._changed = threading.Condition()
        self._waiting: list[str] = []
        self._chars = 0
        self._left_out = 0
        self._is_writing = False
        self._is_ended = False
        self._thread = threading.Thread(target=self._work, name="output", daemon=True)
        self._thread.start()

    @property
    def encoding(self) -> str:
        return self._usual.encoding or "utf-8"

    def isatty(self) -> bool:
        return self._usual.isatty()

    def fileno(self) -> int:
        return self._descriptor

    def flush(self) -> None:
        """Nothing waits here longer than it must."""

    def write(self, text: str) -> int:
        with self._changed:
            if self._chars + len(text) > self._most_chars:
                self._left_out += text.count("\n") or 1
            else:
                self._waiting.append(text)
                self._chars += len(text)
                self._changed.notify_all()
        return len(text)

    def end(self) -> bool:
        """Let the rest be read, as long as somebody reads; whether all was."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()
            while (self._waiting or self._is_writing) and self._changed.wait(LAST_S):
                pass
            return not self._waiting and not self._is_writing

    def _work(self) -> None:
        while (text := self._next()) is not None:
            data = text.encode(self.encoding, "backslashreplace")
            # A log on a full disk, or a terminal that is gone, must not stop the work.
            with suppress(OSError):
                while data:
                    data = data[self._written(data) :]
                    with self._changed:
                        self._changed.notify_all()

    def _next(self) -> str | None:
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()
            while not self._waiting and not self._left_out:
                if self._is_ended:
                    return None
                self._changed.wait()
            text = "".join(self._waiting)
            if self._left_out:
                text += f"({count(self._left_out, 'line')} left out: the output was not read)\n"
            self._waiting, self._chars, self._left_out = [], 0, 0
            self._is_writing = True
            return text

    def _written(self, data: bytes) -> int:
        try:
            return os.write(self._descriptor, data[:4096])
        except BlockingIOError:  # somebody who shares it has set it so
            select.select([], [self._descriptor], [], AGAIN_S)
            return 0
