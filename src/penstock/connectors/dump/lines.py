"""Lines of a stream: at most so long each, with their numbers and where they begin."""

from __future__ import annotations

from collections import deque
from typing import Protocol

# The longest line that is read; a longer one is left out, and rejected by its number.
MOST_LINE = 1_000_000


class Readable(Protocol):
    """What bytes are read from, one piece after the other."""

    def read(self, size: int = -1, /) -> bytes: ...

    def readline(self, size: int = -1, /) -> bytes: ...


class LineSource(Protocol):
    """What lines are taken from, and can be given back to."""

    @property
    def line(self) -> int: ...

    def next(self) -> bytes: ...

    def put_back(self, lines: list[bytes]) -> None: ...


class Lines:
    """The lines of a stream from where it stands. `offset` and `line` are of what comes next."""

    def __init__(self, stream: Readable, offset: int = 0, line: int = 1) -> None:
        self._stream = stream
        self._back: deque[bytes] = deque()
        self.offset = offset
        self.line = line
        # Lines that were too long since somebody looked: number and length.
        self.dropped: list[tuple[int, int]] = []

    def next(self) -> bytes:
        """The next line with its end; empty at the end of the stream."""
        while True:
            line = self._back.popleft() if self._back else self._stream.readline(MOST_LINE + 1)
            self.offset += len(line)
            self.line += bool(line)
            if len(line) <= MOST_LINE or line.endswith(b"\n"):
                return line
            self._drop(len(line))

    def put_back(self, lines: list[bytes]) -> None:
        """Give these out again."""
        self._back.extendleft(reversed(lines))
        self.offset -= sum(map(len, lines))
        self.line -= len(lines)

    def _drop(self, size: int) -> None:
        """Read to the end of a line that is too long, and keep nothing of it."""
        while True:
            more = self._stream.readline(MOST_LINE)
            size += len(more)
            self.offset += len(more)
            if not more or more.endswith(b"\n"):
                break
        self.dropped.append((self.line - 1, size))
