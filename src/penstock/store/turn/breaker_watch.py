"""What a turn tells the breakers of sources.

What goes well is counted in memory, and told only with something that failed, or while others count it:
a source that is well costs a turn nothing. Rows are locked in the order of their keys, after jobs and
before hosts and sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from penstock.gates import adaptive
from penstock.gates.adaptive import AdaptiveLevel, feel
from penstock.gates.breaker import (
    PARTS,
    Breaker,
    Bucket,
    Tally,
    follow,
    half_open,
    is_excused,
    part_of,
)
from penstock.gates.lane import Lane, LaneLimits, limits_for
from penstock.jobs.job import AGEING_S, JobState, Owned
from penstock.jobs.outcome import Flush, Settlement
from penstock.journal.source_events import SourceConcurrencyLowered, SourceConcurrencyRestored
from penstock.settings.values import BreakerSettings
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger

if TYPE_CHECKING:
    from penstock.store.turn.settlement import Accepted
from penstock.store.breaker_rows import (
    HOST_RULE,
    REASON_LENGTH,
    SOURCE,
    chance_of,
    locked_breakers,
    write_breakers,
)

# Which jobs touch their source, and what their failures say of it: that it can't be had now, or that it was
# there and answered.
_BAD = frozenset({"transient", "timeout"})
_TOUCHING = frozenset({"run", "page"})
_ANSWERED = frozenset({"permanent", "data", "auth"})
# So often a job may fail at an open breaker without losing a try. A source that is away for hours stays
# within it; a page that is broken by itself, and is all that is left to try, comes to an end.
EXCUSES = 10
EXCUSES_ANSWERED = 2
# Who failed at an open breaker comes after all that is queued with a priority up to this.
BEHIND = 10


@dataclass(slots=True)
class _Seen:
    """What became of a source's jobs in one turn."""

    ok: int = 0
    failed: int = 0
    again: int = 0
    away: int = 0
    away_s: float = 0.0
    reason: str = ""
    is_answer: bool = True
    run_id: int = 0
    felt: adaptive.RoundResults = field(default_factory=adaptive.RoundResults)


@dataclass(slots=True)
class _Pages:
    """The pages of one stage of a run that went well in one turn."""

    source_id: int
    count: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Watch:
    """What a worker's store remembers of sources: what went well and was not told, and how they are."""

    keys: dict[int, str] = field(default_factory=dict)
    well: dict[int, dict[int, int]] = field(default_factory=dict)
    told_until: dict[int, float] = field(default_factory=dict)
    pulses: dict[int, AdaptiveLevel] = field(default_factory=dict)
    levels: dict[int, float | None] = field(default_factory=dict)
    pending: dict[int, float | None] = field(default_factory=dict)
    # Runs that are served from snapshots: what becomes of their jobs says nothing about the source.
    offline: set[int] = field(default_factory=set)

    def look(self, lanes: Iterable[Lane]) -> None:
        """Remember of these lanes what the next turns need."""
        for lane in lanes:
            breaker = lane.breaker
            if breaker is None:
                self.told_until.pop(lane.source_id, None)
            else:
                is_closed = breaker.state == "closed"
                self.told_until[lane.source_id] = breaker.counts_until if is_closed else inf
            if lane.source_id not in self.pending:
                self.levels[lane.source_id] = lane.level
            for head in lane.heads:
                if head.unit != "candidate" and head.slot == "candidate":
                    self.offline.add(head.run_id)


def weigh(
    db: Database,
    ledger: Ledger,
    watch: Watch,
    limits: Mapping[int, LaneLimits],
    accepted: Accepted,
) -> None:
    """Take in what ended: breakers open and close, and what failed at one that is open is no try."""
    seen = _seen(watch, accepted, limits)
    if not seen:
        return
    now = ledger.now
    told: dict[int, tuple[_Seen, BreakerSettings]] = {}
    for source_id, each in seen.items():
        own = limits_for(source_id, limits)
        if own.adaptive:
            _feel(watch, ledger, source_id, each.felt, own.concurrency)
        until = watch.told_until.get(source_id, 0.0)
        rule = own.breaker or (HOST_RULE if until == inf else None)
        if rule is None:
            continue
        if each.ok:
            _count_well(watch, source_id, part_of(rule, now), each.ok)
        is_tried = each.again and until == inf
        if each.failed or each.away or is_tried or (each.ok and until > now):
            told[source_id] = (each, rule)
    if told:
        _excuse(db, ledger, accepted, _tell(db, ledger, watch, limits, told))


