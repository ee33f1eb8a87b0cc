"""Health: a source whose runs fail one after the other is degraded, and runs probes only until they go well.

Judged in the transaction that ends a run, from how it ended and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from penstock.jobs.probe import STATES, ProbeResult, is_good, verdict_of
from penstock.jobs.run import RunKind, RunOptions, RunState, StageCount
from penstock.jobs.run_policy import policy_of
from penstock.journal.event import Event
from penstock.journal.source_events import SourceDegraded, SourceRecovered
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger

_SEEN = ("would_save", "rejected", "throttled", "slow")


class HealthRow(msgspec.Struct, frozen=True):
    """How a source's last runs ended. `bad_run_id` is the last one counted: ended again, it counts once."""

    bad_runs: int = 0
    bad_run_id: int | None = None
    good_probes: int = 0
    degraded_at: float | None = None
    degraded_reason: str = ""


class RunEnd(msgspec.Struct, frozen=True):
    """A run that ends in this transaction."""

    source_id: int
    run_id: int
    kind: RunKind
    options: RunOptions
    state: RunState
    reason: str
    is_good_probe: bool = False


def note_probes(db: Database, seen: Mapping[int, Mapping[str, int]]) -> None:
    """Write what attempts of probes have seen, by run."""
    rows = [
        (run_id, *(found.get(name, 0) for name in _SEEN)) for run_id, found in sorted(seen.items())
    ]
    if rows:
        db.do("note_probes", probes=to_json(rows))


def end_of_probe(
    db: Database, run_id: int, counts: Mapping[str, StageCount], state: RunState, reason: str
) -> tuple[RunState, str, bool]:
    """The state that a probe ends in, its verdict in words, and whether it speaks for its source."""
    if state is RunState.CANCELLED:
        return state, "", False
    if reason == "budget":
        return RunState.PARTIAL, "degraded: its budget is exhausted", False
    seen = msgspec.convert(db.json("probe", run_id=run_id) or {}, ProbeResult)
    failed = sum(count.quarantined for count in counts.values())
    if failed:
        error = str(db.value("first_error_of_run", run_id=run_id) or "")
        seen = replace(seen, failed=failed, error=error.partition("\n")[0][:200])
    verdict, words = verdict_of(seen)
    return STATES[verdict], words, is_good(seen)


def note_ends(db: Database, ledger: Ledger, ends: Sequence[RunEnd]) -> None:
    """Count what these ends say of their sources' health."""
    for end in sorted(ends, key=lambda each: (each.source_id, each.run_id)):
        counts = policy_of(end.kind).health != "none" and end.state is not RunState.CANCELLED
        if counts and not _is_of_the_rest(end):
            _note_end(db, ledger, end)


def _is_of_the_rest(end: RunEnd) -> bool:
    """Whether it failed with nothing but what an earlier run had left.

    That was chosen for having failed, mostly, and was counted there. `retry --failed` of the same jobs would
    have left their run partial.
    """
    return end.options.continues is not None and end.state is RunState.FAILED


def _note_end(db: Database, ledger: Ledger, end: RunEnd) -> None:
    is_bad = end.state is RunState.FAILED and not policy_of(end.kind).is_probe
    text = db.json("health_to_change", source_id=end.source_id)
    if text is None:
        if not is_bad:
            return  # nothing is held against it
        db.do("add_health", source_id=end.source_id)
        text = db.json("health_to_change", source_id=end.source_id)
    before = _of_version(db, msgspec.convert(text, HealthRow), end)
    after = judged(before, end, ledger.now)
    if after == before:
        return
    db.do("set_health", source_id=end.source_id, **msgspec.structs.asdict(after))
    if before.degraded_at is None and after.degraded_at is not None:
        _tell(db, ledger, end, _degraded(after.bad_runs, end))
    elif before.degraded_at is not None and after.degraded_at is None:
        _tell(db, ledger, end, SourceRecovered(good_run=end.run_id))


def _of_version(db: Database, health: HealthRow, end: RunEnd) -> HealthRow:
    """What failed with another version of the pipeline says nothing about this one."""
    if health.bad_run_id is None or health.degraded_at is not None:
        return health
    versions = db.json("pipeline_versions", ids=to_json(sorted({health.bad_run_id, end.run_id})))
    is_same = len(set(versions.values())) < 2
    return health if is_same else replace(health, bad_runs=0, bad_run_id=None)


def judged(health: HealthRow, end: RunEnd, now: float) -> HealthRow:
    """What a source's health is after this end."""
    if policy_of(end.kind).is_probe:
        return _after_probe(health, end)
    if end.state is RunState.COMPLETED:
        return HealthRow()
    if end.state is RunState.PARTIAL:
        return replace(health, bad_runs=0, bad_run_id=None)
    if end.options.is_tried or health.bad_run_id == end.run_id:
        return health
    health = replace(health, bad_runs=health.bad_runs + 1, bad_run_id=end.run_id)
    most = end.options.degrade_after
    if health.degraded_at is not None or not most or health.bad_runs < most:
        return health
    words = _degraded(health.bad_runs, end).sentence()
    return replace(health, degraded_at=now, degraded_reason=words, good_probes=0)


def _degraded(failed_runs: int, end: RunEnd) -> SourceDegraded:
    return SourceDegraded(failed_runs, end.run_id, end.reason)


def _after_probe(health: HealthRow, end: RunEnd) -> HealthRow:
    if health.degraded_at is None:
        return health
    good = health.good_probes + 1 if end.is_good_probe else 0
    return HealthRow() if good >= end.options.good_probes else replace(health, good_probes=good)


def _tell(db: Database, ledger: Ledger, end: RunEnd, event: Event) -> None:
    ledger.journal(event, end.source_id, end.run_id)
    data = to_json({"run": end.run_id, "reason": event.sentence()})
    signals = [(event.kind, data, end.source_id, end.run_id)]
    db.do("add_signals", now=ledger.now, signals=to_json(signals))
