"""Signals: named facts that steps and the engine have raised, in the order in which they were."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.store.database import Database


class SignalRow(msgspec.Struct, frozen=True):
    id: int
    name: str
    data: Any
    source: str | None
    source_id: int
    run_id: int
    at: float


class Signals:
    """The verbs of signals."""

    _db: Database

    def signals(self, after_id: int = 0, limit: int = 500) -> list[SignalRow]:
        """What was raised after this one, the oldest first."""
        return self._db.decoded("signals", list[SignalRow], after_id=after_id, limit=limit)