def _seen(watch: Watch, accepted: Accepted, limits: Mapping[int, LaneLimits]) -> dict[int, _Seen]:
    found: dict[int, _Seen] = {}
    # Pages that went well come by the thousand: they are added up first.
    pages: dict[tuple[int, str], _Pages] = {}
    for end, job in accepted.ends:
        if isinstance(end, Flush):
            # A stream never succeeds, but what it brings says that its source is there.
            if end.is_progress and job.run_id not in watch.offline:
                _note_well(found.setdefault(job.source_id, _Seen()), job.run_id, 1)
        elif end.unit == "page" and end.state is JobState.SUCCEEDED:
            these = pages.get((job.run_id, job.stage))
            if these is None:
                these = pages[job.run_id, job.stage] = _Pages(job.source_id)
            these.count += 1
            these.seconds += end.took_s
        elif end.unit in _TOUCHING and job.run_id not in watch.offline:
            _note(found.setdefault(job.source_id, _Seen()), end, job)
    for (run_id, stage), these in pages.items():
        if run_id in watch.offline:
            continue
        seen = found.setdefault(these.source_id, _Seen())
        _note_well(seen, run_id, these.count)
        own = limits_for(these.source_id, limits)
        # Where there is a rate, the wait for a place is in the time that a job takes.
        if own.adaptive and not own.rate_per_s:
            seen.felt.took(stage, these.count, these.seconds)
    return found


def _note_well(seen: _Seen, run_id: int, count: int) -> None:
    seen.ok += count
    seen.felt.ok += count
    seen.run_id = run_id


def _note(seen: _Seen, end: Settlement, job: Owned) -> None:
    says = verdict_on(end)
    if says == "away":
        seen.away += 1
        seen.away_s = max(seen.away_s, end.closes_for_s)
        seen.reason = end.reason
    elif says == "failed":
        if end.is_again:
            seen.again += 1
        else:
            seen.failed += 1
        seen.felt.failed += 1
        seen.is_answer = seen.is_answer and end.is_answer
        seen.reason = end.error[:REASON_LENGTH]
    elif says == "ok":
        seen.ok += 1
        seen.felt.ok += 1
    else:
        return
    seen.run_id = job.run_id


def verdict_on(end: Settlement) -> str:
    """What an end says of its source: ok, failed, away (turned away at a host), or nothing."""
    if end.state is JobState.SUCCEEDED:
        return "ok"
    if end.gate == "breaker":
        return "away"
    if not end.spends_try:
        return ""
    if end.reason in _BAD:
        return "failed"
    return "ok" if end.reason in _ANSWERED else ""


def _count_well(watch: Watch, source_id: int, part: int, count: int) -> None:
    parts = watch.well.setdefault(source_id, {})
    parts[part] = parts.get(part, 0) + count
    if len(parts) > PARTS + 1:
        del parts[min(parts)]


def _tell(
    db: Database,
    ledger: Ledger,
    watch: Watch,
    limits: Mapping[int, LaneLimits],
    told: Mapping[int, tuple[_Seen, BreakerSettings]],
) -> dict[int, Breaker]:
    """Bring the breakers of these sources up to date; answers with what they are now."""
    now, keys = ledger.now, source_keys(db, watch, told)
    before = locked_breakers(db, now, keys.values())
    after: dict[str, Breaker] = {}
    found: dict[int, Breaker] = {}
    for source_id, (seen, rule) in told.items():
        key, cap = keys[source_id], limits_for(source_id, limits).concurrency
        well = watch.well.pop(source_id, {})
        buckets: list[Bucket] = [(part, ok, 0) for part, ok in well.items()]
        if seen.failed:
            buckets.append((part_of(rule, now), 0, seen.failed))
        about = (seen.away, seen.away_s, seen.reason, seen.ok > 0, seen.again, seen.is_answer)
        tally = Tally(tuple(buckets), *about)
        breaker = follow(before[key], tally, rule, cap, now, chance_of(key, now))
        after[key] = found[source_id] = breaker
        watch.told_until[source_id] = breaker.counts_until if breaker.state == "closed" else inf
    owners = {keys[source_id]: (source_id, seen.run_id) for source_id, (seen, _) in told.items()}
    write_breakers(db, ledger, before, after, owners)
    return found


