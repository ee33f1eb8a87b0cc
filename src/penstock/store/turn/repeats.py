"""Signals, notes and rejects that an earlier attempt has committed are not written a second time."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.jobs.effects.effect import Ended
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Flush, Settlement
from penstock.store.database import Database, to_json

Key = tuple[int, str]
# An end, and the key of one thing that it says.
Said = tuple[Ended, str]


def find_repeats(db: Database, accepted: Sequence[Ended], said: Sequence[Said]) -> set[Key]:
    """Those keys of these ends that are known; the others of flushes are remembered."""
    repeats: set[Key] = set()
    again = [(job.id, key) for (end, job), key in said if end.attempt > 1]
    if again:
        found = db.json("known_sent", keys=to_json(again))
        repeats = {(job_id, key) for job_id, key in found}
    _remember(db, said, repeats)
    _forget(db, accepted)
    return repeats


def _remember(db: Database, said: Sequence[Said], repeats: set[Key]) -> None:
    """A settlement ends its job, so only what is flushed before can be said again."""
    flushed = {
        (job.id, key)
        for (end, job), key in said
        if isinstance(end, Flush) and not (end.effects.marks or end.effects.forgets)
    }
    if new := sorted(flushed - repeats):
        db.do("add_sent", keys=to_json(new))


def _forget(db: Database, accepted: Sequence[Ended]) -> None:
    """With a checkpoint, and with the end of a job, nothing that was said before is said again."""
    over: set[int] = set()
    for end, job in accepted:
        if isinstance(end, Settlement):
            if job.flushes and end.state in (JobState.SUCCEEDED, JobState.SKIPPED):
                over.add(job.id)
        elif end.effects.marks or end.effects.forgets:
            over.add(job.id)
    if over:
        db.do("drop_sent", ids=to_json(sorted(over)))
