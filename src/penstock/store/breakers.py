"""Breakers as they are kept: one row for each source or host that failed, told by all workers.

What goes well is counted in memory, and told only with something that failed, or while others count it:
a source that is well costs a turn nothing. Rows are locked in the order of their keys, after jobs and
before hosts and sources.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from penstock.errors import UsageError, nearest
from penstock.gates import adaptive
from penstock.gates.adaptive import Pulse, feel
from penstock.gates.breaker import (
    HOST_RAMP,
    PARTS,
    Breaker,
    Bucket,
    Tally,
    close,
    follow,
    half_open,
    is_excused,
    part_of,
    ramp_at,
    state_at,
)
from penstock.gates.lane import Lane, LaneLimits, limits_for
from penstock.gates.rates import Verdict
from penstock.jobs.job import AGEING_S, JobState, Owned
from penstock.jobs.outcome import Flush, Settlement
from penstock.journal.source_events import (
    BreakerClosed,
    BreakerEvent,
    BreakerHalfOpen,
    BreakerOpened,
    SourceConcurrencyLowered,
    SourceConcurrencyRestored,
)
from penstock.settings.values import BreakerSettings
from penstock.store.database import Database, to_json
from penstock.store.ledger import Ledger

if TYPE_CHECKING:
    from penstock.store.settling import Accepted

SOURCE, HOST = "source:", "host:"
_USUAL_PORT = re.compile(r":(80|443)$")
# For hosts that have no numbers of their own.
HOST_RULE = BreakerSettings()
# Which jobs touch their source, and what their failures say of it: that it can't be had now, or that it was
# there and answered.
_BAD = frozenset({"transient", "timeout"})
_TOUCHING = frozenset({"run", "page"})
_ANSWERED = frozenset({"permanent", "data", "auth"})
# So often a job may fail at an open breaker without losing a try. A source that is away for hours stays
# within it; a page that is broken by itself, and is all that is left to try, comes to an end.
EXCUSES = 10
EXCUSES_ANSWERED = 2
# A request that was let through to a host that is tried is given up after so long.
TRYING_S = 120.0
# Whoever comes while others are trying a host asks again after so long.
ASK_AGAIN_S = 5.0
REASON_LENGTH = 300
# Who failed at an open breaker comes after all that is queued with a priority up to this.
BEHIND = 10


class BreakerRow(msgspec.Struct, frozen=True):
    """A breaker as it is seen at one moment; what is open and whose time has come is half-open."""

    key: str
    state: str
    since: float
    opens_at: float
    opened_at: float
    counts_until: float
    trips: int
    ramp: int
    buckets: list[tuple[int, int, int]]
    reason: str

    @property
    def kind(self) -> str:
        return self.key.partition(":")[0]

    @property
    def name(self) -> str:
        return self.key.partition(":")[2]


class HostTold(NamedTuple):
    """What became of requests to a host: what went well, how long ago, and how many failed.

    `back` of them were let through to a host that was tried, and are over. It is weighed by `rule`.
    """

    well: Sequence[tuple[float, int]] = ()
    failed: int = 0
    back: int = 0
    reason: str = ""
    is_answer: bool = False
    rule: BreakerSettings = HOST_RULE


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
    felt: adaptive.Seen = field(default_factory=adaptive.Seen)


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
    pulses: dict[int, Pulse] = field(default_factory=dict)
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


# In the turn: before anything of what ended is written.


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
    before = _locked(db, now, keys.values())
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
    _write(db, ledger, before, after, owners)
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


def begin_tries(db: Database, ledger: Ledger, watch: Watch, lanes: Sequence[Lane]) -> None:
    """Write down that these lanes are tried again; before they are locked."""
    now = ledger.now
    due = [
        lane.source_id
        for lane in lanes
        if lane.breaker is not None
        and lane.breaker.state == "open"
        and lane.breaker.opens_at <= now
    ]
    if not due:
        return
    keys = source_keys(db, watch, due)
    before = _locked(db, now, keys.values())
    after = {key: half_open(breaker, now) for key, breaker in before.items()}
    _write(db, ledger, before, after, {keys[source_id]: (source_id, 0) for source_id in due})


# Adaptive concurrency.


def _feel(watch: Watch, ledger: Ledger, source_id: int, seen: adaptive.Seen, cap: int) -> None:
    known = watch.levels.get(source_id)
    before = float(cap) if known is None else min(known, float(cap))
    pulse = watch.pulses.get(source_id)
    if pulse is None:
        pulse = watch.pulses[source_id] = Pulse(before)
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


# Rows.


def source_keys(db: Database, watch: Watch, source_ids: Iterable[int]) -> dict[int, str]:
    """The keys of these sources' breakers; a source never changes its own."""
    unknown = sorted(set(source_ids) - watch.keys.keys())
    if unknown:
        for source_id, key in db.json("source_keys", ids=to_json(unknown)):
            watch.keys[source_id] = SOURCE + key
    return {source_id: watch.keys[source_id] for source_id in source_ids}


