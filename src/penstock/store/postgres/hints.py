"""Hints that there is work: NOTIFY to those who wait, LISTEN for those who give them.

A hint may be lost, doubled or late, and nothing depends on it: everybody looks for work now and then
in any case. It is given after the commit, not inside it (a notification takes a lock that every
committing notifier waits for), and not more often than needed.
"""

from __future__ import annotations

import select
from contextlib import suppress

import psycopg

from penstock.clock import Clock
from penstock.store.postgres.connection import Connection

CHANNEL = "penstock"
GIVE_EVERY_S = 0.05
LISTEN_AGAIN_S = 1.0


class Hints:
    """One process's end of the channel."""

    def __init__(self, info: str, name: str, clock: Clock) -> None:
        self._info = info
        self._name = name
        self._clock = clock
        self._given_at = float("-inf")
        self._listener: Connection | None = None
        self._listen_at = 0.0
        self.is_pooled = False
        self.listens = True

    def give(self, connection: Connection) -> None:
        """Say that there is work; at most every so often, and without waiting for the disk."""
        now = self._clock.monotonic()
        if now - self._given_at < GIVE_EVERY_S:
            return
        self._given_at = now
        with suppress(psycopg.Error):
            connection.execute(
                "BEGIN; SET LOCAL synchronous_commit = off;"
                f" NOTIFY {CHANNEL}, '{self._name}'; COMMIT"
            )

    def has_come(self) -> bool:
        """Whether somebody else has given a hint since this was last asked. Never waits for one.

        Also when listening has just begun again: what came meanwhile was not heard.
        """
        if not self.listens or self.is_pooled:
            return False
        if self._listener is None:
            return self._listen()
        try:
            return self._hear(self._listener)
        except (psycopg.Error, OSError, ValueError):
            self.close()
            return False

    def _hear(self, listener: Connection) -> bool:
        readable, _, _ = select.select([listener.fileno()], [], [], 0)
        if not readable:
            return False
        listener.pgconn.consume_input()
        has_come = False
        while note := listener.pgconn.notifies():
            has_come = has_come or note.extra.decode() != self._name
        return has_come

    def _listen(self) -> bool:
        now = self._clock.monotonic()
        if now < self._listen_at:
            return False
        self._listen_at = now + LISTEN_AGAIN_S
        try:
            self._listener = Connection.connect(self._info, autocommit=True)
            self._listener.patience_s = LISTEN_AGAIN_S
            self._listener.execute(f"LISTEN {CHANNEL}")
        except psycopg.Error:
            self.close()
            return False
        return True

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(psycopg.Error):
                listener.close()
