"""Retention of what grows with the work that was ever done: runs, their jobs, the journal, snapshots.

Each table is gone through in its order, one bounded piece at a time, from a mark that is remembered between
pieces: what has to stay, and what was just deleted, is passed once and not before every piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.store.database import Database, to_json

# How many runs are looked at for one piece: most of them have few jobs left, or none.
RUNS = 1000
START = (float("-inf"), 0)
OF_A_RUN = (
    "drop_stages_of_runs",
    "drop_cursors_of_runs",
    "drop_probes_of_runs",
    "drop_replays_of_runs",
    "drop_rollups_of_runs",
    "drop_runs",
)


@dataclass(slots=True)
class Marks:
    """Where the next piece of each table begins. Losing them costs one walk past what stays."""

    snapshots: int = 0
    # A position of the journal that can't gain a row before it; and where the journal ended at a later
    # look, with who was writing to it then.
    settled_end: int = 0
    journal_end: tuple[int, frozenset[str]] = (0, frozenset())
    # The last line of the journal that was looked at for old sentences; None when all were.
    converted: int | None = 0
    # Behind which (finished_at, id) the next run is.
    emptying: tuple[float, int] = START
    ended: tuple[float, int] = START
    # Behind which (run, stage, key) the jobs of a run with many of them go on.
    within: tuple[int, str, str] = field(default=(0, "", ""))


def prune_jobs(db: Database, marks: Marks, before: float, limit: int) -> int:
    """Drop finished jobs of runs that ended before then; 0 when none is left."""
    with db.writing():
        after_at, after_id = marks.emptying
        place = {"after_at": after_at, "after_id": after_id}
        runs = db.json("runs_to_empty", before=before, limit=RUNS, **place)
        jobs = _old_jobs(db, marks, [run_id for run_id, _ in runs], before, limit)
        drop_jobs(db, [job[0] for job in jobs])
        if len(jobs) == limit:
            _begin_within(marks, runs, jobs[-1])
            return len(jobs)
        db.do("note_emptied", ids=to_json([run_id for run_id, _ in runs]))
    is_more = len(runs) == RUNS
    marks.emptying = (runs[-1][1], runs[-1][0]) if is_more else START
    marks.within = (0, "", "")
    return len(jobs) or int(is_more)


def _old_jobs(
    db: Database, marks: Marks, run_ids: Sequence[int], before: float, limit: int
) -> list[tuple[int, int, str, str]]:
    begun, stage, key = marks.within
    runs = [(run_id, *((stage, key) if run_id == begun else ("", ""))) for run_id in run_ids]
    found: list[tuple[int, int, str, str]] = db.json(
        "old_jobs", runs=to_json(runs), before=before, limit=limit
    )
    return found


def drop_jobs(db: Database, ids: Sequence[int]) -> None:
    """Drop these jobs with what belongs to them; what counts them is not changed."""
    if ids:
        for query in ("drop_jobs", "drop_items", "drop_failures", "drop_sent"):
            db.do(query, ids=to_json(ids))


def _begin_within(
    marks: Marks, runs: Sequence[tuple[int, float]], last: tuple[int, int, str, str]
) -> None:
    """Go on with the run of the last job; those before it are done with."""
    _, run_id, stage, key = last
    marks.within = (run_id, stage, key)
    place = [each for each, _ in runs].index(run_id)
    if place:
        marks.emptying = (runs[place - 1][1], runs[place - 1][0])


def prune_runs(db: Database, marks: Marks, before: float, limit: int) -> int:
    """Drop runs that ended before then, have no job left and are referred to by nothing; 0 when none is."""
    with db.writing():
        after_at, after_id = marks.ended
        place = {"after_at": after_at, "after_id": after_id}
        runs = db.json("old_runs", before=before, limit=limit, **place)
        free = to_json([run_id for run_id, _, is_free in runs if is_free])
        dropped = sum(bool(is_free) for _, _, is_free in runs)
        if dropped:
            for query in OF_A_RUN:
                db.do(query, ids=free)
    is_more = len(runs) == limit
    marks.ended = (runs[-1][1], runs[-1][0]) if is_more else START
    return dropped or int(is_more)


def prune_snapshots(db: Database, marks: Marks, before: float, limit: int) -> int:
    """Drop snapshots that were fetched before then and that nothing needs; 0 when none is left."""
    with db.writing():
        rows = db.json("old_snapshots", after_id=marks.snapshots, before=before, limit=limit)
        free = [row_id for row_id, _, is_free in rows if is_free]
        if free:
            db.do("drop_snapshots", ids=to_json(free))
    is_more = len(rows) == limit and bool(rows[-1][1])
    marks.snapshots = rows[-1][0] if is_more else 0
    return len(free) or int(is_more)