def _locked(db: Database, now: float, keys: Iterable[str]) -> dict[str, Breaker]:
    """These breakers, as they stay until the transaction ends; a new one is closed."""
    wanted = sorted(set(keys))
    present = set(db.json("present_breakers", keys=to_json(wanted)))
    found = _found(db, wanted) if present.issuperset(wanted) else {}
    for key in wanted:
        # One by one: what is new is locked as it is added, and must not be before what comes first.
        if key not in found:
            found |= _found(db, [key]) if key in present else {}
        if key not in found:
            db.do("add_breaker", key=key, now=now)
            found |= _found(db, [key])
    return found


def _found(db: Database, keys: Sequence[str]) -> dict[str, Breaker]:
    rows = db.json("lock_breakers", keys=to_json(keys))
    return {key: _breaker(*row) for key, row in rows.items()}


def _breaker(
    state: Any,
    since: float,
    opens_at: float,
    opened_at: float,
    counts_until: float,
    trips: int,
    ramp: int,
    buckets: list[tuple[int, int, int]],
    reason: str,
    trying: int,
    trying_until: float,
    in_a_row: int,
) -> Breaker:
    parts = tuple((part, ok, failed) for part, ok, failed in buckets)
    about = (opened_at, counts_until, trips, ramp, parts, reason, trying, trying_until, in_a_row)
    return Breaker(state, since, opens_at, *about)


def _write(
    db: Database,
    ledger: Ledger,
    before: Mapping[str, Breaker],
    after: Mapping[str, Breaker],
    owners: Mapping[str, tuple[int, int]],
    actor: str = "",
) -> None:
    """Write what has changed; a change of state is an event, and the end of an outage a signal."""
    changed = [(key, each) for key, each in sorted(after.items()) if each != before[key]]
    if not changed:
        return
    db.do("set_breakers", breakers=to_json([_row(key, each) for key, each in changed]))
    signals = []
    for key, each in changed:
        was = before[key]
        is_put_off = each.state == "open" and was.state != "closed" and each.trips == was.trips
        if (each.state, each.since) == (was.state, was.since) or (is_put_off and not actor):
            continue
        source_id, run_id = owners.get(key, (None, 0))
        event = _event(key, was, each, ledger.now)
        ledger.journal(event, source_id, actor=actor)
        if each.state == "closed" and source_id is not None:
            data = missed_window(key.removeprefix(SOURCE), was.opened_at, ledger.now)
            signals.append((event.kind, to_json(data), source_id, run_id))
    if signals:
        db.do("add_signals", now=ledger.now, signals=to_json(signals))


def _row(key: str, each: Breaker) -> tuple[object, ...]:
    return (
        *(key, each.state, each.since, each.opens_at, each.opened_at, each.counts_until),
        *(each.trips, each.ramp, to_json(each.buckets), each.reason[: 2 * REASON_LENGTH]),
        *(each.trying, each.trying_until, each.in_a_row),
    )


def _event(key: str, was: Breaker, each: Breaker, now: float) -> BreakerEvent:
    host = key.removeprefix(HOST) if key.startswith(HOST) else ""
    if each.state == "open":
        return BreakerOpened(host, each.reason, round(each.opens_at - now, 3))
    if each.state == "half-open":
        return BreakerHalfOpen(host, round(now - was.since, 3))
    return BreakerClosed(host, each.reason, round(now - was.opened_at, 3))


def missed_window(source: str, start_at: float, end_at: float) -> dict[str, object]:
    """What the signal `breaker.closed` says: in this stretch of time nothing was fetched from the source."""
    return {"source": source, "start_at": start_at, "end_at": end_at}


def chance_of(key: str, now: float) -> float:
    """A number between 0 and 1 that is another for everyone, and the same when all is done again."""
    digest = hashlib.blake2b(f"{key} {now!r}".encode(), digest_size=6).digest()
    return int.from_bytes(digest) / 2.0**48


