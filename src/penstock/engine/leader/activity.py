"""Activity: what an operator of a service wants to read as it happens, out of the journal.

Whoever leads tells it, so that of many hosts one does. Lines about single jobs are bounded: what goes
beyond is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.store.rows import Cursor, EventRow, RunRow
from penstock.store.store import Store

ENDS = ("completed", "partial", "failed", "cancelled")
KINDS = (
    *("run.started", *(f"run.{state}" for state in ENDS), "run.counts_mismatch"),
    *("breaker.opened", "breaker.closed", "cause.escalated", "job.quarantined"),
    *("schedule.missed", "source.degraded", "source.recovered", "budget.exhausted"),
    *("alert.opened", "alert.reopened", "alert.resolved"),
)
WARNINGS = frozenset(
    {
        *("run.partial", "run.failed", "run.counts_mismatch", "breaker.opened", "cause.escalated"),
        *("job.quarantined", "schedule.missed", "source.degraded", "budget.exhausted"),
        *("alert.opened", "alert.reopened"),
    }
)
# Whose details may quote an error, or what a source brought: of private sources they are not told.
QUOTING = frozenset(
    {
        *(kind for kind in KINDS if kind.startswith("run.")),
        *("job.quarantined", "breaker.opened", "breaker.closed", "cause.escalated"),
        *("source.degraded", "source.recovered"),
    }
)
PAGE = 500
# Of each source so many quarantined jobs are named in a minute; the rest is counted.
NAMED, MINUTE_S = 5, 60.0


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened, for a person and for a program."""

    event: str
    text: str
    level: str = "info"
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Named:
    since: float
    count: int = 0


class Activity:
    """Follows the journal from when it is first asked, and says each line once."""

    def __init__(self, say: Callable[[Line], None], private_sources: Collection[str] = ()) -> None:
        self._say = say
        self._private = private_sources
        self._cursor: Cursor | None = None
        self._named: dict[str, _Named] = {}
        self.ended: Counter[str] = Counter()

    def begin(self, store: Store) -> None:
        """What happened before is not news."""
        if self._cursor is None:
            _, self._cursor = store.journal.follow_kinds(None, KINDS, 1)

    def skip(self, store: Store) -> None:
        """Let go what was not told so far."""
        self._cursor = None
        self.begin(store)

    def look(self, store: Store) -> None:
        self.begin(store)
        is_full = True
        while is_full:
            rows, self._cursor = store.journal.follow_kinds(self._cursor, KINDS, PAGE)
            for row in rows:
                is_quoted = row.kind in QUOTING and row.source in self._private
                self._tell(store, msgspec.structs.replace(row, detail="") if is_quoted else row)
            is_full = len(rows) == PAGE
        self._tell_counts(store.now())

    def _tell(self, store: Store, row: EventRow) -> None:
        if row.kind == "job.quarantined":
            self._quarantined(row)
        elif row.kind.startswith("run.") and row.run_id is not None:
            run = store.runs.get(row.run_id)
            if run is not None:
                self._line(row, _about_run(row, run), **_counts(run))
        else:
            what = f"{row.source}: " if row.source else ""
            self._line(row, f"{what}{row.kind.replace('.', ' ')}{_because(row.detail)}")
        if row.kind.startswith("run.") and row.kind.partition(".")[2] in ENDS:
            self.ended[row.kind.partition(".")[2]] += 1

    def _quarantined(self, row: EventRow) -> None:
        named = self._named.setdefault(row.source or "", _Named(row.at))
        named.count += 1
        if named.count <= NAMED:
            text = f"job {row.job_id} of {row.source} is quarantined{_because(row.detail)}"
            self._line(row, text)

    def _tell_counts(self, now: float) -> None:
        for source, named in list(self._named.items()):
            if now - named.since < MINUTE_S:
                continue
            del self._named[source]
            more = named.count - NAMED
            if more > 0:
                text = f"{more} more {'job' if more == 1 else 'jobs'} of {source} quarantined"
                about = {"source": source, "jobs": more}
                self._say(Line("job.quarantined", text, "warning", about))

    def _line(self, row: EventRow, text: str, **more: Any) -> None:
        named = {"source": row.source, "run": row.run_id, "job": row.job_id}
        about = {name: value for name, value in named.items() if value is not None} | more
        if row.detail:
            about["detail"] = row.detail
        level = "warning" if row.kind in WARNINGS else "info"
        self._say(Line(row.kind, text, level, about))


def _about_run(row: EventRow, run: RunRow) -> str:
    what = f"run {run.id} of {run.source}"
    if row.kind == "run.started":
        return f"{what} started ({run.kind})"
    if row.kind == "run.counts_mismatch":
        return f"{what}: its counts do not add up{_because(row.detail)}"
    state, counts = row.kind.partition(".")[2], _counts(run)
    shown = ", ".join(
        f"{counts[name]} {name}"
        for name in ("pages", "accepted", "rejected", "quarantined")
        if counts[name]
    )
    took = f" in {counts['seconds']:g} s" if run.started_at is not None else ""
    return f"{what} {state}{took}{f': {shown}' if shown else ''}{_because(row.detail)}"


def _counts(run: RunRow) -> dict[str, Any]:
    began = run.started_at or run.created_at
    return {
        "kind": str(run.kind),
        "pages": run.pages,
        "accepted": run.inserted + run.updated + run.unchanged,
        "rejected": run.rejected,
        "quarantined": run.quarantined,
        "seconds": round(max(0.0, (run.finished_at or began) - began), 1),
    }


def _because(detail: str) -> str:
    return f": {detail}" if detail else ""
