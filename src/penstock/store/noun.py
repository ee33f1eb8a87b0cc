"""The base of all nouns."""

from __future__ import annotations

from penstock.store.database import Database


class Noun:
    """What a store has many of, with its verbs, over whichever database it is.

    It keeps nothing but the database: a noun that needs another makes one of its own.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