class Breakers:
    """The verbs of breakers: looking, an operator's hand, and what requests tell of hosts."""

    _db: Database

    def breakers(self) -> list[BreakerRow]:
        """Every breaker that there is, as it is now."""
        found = self._db.decoded("breakers", list[BreakerRow])
        now = self._db.now()
        return [
            replace(row, state="half-open", ramp=1) if _is_due(row, now) else row for row in found
        ]

    def open_breaker(self, key: str, for_s: float, actor: str, reason: str) -> bool:
        """Let nothing pass for so long, then try with care; True if it was not open before."""
        with self._db.writing() as now:
            before = _locked(self._db, now, [key])
            was = before[key]
            is_new = state_at(was, now) != "open"
            opened_at = now if was.state == "closed" else was.opened_at
            text = f"opened by {actor}" + (f": {reason}" if reason else "")
            made = Breaker("open", now, now + for_s, opened_at, 0.0, max(1, was.trips), reason=text)
            self._act(now, before, {key: made}, actor)
        return is_new

    def close_breaker(self, key: str, actor: str, reason: str) -> bool:
        """Let everything pass; False if it was closed, or never there."""
        with self._db.writing() as now:
            before = _found(self._db, [key])
            if key not in before or before[key].state == "closed":
                return False
            text = f"closed by {actor}" + (f": {reason}" if reason else "")
            self._act(now, before, {key: close(before[key], now, text)}, actor)
        return True

    def _act(
        self, now: float, before: Mapping[str, Breaker], after: Mapping[str, Breaker], actor: str
    ) -> None:
        ledger = Ledger(self._db, now)
        known: dict[str, int] = self._db.json("source_ids")
        owners = {
            key: (known[key.removeprefix(SOURCE)], 0)
            for key in after
            if key.removeprefix(SOURCE) in known
        }
        _write(self._db, ledger, before, after, owners, actor)
        ledger.write()

    def breaker_key(self, name: str, source: str) -> str:
        """The key of the breaker that is meant: a source's by its own key, else a host's.

        A host that has not failed yet is named by its key, `host:cdn.example.com`; the usual ports are
        not part of it, because requests do not name them either.
        """
        known: dict[str, int] = self._db.json("source_ids")
        if source in known:
            return SOURCE + source
        kind, _, rest = name.partition(":")
        if kind == "source" and rest in known:
            return name
        host = _USUAL_PORT.sub("", rest if kind == "host" else name)
        if kind == "host" and host.partition(":")[0]:
            return HOST + host
        hosts = {row.name: row.key for row in self.breakers() if row.kind == "host"}
        if host in hosts:
            return hosts[host]
        raise UsageError(f"there is no source or host {name!r}", nearest(name, [*known, *hosts]))

    # Hosts.

    def watched_hosts(self) -> dict[str, tuple[str, float]]:
        """Hosts that requests must ask about, or whose successes are to be told: state, and opens when."""
        found: dict[str, tuple[str, float]] = self._db.json("watched_hosts", now=self._db.now())
        return {host: (state, opens_at) for host, (state, opens_at) in found.items()}

    def note_hosts(self, told: Mapping[str, HostTold]) -> dict[str, tuple[str, float]]:
        """What became of requests to these hosts; answers with the hosts to be watched from now on."""
        with self._db.writing() as now:
            keys = {HOST + host: each for host, each in told.items()}
            before = _locked(self._db, now, keys)
            after = {key: _after(before[key], key, each, now) for key, each in keys.items()}
            ledger = Ledger(self._db, now)
            _write(self._db, ledger, before, after, {})
            ledger.write()
        return self.watched_hosts()

    def admit_hosts(self, hosts: Sequence[str]) -> list[Verdict]:
        """May these requests go out, as far as their hosts' breakers go? One verdict for each.

        To a host that is tried again as many are let through as its ramp says, over all workers.
        """
        with self._db.writing() as now:
            before = _found(self._db, sorted({HOST + host for host in hosts}))
            after = dict(before)
            verdicts = [self._admit(after, HOST + host, now) for host in hosts]
            ledger = Ledger(self._db, now)
            _write(self._db, ledger, before, after, {})
            ledger.write()
        return verdicts

    def _admit(self, breakers: dict[str, Breaker], key: str, now: float) -> Verdict:
        breaker = breakers.get(key)
        if breaker is None or breaker.state == "closed":
            return Verdict(0.0)
        ramp = ramp_at(breaker.state, breaker.opens_at, breaker.ramp, now) or 0
        if not ramp:
            return Verdict(breaker.opens_at - now, "breaker", breaker.reason)
        breaker = half_open(breaker, now)
        trying = breaker.trying if breaker.trying_until > now else 0
        if trying >= ramp:
            return Verdict(ASK_AGAIN_S, "breaker", breaker.reason)
        breakers[key] = changed(breaker, trying=trying + 1, trying_until=now + TRYING_S)
        return Verdict(0.0)


def _after(breaker: Breaker, key: str, told: HostTold, now: float) -> Breaker:
    rule = told.rule
    buckets = [(part_of(rule, now - age_s), count, 0) for age_s, count in told.well]
    if told.failed:
        buckets.append((part_of(rule, now), 0, told.failed))
    if buckets:
        is_well = bool(told.well) and not told.failed
        reason = told.reason[:REASON_LENGTH]
        tally = Tally(tuple(buckets), 0, 0.0, reason, is_well, is_answer=told.is_answer)
        breaker = follow(breaker, tally, rule, HOST_RAMP, now, chance_of(key, now))
    if breaker.state != "half-open":
        return breaker
    return changed(breaker, trying=max(0, breaker.trying - told.back))


def _is_due(row: BreakerRow, now: float) -> bool:
    return row.state == "open" and row.opens_at <= now
