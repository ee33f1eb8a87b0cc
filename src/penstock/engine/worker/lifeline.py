"""The line from a supervisor to its worker, heard in a thread of its own.

A worker whose lease was not renewed in time must stop what it does before anybody else may do it. Its event
loop may be stuck in a step just then, its store may be silent, and a thread can't be ended: so the process
is, by a thread that needs neither. Until then every line that has come is read, however late.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Protocol

from penstock.clock import Clock

MOST = 65536


class Listener(Protocol):
    """Who is told what the supervisor said."""

    def trust_until(self, monotonic: float) -> None: ...

    def drain(self) -> None: ...


class Lifeline:
    """Beats and drains from a descriptor. `leave` ends the process; it is not expected to return."""

    def __init__(
        self, descriptor: int, clock: Clock, trust_s: float, leave: Callable[[], None]
    ) -> None:
        self._descriptor = descriptor
        self._clock = clock
        self._trust_s = trust_s
        self._leave = leave
        self._rest = b""
        self._trusted_until = float("-inf")
        self._drains = 0
        self._lock = threading.Lock()
        self._listener: Listener | None = None

    def wait_for_beat(self) -> bool:
        """Until the first line: whether it is a beat. Before it, claiming would be claiming as nobody."""
        while not self._trusted_until > float("-inf"):
            if self._drains or not self._read():
                return False
        return True

    def start(self) -> None:
        threading.Thread(target=self._listen, name="lifeline", daemon=True).start()

    def attach(self, listener: Listener) -> None:
        """From now on it is told; what was said before, now."""
        with self._lock:
            self._listener = listener
            listener.trust_until(self._trusted_until)
            for _ in range(self._drains):
                listener.drain()

    def _listen(self) -> None:
        while self.look():
            pass
        self._leave()

    def look(self) -> bool:
        """Wait for a line, or for the end of trust; False when the worker's time is over."""
        left_s = self._trusted_until - self._clock.monotonic()
        readable, _, _ = select.select([self._descriptor], [], [], max(0.0, left_s))
        if readable:
            return self._read()
        return self._clock.monotonic() < self._trusted_until

    def _read(self) -> bool:
        """Obey what has come; False when nothing will come any more, because the supervisor is gone."""
        heard = os.read(self._descriptor, MOST)
        *lines, self._rest = (self._rest + heard).split(b"\n")
        for line in lines:
            self._obey(line)
        return bool(heard)

    def _obey(self, line: bytes) -> None:
        word, _, at = line.partition(b" ")
        with self._lock:
            if word == b"beat":
                # Not from now: the line may have lain in the pipe for long, and the call have taken long.
                self._trusted_until = float(at) + self._trust_s
                if self._listener is not None:
                    self._listener.trust_until(self._trusted_until)
            elif word == b"drain":
                self._drains += 1
                if self._listener is not None:
                    self._listener.drain()
