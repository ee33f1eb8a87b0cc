"""The turn: settle what ended, then claim what may start.

While one turn is on the disk, the next outcomes pile up and share the next one: group commit without
a timer. Every statement takes its whole batch as one JSON parameter.

Where others write at the same time, everybody takes locks in one order, so that nobody waits in a
circle: the worker, its jobs, breakers, new keys in their order, hosts, sources, runs. Claiming starts with
breakers, so the two halves of a turn are two transactions there; nothing needs them to be one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from penstock.gates.budget import Bound
from penstock.gates.lane import Lane, LaneLimits
from penstock.gates.sharing import Sharing
from penstock.jobs.job import AGEING_S, Claimed, JobState, NewJob, bounded_key
from penstock.jobs.outcome import Covered, Effects, Flush, Mark, Rejection, Save, Settlement
from penstock.jobs.run import (
    NO_OPTIONS,
    Plan,
    RunKind,
    RunOptions,
    RunState,
    StageCount,
    advance,
    later_s,
)
from penstock.jobs.transitions import RUN_MOVES
from penstock.store.accounts import count_candidates, end_account
from penstock.store.announcing import note_announced
from penstock.store.breakers import Watch, weigh, write_levels
from penstock.store.budgets import charge, stopped_by_budget
from penstock.store.checkpoints import move_checkpoints
from penstock.store.claim import claim, opening, ready_lanes, soonest
from penstock.store.coverage import note_coverage
from penstock.store.database import Database, Owned, to_json
from penstock.store.failing import judge, note_failures
from penstock.store.floors import Floors
from penstock.store.health import RunEnd, end_of_probe, note_ends, note_probes
from penstock.store.ledger import Ledger
from penstock.store.outbox import Ended, tell_ends
from penstock.store.pages import note_pages
from penstock.store.promises import Deadline, note_late, note_verified
from penstock.store.records import save_records
from penstock.store.rejecting import add_rejects
from penstock.store.staging import stage_records
from penstock.store.store import Capacity, Kept, Turn

WAKE_LIMIT = 1000
# In parts that no database takes long for.
INSERT_LIMIT = 5000

End = Settlement | Flush
_Row = tuple[int, int, int, str, str, str, float]
_Item = tuple[int, int | None, str, int | None]


class _Advancing(msgspec.Struct):
    source_id: int
    state: RunState
    plan: Plan
    counts: dict[str, StageCount]
    kind: RunKind = RunKind.FULL
    options: RunOptions = NO_OPTIONS


class Accepted(msgspec.Struct):
    """What of a worker's ends is written: each with its job, and the ids that are or came too late."""

    ends: list[tuple[End, Owned]]
    unsettled: list[tuple[Settlement, Owned]]
    settled: list[int]
    lost: list[int]
    flushes: dict[int, int]
    renewed: set[int]


_decode_advancing = msgspec.json.Decoder(_Advancing).decode


@dataclass(slots=True)
class Memory:
    """What a store remembers between turns; losing it costs a moment of fairness or speed, no more."""

    sharing: Sharing = field(default_factory=Sharing)
    floors: Floors = field(default_factory=Floors)
    watch: Watch = field(default_factory=Watch)


def take_turn(
    db: Database,
    memory: Memory,
    worker: str,
    ends: Sequence[End],
    capacity: Capacity,
    limits: Mapping[int, LaneLimits],
    kept: Sequence[Kept],
) -> Turn:
    """Settle these, keep those, claim what fits."""
    with db.writing() as now:
        is_buried = db.value("is_registered", id=worker) is None
        ledger = Ledger(db, now)
        snapshot_ids = keep_snapshots(db, worker, kept)
        accepted = accept(db, ledger, worker, ends)
        weigh(db, ledger, memory.watch, limits, accepted)
        settle(db, ledger, worker, accepted)
        write_levels(db, memory.watch, accepted)
        next_due = wake_due(db, ledger, memory.floors, now)
        ledger.write_counts()
        ended_runs = advance_runs(db, ledger, now)
        claimed: list[Claimed] = []
        closed_hosts: dict[str, float] = {}
        if capacity.slots > 0 and not is_buried:
            if db.is_shared:
                ledger.write()
                ledger.now = now = db.let_go()
                # The lock on the worker went with the first half: it may have been buried in between.
                is_buried = db.value("is_registered", id=worker) is None
            lanes: list[Lane] = []
            if not is_buried:
                claimed, lanes = start_work(db, memory, ledger, worker, capacity, limits)
            next_due = soonest(next_due, *(opening(lane, now) for lane in lanes))
            closed_hosts = db.json("closed_hosts", now=now) if claimed else {}
        ledger.write()
    return Turn(
        accepted.settled,
        accepted.lost,
        claimed,
        snapshot_ids,
        ended_runs,
        next_due,
        is_buried,
        now,
        closed_hosts,
    )


