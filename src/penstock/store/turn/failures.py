"""Failures as a turn settles them: which are not tried again after all, and which causes come up again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from penstock.counting import count
from penstock.jobs.causes import CAUSE_BYTES, ENOUGH, PASSING, in_words
from penstock.jobs.job import AGEING_S, JobState, Owned
from penstock.jobs.outcome import Settlement
from penstock.jobs.run_policy import policy_of
from penstock.journal.source_events import CauseEscalated
from penstock.store.database import Database, bounded_text, to_json
from penstock.store.ledger import Ledger

Ends = list[tuple[Settlement, Owned]]


def judge(db: Database, ledger: Ledger, ends: Ends) -> tuple[Ends, set[int]]:
    """These ends, those of them quarantined that would be tried again in vain; and whose cause is escalated.

    In vain is a try for a cause that has quarantined others already, and one that would come when
    nobody has a use for its result any more.
    """
    failed = [(end, job) for end, job in ends if end.error or end.is_throttle]
    if not failed:
        return ends, set()
    escalated = _escalated(db, failed)
    enqueued_at = _enqueued_at(db, failed)
    judged: Ends = []
    for end, job in ends:
        if end.state is JobState.WAITING and (end.error or end.is_throttle):
            # What a breaker spares its try waits for it to close, whatever its cause.
            failures = escalated.get(job.id) if end.spends_try else None
            why = _in_vain(end, failures, enqueued_at.get(job.id), ledger.now)
            if why:
                error = f"{end.error or end.reason} (not tried again: {why})"
                reason = end.reason if end.error else "throttled"
                end = replace(end, state=JobState.QUARANTINED, error=error, reason=reason)
        judged.append((end, job))
    return judged, set(escalated)


def _in_vain(end: Settlement, failures: int | None, enqueued_at: float | None, now: float) -> str:
    if failures is not None:
        return f"{count(failures, 'job')} of this source were quarantined for the same cause, {end.cause}"
    if enqueued_at is None or end.useful_for_s is None:
        return ""
    comes_after_s = now + end.delay_s - enqueued_at
    if comes_after_s <= end.useful_for_s:
        return ""
    useful, late = in_words(end.useful_for_s), in_words(comes_after_s)
    return (
        f"it was useful for {useful}, and the next try would have come {late} after it was enqueued"
    )


def _escalated(db: Database, failed: Ends) -> dict[int, int]:
    """The jobs whose cause is escalated, with how often it has quarantined."""
    wanted = sorted(
        {(job.source_id, job.run_id, cause_of(end)) for end, job in failed if end.cause}
    )
    if not wanted:
        return {}
    found: dict[tuple[int, int, str], tuple[int, bool]] = {}
    for source_id, run_id, cause, failures, noted, succeeded in db.json(
        "escalated_causes", wanted=to_json(wanted)
    ):
        found[source_id, run_id, cause] = (failures, noted == succeeded)
    escalated = {}
    for end, job in failed:
        known = found.get((job.source_id, job.run_id, cause_of(end)))
        # What may pass by itself has passed when a page succeeded since.
        if known is not None and (known[1] or end.reason not in PASSING):
            escalated[job.id] = known[0]
    return escalated


def _enqueued_at(db: Database, failed: Ends) -> dict[int, float]:
    ids = [
        job.id
        for end, job in failed
        if end.useful_for_s is not None and end.state is JobState.WAITING
    ]
    if not ids:
        return {}
    return dict(db.json("enqueued_at", ids=to_json(ids), ageing_s=AGEING_S))


def note_failures(db: Database, ledger: Ledger, ends: Ends, escalated: set[int]) -> None:
    """Write each job's one entry, and what those that were quarantined have in common."""
    failures: list[tuple[object, ...]] = []
    quarantined: Ends = []
    for end, job in ends:
        about = (job.id, end.attempt)
        if end.error:
            is_quarantined = end.state is JobState.QUARANTINED
            marks = (int(is_quarantined), int(is_quarantined and job.id in escalated))
            told = (end.reason, end.error, end.traceback, cause_of(end))
            failures.append((*about, *told, *marks))
            if is_quarantined and end.cause and _counts(ledger, job):
                quarantined.append((end, job))
        elif end.state is JobState.SKIPPED:
            failures.append((*about, end.skip or "skipped", end.reason, ""))
    if failures:
        db.do("note_failures", now=ledger.now, failures=to_json(failures))
    if quarantined:
        _note_causes(db, ledger, quarantined)


def _counts(ledger: Ledger, job: Owned) -> bool:
    """Whether a failure says something of the source: what a replay tries is tried on purpose."""
    return policy_of(ledger.stages(job.run_id)[job.stage].kind).blames_source


def _note_causes(db: Database, ledger: Ledger, quarantined: Ends) -> None:
    counts = Counter((job.source_id, cause_of(end)) for end, job in quarantined)
    rows = {
        (job.source_id, cause_of(end)): (job.run_id, end.reason in PASSING)
        for end, job in sorted(quarantined, key=lambda pair: pair[1].run_id)
    }
    causes = to_json(
        [(*key, run_id, counts[key], passes) for key, (run_id, passes) in rows.items()]
    )
    errors = {(job.source_id, cause_of(end)): end.error for end, job in quarantined}
    signals = []
    db.do("note_causes", now=ledger.now, causes=causes)
    for source_id, cause, failures in sorted(
        db.rows("escalate_causes", now=ledger.now, causes=causes, enough=ENOUGH)
    ):
        db.do("escalate_entries", now=ledger.now, source_id=source_id, cause=cause)
        event = CauseEscalated(cause, failures)
        ledger.journal(event, source_id, actor="penstock")
        run_id, _ = rows[source_id, cause]
        data = {
            "cause": cause,
            "failures": failures,
            "run": run_id,
            "error": errors[source_id, cause],
        }
        signals.append((event.kind, to_json(data), source_id, run_id))
    if signals:
        db.do("add_signals", now=ledger.now, signals=to_json(signals))


def forget_causes(db: Database, job_ids: Sequence[int]) -> None:
    """Somebody sends these jobs back: their causes are counted from the beginning.

    A transaction of its own, before the one that moves jobs: it locks causes, and nothing after them.
    """
    with db.writing():
        db.do("forget_causes", ids=to_json(list(job_ids)))


def cause_of(end: Settlement) -> str:
    """A cause as it is stored."""
    return bounded_text(end.cause, CAUSE_BYTES)
