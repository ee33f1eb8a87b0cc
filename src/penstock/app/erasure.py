"""Forgetting a key: files first, then the database, so that whatever is cut short can be done again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.app.views.records import ForgottenView
from penstock.audit.erasure import Needle
from penstock.errors import Refused, Remedy, UsageError
from penstock.jobs.job import JobState
from penstock.jobs.transitions import OPEN_JOB_STATES
from penstock.snapshots import SegmentPlace, open_snapshots

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.journal.audit_events import RecordForgotten
    from penstock.store.erasure import Found

# Work goes on meanwhile: what it has added is looked for again.
PASSES = 3


def forget(
    project: Nouns,
    source_id: int,
    source: str,
    key: str,
    is_dry: bool,
    actor: str,
    reason: str,
) -> ForgottenView:
    """Erase what is stored under a key of a source; dry, only count it."""
    if not key:
        raise UsageError("the key is empty", code="no_key")
    found = _found(project, source_id, source, key)
    if is_dry:
        return _view(source, key, [found.event()], is_done=False)
    reason, done = Needle(key).erased_text(reason), []
    for _ in range(PASSES):
        done.append(_erase(project, found, actor, reason))
        found = project.connection.erasure.find(source_id, key)
        if found.is_nothing:
            break
        _refuse_open(project, source, found)
    return _view(source, key, done, is_done=True, is_scrubbed=project.connection.erasure.scrub())


def _found(project: Nouns, source_id: int, source: str, key: str) -> Found:
    found = project.connection.erasure.find(source_id, key)
    if found.is_nothing:
        raise Refused(
            f"nothing is stored under the key {key!r} of {source}",
            "keys are case-sensitive",
            code="nothing_to_forget",
            remedy=Remedy("records.list"),
        )
    _refuse_open(project, source, found)
    return found


def _refuse_open(project: Nouns, source: str, found: Found) -> None:
    """What is in somebody's hands could be written again."""
    for state, run_id in found.jobs.values():
        if state in OPEN_JOB_STATES:
            raise Refused(
                f"run {run_id} of {source} has work with this key that has not ended",
                "wait for its end, or cancel it",
                code="run_active",
                remedy=Remedy("runs.cancel", run_id),
            )
    for run_id in project.connection.erasure.active_replays(found.source_id):
        raise Refused(
            f"replay {run_id} of {source} is active and may have read these pages",
            "wait for its end, or cancel it",
            code="run_active",
            remedy=Remedy("runs.cancel", run_id),
        )


def _erase(project: Nouns, found: Found, actor: str, reason: str) -> RecordForgotten:
    store = project.connection
    quarantined = [
        job_id for job_id, (state, _) in found.jobs.items() if state == JobState.QUARANTINED
    ]
    if quarantined:
        store.quarantine.discard_jobs(quarantined, actor, reason)
    places = store.snapshots.places(sorted(found.hashes))
    if places:
        snapshots = open_snapshots(project.settings.snapshots, "eraser")
        try:
            snapshots.erase([SegmentPlace(each, *place) for each, place in places.items()])
        finally:
            snapshots.close()
    # What is sealed already keeps the hash it was sealed with.
    store.audit.seal_all(0.0)
    return store.erasure.erase(found, actor, reason)


def _view(
    source: str,
    key: str,
    events: list[RecordForgotten],
    *,
    is_done: bool,
    is_scrubbed: bool = False,
) -> ForgottenView:
    def total(name: str) -> int:
        return sum(int(getattr(event, name)) for event in events)

    return ForgottenView(
        source=source,
        key=key,
        records=total("records"),
        versions=total("versions"),
        snapshots=total("snapshots"),
        jobs=total("jobs"),
        rejects=total("rejects"),
        log_lines=total("log_lines"),
        events=total("events"),
        texts=total("texts"),
        is_done=is_done,
        is_scrubbed=is_scrubbed,
    )
