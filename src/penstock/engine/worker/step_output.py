"""What steps print and log, caught where they run and kept with the attempt that said it.

Which attempt that is, is in a context variable: tasks and threads that a step starts in asyncio's ways
inherit it. What is said outside of any attempt goes where it always went.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TextIO, cast

from penstock.clock import Clock
from penstock.counting import count
from penstock.jobs.job import Claimed
from penstock.jobs.words import words_of
from penstock.store.logs import LogLine

# What is kept of one attempt, of one line, of one run by this worker, and until it is written.
MOST_LINES, MOST_CHARS = 200, 32_000
LONGEST_LINE = 2_000
MOST_OF_RUN = 10_000
MOST_WAITING = 5_000
KNOWN = 10_000

performing: ContextVar[Claimed | None] = ContextVar("performing", default=None)


@dataclass(slots=True)
class _Said:
    """How much an attempt has said, and the lines that it has begun and not ended."""

    lines: int = 0
    chars: int = 0
    left_out: int = 0
    begun: dict[str, str] = field(default_factory=dict)


class StepOutput:
    """Lines of attempts, masked and bounded, until the worker's next turn takes them. For any thread."""

    def __init__(self, clock: Clock, mask: Callable[[str], str] = str) -> None:
        self._clock = clock
        self._mask = mask
        self._lock = threading.Lock()
        self._lines: list[LogLine] = []
        self._said: OrderedDict[tuple[int, int], _Said] = OrderedDict()
        self._of_runs: OrderedDict[int, int] = OrderedDict()
        self._private: set[int] = set()

    @property
    def has_lines(self) -> bool:
        return bool(self._lines)

    def conceal(self, source_id: int) -> None:
        """What this source's steps say is private: it is kept, and goes nowhere else."""
        self._private.add(source_id)

    def is_private(self, job: Claimed | None) -> bool:
        return job is not None and job.source_id in self._private

    def write(self, job: Claimed, level: str, text: str) -> None:
        """Text as it is printed: lines are kept when they have ended, or when the attempt has."""
        with self._lock:
            said = self._of(job)
            *lines, rest = (said.begun.get(level, "") + text).split("\n")
            said.begun[level] = rest[:MOST_CHARS]
            for line in lines:
                self._keep(job, said, level, line)

    def add(self, job: Claimed, level: str, text: str) -> None:
        """One entry, of as many lines as it has."""
        with self._lock:
            said = self._of(job)
            for line in text.splitlines() or [""]:
                self._keep(job, said, level, line)

    def end(self, job: Claimed) -> None:
        """The attempt is over: what it has begun is kept, and how much was left out."""
        if (job.id, job.attempt) not in self._said:
            return
        with self._lock:
            said = self._said.pop((job.id, job.attempt), _Said())
            for level, rest in said.begun.items():
                if rest:
                    self._keep(job, said, level, rest)
            if said.left_out:
                self._append(job, "penstock", f"({count(said.left_out, 'line')} left out)")

    def take(self) -> list[LogLine]:
        with self._lock:
            taken, self._lines = self._lines, []
            return taken

    def put_back(self, lines: list[LogLine]) -> None:
        with self._lock:
            self._lines = [*lines, *self._lines][:MOST_WAITING]

    def _of(self, job: Claimed) -> _Said:
        where = (job.id, job.attempt)
        if where not in self._said:
            self._said[where] = _Said()
            if len(self._said) > KNOWN:
                self._said.popitem(last=False)
        return self._said[where]

    def _keep(self, job: Claimed, said: _Said, level: str, line: str) -> None:
        said.chars += len(line)
        said.lines += 1
        if said.lines > MOST_LINES or said.chars > MOST_CHARS or not self._has_room(job.run_id):
            said.left_out += 1
        elif line.strip():
            self._append(job, level, line)

    def _has_room(self, run_id: int) -> bool:
        count = self._of_runs.get(run_id, 0) + 1
        self._of_runs[run_id] = count
        if len(self._of_runs) > KNOWN:
            self._of_runs.popitem(last=False)
        return count <= MOST_OF_RUN and len(self._lines) < MOST_WAITING

    def _append(self, job: Claimed, level: str, text: str) -> None:
        where = (job.source_id, job.run_id, job.id, job.attempt)
        kept = words_of(self._mask(text), LONGEST_LINE)
        self._lines.append(LogLine(self._clock.now(), *where, level, kept))


class StepStream:
    """Standard output or error of a worker. What a step writes is kept; what is not private is shown, too."""

    def __init__(self, usual: TextIO, level: str, output: StepOutput) -> None:
        self._usual = usual
        self._level = level
        self._output = output

    def write(self, text: str) -> int:
        job = performing.get()
        if job is not None:
            self._output.write(job, self._level, str(text))
        return len(text) if self._output.is_private(job) else self._usual.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._usual, name)


class StepLog(logging.Handler):
    """What steps log, from INFO upward; beside that, warnings are shown as Python does by itself."""

    def __init__(self, output: StepOutput, shown: TextIO) -> None:
        super().__init__(logging.INFO)
        self._output = output
        self._shown = shown

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:
            text = f"(a message that can't be formatted: {words_of(record.msg, LONGEST_LINE)})"
        job = performing.get()
        if job is not None:
            self._output.add(job, record.levelname.lower(), f"{record.name}: {text}")
        if record.levelno >= logging.WARNING and not self._output.is_private(job):
            self._shown.write(text + "\n")


class _StepsLeftOut:
    """Standard output or error of a process without what steps write to it."""

    def __init__(self, usual: TextIO) -> None:
        self._usual = usual

    def write(self, text: str) -> int:
        return len(text) if performing.get() is not None else self._usual.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._usual, name)


@contextmanager
def muted() -> Iterator[None]:
    """While this lasts, what steps print is dropped: in a dry run of a private source."""
    usual = sys.stdout, sys.stderr
    ours = tuple(cast(TextIO, _StepsLeftOut(each)) for each in usual)
    sys.stdout, sys.stderr = ours
    try:
        yield
    finally:
        sys.stdout, sys.stderr = usual


def catch(output: StepOutput) -> None:
    """From now on, what this process prints and logs passes here."""
    usual_out, usual_err = sys.stdout, sys.stderr
    sys.stdout = cast(TextIO, StepStream(usual_out, "stdout", output))
    sys.stderr = cast(TextIO, StepStream(usual_err, "stderr", output))
    root = logging.getLogger()
    root.addHandler(StepLog(output, usual_err))
    if root.level == logging.WARNING:
        root.setLevel(logging.INFO)
