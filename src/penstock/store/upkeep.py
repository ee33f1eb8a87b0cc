"""Keeping the database small and sound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from penstock.journal.service_events import DbRestored
from penstock.store.alerts import prune_alerts
from penstock.store.announcements import OVER_S
from penstock.store.audit import prune_events
from penstock.store.database import Database
from penstock.store.history import Marks, prune_jobs, prune_runs, prune_snapshots
from penstock.store.idempotency import KEPT_S
from penstock.store.journal_rows import convert_sentences
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.rollups import Rollups

# A worker looks through the breakers of hosts each second: it need not meet those that failed last month.
IDLE_BREAKER_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Keep:
    """How long finished things are kept, in seconds; `None` keeps them for ever.

    A little of the journal is left until it is overdue by `events_overdue_s`.
    """

    jobs_s: float | None
    events_s: float | None
    versions_s: float | None
    snapshots_s: float | None
    rejects_s: float | None = None
    logs_s: float | None = None
    runs_s: float | None = None
    events_overdue_s: float = 0.0


class Upkeep(Noun):
    """Retention and checks."""

    def __init__(self, db: Database, marks: Marks) -> None:
        super().__init__(db)
        self._marks = marks

    def prune(self, keep: Keep, limit: int = 1000) -> int:
        """Drop one small batch of what is older than it has to be; 0 when there is nothing left to drop."""
        now = self._db.now()
        if keep.events_s is not None or keep.jobs_s is not None:
            self._fold_rest()
        dropped = sum(
            drop(self._db, self._marks, now - seconds, limit)
            for drop, seconds in (
                (prune_jobs, keep.jobs_s),
                (prune_runs, _whole_runs_s(keep)),
                (partial(prune_events, overdue_s=keep.events_overdue_s), keep.events_s),
                (prune_alerts, keep.events_s),
                (prune_snapshots, keep.snapshots_s),
            )
            if seconds is not None
        )
        for query, seconds in (
            ("drop_signals", keep.events_s),
            ("drop_deliveries", keep.events_s),
            ("drop_outbox", keep.events_s),
            ("drop_landed", keep.events_s),
            ("drop_ticks", keep.events_s),
            ("drop_breaches", keep.events_s),
            ("drop_interruptions", keep.events_s),
            ("drop_announcements", OVER_S),
            ("drop_host_waits", 0.0),
            ("drop_old_checkpoint_moves", keep.events_s),
            ("drop_run_cursors", keep.jobs_s),
            ("drop_versions", keep.versions_s),
            ("drop_rejects", keep.rejects_s),
            ("drop_log_lines", keep.logs_s),
            ("drop_runbook_steps", keep.events_s),
            ("drop_runbook_executions", keep.events_s),
            ("drop_tokens", keep.events_s),
            ("drop_idle_breakers", IDLE_BREAKER_S),
            ("drop_idempotency_keys", KEPT_S),
            ("drop_requests", keep.events_s),
        ):
            if seconds is not None:
                with self._db.writing():
                    dropped += self._db.do(query, before=now - seconds, limit=limit)
        return dropped

    def _fold_rest(self) -> None:
        """What retention drops is in the sums before; whoever leads has summed nearly all of it."""
        rollups = Rollups(self._db)
        while rollups.fold():
            pass

    def convert_sentences(self, limit: int = 5000) -> int:
        """Turn a small batch of what older versions wrote to the journal into data; 0 when all is done."""
        return convert_sentences(self._db, self._marks, limit)

    def check(self) -> list[str]:
        """Everything that is wrong with the database, in words; empty when it is sound."""
        with self._db.patient():
            return self._db.problems() or self._miscounts()

    def _miscounts(self) -> list[str]:
        problems = []
        for query, words in (
            ("miscounted_stages", "stage counter does not equal its jobs: run"),
            ("ownerless_jobs", "running without a worker: job"),
            ("jobs_without_item", "has no item: job"),
            ("snapshots_without_payload", "has no payload: snapshot"),
            ("miscounted_collections", "counter does not equal its records: collection"),
            ("ended_runs_with_open_jobs", "has ended with open jobs: run"),
            ("active_runs_without_open_jobs", "is active with nothing left to do: run"),
            ("unaccounted_runs", "enqueued and ended jobs do not add up: run"),
        ):
            rows = self._db.rows(query)
            problems += [f"{words} {' '.join(str(value) for value in row)}" for row in rows[:20]]
        return problems

    def note_restored(self, actor: str, backup: str, reason: str = "") -> None:
        """Say in the journal that this file was put here from a backup."""
        with self._db.writing() as now:
            ledger = Ledger(self._db, now)
            ledger.journal(DbRestored(backup, reason), actor=actor)
            ledger.write()


def _whole_runs_s(keep: Keep) -> float | None:
    """A run is kept for as long as what was made of it is: its jobs and what it fetched need it."""
    if keep.runs_s is None or keep.jobs_s is None or keep.snapshots_s is None:
        return None
    return max(keep.runs_s, keep.jobs_s, keep.snapshots_s)
