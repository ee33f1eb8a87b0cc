"""Promises about a source: how old its last good run may be, and how long a run may take.

A promise that is broken is a row, once for each time it is, with its line in the journal and a signal in
the same transaction; so is the end of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger

Rule = Literal["freshness", "deadline"]
Breach = tuple[int, Rule, float, int | None, str]
LEADER = "scheduler"


@dataclass(frozen=True, slots=True)
class Promise:
    """What the configuration promises of one source."""

    source_id: int
    source: str
    freshness_s: float | None = None
    deadline_s: float | None = None


class BreachRow(msgspec.Struct, frozen=True):
    source: str
    rule: Rule
    since: float
    run_id: int | None
    detail: str
    ended_at: float | None


class Promises:
    """The verbs of promises."""

    _db: Database

    def watch_promises(self, promises: Sequence[Promise]) -> int:
        """Note which of these are broken now and which no longer are; answers how many that were.

        A run that ended well or in part is a good one, if it was full or incremental. Before the first
        there is what the source has existed for. A run takes as long as it has existed.
        """
        now = self._db.now()
        wanted = {each.source_id: each for each in promises}
        broken = [*self._stale(wanted, now), *self._slow(wanted, now)]
        stand = {(source_id, rule, since) for source_id, rule, since, _, _ in broken}
        known = [tuple(row[:3]) for row in self._db.json("open_breaches")]
        new = [each for each in broken if each[:3] not in known]
        over = [where for where in known if where not in stand]
        if not new and not over:
            return 0
        return self._write(sorted(new, key=lambda each: each[:3]), sorted(over), wanted)

    def _stale(self, wanted: dict[int, Promise], now: float) -> list[Breach]:
        ids = sorted(each.source_id for each in wanted.values() if each.freshness_s)
        found: list[Breach] = []
        for source_id, created_at, good_at in self._ask("freshness", ids):
            allowed_s = wanted[int(source_id)].freshness_s or 0.0
            since = round((good_at or created_at) + allowed_s, 3)
            if since < now:
                detail = f"no good run for longer than {_span(allowed_s)}"
                found.append((int(source_id), "freshness", since, None, detail))
        return found

    def _slow(self, wanted: dict[int, Promise], now: float) -> list[Breach]:
        ids = sorted(each.source_id for each in wanted.values() if each.deadline_s)
        found: list[Breach] = []
        for source_id, run_id, created_at in self._ask("runs_under_way", ids):
            allowed_s = wanted[int(source_id)].deadline_s or 0.0
            since = round(created_at + allowed_s, 3)
            if since < now:
                detail = f"run {run_id} takes longer than {_span(allowed_s)}"
                found.append((int(source_id), "deadline", since, int(run_id), detail))
        return found

    def _ask(self, query: str, ids: Sequence[int]) -> list[list[float]]:
        found: list[list[float]] = self._db.json(query, ids=to_json(ids)) if ids else []
        return found

    def _write(
        self,
        new: Sequence[Breach],
        over: Sequence[tuple[object, ...]],
        wanted: dict[int, Promise],
    ) -> int:
        with self._db.writing() as now:
            ledger = Ledger(self._db, now)
            began = self._db.rows("add_breaches", breaches=to_json(new)) if new else []
            ended = (
                self._db.rows("end_breaches_if_open", breaches=to_json(over), now=now)
                if over
                else []
            )
            signals = []
            for name, rows in (("sla.breached", began), ("sla.restored", ended)):
                for source_id, rule, since, run_id, detail in sorted(rows):
                    said = f"{rule}: {detail}"
                    ledger.journal(name, source_id, run_id, actor=LEADER, detail=said)
                    source = wanted[source_id].source if source_id in wanted else None
                    data = {"source": source, "rule": rule, "since": since, "run": run_id}
                    signals.append(
                        (name, to_json({**data, "detail": detail}), source_id, run_id or 0)
                    )
            self._db.do("add_signals", now=now, signals=to_json(signals))
            ledger.write()
            return len(signals)

    def breaches(
        self, source_id: int | None = None, *, open_only: bool = False, limit: int = 100
    ) -> list[BreachRow]:
        """Promises that were broken, the last first."""
        return self._db.decoded(
            "breaches", list[BreachRow], source_id=source_id, open_only=open_only, limit=limit
        )


def _span(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
