"""Settling: what attempts that still own their job have ended with, told from what came too late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from penstock.jobs.effects.effects import has_children, uncommitted
from penstock.jobs.job import JobState, Owned
from penstock.jobs.outcome import Flush, Settlement
from penstock.jobs.retry import OVERTAKEN
from penstock.journal.job_events import (
    AttemptEnd,
    JobCancelled,
    JobQuarantined,
    JobReleased,
    JobRetryScheduled,
    JobSkipped,
    JobSnoozed,
    JobThrottled,
)
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger
from penstock.store.turn.bases import are_kept
from penstock.store.turn.effects import End, add_effects
from penstock.store.turn.failures import judge, note_failures
from penstock.store.turn.host_waits import note_host_waits

# What a run counts of the pages that were skipped, by why they were.
_SKIPPED = {
    "unchanged": "pages_unchanged",
    "disallowed": "disallowed",
    "missing": "pages_missing",
}


class Accepted(msgspec.Struct):
    """What of a worker's ends is written: each with its job, and the ids that are or came too late."""

    ends: list[tuple[End, Owned]]
    unsettled: list[tuple[Settlement, Owned]]
    settled: list[int]
    lost: list[int]
    flushes: dict[int, int]
    renewed: set[int]


def accept(db: Database, ledger: Ledger, worker: str, ends: Sequence[End]) -> Accepted:
    """Tell the ends of attempts that own their job from those that came too late.

    An attempt ends once: whatever it sends after its end is late too. A flush that was sent again,
    because the answer to the first was not heard, is written already. One that wants children of a
    stage that its run does not have is quarantined instead, and one that was based on a record which others
    have changed ends as its `otherwise`.
    """
    accepted = Accepted([], [], [], [], {}, set())
    owned, ended = _owned(db, ledger, worker, ends)
    for end in ends:
        fence = (end.job_id, end.attempt)
        job = owned.get(fence)
        if job is None:
            accepted.lost.append(end.job_id)
            continue
        if fence in ended:  # nothing that it brings is to be looked at
            accepted.ends.append((end, job))
            accepted.settled.append(end.job_id)
            del owned[fence]
            continue
        if isinstance(end, Flush) and end.number:
            if end.number <= accepted.flushes.get(job.id, job.flushes):
                accepted.settled.append(end.job_id)
                continue
            accepted.flushes[job.id] = end.number
            if end.is_progress:
                accepted.renewed.add(job.id)
        written = _written(db, ledger, job, end, accepted)
        accepted.ends.append((written, job))
        if isinstance(written, Settlement):
            accepted.unsettled.append((written, job))
            del owned[fence]
        if isinstance(end, Flush) and written is not end:
            accepted.lost.append(end.job_id)
        else:
            accepted.settled.append(end.job_id)
    return accepted


def _owned(
    db: Database, ledger: Ledger, worker: str, ends: Sequence[End]
) -> tuple[dict[tuple[int, int], Owned], set[tuple[int, int]]]:
    """The jobs that are still this worker's, and which of them were ended well by asking."""
    if not ends:
        return {}, set()
    sent = Counter(end.job_id for end in ends)
    plain: list[tuple[int, int]] = []
    others: list[tuple[int, int]] = []
    for end in ends:
        # What an attempt sends beside its end, or after it, is judged in the order in which it was sent.
        is_plain = _is_plain(end) and sent[end.job_id] == 1
        (plain if is_plain else others).append((end.job_id, end.attempt))
    ended, rest = db.fence(ledger.now, worker, plain, others)
    ledger.all_moved(ended, JobState.RUNNING, JobState.SUCCEEDED)
    owned = {(job.id, job.attempt): job for job in (*ended, *rest)}
    return owned, {(job.id, job.attempt) for job in ended}


def _is_plain(end: End) -> bool:
    """Whether nothing that it brings can stand in the way of its success."""
    return (
        isinstance(end, Settlement)
        and end.state is JobState.SUCCEEDED
        and not has_children(end.effects)
        and not end.effects.is_conditional
    )


