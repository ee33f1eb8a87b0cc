"""The sweep: segments that nothing refers to are removed, those of dead writers included.

A segment goes when two rounds, an hour apart, have both found it unused and of the same size. By then
a worker that was about to refer to it has done so or is long dead, and no writer comes back to it.
Nobody's time of day is asked for: that of the storage, of the database and of this host may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice

from penstock.clock import Clock
from penstock.snapshots import SnapshotStore
from penstock.store.store import Store

EVERY_S = 3600.0
BATCH = 1000


class Sweep:
    """Rounds in a thread of their own: an object store may take minutes to list, or to be back."""

    def __init__(
        self,
        snapshots: SnapshotStore,
        open_store: Callable[[], Store],
        clock: Clock,
        thread: Executor | None = None,
    ) -> None:
        self._snapshots = snapshots
        self._open_store = open_store
        self._clock = clock
        self._thread = thread or ThreadPoolExecutor(1, thread_name_prefix="sweep")
        self._round: Future[None] | None = None
        self._due_at = clock.monotonic() + EVERY_S
        self._unused: dict[str, int] = {}
        self._is_stopping = False

    def look(self) -> None:
        """Begin a round when it is time, and raise what the last one met. Never waits."""
        if self._round is not None:
            if not self._round.done():
                return
            # From its end: a round may take long, and the next must not see the same things sooner.
            self._due_at = self._clock.monotonic() + EVERY_S
            ended, self._round = self._round, None
            ended.result()
        if self._clock.monotonic() >= self._due_at:
            self._round = self._thread.submit(self._sweep)

    def close(self) -> None:
        """Wait for the request that is under way, and for no more."""
        self._is_stopping = True
        self._thread.shutdown(wait=True)

    def _sweep(self) -> None:
        with closing(self._open_store()) as store:
            self._forget_unused(store)
            self._remove_unused(store)

    def _forget_unused(self, store: Store) -> None:
        """First the rows, so that nobody can refer to them again: what they leave goes in an hour."""
        after: str | None = ""
        while after is not None and not self._is_stopping:
            after = store.snapshots.drop_unused_payloads(after)

    def _remove_unused(self, store: Store) -> None:
        last, self._unused = self._unused, {}
        for batch in batches(self._snapshots.segments(), BATCH):
            if self._is_stopping:
                return
            in_use = store.snapshots.segments_in_use([name for name, _ in batch])
            unused = {name: size for name, size in batch if name not in in_use}
            gone = [name for name, size in unused.items() if last.get(name) == size]
            self._snapshots.remove(gone)
            self._unused |= {name: unused[name] for name in unused.keys() - set(gone)}


def batches(things: Iterable[tuple[str, int]], size: int) -> Iterator[list[tuple[str, int]]]:
    rest = iter(things)
    while batch := list(islice(rest, size)):
        yield batch
