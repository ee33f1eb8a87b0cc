"""The five numbers of recovery, from runs and the journal; a bounded read, however long the history is."""

from __future__ import annotations

import msgspec

from penstock.jobs.kpis import INCIDENT_GAP_S, STEERING, Act, Interruptions, Kpi, RunTotals, kpis_of
from penstock.store.database import to_json
from penstock.store.noun import Noun

# So many of the journal's newest lines are looked at, and so many acts among them.
NEWEST_LINES = 2_000_000
NEWEST_ACTS = 50_000


class KpiReport(msgspec.Struct, frozen=True):
    """`journal_since` says from when on the journal was read, if not for all of the time."""

    since: float
    until: float
    journal_since: float | None
    kpis: list[Kpi]


class Kpis(Noun):
    """The verb of the KPIs."""

    def report(self, since: float, source_id: int | None = None) -> KpiReport:
        """The numbers of the time from `since` until now, of one source or of all."""
        now = self._db.now()
        about = {"since": since, "source_id": source_id}
        runs = self._db.decoded("kpi_runs", RunTotals, **about)
        floor = self._db.value("journal_floor", lines=NEWEST_LINES)
        lines = {**about, "floor": floor}
        interruptions = self._db.decoded("kpi_interruptions", Interruptions, **lines)
        incidents = int(self._db.value("kpi_incidents", gap_s=INCIDENT_GAP_S, **lines) or 0)
        steering = to_json(STEERING)
        acts = self._db.decoded("kpi_acts", list[Act], kinds=steering, limit=NEWEST_ACTS, **lines)
        found = kpis_of(runs, interruptions, incidents, acts, since=since, now=now)
        began = self._db.value("journal_since", floor=floor) if floor > 0 else None
        is_cut = began is not None and began > since
        return KpiReport(since, now, began if is_cut else None, found)
