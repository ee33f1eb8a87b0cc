"""Threads for plain steps: few while the steps are quick, more when they block.

A hop to a thread costs more than most plain steps do. So threads pull errands from one queue
without asking the loop, finished errands pile up, and the loop hears of a whole pile at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from queue import SimpleQueue
from typing import Protocol

TICK_S = 0.01
WATCH_S = 0.1
# A thread that finishes fewer than one errand in this time is taken to be waiting for something.
BRISK_S = 0.002
# Above this share of one core the interpreter itself is the bottleneck: more threads would only queue.
BUSY = 0.7


class Errand(Protocol):
    """Something to do in a thread. `act` must not raise; `finish` and `expire` are for the loop."""

    timeout_s: float

    def act(self) -> None: ...

    def finish(self) -> None: ...

    def expire(self) -> None: ...


class _Seat:
    """A thread as the loop watches it: what it does, and since when the loop has seen it do that."""

    __slots__ = ("current", "is_empty", "seen", "seen_at")

    def __init__(self) -> None:
        self.current: Errand | None = None
        self.seen: Errand | None = None
        self.seen_at = 0.0
        self.is_empty = False


class Threads:
    """A pool that starts with one thread, and grows while the queue waits and the processor doesn't.

    A thread can't be stopped. One whose errand took too long is counted as lost and replaced; if
    it ever comes back, it takes its seat again and is no longer counted.
    """

    is_inline = False

    def __init__(self, max_threads: int = 32) -> None:
        self._max_threads = max_threads
        self._queue: SimpleQueue[Errand | None] = SimpleQueue()
        self._finished: deque[Errand] = deque()
        self._is_loop_told = False
        self._seats: list[_Seat] = []
        self._lost: list[_Seat] = []
        self._submitted = 0
        self._delivered = 0
        self._seen_done = 0
        self._seen_at = 0.0
        self._seen_busy_s = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def lost(self) -> int:
        """How many threads are stuck in an errand that nobody waits for any more."""
        return len(self._lost)

    @property
    def size(self) -> int:
        return sum(not seat.is_empty for seat in self._seats)

    def submit(self, errand: Errand) -> None:
        """Have a thread run this, then `finish` it on the loop.

        `expire` comes first if it takes too long; `finish` follows if its thread ever comes back.
        """
        self._submitted += 1
        self._queue.put(errand)
        if self._timer is None:
            self._begin()

    def abandon(self, errand: Errand) -> None:
        """Nobody waits for this errand any more. One that has not begun must find that out in `act`."""
        for seat in self._seats:
            if seat.current is errand:
                self._lose(seat, errand)
                return

    def close(self) -> None:
        """Let idle threads go; those that are stuck end with the process."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for _ in self._seats + self._lost:
            self._queue.put(None)
        self._seats, self._lost = [], []

    def _begin(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._note_progress(self._loop.time(), time.process_time())
        self._timer = self._loop.call_later(TICK_S, self._tick, self._loop)
        if not self._seats:
            self._add_thread()

    def _add_thread(self) -> None:
        seat = _Seat()
        self._seats.append(seat)
        # Daemons: a step that never returns must not keep the process from ending.
        name = f"penstock-step-{len(self._seats)}"
        threading.Thread(target=self._work, args=(seat,), name=name, daemon=True).start()

    def _work(self, seat: _Seat) -> None:
        while (errand := self._queue.get()) is not None:
            seat.current = errand
            errand.act()
            seat.current = None
            self._finished.append(errand)
            del errand
            self._tell_loop()
        seat.is_empty = True

    def _tell_loop(self) -> None:
        # Appended before, cleared before reading: whichever thread comes second sees the errand.
        if self._is_loop_told or self._loop is None:
            return
        self._is_loop_told = True
        try:
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            return  # The loop has closed; nobody is left to hear of it.

    def _deliver(self) -> None:
        self._is_loop_told = False
        finished = self._finished
        try:
            while finished:
                errand = finished.popleft()
                self._delivered += 1
                errand.finish()
        finally:
            if finished:
                self._tell_loop()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        self._welcome_back()
        self._watch(now)
        if self._queue.qsize():
            self._grow(now)
        self._note_progress(now, time.process_time())
        self._timer = None
        if self._submitted > self._delivered:
            delay_s = TICK_S if self._queue.qsize() else self._next_look_s(now)
            self._timer = loop.call_later(delay_s, self._tick, loop)

    def _watch(self, now: float) -> None:
        """Time runs from when an errand is first seen on a thread, not while it waits for one."""
        for seat in list(self._seats):
            errand = seat.current
            if errand is not seat.seen:
                seat.seen, seat.seen_at = errand, now
            elif errand is not None and now - seat.seen_at >= errand.timeout_s:
                self._lose(seat, errand)
                errand.expire()

    def _next_look_s(self, now: float) -> float:
        due = [
            seat.seen_at + seat.seen.timeout_s - now
            for seat in self._seats
            if seat.seen is not None
        ]
        return min(max(min(due, default=WATCH_S), TICK_S), WATCH_S)

    def _lose(self, seat: _Seat, errand: Errand) -> None:
        seat.seen = errand
        self._seats.remove(seat)
        self._lost.append(seat)

    def _welcome_back(self) -> None:
        self._seats = [seat for seat in self._seats if not seat.is_empty]
        for seat in [seat for seat in self._lost if seat.current is not seat.seen]:
            self._lost.remove(seat)
            self._seats.append(seat)
            if len(self._seats) > self._max_threads:
                self._queue.put(None)

    def _grow(self, now: float) -> None:
        size = len(self._seats)
        done = self._delivered + len(self._finished) - self._seen_done
        elapsed_s = max(now - self._seen_at, TICK_S)
        is_idle = (time.process_time() - self._seen_busy_s) / elapsed_s < BUSY
        is_slow = done * BRISK_S < elapsed_s * size
        wanted = size if is_idle and is_slow else int(done == 0)
        for _ in range(min(max(wanted, int(size == 0)), self._max_threads - size)):
            self._add_thread()

    def _note_progress(self, now: float, busy_s: float) -> None:
        self._seen_done = self._delivered + len(self._finished)
        self._seen_at = now
        self._seen_busy_s = busy_s


class InlineThreads:
    """No threads: an errand is run and finished on the loop, before `submit` returns.

    For simulation, where the order of everything must follow from the seed; time limits don't hold.
    """

    is_inline = True
    lost = 0

    def submit(self, errand: Errand) -> None:
        errand.act()
        errand.finish()

    def abandon(self, errand: Errand) -> None:
        pass

    def close(self) -> None:
        pass
