"""The guard: a thread in the browser's process that nothing in that process can hold up.

It ends everything when the worker is gone, and a page that takes more memory than it may.
"""

from __future__ import annotations

import os
import select
import shutil
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from penstock.http.browser.process_tree import Process, below, kill, looked_at

# While pages are drawn, and while none is.
LOOK_S, REST_S = 0.2, 1.0
# What chromium itself may have beside its pages, in each of its other processes.
ROOM = 512_000_000
EXIT_MEMORY = 7
# A page that breaks down so soon after a kill broke down because of it.
_SOON_S = 5.0


class Guard:
    """`memory` is what one page may have, `pages` how many there are now. `folder` is removed at the end."""

    def __init__(self, lifeline: int, folder: str, memory: int, pages: Callable[[], int]) -> None:
        self._lifeline = lifeline
        self._folder = folder
        self._memory = memory
        self._pages = pages
        self._killed_at = float("-inf")

    def start(self) -> None:
        threading.Thread(target=self._watch, name="guard", daemon=True).start()

    @property
    def has_just_killed(self) -> bool:
        return time.monotonic() - self._killed_at < _SOON_S

    def _watch(self) -> None:
        while not select.select([self._lifeline], [], [], LOOK_S if self._pages() else REST_S)[0]:
            self._look()
        self.end(0)

    def _look(self) -> None:
        found = [seen for pid in below(os.getpid()) if (seen := looked_at(pid)) is not None]
        if any(seen.memory > self._memory + ROOM for seen in found if not seen.is_page):
            self.end(EXIT_MEMORY)
        for pid in over(found, self._memory, self._pages()):
            self._killed_at = time.monotonic()
            kill([pid])

    def end(self, code: int) -> NoReturn:
        """This process and all below it, at once; and what they have left on the disk."""
        while pids := below(os.getpid()):
            kill(pids)
            _bury(pids)
        shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(code)


def over(processes: list[Process], memory: int, pages: int) -> list[int]:
    """Those that have too much: alone, or the largest of those that have too much together."""
    drawing = sorted((each for each in processes if each.is_page), key=lambda each: -each.memory)
    total = sum(each.memory for each in drawing)
    found = []
    for each in drawing:
        if each.memory > memory or total > memory * max(1, pages):
            found.append(each.pid)
            total -= each.memory
    return found


def _bury(pids: list[int]) -> None:
    """Processes that have ended stay listed until somebody asks how."""
    for pid in pids:
        try:
            os.waitpid(pid, 0)
        except OSError:
            continue  # it is the child of another one