def _excuse(
    db: Database, ledger: Ledger, accepted: Accepted, breakers: Mapping[int, Breaker]
) -> None:
    """What failed because its source can't be had goes back to its queue, and has lost no try.

    Behind the others: another job is the next to try, so that one which fails by its own fault can't keep
    the breaker open. Into the queue and not into a wait: an operator who closes the breaker means all.
    """
    excused: dict[int, Settlement] = {}
    behind: dict[int, Settlement] = {}
    for end, job in accepted.unsettled:
        breaker = breakers.get(job.source_id)
        if breaker is None or not is_excused(breaker) or end.is_final:
            continue
        says = verdict_on(end)
        if says == "failed":
            behind[job.id] = end
        elif says == "away":
            excused[id(end)] = _again(end)
    if behind:
        ids = to_json(sorted(behind))
        excuses = dict(db.json("excuses", ids=ids))
        for job_id, end in behind.items():
            if excuses.get(job_id, 0) < (EXCUSES_ANSWERED if end.is_answer else EXCUSES):
                excused[id(end)] = replace(_again(end), is_throttle=True)
        db.do("put_behind", ids=ids, rank=ledger.now + BEHIND * AGEING_S)
    if excused:
        accepted.unsettled = [(excused.get(id(end), end), job) for end, job in accepted.unsettled]
        accepted.ends = [(excused.get(id(end), end), job) for end, job in accepted.ends]


def _again(end: Settlement) -> Settlement:
    return replace(end, state=JobState.QUEUED, spends_try=False, delay_s=0.0, cause="")


def begin_tries(db: Database, ledger: Ledger, watch: Watch, lanes: Sequence[Lane]) -> bool:
    """Write down which of these lanes are tried again, and whether any is; before they are locked."""
    now = ledger.now
    due = [
        lane.source_id
        for lane in lanes
        if lane.breaker is not None
        and lane.breaker.state == "open"
        and lane.breaker.opens_at <= now
    ]
    if not due:
        return False
    keys = source_keys(db, watch, due)
    before = locked_breakers(db, now, keys.values())
    after = {key: half_open(breaker, now) for key, breaker in before.items()}
    write_breakers(
        db, ledger, before, after, {keys[source_id]: (source_id, 0) for source_id in due}
    )
    return True


def _feel(
    watch: Watch, ledger: Ledger, source_id: int, seen: adaptive.RoundResults, cap: int
) -> None:
    known = watch.levels.get(source_id)
    before = float(cap) if known is None else min(known, float(cap))
    pulse = watch.pulses.get(source_id)
    if pulse is None:
        pulse = watch.pulses[source_id] = AdaptiveLevel(before)
    elif int(pulse.level) != int(before):
        pulse.level = before  # somebody else has changed it
    level = feel(pulse, seen, cap, ledger.now)
    if int(level) == int(before):
        return
    watch.levels[source_id] = watch.pending[source_id] = level if level < cap else None
    if level < before:
        ledger.journal(SourceConcurrencyLowered(int(level), int(before), pulse.trouble), source_id)
    elif level >= cap:
        ledger.journal(SourceConcurrencyRestored(cap), source_id)


def write_levels(db: Database, watch: Watch, accepted: Accepted) -> None:
    """Tell the others how many jobs at once their sources bear.

    Not in a turn that cools sources down: they are locked there in an order of their own.
    """
    if not watch.pending or any(end.closes_host for end, _ in accepted.unsettled):
        return
    db.do("set_levels", levels=to_json(sorted(watch.pending.items())))
    watch.pending.clear()


def source_keys(db: Database, watch: Watch, source_ids: Iterable[int]) -> dict[int, str]:
    """The keys of these sources' breakers; a source never changes its own."""
    unknown = sorted(set(source_ids) - watch.keys.keys())
    if unknown:
        for source_id, key in db.json("source_keys", ids=to_json(unknown)):
            watch.keys[source_id] = SOURCE + key
    return {source_id: watch.keys[source_id] for source_id in source_ids}
