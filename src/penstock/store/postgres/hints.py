"""Hints that there is work: NOTIFY to those who wait, LISTEN for those who give them.

A hint may be lost, doubled or late, and nothing depends on it: everybody looks for work now and then
in any case. It is given after the commit, not inside it (a notification takes a lock that every
committing notifier waits for), and not more often than needed: who hears one looks for work at once,
and once more when the next one could have been given.
"""

from __future__ import annotations

import select
import threading
from contextlib import suppress

import psycopg

from penstock.clock import Clock
from penstock.store.postgres.connection import Connection

GIVE_EVERY_S = 0.05
LISTEN_AGAIN_S = 1.0
# What is worth so little is not waited for as long as an answer would be.
PATIENCE_S = 1.0


class Hints:
    """One process's end of the channel."""

    def __init__(self, info: str, name: str, clock: Clock, channel: str) -> None:
        self._info = info
        self._name = name
        self._clock = clock
        self._channel = channel
        self._given_at = float("-inf")
        self._listener: Connection | None = None
        self._joining: _Joining | None = None
        self._listen_at = float("-inf")
        self._look_again_at = float("inf")
        self.is_pooled = False
        self.listens = True

    def give(self, connection: Connection) -> None:
        """Say that there is work; at most every so often, and without waiting for the disk."""
        now = self._clock.monotonic()
        if now - self._given_at < GIVE_EVERY_S:
            return
        self._given_at = now
        usual_s, connection.patience_s = connection.patience_s, PATIENCE_S
        with suppress(psycopg.Error):
            connection.execute(
                f"BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {self._channel}, '{self._name}';"
                " COMMIT"
            )
        connection.patience_s = usual_s

    @property
    def listener(self) -> int | None:
        """The descriptor that becomes readable when a hint comes; None while nobody listens."""
        return None if self._listener is None else self._listener.fileno()

    def has_come(self) -> bool:
        """Whether somebody else has given a hint since this was last asked. Never waits for anything.

        Also a little later, for what was too soon after the hint to be worth another, and when
        listening has just begun again: what came meanwhile was not heard.
        """
        if not self.listens or self.is_pooled:
            return False
        if self._listener is None:
            return self._join()
        try:
            has_come = self._hear(self._listener)
        except (psycopg.Error, OSError, ValueError):
            self.close()
            return False
        now = self._clock.monotonic()
        if has_come:
            self._look_again_at = now + GIVE_EVERY_S
        elif now >= self._look_again_at:
            self._look_again_at = float("inf")
            return True
        return has_come

    def _hear(self, listener: Connection) -> bool:
        if not _is_readable(listener.fileno()):
            return False
        listener.pgconn.consume_input()
        has_come = False
        while note := listener.pgconn.notifies():
            has_come = has_come or note.extra.decode() != self._name
        return has_come

    def _join(self) -> bool:
        """Begin to listen, in a thread: who asks has an event loop to run. True once it has begun."""
        now = self._clock.monotonic()
        if self._joining is None and now >= self._listen_at:
            self._listen_at = now + LISTEN_AGAIN_S
            self._joining = _Joining(self._info, self._channel)
            self._joining.start()
        if self._joining is None or self._joining.is_alive():
            return False
        self._listener, self._joining = self._joining.listener, None
        return self._listener is not None

    def close(self) -> None:
        listener, self._listener = self._listener, None
        joining, self._joining = self._joining, None
        if joining is not None:
            joining.abandon()
        if listener is not None:
            with suppress(psycopg.Error):
                listener.close()


def _is_readable(descriptor: int) -> bool:
    """With poll and not with select, which knows no number above 1023: a busy worker has more."""
    looking = select.poll()
    looking.register(descriptor, select.POLLIN)
    return bool(looking.poll(0))


class _Joining(threading.Thread):
    """Connects and listens; `listener` is there when it has ended well."""

    def __init__(self, info: str, channel: str) -> None:
        super().__init__(name="listening", daemon=True)
        self._info = info
        self._channel = channel
        self._handing_over = threading.Lock()
        self._is_abandoned = False
        self.listener: Connection | None = None

    def run(self) -> None:
        with suppress(psycopg.Error):
            listener = Connection.connect(self._info, autocommit=True)
            listener.patience_s = PATIENCE_S
            try:
                listener.execute(f"LISTEN {self._channel}")
            except psycopg.Error:
                listener.close()
                return
            with self._handing_over:
                if self._is_abandoned:
                    listener.close()
                else:
                    self.listener = listener

    def abandon(self) -> None:
        """Nobody waits for it any more."""
        with self._handing_over:
            self._is_abandoned = True
            if self.listener is not None:
                with suppress(psycopg.Error):
                    self.listener.close()
