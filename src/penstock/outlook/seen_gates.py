"""Explaining: every gate between a job and its start, in order, in words, with what opens it.

The gates of the lane are those of the claim, asked in the same way. The others are facts of the claim that
are no gates of a lane: whether anybody works, what state the run and the job are in, whether a worker has
room for it, and whether it is its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from penstock.counting import count
from penstock.errors import Remedy
from penstock.gates.decide import (
    GATES,
    background_of,
    concurrency_of,
    first_closed,
    gates_before,
)
from penstock.gates.lane import Closed, Lane, Slot
from penstock.gates.onboarding import SourceState, cell_words, first_gap, state_of
from penstock.gates.project_terms import HostLimit, hours_setting, outside
from penstock.jobs.job import JobState
from penstock.jobs.run import RunState
from penstock.settings.opening_hours import OpeningHours, hosts_outside
from penstock.shell import command_of

# How the whole stands: it starts in the next turn, it runs, it has ended, there is nothing to do, or it
# waits: for a person, for a time, or for other jobs to end.
Stands = Literal["starts", "running", "ended", "idle", "person", "time", "others"]


class GateSeen(msgspec.Struct, frozen=True, gc=False):
    """A gate at this moment: by what it is closed, since when, when it opens by itself, and what opens it.

    `remedy` is the verb that opens it; `advice` says what to change where no verb does.
    """

    name: str
    is_open: bool
    by: str = ""
    since: float | None = None
    opens_at: float | None = None
    remedy: Remedy | None = None
    advice: str = ""

    @property
    def command(self) -> str:
        """What opens it, as a shell has it; '' if nothing but time does."""
        if self.is_open:
            return ""
        return self.advice or command_of(self.remedy, self.name)


class Held(msgspec.Struct, frozen=True, gc=False):
    scope: str
    at: float
    actor: str
    reason: str


class LaneFacts(msgspec.Struct, frozen=True, gc=False):
    """What is known of a source beyond what the claim asks: since when and why."""

    source: str
    holds: tuple[Held, ...] = ()
    paused_at: float | None = None
    pause_reason: str = ""
    cooldown_reason: str = ""
    breaker_since: float | None = None
    breaker_reason: str = ""


class RunStanding(msgspec.Struct, frozen=True, gc=False):
    id: int
    state: RunState
    source: str
    since: float | None = None
    actor: str = ""
    reason: str = ""
    # Its source is degraded, and it is of a kind that such a source does not run.
    is_refused: bool = False
    # It was stopped by a budget, and continues when the budget resets.
    goes_on_at: float | None = None
    # It is prepared for drains: workers leave it alone.
    for_drains: bool = False
    # The release that performs it, where it is known; such a run is no drain's.
    by_release: str = ""


class JobStanding(msgspec.Struct, frozen=True, gc=False):
    """`due_at` is when it goes on by itself, also from a quarantine that a budget has put it into."""

    id: int
    state: JobState
    since: float
    due_at: float | None = None
    worker: str = ""
    actor: str = ""
    reason: str = ""


def workers_gate(alive: int) -> GateSeen:
    if alive:
        return GateSeen("workers", True, f"{alive} alive")
    return GateSeen("workers", False, "no workers are running")


def drain_gate(run: RunStanding, stage: str, is_drained: bool) -> GateSeen:
    """In the place of that of the workers, for a run that they leave alone."""
    if run.by_release:
        by = f"run {run.id} is performed by release {run.by_release[:12]}"
        if is_drained:
            return GateSeen("drain", True, by)
        return GateSeen(
            "drain", False, f"{by}, and no worker for it runs", remedy=Remedy("service.up")
        )
    if is_drained:
        return GateSeen("drain", True, f"run {run.id} is being drained")
    by = f"run {run.id} is prepared for drains, and none is at work on it"
    return GateSeen("drain", False, by, remedy=Remedy("drain", f"{run.id} {stage}".rstrip()))


def run_gate(run: RunStanding, job: JobStanding | None = None) -> GateSeen:
    """Of a job in quarantine: whatever sends it back opens its run again, unless its source is degraded."""
    if run.goes_on_at is None and run.state in (RunState.QUEUED, RunState.RUNNING):
        return GateSeen("run", True, f"run {run.id} is {run.state}")
    by = _said(run.state, run.actor, run.reason)
    is_active = run.state in (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED)
    if run.is_refused and not is_active:
        by = f"{by}; {run.source} is degraded, and runs probes only"
        resume = Remedy("sources.resume", run.source)
        return GateSeen("run", False, by, run.since, None, resume)
    in_quarantine = job is not None and job.state is JobState.QUARANTINED
    if job is not None and in_quarantine and run.state in (RunState.PARTIAL, RunState.FAILED):
        retry = Remedy("jobs.retry", job.id)
        return GateSeen("run", False, by, run.since, job.due_at, retry)
    if run.goes_on_at is not None:
        by = f"{by}; continues when the budget resets"
        return GateSeen("run", False, by, run.since, run.goes_on_at, Remedy("budgets.list"))
    return GateSeen("run", False, by, run.since, None, _takes_it_up(run))


def _takes_it_up(run: RunStanding) -> Remedy:
    match run.state:
        case RunState.DRAFT:
            return Remedy("runs.begin", run.id)
        case RunState.PAUSED:
            return Remedy("runs.resume", run.id)
        case RunState.COMPLETED:
            return Remedy("runs.start", run.source)
        case _:
            return Remedy("runs.continue_from", run.id)


def job_gate(job: JobStanding) -> GateSeen:
    if job.state is JobState.QUEUED:
        return GateSeen("job", True, f"job {job.id} is queued")
    by = _said(job.state, job.actor, job.reason)
    match job.state:
        case JobState.RUNNING:
            return GateSeen("job", False, f"running in {job.worker}", job.since)
        case JobState.WAITING | JobState.QUARANTINED:
            return GateSeen("job", False, by, job.since, job.due_at, Remedy("jobs.retry", job.id))
        case JobState.HELD:
            return GateSeen("job", False, by, job.since, None, Remedy("jobs.unhold", job.id))
        case _:
            return GateSeen("job", False, by, job.since)


def hours_gates(hours: Mapping[str, OpeningHours], now: float) -> list[GateSeen]:
    """The hosts that may not be asked at this hour, as requests find them."""
    return [
        GateSeen("host", False, outside(host), None, opens_at, advice=hours_setting(host))
        for host, opens_at in hosts_outside(hours, now).items()
    ]


def places_gates(limits: Iterable[HostLimit], held: Mapping[str, float]) -> list[GateSeen]:
    """The hosts whose places for all sources are taken: requests wait there for others to end."""
    found = []
    for limit in limits:
        taken = held.get(limit.host, 0.0)
        if limit.concurrency is not None and taken >= limit.concurrency:
            by = f"{limit.host} has {taken:.0f} of {limit.concurrency} requests, of all sources"
            setting = f"hosts.{limit.host}.concurrency"
            found.append(GateSeen("host", False, by, advice=setting))
    return found


_OPEN = {name: GateSeen(name, True) for name in GATES}
# The gate of a source that is in another cell: told where it is closed, and nowhere else.
CELL = "cell"
_ALL_OPEN = [gate for name, gate in _OPEN.items() if name != CELL]
# The gates of a source that is onboarded; nobody else is told of them.
ONBOARDING = ("legal_hold", "lifecycle", "compliance")
_USUAL_OPEN = [gate for gate in _ALL_OPEN if gate.name not in ONBOARDING]


def lane_gates(lane: Lane, slot: Slot, facts: LaneFacts, now: float) -> Sequence[GateSeen]:
    """The gates that the claim asks, each with what is known of it."""
    if first_closed(lane, slot, now) is None:
        return _ALL_OPEN if _is_onboarded(lane) else _USUAL_OPEN
    found = dict(gates_before(lane, slot, now))
    if found.get("breaker") is not None:
        # It leaves no slots either; what else would hold it back is told without it.
        lane = msgspec.structs.replace(lane, breaker=None)
        found |= {k: v for k, v in gates_before(lane, slot, now) if k != "breaker"}
    return [
        _OPEN[name] if closed is None else _closed(closed, lane, slot, facts, now)
        for name, closed in found.items()
        if (closed is not None if name == CELL else name not in ONBOARDING or _is_onboarded(lane))
    ]


def _is_onboarded(lane: Lane) -> bool:
    return lane.onboarding is not None or lane.limits.compliance.is_required


def _closed(closed: Closed, lane: Lane, slot: Slot, facts: LaneFacts, now: float) -> GateSeen:
    seen = GateSeen(closed.gate, False, opens_at=closed.opens_at)
    key = facts.source
    match closed.gate:
        case "cell" | "legal_hold" | "lifecycle" | "compliance":
            return _onboarding_gate(seen, lane, key, now)
        case "held":
            held = facts.holds[0] if facts.holds else Held("", now, "", "")
            what = held.scope or "everything"
            by = f"{what} is {_said('held', held.actor, held.reason)}"
            return _filled(seen, by, held.at, Remedy("sources.unhold", held.scope or None))
        case "paused":
            by = _said("paused", "", facts.pause_reason)
            return _filled(seen, by, facts.paused_at, Remedy("sources.resume", key))
        case "window":
            return _filled(seen, "outside of its hours (limits.windows)")
        case "breaker":
            by = facts.breaker_reason or "it failed too often"
            if closed.opens_at is None:
                by = f"half-open, and being tried: {by}"
            return _filled(seen, by, facts.breaker_since, Remedy("breakers.close", key))
        case "cooldown":
            return _filled(seen, facts.cooldown_reason or "it asked us to wait")
        case "slots":
            return _filled(seen, _slots_words(lane, slot, now))
        case "rate":
            return _filled(seen, f"{lane.limits.rate_per_s or 0:g} a second, no capacity left")
    return seen


# The verbs that mend what is missing of a source's compliance.
MENDED_BY = {
    "owner": "sources.own",
    "check": "sources.check",
    "acceptance": "sources.accept_terms",
}


def _onboarding_gate(seen: GateSeen, lane: Lane, key: str, now: float) -> GateSeen:
    known, terms = lane.onboarding, lane.limits.compliance
    if seen.name == "cell":
        where = ("", "") if known is None else (known.cell_state, known.cell)
        return _filled(seen, cell_words(*where), None, Remedy("cells.get", key))
    gap = first_gap(known, terms, now)
    if seen.name == "compliance" and gap is not None:
        return _filled(seen, gap.words, None, Remedy(MENDED_BY[gap.mended_by], key))
    if seen.name == "legal_hold" and known is not None:
        by = _said("on legal hold", known.legal_hold_by, known.legal_hold_reason)
        return _filled(seen, by, known.legal_hold_at, Remedy("sources.legal_release", key))
    state = state_of(known, terms)
    verb = "sources.approve" if state is SourceState.PROPOSED else "sources.propose"
    if known is None:
        return _filled(seen, f"{state}: this project requires onboarding", None, Remedy(verb, key))
    by = _said(state, known.changed_by, known.reason)
    return _filled(seen, by, known.changed_at, Remedy(verb, key))


def _slots_words(lane: Lane, slot: Slot, now: float) -> str:
    if slot == "candidate":
        return f"{lane.running_candidates} running of {count(lane.limits.candidates, 'candidate')} at once"
    allowed = concurrency_of(lane, now)
    if lane.running < allowed:
        return f"{lane.running_background} running of {background_of(lane)} for backfills at once"
    less = f" (of {lane.limits.concurrency})" if allowed < lane.limits.concurrency else ""
    return f"{lane.running} running of {allowed}{less} at once"


def _filled(
    seen: GateSeen, by: str, since: float | None = None, remedy: Remedy | None = None
) -> GateSeen:
    return msgspec.structs.replace(seen, by=by, since=since, remedy=remedy)


def _said(what: str, actor: str, reason: str) -> str:
    """`paused by ann: they are moving`."""
    who = f" by {actor}" if actor else ""
    return f"{what}{who}: {reason}" if reason else f"{what}{who}"


class AnyGate(Protocol):
    """What a gate is to whoever asks for the one that decides."""

    @property
    def name(self) -> str: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def opens_at(self) -> float | None: ...
    @property
    def command(self) -> str | None: ...


Gate = TypeVar("Gate", bound=AnyGate)


def wants_a_person(gates: Sequence[Gate]) -> list[Gate]:
    """The closed gates that only a command opens; that nobody works comes last, for it is soon mended."""
    found = [g for g in gates if not g.is_open and g.opens_at is None and g.command]
    return sorted(found, key=lambda gate: gate.name == "workers")


def how_it_stands(closed: Sequence[GateSeen], would_start: bool) -> tuple[Stands, GateSeen | None]:
    """What decides: a person first, for nothing opens without one; then the last that has a time."""
    if would_start:
        return "starts", None
    by_hand = wants_a_person(closed)
    if by_hand:
        return "person", by_hand[0]
    timed = [gate for gate in closed if gate.opens_at is not None]
    if timed:
        return "time", max(timed, key=lambda gate: gate.opens_at or 0.0)
    return "others", closed[0] if closed else None
