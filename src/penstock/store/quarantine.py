"""Quarantine: jobs that are not tried again by themselves, to be looked at, released or discarded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.errors import Refused, UsageError, nearest
from penstock.jobs.job import JobState
from penstock.journal.event import Event, with_reason
from penstock.journal.job_events import (
    QuarantineDiscarded,
    QuarantineExpired,
    QuarantineNoted,
    QuarantineReleased,
)
from penstock.journal.run_events import RunReopened
from penstock.store.database import storable_text, to_json
from penstock.store.entries import CauseRow, EntryFilter, EntryNote, EntryRow, GroupRow
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun
from penstock.store.turn.answered_entries import Closing, close_answered, write_closed
from penstock.store.turn.failures import forget_causes
from penstock.store.turn.run_progress import advance_runs

BATCH = 500


class Quarantine(Noun):
    """The verbs of quarantine. Acts on many go in batches: each is whole, and work goes on between them."""

    def each(
        self,
        wanted: EntryFilter,
        limit: int | None = None,
        after: tuple[float, int] | None = None,
    ) -> Iterator[EntryRow]:
        """Entries by run and job, closed ones from the newest; read in pages, so that memory stays small.

        With `after`, those that follow one: its run, or when it was closed; and its job.
        """
        if wanted.is_closed:
            yield from self._closed_entries(wanted, limit, after or (math.inf, 0))
            return
        where = self._where_entries(wanted)
        place, left = (0, 0) if after is None else (int(after[0]), after[1]), limit
        while left is None or left > 0:
            found = self._find_entries(where, place, min(BATCH, left or BATCH))
            if not found:
                return
            yield from self._entry_rows([job_id for _, job_id in found])
            place, left = found[-1], None if left is None else left - len(found)

    def get(self, job_id: int) -> EntryRow | None:
        """A job's entry, open or closed; None if it is not in quarantine and was not closed there."""
        found = [row for row in self._entry_rows([job_id]) if _is_entry(row)]
        return found[0] if found else None

    def _closed_entries(
        self, wanted: EntryFilter, limit: int | None, before: tuple[float, int]
    ) -> Iterator[EntryRow]:
        where, left = self._where_entries(wanted), limit
        while left is None or left > 0:
            place = {"before_at": min(before[0], 1e300), "before_id": before[1]}
            found = self._db.json(
                "find_closed_entries", **where, **place, limit=min(BATCH, left or BATCH)
            )
            if not found:
                return
            yield from self._entry_rows([job_id for _, job_id in found])
            before, left = tuple(found[-1]), None if left is None else left - len(found)

    def close_answered(self) -> int:
        """Close what runs that still go on have answered; those that end see to it themselves."""
        return close_answered(self._db, self._db.json("runs_with_older_entries"))

    def count(self, wanted: EntryFilter) -> int:
        query = "count_closed_entries" if wanted.is_closed else "count_entries"
        return int(self._db.value(query, **self._where_entries(wanted)))

    def causes(self, source: str | None = None, limit: int = 50) -> list[CauseRow]:
        """What quarantined jobs have in common: the escalated first, then the most frequent."""
        where = {"source_id": self._source_of(source), "limit": limit}
        return self._db.decoded("causes", list[CauseRow], **where)

    def groups(self, source: str | None, limit: int, most: int) -> list[GroupRow]:
        """The entries by source, kind and cause: the escalated first, then the largest groups."""
        where = {"source_id": self._source_of(source), "limit": limit, "most": most}
        return self._db.decoded("entry_groups", list[GroupRow], **where)

    def release(self, wanted: EntryFilter, actor: str, reason: str) -> Iterator[int]:
        """Queue these jobs again, with fresh tries; yields how many each batch released.

        Their runs open again if they had ended. Not in a cancelled run, which never opens again.
        """
        for ids, runs in self._entry_batches(wanted):
            # First, and by itself: a job that is released and fails again must have its tries.
            forget_causes(self._db, ids)
            yield self._release_batch(ids, runs, actor, reason)

    def _release_batch(
        self, ids: Sequence[int], runs: Sequence[int], actor: str, reason: str
    ) -> int:
        with self._db.writing() as now:
            # Before the jobs, of which none is waited for: cancelled meanwhile, they would stay queued.
            self._db.lock_runs(sorted(set(runs)))
            closed = set(self._db.json("cancelled_runs", ids=to_json(sorted(set(runs)))))
            chosen = [job_id for job_id, run in zip(ids, runs, strict=True) if run not in closed]
            moved = self._db.rows("release_entries_if_quarantined", ids=to_json(chosen), now=now)
            ledger = Ledger(self._db, now)
            event = QuarantineReleased(reason)
            for run_id in self._tell_moved(ledger, moved, event, JobState.QUEUED, actor):
                source_id = self._db.value("reopen_run_if_ended_badly", id=run_id, now=now)
                if source_id is not None:
                    ledger.journal(RunReopened(reason), source_id, run_id, actor=actor)
            ledger.write()
            return len(moved)

    def discard(self, wanted: EntryFilter, actor: str, reason: str) -> Iterator[int]:
        """End these jobs for good, as cancelled; yields how many each batch discarded."""
        for ids, _ in self._entry_batches(wanted):
            yield self._discard_batch(ids, QuarantineDiscarded(reason), actor)

    def discard_jobs(self, ids: Sequence[int], actor: str, reason: str) -> int:
        """The same for these jobs; those that are not in quarantine stay as they are."""
        return self._discard_batch(ids, QuarantineDiscarded(reason), actor)

    def expire(self, keep_s: float, limit: int = BATCH) -> int:
        """Discard a batch of what nobody has cared for in so long; answers how many."""
        before = self._db.now() - keep_s
        ids = self._db.json("expired_entries", before=before, limit=limit)
        if not ids:
            with self._db.writing():
                self._db.do("drop_causes", before=before)
            return 0
        return self._discard_batch(ids, QuarantineExpired(keep_s / 86400), "upkeep")

    def _discard_batch(self, ids: Sequence[int], event: Event, actor: str) -> int:
        with self._db.writing() as now:
            moved = self._db.rows("discard_entries_if_quarantined", ids=to_json(list(ids)), now=now)
            ledger = Ledger(self._db, now)
            what = "expired" if isinstance(event, QuarantineExpired) else "discarded"
            why = with_reason(f"{what} by {actor}", event.sentence())
            closings = {job_id: Closing(why, None, event) for job_id, *_ in moved}
            write_closed(self._db, ledger, actor, moved, closings)
            advance_runs(self._db, ledger, now)
            ledger.write()
            return len(moved)

    def note(self, job_id: int, text: str, actor: str) -> None:
        """Write something about a quarantined job, for whoever looks at it next."""
        row = self.get(job_id)
        if row is None:
            raise Refused(f"job {job_id} is not in quarantine")
        with self._db.writing() as now:
            note = EntryNote(now, storable_text(actor), storable_text(text))
            if not self._db.do("add_entry_note", id=job_id, note=to_json(note)):
                raise Refused(f"nothing is known of a failure of job {job_id}")
            ledger = Ledger(self._db, now)
            source_id = self._source_of(row.source)
            event = QuarantineNoted(text)
            ledger.journal(event, source_id, row.run_id, job_id, None, actor)
            ledger.write()

    def _tell_moved(
        self,
        ledger: Ledger,
        moved: Sequence[Any],
        event: Event,
        enters: JobState,
        actor: str,
    ) -> list[int]:
        """Count and journal what was moved; answers with the runs that it belongs to."""
        runs = set()
        for job_id, run_id, source_id, stage, attempt in sorted(moved):
            ledger.moved(run_id, stage, JobState.QUARANTINED, enters)
            ledger.journal(event, source_id, run_id, job_id, attempt, actor)
            runs.add(run_id)
        return sorted(runs)

    def _entry_batches(self, wanted: EntryFilter) -> Iterator[tuple[list[int], list[int]]]:
        """The entries that are there when each batch is read: jobs, and the run of each."""
        where, after = self._where_entries(wanted), (0, 0)
        while found := self._find_entries(where, after, BATCH):
            yield [job_id for _, job_id in found], [run_id for run_id, _ in found]
            after = found[-1]

    def _find_entries(
        self, where: dict[str, Any], after: tuple[int, int], limit: int
    ) -> list[tuple[int, int]]:
        place = {"after_run_id": after[0], "after_id": after[1], "limit": limit}
        return [
            (run_id, job_id) for run_id, job_id in self._db.json("find_entries", **where, **place)
        ]

    def _entry_rows(self, ids: Sequence[int]) -> list[EntryRow]:
        return self._db.decoded("entries", list[EntryRow], ids=to_json(list(ids)))

    def _where_entries(self, wanted: EntryFilter) -> dict[str, Any]:
        return {
            "source_id": self._source_of(wanted.source),
            "run_id": wanted.run_id,
            "stage": wanted.stage,
            "kind": wanted.kind,
            "cause": wanted.cause,
            "since": wanted.since,
            "is_escalated": wanted.is_escalated,
            "job_id": wanted.job_id,
            "is_apart": wanted.is_apart,
        }

    def _source_of(self, key: str | None) -> int | None:
        if key is None:
            return None
        known: dict[str, int] = self._db.json("source_ids")
        if key not in known:
            raise UsageError(f"there is no source {key!r}", nearest(key, known))
        return known[key]


def _is_entry(row: EntryRow) -> bool:
    is_closed = row.state is JobState.CANCELLED and row.closed_at is not None
    return row.state is JobState.QUARANTINED or is_closed
