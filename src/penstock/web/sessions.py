"""Sessions of browsers: begun by a one-time link or a token, known by a cookie, ended by time or by leaving.

They are kept in memory: whoever restarts the server ends all of them. Only hashes are kept, so that nothing
that could be stolen from the process's memory dump opens a session elsewhere.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.app.verbs.roles import Identity

LIFETIME_S = 12 * 3600.0
LINK_LIFETIME_S = 3600.0
MOST = 1_000
BYTES = 32


@dataclass(frozen=True, slots=True)
class Session:
    """One browser's session. `csrf` is what its forms must send along."""

    identity: Identity
    csrf: str
    ends_at: float

    def has_csrf(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "surrogateescape"), self.csrf.encode())


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


class Sessions:
    """The sessions of one server, and the link that begins the next one."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._sessions: dict[bytes, Session] = {}
        self._link: tuple[bytes, float] | None = None

    def begin(self, identity: Identity) -> tuple[str, Session]:
        """A new session and the secret of its cookie; the oldest makes room if there are too many."""
        now = self._monotonic()
        self._drop_ended(now)
        while len(self._sessions) >= MOST:
            self._sessions.pop(next(iter(self._sessions)))
        secret = secrets.token_urlsafe(BYTES)
        session = Session(identity, secrets.token_urlsafe(BYTES), now + LIFETIME_S)
        self._sessions[_hash(secret)] = session
        return secret, session

    def find(self, secret: str) -> Session | None:
        found = self._sessions.get(_hash(secret))
        if found is None or found.ends_at <= self._monotonic():
            return None
        return found

    def end(self, secret: str) -> None:
        self._sessions.pop(_hash(secret), None)

    def end_of_token(self, token: int) -> None:
        """End the sessions that a token has begun."""
        ended = [key for key, each in self._sessions.items() if each.identity.token == token]
        for key in ended:
            del self._sessions[key]

    def new_link(self) -> str:
        """The secret of a link that begins one session; the link before it is no longer valid."""
        secret = secrets.token_urlsafe(BYTES)
        self._link = (_hash(secret), self._monotonic() + LINK_LIFETIME_S)
        return secret

    def use_link(self, secret: str) -> bool:
        """Whether this is the link; it is not a second time."""
        if self._link is None or self._link[1] <= self._monotonic():
            return False
        if not secrets.compare_digest(_hash(secret), self._link[0]):
            return False
        self._link = None
        return True

    def _drop_ended(self, now: float) -> None:
        for key in [key for key, each in self._sessions.items() if each.ends_at <= now]:
            del self._sessions[key]
