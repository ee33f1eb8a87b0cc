"""Acts with an idempotency key: performed once for each, however often they are asked for."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.errors import PenstockError, Refused, StoreError, UsageError

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.idempotency import KeyRow

# Answers that could not be written, because the database was gone when the act was done.
MOST_UNWRITTEN = 1_000


class Asked(msgspec.Struct, frozen=True):
    """Who asks, under which key, and the hash of what they ask for."""

    identity: str
    key: str
    request: str

    @classmethod
    def for_act(cls, identity: str, key: str, act: str, given: Mapping[str, Any]) -> Asked:
        """This act with these arguments, by whichever front end it is asked for."""
        said = msgspec.json.encode([act, given], order="deterministic", enc_hook=repr)
        return cls(identity, key, hashlib.sha256(said).hexdigest())


class IdempotencyKeys:
    """The keys that one server has in its hands. Many threads use it.

    An act that was done is never done again for its key. One that was refused, or that failed with the
    database, has changed nothing: its key is free. (A connection that breaks while it commits is taken for a
    failure, although the server may have committed.) If a server is killed in the middle of an act, nobody
    knows how far it came; its key is refused until it expires.
    """

    def __init__(self) -> None:
        self._server = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._under_way: set[tuple[str, str]] = set()
        self._unwritten: dict[Asked, str] = {}

    def perform(self, project: Nouns, asked: Asked, act: Callable[[], str]) -> tuple[str, bool]:
        """What the act answers, and whether that is the answer of an earlier request."""
        with self._alone(asked):
            known = project.connection.idempotency.begin(
                asked.identity, asked.key, asked.request, self._server
            )
            if known is not None:
                return _answer_of(known, asked, project.now()), True
            done = self._unwritten.get(asked)
            answer = self._done(project, asked, act) if done is None else done
            self._keep(project, asked, answer)
            return answer, done is not None

    def _done(self, project: Nouns, asked: Asked, act: Callable[[], str]) -> str:
        try:
            return act()
        except PenstockError:
            # Where the database is gone, this server still knows that the act failed: see `begin`.
            with suppress(StoreError):
                project.connection.idempotency.release(asked.identity, asked.key, self._server)
            raise

    def _keep(self, project: Nouns, asked: Asked, answer: str) -> None:
        self._unwritten[asked] = answer
        while len(self._unwritten) > MOST_UNWRITTEN:
            self._unwritten.pop(next(iter(self._unwritten)))
        project.connection.idempotency.answer(asked.identity, asked.key, self._server, answer)
        self._unwritten.pop(asked, None)

    @contextmanager
    def _alone(self, asked: Asked) -> Iterator[None]:
        place = (asked.identity, asked.key)
        with self._lock:
            if place in self._under_way:
                raise _under_way()
            self._under_way.add(place)
        try:
            yield
        finally:
            with self._lock:
                self._under_way.discard(place)


def _answer_of(known: KeyRow, asked: Asked, now: float) -> str:
    if known.request != asked.request:
        raise UsageError(
            "this Idempotency-Key was used for another request",
            "use a new key for each act",
            code="key_reused",
        )
    if known.answer is None:
        raise _under_way() if now < known.lease_expires_at else _unknown()
    return known.answer


def _under_way() -> Refused:
    return Refused(
        "a request with this Idempotency-Key is being performed",
        "ask again in a moment",
        code="key_in_use",
    )


def _unknown() -> Refused:
    return Refused(
        "the server was stopped while it performed the request with this Idempotency-Key",
        "look whether it was done, then use a new key",
        code="outcome_unknown",
    )
