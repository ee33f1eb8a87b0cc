"""Idempotency keys of the HTTP API: what was answered to a request, for whoever sends it again."""

from __future__ import annotations

import msgspec

from penstock.store.noun import Noun

# For so long a key stands for its first request. Retention drops it afterwards.
KEPT_S = 86_400.0
# A server that has not answered by then was stopped while it performed the act.
LEASE_S = 600.0


class KeyRow(msgspec.Struct, frozen=True):
    """A key in use: the hash of its request, and the answer as JSON if there is one."""

    request: str
    lease_expires_at: float
    answer: str | None


class Idempotency(Noun):
    """The verbs of idempotency keys. `server` is the process that performs the act."""

    def begin(self, identity: str, key: str, request: str, server: str) -> KeyRow | None:
        """Take a key; None if the act is to be performed now, else what is known of the key."""
        about = {"identity": identity, "key": key}
        with self._db.writing() as now:
            values = {
                **about,
                "request": request,
                "server": server,
                "now": now,
                "lease_expires_at": now + LEASE_S,
            }
            if self._db.do("begin_idempotency_key", **values):
                return None
            if self._db.do("retake_idempotency_key", expired=now - KEPT_S, **values):
                return None
            [row] = self._db.rows("idempotency_key", **about)
        return KeyRow(*row)

    def answer(self, identity: str, key: str, server: str, answer: str) -> bool:
        """Keep what was answered; False if the key is another server's by now."""
        about = {"identity": identity, "key": key, "server": server}
        with self._db.writing():
            return bool(self._db.do("answer_idempotency_key", answer=answer, **about))

    def release(self, identity: str, key: str, server: str) -> bool:
        """Give a key back whose act was refused."""
        about = {"identity": identity, "key": key, "server": server}
        with self._db.writing():
            return bool(self._db.do("release_idempotency_key", **about))
