"""Effects of accepted attempts, written in batches, in the order of the locks they take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from penstock.jobs.effects import Covered, Effects, Mark, Raised, Rejection, Save
from penstock.jobs.effects.effect import Effect, Ended, Repeatable
from penstock.jobs.effects.effects import ALL_EFFECTS
from penstock.jobs.effects.proposals import Proposed
from penstock.jobs.effects.samples import Sample
from penstock.jobs.job import JobState, NewJob, Owned
from penstock.jobs.outcome import Flush, Settlement
from penstock.journal.job_events import JobNoted
from penstock.metrics.fold import observed
from penstock.metrics.measures import SUMS
from penstock.settings.budget import Bound
from penstock.store.accounts import count_candidates
from penstock.store.announcements import note_announced
from penstock.store.budgets import charge
from penstock.store.checkpoints import move_checkpoints
from penstock.store.coverage import note_coverage
from penstock.store.database import Database, to_json
from penstock.store.field_counts import count_fields
from penstock.store.health import note_probes
from penstock.store.ledger import Ledger
from penstock.store.new_jobs import add_children
from penstock.store.onboardings import add_proposals
from penstock.store.pages import note_pages
from penstock.store.promises import note_verified
from penstock.store.record_rows import save_records
from penstock.store.reject_rows import add_rejects
from penstock.store.staged_records import stage_records
from penstock.store.turn.repeats import Key, Said, find_repeats

End = Settlement | Flush


def add_effects(db: Database, ledger: Ledger, actor: str, accepted: Sequence[Ended]) -> None:
    """Write what accepted attempts want remembered, each effect for all of them at once."""
    found = [(effect, ended) for effect, ended in _by_effect(accepted) if ended]
    repeats = find_repeats(db, accepted, _said(found))
    transaction = EffectTransaction(db, ledger, actor, accepted, repeats)
    for effect, ended in found:
        effect.write(ended, transaction)
    count_candidates(ledger, accepted, transaction.has_changed)
    transaction.finish()


def _by_effect(accepted: Sequence[Ended]) -> Iterable[tuple[Effect, list[Ended]]]:
    """Each effect, with the ends that have something of it."""
    found: list[list[Ended]] = [[] for _ in ALL_EFFECTS]
    for pair in accepted:
        effects = pair[0].effects
        if effects:
            for place in effects.places:
                found[place].append(pair)
    return zip(ALL_EFFECTS, found, strict=True)


def _said(found: Sequence[tuple[Effect, Sequence[Ended]]]) -> list[Said]:
    return [
        (pair, key)
        for effect, ended in found
        if isinstance(effect, Repeatable)
        for pair in ended
        for key in effect.keys(pair[0].effects)
        if key
    ]


class EffectTransaction:
    """What effects write, in the words of the store."""

    def __init__(
        self,
        db: Database,
        ledger: Ledger,
        actor: str,
        accepted: Sequence[Ended],
        repeats: set[Key],
    ) -> None:
        self._db = db
        self._ledger = ledger
        self._actor = actor
        self._repeats = repeats
        self._going_on = {job.id for end, job in accepted if isinstance(end, Flush)}
        self._failed = [
            job.id
            for end, job in accepted
            if isinstance(end, Settlement) and end.state is JobState.QUARANTINED
        ]
        # The jobs that saved records, and whether one of theirs was new or changed.
        self.has_changed: dict[int, bool] = {}

    def is_repeat(self, job: Owned, key: str) -> bool:
        return (job.id, key) in self._repeats

    def note(self, job: Owned, attempt: int, text: str) -> None:
        about = (job.source_id, job.run_id, job.id, attempt, self._actor)
        self._ledger.journal(JobNoted(text), *about)

    def count(self, run_id: int, name: str, by: float) -> None:
        self._ledger.count(run_id, name, by)

    def measure_fetches(self, run_id: int, latencies: Mapping[str, float]) -> None:
        self._ledger.measure(
            run_id,
            [
                ("fetch_seconds" if label else SUMS["fetch_seconds"], label, amount)
                for label, amount in latencies.items()
            ],
        )

    def add_children(self, children: Sequence[tuple[Owned, NewJob]]) -> None:
        add_children(self._db, self._ledger, children, self._going_on)

    def stage_records(self, saves: Sequence[tuple[Owned, Save]]) -> None:
        rows = [(job.source_id, job.run_id, save) for job, save in saves]
        stage_records(self._db, self._ledger, rows)

    def save_records(self, saves: Sequence[tuple[Owned, Save]]) -> None:
        rows = [(job.source_id, job.run_id, save) for job, save in saves]
        has_changed = self.has_changed
        did = save_records(self._db, self._ledger, rows)
        for (job, _), each in zip(saves, did, strict=True):
            has_changed[job.id] = has_changed.get(job.id, False) or each != "unchanged"
        scores: dict[int, list[float]] = defaultdict(list)
        for job, save in saves:
            if save.score is not None:
                scores[job.run_id].append(save.score)
        for run_id, values in scores.items():
            self._ledger.measure(run_id, observed("quality", values))

    def move_checkpoints(self, marks: Sequence[tuple[Owned, Mark]]) -> None:
        move_checkpoints(self._db, self._ledger, self._actor, marks)

    def cover(self, covered: Sequence[tuple[Owned, Covered]]) -> None:
        note_coverage(self._db, self._ledger, covered)

    def charge(self, charges: Sequence[tuple[Bound, float]]) -> None:
        charge(self._db, self._ledger, charges)

    def raise_signals(self, raised: Sequence[tuple[Owned, Raised]]) -> None:
        rows = [(each.name, each.data.decode(), job.source_id, job.run_id) for job, each in raised]
        self._db.do("add_signals", now=self._ledger.now, signals=to_json(rows))

    def propose_sources(self, found: Sequence[tuple[Owned, Proposed]]) -> None:
        by = self._db.json("source_ids")
        names = {number: key for key, number in by.items()}
        add_proposals(
            self._db,
            self._ledger,
            [
                (each.source, each.keys.decode(), each.reason, names[job.source_id], job.run_id)
                for job, each in found
            ],
        )

    def add_rejects(self, rejections: Sequence[tuple[Owned, Rejection]]) -> None:
        add_rejects(self._db, self._ledger, rejections)

    def add_samples(self, samples: Sequence[tuple[Owned, Sample]]) -> None:
        for job, sample in samples:
            about = {"run_id": job.run_id, "job_id": job.id}
            self._db.later("add_canary_sample", sample=to_json(sample), **about)

    def announce_moments(self, moments: Sequence[tuple[Owned, float]]) -> None:
        rows = [(job.source_id, moment, job.run_id) for job, moment in moments]
        note_announced(self._db, self._ledger.now, rows)

    def verify_schemas(self, jobs: Sequence[Owned]) -> None:
        note_verified(self._db, self._ledger, self._actor, jobs)

    def add_findings(self, found: Mapping[int, Mapping[str, int]]) -> None:
        note_probes(self._db, found)

    def count_fields(self, found: Mapping[tuple[int, int], Counter[str]]) -> None:
        count_fields(self._db, found)

    def note_pages(self, visits: Sequence[tuple[Owned, Effects]]) -> None:
        """With the pages of jobs that failed: one statement writes them all."""
        note_pages(self._db, self._ledger.now, visits, self._failed)
        self._failed = []

    def finish(self) -> None:
        if self._failed:
            self.note_pages([])