def _written(db: Database, ledger: Ledger, job: Owned, end: End, accepted: Accepted) -> End:
    """The end itself, or another one where something stands in the way of what it brings."""
    unknown = _unknown_stage(ledger, job, end) if has_children(end.effects) else None
    if unknown is not None:
        error = f"its run was started without a stage {unknown!r}: the pipeline has changed; start a new run"
        return _refusal(end, error, f"no stage {unknown!r} in its run")
    if not end.effects.is_conditional:
        return end
    if are_kept(db, end.effects, [each.effects for each, _ in accepted.ends]):
        return end
    if isinstance(end, Settlement) and end.otherwise is not None:
        return replace(end.otherwise, effects=uncommitted(end.effects))
    return _refusal(end, OVERTAKEN.error, OVERTAKEN.cause)


def _unknown_stage(ledger: Ledger, job: Owned, end: End) -> str | None:
    known = ledger.stages(job.run_id)
    return next((child.stage for child in end.effects.children if child.stage not in known), None)


def _refusal(end: End, error: str, cause: str) -> Settlement:
    return Settlement(
        end.job_id,
        end.attempt,
        JobState.QUARANTINED,
        spends_try=True,
        reason="data",
        error=error,
        cause=cause,
        effects=uncommitted(end.effects),
    )


def settle(db: Database, ledger: Ledger, actor: str, accepted: Accepted) -> None:
    """Write the ends of attempts that own their jobs, with all their effects."""
    if accepted.flushes:
        flushes = [(*each, each[0] in accepted.renewed) for each in accepted.flushes.items()]
        db.do("note_flushes", flushes=to_json(flushes))
    succeeded: list[Owned] = []
    others: list[tuple[Settlement, Owned]] = []
    for end, job in accepted.unsettled:
        if end.state is JobState.SUCCEEDED:
            succeeded.append(job)
        else:
            others.append((end, job))
    others, escalated = judge(db, ledger, others)
    for end, job in others:
        ledger.moved(job.run_id, job.stage, JobState.RUNNING, end.state)
    if succeeded:
        db.succeed(ledger.now, actor, succeeded)
        ledger.all_moved(succeeded, JobState.RUNNING, JobState.SUCCEEDED)
    if others:
        _settle_others(db, ledger, actor, others)
        note_failures(db, ledger, others, escalated)
    add_effects(db, ledger, actor, accepted.ends)
    _close_hosts(db, ledger, others)


def _settle_others(
    db: Database, ledger: Ledger, actor: str, ends: Sequence[tuple[Settlement, Owned]]
) -> None:
    rows = [
        (e.job_id, e.attempt, e.state, e.delay_s, int(e.spends_try), int(e.is_throttle))
        for e, _ in ends
    ]
    db.do("settle_if_running", now=ledger.now, ends=to_json(rows))
    note_host_waits(db, [end for end, _ in ends])
    for end, job in ends:
        about = (job.source_id, job.run_id, job.id, end.attempt, actor)
        ledger.journal(_event(end), *about, worker=actor)
        if end.state is JobState.WAITING and (end.is_throttle or end.spends_try):
            ledger.count(job.run_id, "throttled" if end.is_throttle else "retried", 1)
        if end.skip:
            ledger.count(job.run_id, _SKIPPED[end.skip], 1)


_ENDS: Mapping[JobState, type[AttemptEnd]] = {
    JobState.QUEUED: JobReleased,
    JobState.SKIPPED: JobSkipped,
    JobState.QUARANTINED: JobQuarantined,
    JobState.CANCELLED: JobCancelled,
}


def _event(end: Settlement) -> AttemptEnd:
    why = (end.reason, end.error, end.host or end.closes_host)
    if end.state is not JobState.WAITING:
        return _ENDS[end.state](*why)
    kind = JobThrottled if end.is_throttle else JobRetryScheduled if end.spends_try else JobSnoozed
    return kind(*why, round(end.delay_s, 3), end.gate)


def _close_hosts(db: Database, ledger: Ledger, ends: Sequence[tuple[Settlement, Owned]]) -> None:
    closing = [(end, job) for end, job in ends if end.closes_host]
    for end, _ in sorted(closing, key=lambda pair: pair[0].closes_host):
        until = ledger.now + end.closes_for_s
        db.do("close_host", host=end.closes_host, until=until, reason=end.reason)
    for end, job in sorted(closing, key=lambda pair: pair[1].source_id):
        until = ledger.now + end.closes_for_s
        db.do("cool_down", id=job.source_id, until=until, reason=end.reason)
