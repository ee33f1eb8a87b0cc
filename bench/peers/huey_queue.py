"""Huey on SQLite with fsync: no-op tasks enqueued, then drained by its own consumer."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

from huey import SqliteHuey
from huey.signals import SIGNAL_COMPLETE


def drain(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Enqueue all tasks one by one (it has no bulk enqueue), then run its consumer until they are done.

    Results are not stored, which saves Huey one transaction per task.
    """
    logging.getLogger("huey").setLevel(logging.WARNING)
    huey = SqliteHuey(filename=str(folder / "huey.db"), fsync=True, results=False)
    nothing = huey.task()(lambda source, key: None)
    finished, enough = Tally(size["jobs"]), threading.Event()
    huey.signal(SIGNAL_COMPLETE)(lambda signal, task: finished.add(enough))

    began = time.perf_counter()
    for number in range(size["jobs"]):
        nothing(number % size["sources"], f"https://example.test/{number}")
    enqueued = time.perf_counter()
    consumer = huey.create_consumer(
        workers=size["workers"], worker_type="thread", periodic=False, initial_delay=0.001
    )
    consumer.start()
    enough.wait()
    ended = time.perf_counter()
    consumer.stop(graceful=True)
    return {
        "seconds": ended - began,
        "done": size["jobs"],
        "enqueue_seconds": enqueued - began,
        "drain_seconds": ended - enqueued,
    }


class Tally:
    """Counts to a goal from several threads."""

    def __init__(self, goal: int) -> None:
        self._left = goal
        self._lock = threading.Lock()

    def add(self, enough: threading.Event) -> None:
        with self._lock:
            self._left -= 1
            if not self._left:
                enough.set()
