"""Confirmations: what makes the second call of an act do what the first one showed, and nothing else."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.errors import Refused

LIFETIME_S = 300.0
# More than these are not kept: the oldest is forgotten, as if it had expired.
MOST = 1_000
# What workers and the clock change by the second: that it moves on does not make a dry run's answer stale.
MOVING = frozenset(
    {"queued", "running", "waiting", "open jobs", "jobs that would wait", "counts", "seconds"}
)


def seen(preview: Any) -> Any:
    """What of a dry run's answer has to be the same when the act is done."""
    if isinstance(preview, Mapping):
        return {key: seen(each) for key, each in preview.items() if key not in MOVING}
    if isinstance(preview, (list, tuple)):
        return [seen(each) for each in preview]
    return preview


def digest(*said: Any) -> str:
    text = msgspec.json.encode(said, order="deterministic", enc_hook=repr)
    return hashlib.sha256(text).hexdigest()


@dataclass(frozen=True, slots=True)
class _Open:
    what: str
    state: str
    ends_at: float


class Confirmations:
    """The codes that one server has given out. Many threads use it.

    A code is good for one act of one caller with the arguments and the state that its dry run showed, once,
    for five minutes. Whoever shows it with something else has spoiled it.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._used: OrderedDict[str, None] = OrderedDict()

    def issue(self, what: str, state: str) -> str:
        """A code for an act (`what` is the digest of caller, act and arguments) in this state."""
        code = secrets.token_urlsafe(16)
        with self._lock:
            self._open[code] = _Open(what, state, self._monotonic() + LIFETIME_S)
            while len(self._open) > MOST:
                self._open.popitem(last=False)
        return code

    def take(self, code: str, what: str) -> str:
        """Use a code up; answers with the state that it was given out for."""
        with self._lock:
            found = self._open.pop(code, None)
            is_used = code in self._used
            if found is not None:
                self._used[code] = None
                while len(self._used) > MOST:
                    self._used.popitem(last=False)
        if found is None and is_used:
            raise _refusal("confirmation_used", "this confirmation was used already")
        if found is None:
            raise _refusal("confirmation_unknown", "this confirmation is not known here")
        if self._monotonic() >= found.ends_at:
            raise _refusal("confirmation_expired", "this confirmation has expired")
        if found.what != what:
            raise _refusal("confirmation_differs", "this confirmation was given for something else")
        return found.state


def state_changed() -> Refused:
    return _refusal("state_changed", "the state has changed since the dry run, so nothing was done")


def _refusal(code: str, message: str) -> Refused:
    return Refused(
        message, "call the tool again without `confirm`, and look at its answer", code=code
    )
