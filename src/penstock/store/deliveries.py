"""Delivering: each signal starts one run of each schedule that waits for it.

A signal is open until its deliveries are written, all of them in one transaction: whoever leads looks at
what is open, so nothing depends on the order in which signals become visible, or on who led before. A
delivery is then a place in the queue of its schedule, and becomes a run in the transaction that adds the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from penstock.jobs.run import Plan, RunKind, RunOptions
from penstock.journal.service_events import ScheduleSkipped, not_ended
from penstock.store.database import to_json
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.run_transitions import SCHEDULER, active_run_of, add_run, cancel_active
from penstock.store.signals import SignalRow

Overlap = Literal["skip", "queue", "replace"]
# A schedule: its source, and its name.
Place = tuple[int, str]


class QueuedRow(msgspec.Struct, frozen=True):
    """The first in the queue of a schedule.

    `raised_by` names the signal that had started the run which raised this one, if that was a run of the same
    source; `runs` are those that it waited for, by source.
    """

    signal: SignalRow
    source_id: int
    schedule: str
    reason: str = ""
    raised_by: str | None = None
    runs: dict[str, int] = {}

    @property
    def place(self) -> Place:
        return self.source_id, self.schedule


class DeliveryRow(msgspec.Struct, frozen=True):
    signal_id: int
    source: str
    schedule: str
    state: str
    run_id: int | None
    joins: int | None
    reason: str
    at: float


class StandingRow(msgspec.Struct, frozen=True):
    """A signal in the queue of a schedule, or one that waits there for those of other sources.

    `about` is the source that the signal is about, `at` since when it stands there.
    """

    signal_id: int
    name: str
    about: str | None
    run_id: int
    schedule: str
    state: str
    reason: str
    at: float


class _Waiting(msgspec.Struct):
    last: int | None
    sources: set[int]


@dataclass(frozen=True, slots=True)
class Start:
    """The run that a delivery is to become."""

    kind: RunKind
    plan: Plan
    pipeline_version: str
    options: RunOptions
    reason: str
    overlap: Overlap = "queue"


class Deliveries(Noun):
    """The verbs of deliveries."""

    def open_signals(self, limit: int = 500) -> list[SignalRow]:
        """Signals of which nobody has looked yet who waits for them."""
        return self._db.decoded("open_signals", list[SignalRow], limit=limit)

    def deliver(
        self,
        signal_ids: Sequence[int],
        queued: Sequence[tuple[int, Place]],
        waiting: Sequence[tuple[int, Place]] = (),
        needs: Mapping[Place, frozenset[int]] | None = None,
    ) -> None:
        """Close these signals: each stands in the queues of those who wait for it, once.

        What is `waiting` becomes one place in its queue when signals of all the sources that its schedule
        `needs` are there.
        """
        rows = [(signal, *place, "queued") for signal, place in queued]
        rows += [(signal, *place, "waiting") for signal, place in waiting]
        places = sorted({place for _, place in waiting})
        with self._db.writing() as now:
            if places:
                # Two who deliver the last two of what is needed would each take the other's to be missing.
                self._db.lock_lanes(sorted({source_id for source_id, _ in places}))
            if rows:
                self._db.do("add_deliveries", now=now, deliveries=to_json(rows))
            for place in places:
                self._join_if_whole(place, (needs or {})[place], now)
            self._db.do("close_signals", ids=to_json(sorted(signal_ids)))

    def regather(self, needs: Mapping[Place, frozenset[int]]) -> None:
        """Have what waits go by what its schedules need now: none of it waits for what nobody waits for."""
        places = [(row[0], row[1]) for row in self._db.json("waiting_places")]
        if not places:
            return
        reason = "no schedule waits for it any more"
        with self._db.writing() as now:
            self._db.lock_lanes(sorted({source_id for source_id, _ in places}))
            for place in sorted(places):
                needed = needs.get(place, frozenset())
                about = {"source_id": place[0], "schedule": place[1], "now": now}
                self._db.do("skip_waiting", reason=reason, needed=to_json(sorted(needed)), **about)
                self._join_if_whole(place, needed, now)

    def _join_if_whole(self, place: Place, needed: frozenset[int], now: float) -> None:
        about = {"source_id": place[0], "schedule": place[1]}
        found = self._db.decoded("waiting_deliveries", _Waiting, **about)
        if found.last is not None and needed <= found.sources:
            self._db.do("join_deliveries", last=found.last, now=now, **about)

    def has_to_deliver(self) -> bool:
        """Whether a signal is open, or stands in a queue and waits for nothing but a run's end."""
        return bool(self._db.value("has_to_deliver"))

    def queued(self) -> list[QueuedRow]:
        """The first in the queue of each schedule that has one."""
        return self._db.decoded("queued_deliveries", list[QueuedRow])

    def start(self, row: QueuedRow, start: Start) -> int | None:
        """Make a run of what is first in a queue; None if it is nobody's to start, or has to wait.

        While a run of the source is active it waits, is skipped, or takes that run's place.
        """
        with self._db.writing() as now:
            self._db.lock_lanes([row.source_id])
            active = active_run_of(self._db, row.source_id)
            if active is not None and start.overlap != "replace":
                self._overlaps(row, active, start.overlap, now)
                return None
            about = {"signal_id": row.signal.id, **_about(row)}
            is_ours = self._db.do(
                "end_delivery_if_queued", state="started", reason="", now=now, **about
            )
            if not is_ours:
                return None
            ledger = Ledger(self._db, now)
            cancel_active(self._db, ledger, row.source_id, f"replaced by signal {row.signal.id}")
            ledger.write()
            key = f"signal:{row.signal.id}:{row.schedule}"
            what = (row.source_id, start.kind, start.plan, start.pipeline_version, key, SCHEDULER)
            run_id = add_run(self._db, now, *what, start.reason, start.options)
            self._db.do("set_run_of_deliveries", run_id=run_id, **about)
            self._db.do(
                "note_start_of_schedule", run_id=run_id, due_at=row.signal.at, **_about(row)
            )
            return run_id

    def _overlaps(self, row: QueuedRow, active: int, overlap: Overlap, now: float) -> None:
        why = not_ended(active)
        if overlap == "skip":
            self._skip(row, why, now, active)
        else:
            about = {"signal_id": row.signal.id, **_about(row)}
            self._db.do("note_delivery", reason=why, run_id=active, **about)

    def skip(self, row: QueuedRow, reason: str) -> None:
        """A signal is not to start this schedule; the journal says why."""
        with self._db.writing() as now:
            self._skip(row, reason, now)

    def _skip(self, row: QueuedRow, reason: str, now: float, active: int | None = None) -> None:
        about = {"signal_id": row.signal.id, "state": "skipped", "reason": reason, "now": now}
        if self._db.do("end_delivery_if_queued", **about, **_about(row)):
            ledger = Ledger(self._db, now)
            why = "" if active is not None else reason
            event = ScheduleSkipped(row.schedule, why, active, row.signal.name, row.signal.id)
            ledger.journal(event, row.source_id, actor=SCHEDULER)
            ledger.write()

    def put_off(self, row: QueuedRow, reason: str) -> None:
        """It waits, and can be asked why."""
        if reason != row.reason:
            with self._db.writing():
                about = {"signal_id": row.signal.id, **_about(row)}
                self._db.do("note_delivery", reason=reason, run_id=None, **about)

    def of_signals(self, signal_ids: Sequence[int]) -> list[DeliveryRow]:
        """What became of these signals."""
        ids = to_json(sorted(signal_ids))
        return self._db.decoded("deliveries", list[DeliveryRow], ids=ids)

    def standing(self, source_id: int, limit: int = 100) -> tuple[list[StandingRow], int]:
        """What stands in the queues of a source, the first of each first, and how many there are."""
        about = {"source_id": source_id}
        rows = self._db.decoded("standing_deliveries", list[StandingRow], limit=limit, **about)
        return rows, int(self._db.value("standing_count", **about))


def _about(row: QueuedRow) -> dict[str, object]:
    return {"source_id": row.source_id, "schedule": row.schedule}
