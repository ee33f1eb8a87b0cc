"""Effects: all that attempts want remembered, written in batches, in the order of the locks they take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.gates.budget import Bound
from penstock.jobs.job import JobState, NewJob
from penstock.jobs.outcome import Covered, Effects, Flush, Mark, Rejection, Save, Settlement
from penstock.store.accounts import count_candidates
from penstock.store.adding import add_children
from penstock.store.announcing import note_announced
from penstock.store.budgets import charge
from penstock.store.checkpoints import move_checkpoints
from penstock.store.coverage import note_coverage
from penstock.store.database import Database, Owned, to_json
from penstock.store.health import note_probes
from penstock.store.ledger import Ledger
from penstock.store.pages import note_pages
from penstock.store.promises import note_verified
from penstock.store.records import save_records
from penstock.store.rejecting import add_rejects
from penstock.store.repeats import find_repeats
from penstock.store.staging import stage_records

End = Settlement | Flush


@dataclass(slots=True)
class _Batch:
    """The effects of many attempts, by what they are."""

    children: list[tuple[Owned, NewJob]] = field(default_factory=list)
    saves: list[tuple[int, int, Save]] = field(default_factory=list)
    savers: list[int] = field(default_factory=list)
    staged: list[tuple[int, int, Save]] = field(default_factory=list)
    marks: list[tuple[Owned, Mark]] = field(default_factory=list)
    covered: list[tuple[Owned, Covered]] = field(default_factory=list)
    charges: list[tuple[Bound, float]] = field(default_factory=list)
    signals: list[tuple[object, ...]] = field(default_factory=list)
    rejections: list[tuple[Owned, Rejection]] = field(default_factory=list)
    moments: list[tuple[int, float, int]] = field(default_factory=list)
    verified: list[Owned] = field(default_factory=list)
    visits: list[tuple[Owned, Effects]] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    probed: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def take(self, job: Owned, effects: Effects, repeats: set[tuple[int, str]]) -> None:
        self.children.extend((job, child) for child in effects.children)
        for save in effects.saves:
            (self.staged if save.is_staged else self.saves).append(
                (job.source_id, job.run_id, save)
            )
            if not save.is_staged:
                self.savers.append(job.id)
        self.marks.extend((job, mark) for mark in effects.marks)
        self.covered.extend((job, stretch) for stretch in effects.covered)
        self.charges.extend(effects.charges)
        for raised in effects.signals:
            if (job.id, raised.key) not in repeats:
                self.signals.append((raised.name, raised.data.decode(), job.source_id, job.run_id))
        self.rejections.extend(
            (job, each) for each in effects.rejections if (job.id, each.key) not in repeats
        )
        self.moments.extend((job.source_id, at, job.run_id) for at in effects.moments)
        if effects.is_schema_verified:
            self.verified.append(job)
        if effects.announced or effects.extracted:
            self.visits.append((job, effects))
        if effects.probed:
            self.probed[job.run_id].update(effects.probed)


def add_effects(
    db: Database, ledger: Ledger, actor: str, accepted: Sequence[tuple[End, Owned]]
) -> None:
    """Children, records, checkpoints, signals and notes of accepted attempts."""
    batch, repeats = _Batch(), find_repeats(db, accepted)
    for end, job in accepted:
        if isinstance(end, Settlement) and end.state is JobState.QUARANTINED:
            batch.failed.append(job.id)
        if end.effects:
            batch.take(job, end.effects, repeats)
            _note(ledger, actor, job, end, repeats)
    if batch.children:
        going_on = {job.id for end, job in accepted if isinstance(end, Flush)}
        add_children(db, ledger, batch.children, going_on)
    if batch.staged:
        stage_records(db, ledger, batch.staged)
    count_candidates(ledger, accepted, _saved(db, ledger, batch))
    _write(db, ledger, actor, batch)


def _note(ledger: Ledger, actor: str, job: Owned, end: End, repeats: set[tuple[int, str]]) -> None:
    for note in end.effects.notes:
        if (job.id, note.key) in repeats:
            continue
        ledger.journal(
            "job.noted", job.source_id, job.run_id, job.id, end.attempt, actor, note.text
        )
    for measure, amount in end.effects.spent.items():
        ledger.count(job.run_id, measure, amount)


def _saved(db: Database, ledger: Ledger, batch: _Batch) -> dict[int, bool]:
    """Save records; answers with the jobs that did, and whether one of theirs was new or changed."""
    has_changed: dict[int, bool] = {}
    if batch.saves:
        for job_id, did in zip(batch.savers, save_records(db, ledger, batch.saves), strict=True):
            has_changed[job_id] = has_changed.get(job_id, False) or did != "unchanged"
    return has_changed


def _write(db: Database, ledger: Ledger, actor: str, batch: _Batch) -> None:
    if batch.marks:
        move_checkpoints(db, ledger, actor, batch.marks)
    if batch.covered:
        note_coverage(db, ledger, batch.covered)
    if batch.charges:
        charge(db, ledger, batch.charges)
    if batch.signals:
        db.do("add_signals", now=ledger.now, signals=to_json(batch.signals))
    if batch.rejections:
        add_rejects(db, ledger, batch.rejections)
    if batch.moments:
        note_announced(db, ledger.now, batch.moments)
    if batch.verified:
        note_verified(db, ledger, actor, batch.verified)
    if batch.visits or batch.failed:
        note_pages(db, ledger.now, batch.visits, batch.failed)
    if batch.probed:
        note_probes(db, batch.probed)
