"""Signals that rules look at, by source: schemas that drifted, and tasks that orchestrators gave up."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from penstock.alerts.history import DriftFacts, GivenUpTask
from penstock.journal.source_events import SchemaDrifted
from penstock.store.signals import SignalRow
from penstock.store.store import Store

# What orchestrators raise when they try no more: the bridges do, and whoever uses these names.
GIVEN_UP = ("airflow.failed", "airflow.deadline_missed", "dagster.failed", "prefect.failed")
NAMES = (SchemaDrifted.kind, *GIVEN_UP)
MOST = 500
PAGE = 500
LONGEST_NAME = 100


class RecentSignals:
    """The newest ones. Signals have no index by name: they are looked through once, then as they come."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last_id: int | None = None
        self._rows: dict[str, list[SignalRow]] = {name: [] for name in NAMES}

    def read(self) -> None:
        """Read what has come since the last time."""
        for row in self._new():
            rows = self._rows[row.name]
            rows.append(row)
            del rows[:-MOST]

    def drifts(self) -> dict[str, list[DriftFacts]]:
        found: dict[str, list[DriftFacts]] = defaultdict(list)
        for row in self._rows[SchemaDrifted.kind]:
            if row.source is not None:
                found[row.source].append(_drift(row))
        return found

    def given_up(self) -> dict[str, list[GivenUpTask]]:
        found: dict[str, list[GivenUpTask]] = defaultdict(list)
        for name in GIVEN_UP:
            for row in self._rows[name]:
                if row.source is not None:
                    found[row.source].append(_given_up(row))
        return found

    def _new(self) -> list[SignalRow]:
        if self._last_id is None:
            last = self._store.signals.newest(limit=1)
            self._last_id = last[0].id if last else 0
            return [row for name in NAMES for row in self._store.signals.newest(name, MOST)[::-1]]
        found: list[SignalRow] = []
        while page := self._store.signals.after(self._last_id, PAGE):
            self._last_id = page[-1].id
            found += [row for row in page if row.name in NAMES]
            if len(page) < PAGE:
                break
        return found


def _drift(row: SignalRow) -> DriftFacts:
    drifted = msgspec.convert(row.data, SchemaDrifted, strict=False)
    return DriftFacts(
        collection=drifted.collection,
        run=row.run_id,
        at=row.at,
        new=tuple(each.words() for each in drifted.changes if each.what == "new"),
        changed=tuple(each.words() for each in drifted.changes if each.what != "new"),
    )


def _given_up(row: SignalRow) -> GivenUpTask:
    engine, _, what = row.name.partition(".")
    data = row.data if isinstance(row.data, dict) else {}

    def told(*names: str) -> str:
        return next((str(data[name])[:LONGEST_NAME] for name in names if data.get(name)), "")

    return GivenUpTask(
        engine=engine,
        is_deadline=what == "deadline_missed",
        at=row.at,
        graph=told("dag", "job", "flow"),
        run=told("run"),
        task=told("task"),
    )
