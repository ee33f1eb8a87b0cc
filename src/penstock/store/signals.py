"""Signals: named facts that steps, the engine and operators have raised, in the order in which they were."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.journal.service_events import SignalRaised
from penstock.store.database import LAST_ID, bounded_text, to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun

LONGEST_KEY = 500


class SignalRow(msgspec.Struct, frozen=True):
    """`source` is the one it is about, if it is about one; `run_id` the run that raised it, or 0."""

    id: int
    name: str
    data: Any
    source: str | None
    source_id: int
    run_id: int
    at: float
    actor: str = ""
    key: str | None = None


class Signals(Noun):
    """The verbs of signals."""

    def after(self, after_id: int = 0, limit: int = 500) -> list[SignalRow]:
        """What was raised after this one, the oldest first."""
        return self._db.decoded("signals", list[SignalRow], after_id=after_id, limit=limit)

    def newest(
        self, name: str | None = None, limit: int = 50, before_id: int | None = None
    ) -> list[SignalRow]:
        """What was raised last, the newest first; with `before_id`, what is older than this one."""
        before = LAST_ID if before_id is None else before_id
        return self._db.decoded(
            "last_signals", list[SignalRow], signal=name, limit=limit, before_id=before
        )

    def raise_(
        self, name: str, data: Any, *, actor: str, source_id: int = 0, key: str | None = None
    ) -> tuple[int, bool]:
        """Raise a signal, or answer with the one that was raised under this name and key already."""
        key = None if key is None else bounded_text(key, LONGEST_KEY)
        about = {"signal": name, "data": to_json(data), "source_id": source_id}
        with self._db.writing() as now:
            signal_id = self._db.value("raise_signal", actor=actor, key=key, now=now, **about)
            if signal_id is None:
                return int(self._db.value("known_signal", signal=name, key=key)), False
            ledger = Ledger(self._db, now)
            event = SignalRaised(name, int(signal_id))
            ledger.journal(event, source_id or None, actor=actor)
            ledger.write()
            return int(signal_id), True
