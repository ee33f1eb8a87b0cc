"""Signals, notes and rejects that an earlier attempt has committed are not written a second time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.jobs.job import JobState
from penstock.jobs.outcome import Effects, Flush, Settlement
from penstock.store.database import Database, Owned, to_json

Key = tuple[int, str]


def find_repeats(db: Database, accepted: Sequence[tuple[Settlement | Flush, Owned]]) -> set[Key]:
    """Those keys of these ends that are known; the others of flushes are remembered."""
    keyed = [(end, job) for end, job in accepted if end.effects and any(_keys(end.effects))]
    repeats: set[Key] = set()
    again = [(job.id, key) for end, job in keyed if end.attempt > 1 for key in _keys(end.effects)]
    if again:
        found = db.json("known_sent", keys=to_json(again))
        repeats = {(job_id, key) for job_id, key in found}
    _remember(db, keyed, repeats)
    _forget(db, accepted)
    return repeats


def _keys(effects: Effects) -> Iterator[str]:
    for said in (effects.signals, effects.notes, effects.rejections):
        for each in said:
            if each.key:
                yield each.key


def _remember(
    db: Database, keyed: Sequence[tuple[Settlement | Flush, Owned]], repeats: set[Key]
) -> None:
    """A settlement ends its job, so only what is flushed before can be said again."""
    flushed = {
        (job.id, key)
        for end, job in keyed
        if isinstance(end, Flush) and not (end.effects.marks or end.effects.forgets)
        for key in _keys(end.effects)
    }
    if new := sorted(flushed - repeats):
        db.do("add_sent", keys=to_json(new))


def _forget(db: Database, accepted: Sequence[tuple[Settlement | Flush, Owned]]) -> None:
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