def start_work(
    db: Database,
    memory: Memory,
    ledger: Ledger,
    worker: str,
    capacity: Capacity,
    limits: Mapping[int, LaneLimits],
) -> tuple[list[Claimed], list[Lane]]:
    """What a worker with this much room starts now, and the lanes as they were before.

    The explanation of why something does not start takes this very step, and undoes it.
    """
    lanes = ready_lanes(db, limits, memory.floors, capacity.admits)
    memory.watch.look(lanes)
    return claim(db, memory, ledger, worker, capacity, limits, lanes), lanes


def accept(db: Database, ledger: Ledger, worker: str, ends: Sequence[End]) -> Accepted:
    """Tell the ends of attempts that own their job from those that came too late.

    An attempt ends once: whatever it sends after its end is late too. A flush that was sent again,
    because the answer to the first was not heard, is written already. One that wants children of a
    stage that its run does not have is quarantined instead.
    """
    accepted = Accepted([], [], [], [], {}, set())
    owned, ended = _owned(db, ledger, worker, ends)
    for end in ends:
        fence = (end.job_id, end.attempt)
        job = owned.get(fence)
        if job is None:
            accepted.lost.append(end.job_id)
            continue
        if isinstance(end, Flush) and end.number:
            if end.number <= accepted.flushes.get(job.id, job.flushes):
                accepted.settled.append(end.job_id)
                continue
            accepted.flushes[job.id] = end.number
            if end.is_progress:
                accepted.renewed.add(job.id)
        unknown = _unknown_stage(ledger, job, end) if end.effects.children else None
        written = end if unknown is None else _refusal(end, unknown)
        accepted.ends.append((written, job))
        if isinstance(written, Settlement) and fence not in ended:
            accepted.unsettled.append((written, job))
        if isinstance(end, Flush) and unknown is not None:
            accepted.lost.append(end.job_id)
        else:
            accepted.settled.append(end.job_id)
        if isinstance(written, Settlement):
            del owned[fence]
    return accepted


def _owned(
    db: Database, ledger: Ledger, worker: str, ends: Sequence[End]
) -> tuple[dict[tuple[int, int], Owned], set[tuple[int, int]]]:
    """The jobs that are still this worker's, and which of them just ended well: those are ended here."""
    sent = Counter(end.job_id for end in ends)
    plain: list[tuple[int, int]] = []
    others: list[tuple[int, int]] = []
    for end in ends:
        # What an attempt sends beside its end, or after it, is judged in the order in which it was sent.
        is_plain = _is_plain(end) and sent[end.job_id] == 1
        (plain if is_plain else others).append((end.job_id, end.attempt))
    owned: dict[tuple[int, int], Owned] = {}
    if plain:
        for job in db.succeed(ledger.now, worker, plain):
            owned[job.id, job.attempt] = job
            ledger.moved(job.run_id, job.stage, JobState.RUNNING, JobState.SUCCEEDED)
    ended = set(owned)
    if others:
        for job in db.decoded("fence", list[Owned], fences=to_json(others), worker=worker):
            owned[job.id, job.attempt] = job
    return owned, ended


def _is_plain(end: End) -> bool:
    """Whether nothing that it brings can stand in the way of its success."""
    return (
        isinstance(end, Settlement) and end.state is JobState.SUCCEEDED and not end.effects.children
    )


def _unknown_stage(ledger: Ledger, job: Owned, end: End) -> str | None:
    known = ledger.stages(job.run_id)
    return next((child.stage for child in end.effects.children if child.stage not in known), None)


def _refusal(end: End, stage: str) -> Settlement:
    error = (
        f"its run was started without a stage {stage!r}: the pipeline has changed; start a new run"
    )
    return Settlement(
        end.job_id,
        end.attempt,
        JobState.QUARANTINED,
        spends_try=True,
        reason="data",
        error=error,
        cause=f"no stage {stage!r} in its run",
    )


