"""Adding jobs to a run: each key once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from penstock.jobs.job import AGEING_S, JobState, NewJob, Owned, bounded_key
from penstock.jobs.run_policy import policy_of
from penstock.journal.job_events import JobSkipped
from penstock.store.database import Database, JobRow, to_json
from penstock.store.ledger import Ledger
from penstock.store.turn.stage_limits import not_too_deep, within_bounds

# In parts that no database takes long for.
INSERT_LIMIT = 5000

_Item = tuple[int, int | None, str, int | None]


def add_jobs(
    db: Database,
    ledger: Ledger,
    run_id: int,
    source_id: int,
    jobs: Sequence[tuple[int | None, NewJob]],
) -> set[int]:
    """Enqueue jobs of a run, each with its parent; a known key keeps its job. Answers with the new ids."""
    stages = ledger.stages(run_id)
    later_s = {name: policy_of(facts.kind).later_s for name, facts in stages.items()}
    jobs = within_bounds(db, ledger, run_id, source_id, jobs)
    ids = db.new_job_ids(len(jobs))
    made: list[tuple[JobRow, _Item]] = []
    for job_id, (parent_id, job) in zip(ids, jobs, strict=True):
        unit = stages[job.stage].unit
        rank = ledger.now + job.priority * AGEING_S + later_s[job.stage]
        row: JobRow = (job_id, run_id, source_id, job.stage, unit, bounded_key(job.key), rank)
        made.append((row, (job_id, parent_id, job.item.decode(), job.snapshot)))
    if db.is_shared and len(made) > INSERT_LIMIT:
        made.sort(key=lambda pair: (pair[0][3], pair[0][5]))  # within a part, the statement does it
    new: set[int] = set()
    for first in range(0, len(made), INSERT_LIMIT):
        new |= _insert(db, ledger.now, made[first : first + INSERT_LIMIT])
    for (job_id, _, _, stage, its_unit, *_), _ in made:
        if job_id in new:
            ledger.added(run_id, stage, its_unit)
    if any(facts.continues for facts in stages.values()):
        _skip_what_is_done(db, ledger, [row for row, _ in made if row[0] in new])
    return new


def _skip_what_is_done(db: Database, ledger: Ledger, rows: Sequence[JobRow]) -> None:
    """Of new jobs of a run that continues another, end those that were done there."""
    by_run: dict[int, list[JobRow]] = defaultdict(list)
    for row in rows:
        continues = ledger.stages(row[1])[row[3]].continues
        if continues is not None:
            by_run[continues].append(row)
    for continues, asked in by_run.items():
        keys = to_json([(job_id, stage, key) for job_id, _, _, stage, _, key, _ in asked])
        done_in = dict(db.json("done_before", continues=continues, keys=keys))
        if not done_in:
            continue
        db.do("skip_if_queued", ids=to_json(sorted(done_in)), now=ledger.now)
        notes = []
        for job_id, run_id, source_id, stage, *_ in asked:
            if job_id in done_in:
                event = JobSkipped(done_in_run=done_in[job_id])
                ledger.moved(run_id, stage, JobState.QUEUED, JobState.SKIPPED)
                ledger.journal(event, source_id, run_id, job_id, 0, "penstock")
                notes.append((job_id, 0, "skipped", event.sentence(), ""))
        db.do("note_failures", now=ledger.now, failures=to_json(notes))


def _insert(db: Database, now: float, made: Sequence[tuple[JobRow, _Item]]) -> set[int]:
    """Insert the jobs whose key is not known yet; answers with their ids."""
    new = db.add_jobs(now, [row for row, _ in made])
    items = [item for _, item in made if item[0] in new]
    db.later("add_items", items=to_json(items))
    return new


def add_children(
    db: Database,
    ledger: Ledger,
    children: Sequence[tuple[Owned, NewJob]],
    going_on: Collection[int] = (),
) -> None:
    """Enqueue the children of attempts. An attempt that is `going_on` and brings a new one has come further:
    the workers that died under it before do not count any more. To bring the same ones again is no progress.
    """
    by_run: dict[int, list[tuple[int | None, NewJob]]] = defaultdict(list)
    source_of: dict[int, int] = {}
    for parent, child in not_too_deep(db, ledger, children):
        by_run[parent.run_id].append((parent.id, child))
        source_of[parent.run_id] = parent.source_id
    for run_id, jobs in sorted(by_run.items()):
        parents = [parent_id for parent_id, _ in jobs if parent_id in going_on]
        if add_jobs(db, ledger, run_id, source_of[run_id], jobs) and parents:
            db.later("forgive_deaths", ids=to_json(sorted(set(parents))))
