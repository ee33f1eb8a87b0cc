"""The budgets that the store does not keep: how old a run may get, and how much memory its processes take."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from penstock.builder.job_file import Budgets

MEGABYTE = 1_000_000
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Guard:
    """Stops a drain when a budget is exhausted that nobody asks before a request.

    Time counts from the beginning of the run, by the store's clock, whoever works on it. Memory is that of
    this process and all below it; steps reserve theirs within the same bound.
    """

    budgets: Budgets
    began_at: float
    now: float
    stopping: threading.Event = field(default_factory=threading.Event)
    peak_mb: float = 0.0
    exceeded: str = ""

    @property
    def left_s(self) -> float | None:
        """Seconds until the time budget is exhausted; None without one."""
        if not self.budgets.time_budget_min:
            return None
        return self.began_at + self.budgets.time_budget_min * 60 - self.now

    def look(self) -> None:
        """Measure, and stop what is too large."""
        self.peak_mb = max(self.peak_mb, memory_mb(os.getpid()))
        if self.budgets.ram_mb and self.peak_mb > self.budgets.ram_mb:
            self.exceeded = "ram_mb"
            self.stopping.set()

    def ran_out(self) -> None:
        """The deadline of the drain has come."""
        self.exceeded = self.exceeded or "time_budget_min"


def memory_mb(pid: int) -> float:
    """The resident memory of a process and all below it; 0 where the system does not say."""
    return sum(_resident_bytes(each) for each in _tree(pid)) / MEGABYTE


def _tree(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):
                for child in children.read_text().split():
                    yield from _tree(int(child))


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0