def settle(db: Database, ledger: Ledger, actor: str, accepted: Accepted) -> None:
    """Write the ends of attempts that own their jobs, with all their effects."""
    if accepted.flushes:
        flushes = [(*each, each[0] in accepted.renewed) for each in accepted.flushes.items()]
        db.do("note_flushes", flushes=to_json(flushes))
    succeeded: list[tuple[int, int]] = []
    others: list[tuple[Settlement, Owned]] = []
    for end, job in accepted.unsettled:
        if end.state is JobState.SUCCEEDED:
            succeeded.append((end.job_id, end.attempt))
        else:
            others.append((end, job))
    others, escalated = judge(db, ledger, others)
    for end, job in others:
        ledger.moved(job.run_id, job.stage, JobState.RUNNING, end.state)
    if succeeded:
        for job in db.succeed(ledger.now, actor, succeeded):
            ledger.moved(job.run_id, job.stage, JobState.RUNNING, JobState.SUCCEEDED)
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
    for end, job in ends:
        ledger.journal(_kind(end), job.source_id, job.run_id, job.id, end.attempt, actor, _why(end))
        if end.state is JobState.WAITING and (end.is_throttle or end.spends_try):
            ledger.count(job.run_id, "throttled" if end.is_throttle else "retried", 1)
        if end.skip:
            count = "pages_unchanged" if end.skip == "unchanged" else "disallowed"
            ledger.count(job.run_id, count, 1)


def _kind(end: Settlement) -> str:
    if end.state is JobState.WAITING:
        if end.is_throttle:
            return "job.throttled"
        return "job.retried" if end.spends_try else "job.snoozed"
    return "job.released" if end.state is JobState.QUEUED else f"job.{end.state}"


def _why(end: Settlement) -> str:
    text = f"{end.reason}: {end.error}" if end.error else end.reason
    return f"{text} (again in {end.delay_s:.1f} s)" if end.state is JobState.WAITING else text


def _close_hosts(db: Database, ledger: Ledger, ends: Sequence[tuple[Settlement, Owned]]) -> None:
    closing = [(end, job) for end, job in ends if end.closes_host]
    for end, _ in sorted(closing, key=lambda pair: pair[0].closes_host):
        until = ledger.now + end.closes_for_s
        db.do("close_host", host=end.closes_host, until=until, reason=end.reason)
    for end, job in sorted(closing, key=lambda pair: pair[1].source_id):
        until = ledger.now + end.closes_for_s
        db.do("cool_down", id=job.source_id, until=until, reason=end.reason)


def add_effects(
    db: Database, ledger: Ledger, actor: str, accepted: Sequence[tuple[End, Owned]]
) -> None:
    """Children, records, checkpoints, signals and notes of accepted attempts."""
    children: list[tuple[Owned, NewJob]] = []
    saves: list[tuple[int, int, Save]] = []
    savers: list[int] = []
    marks: list[tuple[Owned, Mark]] = []
    covered: list[tuple[Owned, Covered]] = []
    signals: list[tuple[object, ...]] = []
    rejections: list[tuple[Owned, Rejection]] = []
    charges: list[tuple[Bound, float]] = []
    visits: list[tuple[Owned, Effects]] = []
    moments: list[tuple[int, float, int]] = []
    verified: list[Owned] = []
    failed: list[int] = []
    probed: dict[int, Counter[str]] = defaultdict(Counter)
    for end, job in accepted:
        effects = end.effects
        if isinstance(end, Settlement) and end.state is JobState.QUARANTINED:
            failed.append(job.id)
        if not effects:
            continue
        if effects.announced or effects.extracted:
            visits.append((job, effects))
        if effects.probed:
            probed[job.run_id].update(effects.probed)
        children.extend((job, child) for child in effects.children)
        saves.extend((job.source_id, job.run_id, save) for save in effects.saves)
        savers.extend(job.id for save in effects.saves if not save.is_staged)
        marks.extend((job, mark) for mark in effects.marks)
        covered.extend((job, stretch) for stretch in effects.covered)
        signals.extend(
            (s.name, s.data.decode(), job.source_id, job.run_id) for s in effects.signals
        )
        moments.extend((job.source_id, at, job.run_id) for at in effects.moments)
        if effects.is_schema_verified:
            verified.append(job)
        for note in effects.notes:
            ledger.journal(
                "job.noted", job.source_id, job.run_id, job.id, end.attempt, actor, note.text
            )
        rejections.extend((job, each) for each in effects.rejections)
        charges.extend(effects.charges)
        for measure, amount in effects.spent.items():
            ledger.count(job.run_id, measure, amount)
    if children:
        _add_children(db, ledger, children)
    staged = [save for save in saves if save[2].is_staged]
    if staged:
        stage_records(db, ledger, staged)
        saves = [save for save in saves if not save[2].is_staged]
    has_changed: dict[int, bool] = {}
    if saves:
        for job_id, did in zip(savers, save_records(db, ledger, saves), strict=True):
            has_changed[job_id] = has_changed.get(job_id, False) or did != "unchanged"
    count_candidates(ledger, accepted, has_changed)
    if marks:
        move_checkpoints(db, ledger, actor, marks)
    if covered:
        note_coverage(db, ledger, covered)
    if charges:
        charge(db, ledger, charges)
    if signals:
        db.do("add_signals", now=ledger.now, signals=to_json(signals))
    if rejections:
        add_rejects(db, ledger, rejections)
    if moments:
        note_announced(db, ledger.now, moments)
    if verified:
        note_verified(db, ledger, actor, verified)
    if visits or failed:
        note_pages(db, ledger.now, visits, failed)
    if probed:
        note_probes(db, probed)


