"""Forgetting: everything that is stored under one key of a source is erased; the journal says so.

What is in the journal itself is erased too. Each row that was sealed leaves a tombstone: the hash that was
sealed, and that of what is left; the event of the act has the digest of its tombstones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.audit.erasure import Needle
from penstock.audit.line import Line, hash_of, in_seconds
from penstock.audit.verification import Tombstone, tombstones_digest
from penstock.journal.audit_events import RecordForgotten
from penstock.store.audit import last_seal
from penstock.store.database import Database, to_json
from penstock.store.history import drop_jobs
from penstock.store.ledger import Ledger
from penstock.store.noun import Noun

PLACES = ("first", "second", "third", "fourth")
# Other rows with texts in which the key may stand: what finds and erases them, and which columns are JSON.
TEXTS = (
    ("failures_to_erase", "erase_failures", (False, False, False, True)),
    ("runs_to_erase", "erase_runs", (False, False)),
    ("signals_to_erase", "erase_signals", (True,)),
    ("deliveries_to_erase", "erase_deliveries", (True, False)),
    ("alerts_to_erase", "erase_alerts", (False, False, True, True)),
    ("answers_to_erase", "erase_answers", (True,)),
    ("requests_to_erase", "erase_requests", (True, False, False)),
)


@dataclass(slots=True)
class Found:
    """What is stored under a key: ids, and for what is counted elsewhere how much it counts."""

    source_id: int
    key: str
    # Collection, and whether it counts there.
    records: dict[int, tuple[str, bool]] = field(default_factory=dict)
    versions: int = 0
    staged: list[tuple[int, str]] = field(default_factory=list)
    # The state of each, and its run.
    jobs: dict[int, tuple[str, int]] = field(default_factory=dict)
    rejects: list[int] = field(default_factory=list)
    snapshots: set[int] = field(default_factory=set)
    urls: set[str] = field(default_factory=set)
    hashes: set[str] = field(default_factory=set)
    log_lines: list[int] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    texts: int = 0

    @property
    def is_nothing(self) -> bool:
        many = (self.records, self.staged, self.jobs, self.rejects, self.snapshots, self.log_lines)
        return not any(many) and not self.events and not self.texts

    def event(self, tombstones: str = "", reason: str = "") -> RecordForgotten:
        return RecordForgotten(
            records=len(self.records),
            versions=self.versions,
            snapshots=len(self.snapshots),
            jobs=len(self.jobs),
            rejects=len(self.rejects),
            log_lines=len(self.log_lines),
            events=len(self.events),
            texts=self.texts,
            tombstones=tombstones,
            reason=reason,
        )


class Erasure(Noun):
    """The verbs of erasing a key."""

    def find(self, source_id: int, key: str) -> Found:
        """Everything that is stored under this key of this source. It looks through whole tables."""
        found, needle = Found(source_id, key), Needle(key)
        with self._db.patient():
            self._find_records(found)
            self._find_items(found, needle)
            self._find_snapshots(found)
            for row_id, text in self._rows("log_lines_to_forget", found, needle):
                if needle.erased_text(text) != text:
                    found.log_lines.append(row_id)
            for row_id, data, detail in self._rows("events_to_forget", found, needle):
                if _erased(needle, data, True) != data or _erased(needle, detail, False) != detail:
                    found.events.append(row_id)
            found.texts = sum(1 for _ in self._texts(found, needle))
        return found

    def _find_records(self, found: Found) -> None:
        about = {"source_id": found.source_id, "key": found.key}
        for record_id, collection, is_removed in self._db.rows("records_to_forget", **about):
            found.records[record_id] = (collection, not is_removed)
            found.versions += int(self._db.value("count_versions", id=record_id))
            for (snapshot_id,) in self._db.rows("snapshots_of_record", id=record_id):
                found.snapshots.update(_known(snapshot_id))
        for run_id, collection, snapshot_id in self._db.rows("staged_to_forget", **about):
            found.staged.append((run_id, collection))
            found.snapshots.update(_known(snapshot_id))

    def _find_items(self, found: Found, needle: Needle) -> None:
        for row_id, key, item, snapshot_id in self._rows("rejects_to_forget", found, needle):
            if key == found.key or needle.is_in_json(item):
                found.rejects.append(row_id)
                found.snapshots.update(_known(snapshot_id))
        for row in self._rows("jobs_to_forget", found, needle):
            job_id, key, state, run_id, item, snapshot_id = row
            is_it = key == found.key or needle.erased_text(key) != key
            if is_it or needle.is_in_json(item):
                found.jobs[job_id] = (state, run_id)
                found.snapshots.update(_known(snapshot_id))
                rows = self._db.rows("snapshots_of_forgotten_job", id=job_id)
                found.snapshots.update(each for (each,) in rows)

    def _find_snapshots(self, found: Found) -> None:
        """Pages that these came from, whenever they were fetched; and what has the same content."""
        new = list(found.snapshots)
        found.snapshots.clear()
        while new:
            snapshot_id = new.pop()
            rows = self._db.rows("snapshot_to_forget", id=snapshot_id)
            if snapshot_id in found.snapshots or not rows:
                continue
            url, content, source_id = rows[0]
            found.snapshots.add(snapshot_id)
            if content not in found.hashes:
                found.hashes.add(content)
                new += [each for each, _ in self._db.rows("snapshots_with_hash", hash=content)]
            if url not in found.urls and source_id in (found.source_id, None):
                found.urls.add(url)
                about = {"url": url, "source_id": found.source_id}
                new += [each for each, _ in self._db.rows("snapshots_at_url", **about)]

    def _rows(self, query: str, found: Found, needle: Needle) -> Iterator[Any]:
        """What a query finds of any spelling, each row once."""
        about: dict[str, object] = {"source_id": found.source_id}
        if query in ("rejects_to_forget", "jobs_to_forget"):
            about["key"] = found.key
        seen = set()
        for spelling in needle.spellings:
            for row in self._db.rows(query, spelling=spelling, **about):
                if row[0] not in seen:
                    seen.add(row[0])
                    yield row

    def _texts(self, found: Found, needle: Needle) -> Iterator[tuple[str, dict[str, object]]]:
        """Rows of other tables with texts in which the key stands, and what to write instead."""
        for query, erase, kinds in TEXTS:
            for row_id, *texts in self._rows(query, found, needle):
                if row_id in found.jobs and query == "failures_to_erase":
                    continue  # it goes with its job
                pairs = zip(texts, kinds, strict=True)
                erased = [_erased(needle, text, is_json) for text, is_json in pairs]
                if erased != texts:
                    yield erase, {"id": row_id, **dict(zip(PLACES, erased, strict=False))}

    def active_replays(self, source_id: int) -> list[int]:
        """Replays of a source that are under way: what they have read could come back."""
        return [run_id for (run_id,) in self._db.rows("active_replays_of", source_id=source_id)]

    def erase(self, found: Found, actor: str, reason: str) -> RecordForgotten:
        """Erase what was found, in one transaction. Payloads must have been erased from segments before."""
        needle = Needle(found.key)
        with self._db.writing() as now:
            self._db.do("lock_seals")
            if found.hashes:
                self._db.do("lock_payloads")
                for content in found.hashes:
                    rows = self._db.rows("snapshots_with_hash", hash=content)
                    found.snapshots.update(snapshot_id for snapshot_id, _ in rows)
            ledger = Ledger(self._db, now)
            self._drop(found)
            texts = list(self._texts(found, needle))
            for query, values in texts:
                self._db.do(query, **values)
            tombstones = list(self._erase_events(found, needle))
            event = found.event(tombstones_digest(tombstones), reason)
            ledger.journal(event, found.source_id, actor=actor)
            ledger.write()
            act_id = int(self._db.value("last_event_of_kind", kind=event.kind))
            for each in tombstones:
                about = {"event_id": each.event_id, "sealed": each.sealed, "erased": each.erased}
                self._db.do("add_tombstone", act_id=act_id, **about)
            self._db.do("add_erasure", act_id=act_id, source_id=found.source_id, now=now)
        return event

    def scrub(self) -> bool:
        """Overwrite the space that deleted data took; False where that is left to others."""
        return self._db.scrub()

    def _drop(self, found: Found) -> None:
        for run_id, collection in found.staged:
            self._db.do("forget_staged", run_id=run_id, collection=collection, key=found.key)
        for query, ids in (
            ("forget_versions", found.records),
            ("forget_record", found.records),
            ("forget_reject", found.rejects),
            ("forget_log_line", found.log_lines),
            ("forget_pins", found.snapshots),
            ("forget_snapshot", found.snapshots),
        ):
            for row_id in sorted(ids):
                self._db.do(query, id=row_id)
        for job_id in sorted(found.jobs):
            self._db.do("forget_canary_samples", id=job_id)
        drop_jobs(self._db, sorted(found.jobs))
        for content in sorted(found.hashes):
            self._db.do("forget_payload", hash=content)
        for url in sorted(found.urls):
            self._db.do("forget_page", source_id=found.source_id, url=url)
        counted = Counter(name for name, counts in found.records.values() if counts)
        if counted:
            deltas = [(name, -number) for name, number in sorted(counted.items())]
            self._db.do("count_collections", deltas=to_json(deltas))

    def _erase_events(self, found: Found, needle: Needle) -> Iterator[Tombstone]:
        """Erase the key from the journal; what was sealed leaves a tombstone."""
        head = last_seal(self._db)
        sealed_until = head.last_id if head else 0
        for event_id in found.events:
            lines = _line(self._db, event_id)
            if not lines:
                continue
            before = hash_of(lines[0]).hex()
            data = _erased(needle, lines[0].data, True)
            detail = _erased(needle, lines[0].detail, False)
            self._db.do("erase_event", id=event_id, data=data, detail=detail)
            [after] = _line(self._db, event_id)
            if event_id <= sealed_until:
                yield Tombstone(event_id, 0, before, hash_of(after).hex())


def _line(db: Database, event_id: int) -> list[Line]:
    about = {"after_id": event_id - 1, "until_id": event_id, "limit": 1}
    return in_seconds(db.decoded("lines_to_seal", list[Line], **about))


def _erased(needle: Needle, text: str | None, is_json: bool) -> str | None:
    if text is None:
        return None
    return needle.erased_json(text) if is_json else needle.erased_text(text)


def _known(snapshot_id: int | None) -> list[int]:
    return [] if snapshot_id is None else [snapshot_id]
