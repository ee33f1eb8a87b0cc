"""Connections to one store for many threads: each thread has its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from penstock.store.store import Store


class Connections:
    """Opens a connection when a thread first asks for one, and closes all of them together.

    The connection of a thread that has ended is handed to the next thread that has its number, or closed
    when another thread opens one: a server that starts a thread for each request holds as many
    connections as it has threads at a time.
    """

    def __init__(self, open_one: Callable[[], Store]) -> None:
        self._open_one = open_one
        self._lock = threading.Lock()
        self._by_thread: dict[int, Store] = {}

    def __len__(self) -> int:
        """How many are open."""
        return len(self._by_thread)

    def of_this_thread(self) -> Store:
        # Also makes a thread that was not started by Python known to `threading.enumerate`.
        number = threading.current_thread().ident or 0
        with self._lock:
            found = self._by_thread.get(number)
        return found if found is not None else self._opened(number)

    def _opened(self, number: int) -> Store:
        # Outside the lock: a server that does not answer must not keep other threads waiting.
        store = self._open_one()
        with self._lock:
            ended = self._of_ended_threads()
            self._by_thread[number] = store
        for each in ended:
            each.close()
        return store

    def _of_ended_threads(self) -> list[Store]:
        alive = {thread.ident for thread in threading.enumerate()}
        return [self._by_thread.pop(number) for number in set(self._by_thread) - alive]

    def close_of_this_thread(self) -> None:
        """Close the calling thread's connection; it gets a new one when it asks again."""
        with self._lock:
            store = self._by_thread.pop(threading.current_thread().ident or 0, None)
        if store is not None:
            store.close()

    def close(self) -> None:
        """Close every thread's connection. No other thread may be in the middle of a call."""
        with self._lock:
            stores = list(self._by_thread.values())
            self._by_thread.clear()
        for store in stores:
            store.close()