def _add_children(db: Database, ledger: Ledger, children: Sequence[tuple[Owned, NewJob]]) -> None:
    by_run: dict[int, list[tuple[int | None, NewJob]]] = defaultdict(list)
    source_of: dict[int, int] = {}
    for parent, child in children:
        by_run[parent.run_id].append((parent.id, child))
        source_of[parent.run_id] = parent.source_id
    for run_id, jobs in sorted(by_run.items()):
        add_jobs(db, ledger, run_id, source_of[run_id], jobs)


def add_jobs(
    db: Database,
    ledger: Ledger,
    run_id: int,
    source_id: int,
    jobs: Sequence[tuple[int | None, NewJob]],
) -> set[int]:
    """Enqueue jobs of a run, each with its parent; a known key keeps its job. Answers with the new ids."""
    stages = ledger.stages(run_id)
    ids = db.new_job_ids(len(jobs))
    made: list[tuple[_Row, _Item]] = []
    for job_id, (parent_id, job) in zip(ids, jobs, strict=True):
        unit = stages[job.stage].unit
        rank = ledger.now + job.priority * AGEING_S + later_s(stages[job.stage].kind)
        row: _Row = (job_id, run_id, source_id, job.stage, unit, bounded_key(job.key), rank)
        made.append((row, (job_id, parent_id, job.item.decode(), job.snapshot)))
    if db.is_shared and len(made) > INSERT_LIMIT:
        made.sort(key=lambda pair: (pair[0][3], pair[0][5]))  # within a part, the statement does it
    new: set[int] = set()
    for first in range(0, len(made), INSERT_LIMIT):
        new |= _insert(db, ledger.now, made[first : first + INSERT_LIMIT])
    for (job_id, _, _, stage, its_unit, *_), _ in made:
        if job_id in new:
            ledger.added(run_id, stage, its_unit)
    if any(facts.continues for facts in stages.values()):
        _skip_what_is_done(db, ledger, [row for row, _ in made if row[0] in new])
    return new


def _skip_what_is_done(db: Database, ledger: Ledger, rows: Sequence[_Row]) -> None:
    """Of new jobs of a run that continues another, end those that were done there."""
    by_run: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        continues = ledger.stages(row[1])[row[3]].continues
        if continues is not None:
            by_run[continues].append(row)
    for continues, asked in by_run.items():
        keys = to_json([(job_id, stage, key) for job_id, _, _, stage, _, key, _ in asked])
        done_in = dict(db.json("done_before", continues=continues, keys=keys))
        if not done_in:
            continue
        db.do("skip_if_queued", ids=to_json(sorted(done_in)), now=ledger.now)
        notes = []
        for job_id, run_id, source_id, stage, *_ in asked:
            if job_id in done_in:
                why = f"done in run {done_in[job_id]}"
                ledger.moved(run_id, stage, JobState.QUEUED, JobState.SKIPPED)
                ledger.journal("job.skipped", source_id, run_id, job_id, 0, "penstock", why)
                notes.append((job_id, 0, "skipped", why, ""))
        db.do("note_failures", now=ledger.now, failures=to_json(notes))


