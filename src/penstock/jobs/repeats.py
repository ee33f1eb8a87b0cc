"""What an attempt says again that an earlier attempt of the same job has committed already.

A step that commits on its way starts over after a crash. Children and records are known by their keys;
signals, notes and rejects have none of their own, so they get one that is the same in every attempt: what
is said, and for the how many-th time the attempt says it.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from penstock.jobs.effects import Effects
from penstock.jobs.effects.effects import REPEATABLE


class Sayings:
    """What one attempt has said so far, by how often it said it.

    A checkpoint ends it: the next attempt goes on from there, so what it says is new.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, object]] = Counter()

    def key(self, effects: Effects) -> None:
        """Give every signal, note and reject its key."""
        for effect in REPEATABLE:
            effect.key(effects, self)
        if effects.marks or effects.forgets:
            self._counts.clear()

    def next_key(self, kind: str, content: object) -> str:
        """The key of this content, said once more."""
        self._counts[kind, content] += 1
        said = repr((kind, content, self._counts[kind, content]))
        return hashlib.blake2b(said.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()
