"""What a supervisor asks its store again and again, in the one thread that renews leases as well.

A server that falls silent in the middle of any of it keeps the next beat waiting. So nothing here waits for
as long as a worker trusts itself: it is given up in time for a beat on a new connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.engine.worker.calls import InOneThread
from penstock.store.store import Store

Answer = TypeVar("Answer")
# Twice that, a second of rest and a new connection fit into what a worker trusts itself.
PATIENCE_S = 4.0


class Looks:
    """Calls in the store's thread that are given up early."""

    def __init__(self, calls: InOneThread, store: Store) -> None:
        self._calls = calls
        self._store = store

    async def __call__(self, verb: Callable[[], Answer]) -> Answer:
        def ask() -> Answer:
            with self._store.hurried(PATIENCE_S):
                return verb()

        return await self._calls(ask)