def _insert(db: Database, now: float, made: Sequence[tuple[_Row, _Item]]) -> set[int]:
    """Insert the jobs whose key is not known yet; answers with their ids."""
    rows, items = [row for row, _ in made], [item for _, item in made]
    new = {row[0] for row in rows}
    if db.do("add_jobs", now=now, jobs=to_json(rows)) != len(rows):
        new = set(db.json("present_jobs", ids=to_json(sorted(new))))
        items = [item for item in items if item[0] in new]
    db.do("add_items", items=to_json(items))
    return new


def wake_due(db: Database, ledger: Ledger, floors: Floors, now: float) -> float | None:
    """Queue the waiting jobs whose time has come; answer when the next one is due."""
    after = floors.due_after(now)
    due: float | None = db.value("next_due", after=after)
    if due is None or due > now:
        floors.woke_all(now)
        return due
    found = db.json("due", now=now, after=after, limit=WAKE_LIMIT)
    ids = [job_id for job_id, _, _, _ in found]
    db.do("wake_if_waiting", now=now, ids=to_json(ids))
    for job_id, run_id, stage, rank in found:
        ledger.moved(run_id, stage, JobState.WAITING, JobState.QUEUED)
        floors.lower_to(run_id, stage, (rank, job_id))
    ledger.journal_jobs("job.woken", ids, "clock", "due")
    next_due: float | None = db.value("next_due", after=after)
    return next_due


def advance_runs(db: Database, ledger: Ledger, now: float) -> list[int]:
    """Start gather stages whose turn has come, and end the runs that have nothing left to do."""
    ended: list[RunEnd] = []
    for run_id in ledger.runs_with_a_closed_stage():
        text = db.value("run_to_advance", run_id=run_id)
        if text is None:
            continue
        run = _decode_advancing(text)
        has_failed = any(count.quarantined for count in run.counts.values())
        stopped = stopped_by_budget(db, run_id) if has_failed else {}
        step = advance(run.plan, run.counts, stopped)
        if step.start:
            jobs = [(None, _gather_job(run.plan, name)) for name in step.start]
            add_jobs(db, ledger, run_id, run.source_id, jobs)
            ledger.write_counts()
        elif step.ends_as is not None:
            # A run that was never begun and has nothing left had all its jobs cancelled.
            ends_as = RunState.CANCELLED if run.state is RunState.QUEUED else step.ends_as
            reason, is_good = step.reason, False
            if run.kind is RunKind.PROBE:
                ends_as, reason, is_good = end_of_probe(db, run_id, run.counts, ends_as, reason)
            ends_as, reason = end_account(db, ledger, run_id, ends_as, reason)
            db.do("end_run_if_active", id=run_id, state=ends_as, end_reason=reason, now=now)
            why = reason or RUN_MOVES.get((run.state, ends_as), "")
            ledger.journal(f"run.{ends_as}", run.source_id, run_id, actor="penstock", detail=why)
            about = (run.source_id, run_id, run.kind, run.options, ends_as, why, is_good)
            ended.append(RunEnd(*about))
    note_ends(db, ledger, ended)
    note_late(
        db, ledger, [Deadline(e.run_id, e.source_id, e.kind, e.options.deadline_s) for e in ended]
    )
    tell_ends(db, ledger, [Ended(e.run_id, e.source_id, e.state, e.kind, e.reason) for e in ended])
    return [end.run_id for end in ended]


def _gather_job(plan: Plan, name: str) -> NewJob:
    [stage] = [stage for stage in plan.stages if stage.name == name]
    return NewJob(stage=name, key="gather", item=b"null", priority=stage.priority)


def keep_snapshots(db: Database, worker: str, kept: Sequence[Kept]) -> list[int]:
    """Refer to payloads that lie in segments already; equal content has one place.

    Answers with the ids that were written: a page whose job is no longer this worker's is not kept.
    """
    if not kept:
        return []
    job_ids = sorted({k.job_id for k in kept})
    owned = set(db.json("owned_jobs", ids=to_json(job_ids), worker=worker))
    mine = [k for k in kept if k.job_id in owned]
    if mine:
        rows = [
            (
                k.id,
                k.job_id,
                k.run_id,
                k.url,
                k.hash,
                k.status,
                to_json(dict(k.headers)),
                k.fetched_at,
                k.final_url,
            )
            for k in mine
        ]
        places = [(k.hash, k.segment, k.offset, k.length) for k in mine]
        db.do("add_payloads", payloads=to_json(places))
        db.do("add_snapshots", snapshots=to_json(rows))
    return [k.id for k in mine]
