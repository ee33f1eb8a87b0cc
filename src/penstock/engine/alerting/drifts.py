"""Drifts: runs whose records have other fields than those of the run before, by source."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from penstock.alerts.history import DriftFacts
from penstock.journal.source_events import SchemaDrifted
from penstock.store.signals import SignalRow
from penstock.store.store import Store

MOST = 500
PAGE = 500


class Drifts:
    """The newest ones. Signals have no index by name: they are looked through once, then as they come."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last_id: int | None = None
        self._rows: list[SignalRow] = []

    def by_source(self) -> dict[str, list[DriftFacts]]:
        self._rows = [*self._rows, *self._new()][-MOST:]
        found: dict[str, list[DriftFacts]] = defaultdict(list)
        for row in self._rows:
            if row.source is not None:
                found[row.source].append(_facts(row))
        return found

    def _new(self) -> list[SignalRow]:
        if self._last_id is None:
            last = self._store.signals.newest(limit=1)
            self._last_id = last[0].id if last else 0
            return self._store.signals.newest(SchemaDrifted.kind, MOST)[::-1]
        found: list[SignalRow] = []
        while page := self._store.signals.after(self._last_id, PAGE):
            self._last_id = page[-1].id
            found += [row for row in page if row.name == SchemaDrifted.kind]
            if len(page) < PAGE:
                break
        return found


def _facts(row: SignalRow) -> DriftFacts:
    drifted = msgspec.convert(row.data, SchemaDrifted, strict=False)
    return DriftFacts(
        collection=drifted.collection,
        run=row.run_id,
        at=row.at,
        new=tuple(each.words() for each in drifted.changes if each.what == "new"),
        changed=tuple(each.words() for each in drifted.changes if each.what != "new"),
    )
