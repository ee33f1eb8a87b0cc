"""Listens for what other processes have written: on the event loop, and never waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.engine.worker.calls import InThreads
from penstock.store.store import Store


class StoreListener:
    """Asks the store whether something has changed; `wake` is called at once where the store can tell."""

    def __init__(
        self, store: Store, calls: InThreads, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._store = store
        self._calls = calls
        self._descriptor: int | None = None
        self.wake = wake

    def has_changed(self) -> bool:
        """Whether another process has written something since this was last asked."""
        # Through the store's own connection, to which its own commits are no change.
        has_changed = self._calls.is_idle and self._store.has_changed()
        self._follow(self._store.listener)
        return has_changed

    def close(self) -> None:
        self._follow(None)

    def _hear(self) -> None:
        """Something has come in. It is a connection of its own, whatever the store's thread is doing."""
        if self._store.has_changed():
            self.wake()
        self._follow(self._store.listener)

    def _follow(self, descriptor: int | None) -> None:
        """Listen to this one from now on: a connection that was lost has left its number to anybody."""
        if descriptor == self._descriptor:
            return
        loop = asyncio.get_running_loop()
        if self._descriptor is not None:
            loop.remove_reader(self._descriptor)
        if descriptor is not None:
            loop.add_reader(descriptor, self._hear)
        self._descriptor = descriptor
