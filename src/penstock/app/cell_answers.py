"""Asking all cells at once: one that is down says so, and holds up no other."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.app.project import Project

# So long a cell is waited for that does not answer. What looks at all cells takes no longer.
PATIENCE_S = 5.0
Found = TypeVar("Found")


def ask_cells(
    cells: Sequence[str], open_cell: Callable[[str], Project], look: Callable[[Project], Found]
) -> dict[str, Found | str]:
    """What each cell answers, all at once; text for one that does not in time, or not at all."""
    answers: queue.Queue[tuple[str, Found | str]] = queue.Queue()

    def ask(name: str) -> None:
        try:
            with closing(open_cell(name)) as project:
                answers.put((name, look(project)))
        except PenstockError as error:
            answers.put((name, error.message))

    for name in cells:
        threading.Thread(target=ask, args=(name,), daemon=True, name=f"cell-{name}").start()
    until = time.monotonic() + PATIENCE_S
    found: dict[str, Found | str] = {}
    while len(found) < len(cells):
        try:
            name, answer = answers.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            break
        found[name] = answer
    return {name: found.get(name, f"no answer for {PATIENCE_S:g} s") for name in cells}


def answered(found: Mapping[str, Found | str]) -> dict[str, Found]:
    """What those answered that did."""
    return {name: each for name, each in found.items() if not isinstance(each, str)}


def silent_of(found: Mapping[str, Found | str]) -> list[str]:
    """The cells that did not answer."""
    return [name for name, each in found.items() if isinstance(each, str)]
