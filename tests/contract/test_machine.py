"""Any verbs in any order, against a plain model: same states, sound counters, one end per attempt."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from penstock.errors import Refused
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Rejection
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Flush, Settlement
from penstock.jobs.run import RunState
from penstock.jobs.run_sums import Fate
from penstock.jobs.transitions import JOB_MOVES, RUN_MOVES
from penstock.store.entries import EntryFilter
from penstock.store.rows import Admits
from penstock.store.sqlite.store import SqliteStore
from tests.contract.model import ACTIVE, LIMITS, OPEN, PLAN, WARD_DEATHS, Job, Model
from tests.contract.scenes import (
    SQLITE,
    Ends,
    World,
    a_job,
    a_save,
    done,
    quarantined,
    released,
    retried,
    skipped,
    snoozed,
    throttled,
)

SOURCES = ("acme.com", "other.org")
FATES = get_args(Fate)
KEYS = ("a", "b", "c", "d")
ACTS = (
    "cancel_job", "retry_job", "retry_failed", "release_or_discard", "cancel_run",
    "pause_or_resume_run",
    "pause_or_resume_run", "hold_or_unhold_job", "hold_or_unhold",
)  # fmt: skip
ENDINGS = (
    "done", "fan out", "flush", "retried", "snoozed", "throttled", "quarantined",
    "skipped", "released", "rejected", "dropped", "goes on",
)  # fmt: skip
# Drawn one by one, ends are so mixed that hardly a run ever ends.
JUDGING = ("done", "rejected", "dropped", "fan out", "hand on")
GOOD_MOODS = (("done",), ("done", "done", "quarantined"), JUDGING)
LATER = ("done", "retried", "snoozed", "throttled")
MOODS = (*GOOD_MOODS, ENDINGS, LATER, ("done", "fan out"), ("quarantined",))


class Machine(RuleBasedStateMachine):
    """The real store and the model, side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.world = World(SQLITE, self.folder / "penstock.db")
        assert isinstance(self.world.store, SqliteStore)
        self.world.store._db.connection.pragma("synchronous", "off")
        self.world.watch()
        self.model = Model(self.world.clock.now(), workers={"w"})
        self.stale: list[tuple[str, Claimed]] = []
        self.names = iter(range(1000))
        self.closings: set[int] = set()

    @initialize()
    def begin(self) -> None:
        for source in SOURCES:
            self.world.source(source, LIMITS)
        self.start_run(SOURCES[0])
        self._take_turn("w", [], 1)
        [root] = [(job.id, job.attempt) for job in self.model.jobs.values() if job.worker]
        self._take_turn("w", [self._spread("done", *root, "extract", KEYS)], 1)
        [page] = [(job.id, job.attempt) for job in self.model.jobs.values() if job.worker]
        self._take_turn("w", [self._spread("done", *page, "persist", KEYS)], 0)

    def teardown(self) -> None:
        self.world.store.close()
        shutil.rmtree(self.folder)

    def finish(self) -> None:
        """After each verb that may add jobs."""
        rows = [row for run_id in self.model.runs for row in self.world.jobs(run_id)]
        self.model.learn(rows)

    # Work.

    @precondition(lambda self: len(self.model.runs) < 4)
    @rule(source=st.sampled_from(SOURCES))
    def start_run(self, source: str) -> None:
        run_id = self.world.start(PLAN, source, key=f"run-{next(self.names)}")
        self.world.source(source, LIMITS)
        self.model.start(run_id, self.world.source(source, LIMITS))
        self.finish()

    @precondition(lambda self: self.model.runs)
    @rule(data=st.data(), keys=st.lists(st.sampled_from(KEYS), max_size=3))
    def enqueue(self, data: st.DataObject, keys: list[str]) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.model.runs)))
        if self.model.runs[run_id] not in ACTIVE:
            with pytest.raises(Refused):
                self.world.enqueue(run_id, *keys)
            return
        known = {key: self.model.find(run_id, "extract", key) for key in keys}
        for key, answer in zip(keys, self.world.enqueue(run_id, *keys), strict=True):
            job = known[key]
            assert answer.is_new == (job is None)
            assert job is None or job.id == answer.job_id
            self.model.expect(run_id, "extract", key)
        self.finish()

    @precondition(lambda self: self.model.workers)
    @rule(data=st.data(), slots=st.integers(0, 6), admits=st.sampled_from(get_args(Admits)))
    def turn(self, data: st.DataObject, slots: int, admits: Admits) -> None:
        worker = data.draw(st.sampled_from(sorted(self.model.workers)))
        self._take_turn(worker, self._draw_ends(data, worker, MOODS), slots, admits)

    @precondition(lambda self: self.model.workers)
    @rule(data=st.data())
    def work_on(self, data: st.DataObject) -> None:
        """Several turns of one worker without trouble, so that runs come to an end."""
        worker = data.draw(st.sampled_from(sorted(self.model.workers)))
        for _ in range(3):
            self._take_turn(worker, self._draw_ends(data, worker, GOOD_MOODS), 6)

    def _take_turn(self, worker: str, ends: list[Ends], slots: int, admits: Admits = "all") -> None:
        owned, lost = self.model.judge(worker, ends)

        turn = self.world.turn(worker, *ends, capacity=Capacity(slots, admits=admits))

        assert turn.settled == [end.job_id for end in owned]
        assert turn.lost == [end.job_id for end in lost]
        for end in owned:
            self.model.settle(end)
        self.model.wake()
        before = dict(self.model.runs)
        self.model.advance()
        ended = [run for run, state in self.model.runs.items() if state is not before[run]]
        assert turn.ended_runs == sorted(ended)
        self._learn_closings(ended)
        self.finish()
        self._check_claims(worker, turn.claimed, slots, admits)

    def _learn_closings(self, ended: list[int]) -> None:
        """Entries of quarantine that the store has closed: each was answered by a run that ended just now."""
        for event in self.world.store.journal.events(kind="quarantine.closed", limit=10_000):
            if event.id not in self.closings and event.job_id is not None:
                self.closings.add(event.id)
                self.model.close(event.job_id, ended)

    def _draw_ends(
        self, data: st.DataObject, worker: str, moods: tuple[tuple[str, ...], ...]
    ) -> list[Ends]:
        """What some of this worker's attempts came to, and what some that it lost still send."""
        ends: list[Ends] = []
        mine = [(job.id, job.attempt) for job in self.model.jobs.values() if job.worker == worker]
        late = [(job.id, job.attempt) for owner, job in self.stale if owner == worker]
        mood = data.draw(st.sampled_from(moods))
        for job_id, attempt in [*mine, *late[-2:]]:
            how = data.draw(st.sampled_from(mood))
            if how != "goes on":
                ends.append(self._end(data, how, job_id, attempt))
        return ends

    def _end(self, data: st.DataObject, how: str, job_id: int, attempt: int) -> Ends:
        job = Claimed(job_id, 0, 0, "", "", attempt, 0, 0, 0, False, "")
        delay_s = data.draw(st.sampled_from((0.0, 5.0, 60.0)))
        if how in ("fan out", "flush"):
            keys = sorted(data.draw(st.sets(st.sampled_from(KEYS))))
            return self._spread(how, job_id, attempt, "persist", keys)
        if how in ("retried", "snoozed", "throttled"):
            return {"retried": retried, "snoozed": snoozed, "throttled": throttled}[how](
                job, delay_s
            )
        if how == "hand on":
            keys = sorted(data.draw(st.sets(st.sampled_from(KEYS))))
            return done(job, children=[a_job(key, stage="persist") for key in keys])
        if how == "rejected":
            return done(job, effects=Effects(rejections=[Rejection("no_price", "no price")]))
        if how == "dropped":
            return done(job, effects=Effects(is_dropped=True))
        plain = {"done": done, "skipped": skipped, "quarantined": quarantined, "released": released}
        return plain[how](job)

    def _spread(self, how: str, job_id: int, attempt: int, stage: str, keys: Sequence[str]) -> Ends:
        """An end, or a flush, with a child and a record for each key."""
        effects = Effects(
            children=[a_job(key, stage=stage) for key in keys],
            saves=[a_save(key, attempt) for key in keys],
        )
        if how == "flush":
            return Flush(job_id, attempt, effects)
        return Settlement(job_id, attempt, JobState.SUCCEEDED, effects=effects)

    def _check_claims(
        self, worker: str, claimed: list[Claimed], slots: int, admits: Admits
    ) -> None:
        assert len(claimed) <= slots
        kinds = {job.deaths >= WARD_DEATHS for job in claimed}
        assert admits != "sound" or True not in kinds
        assert admits != "suspect" or False not in kinds
        self.model.claim(worker, claimed)
        self.stale += [(worker, job) for job in claimed]
        for source_id in {job.source_id for job in claimed}:
            assert self.model.running(source_id, False) <= LIMITS.concurrency
            assert self.model.running(source_id, True) <= LIMITS.candidates
        assert self.model.in_ward(worker) <= 1
        suspects = any(job.deaths >= WARD_DEATHS for job in self.model.left_behind())
        if len(claimed) < slots and not suspects and admits != "suspect":
            assert self.model.left_behind() == [], "a free slot stays empty while a job may start"

    # Workers.

    @precondition(lambda self: len(self.model.workers) < 3)
    @rule()
    def register(self) -> None:
        name = f"worker-{next(self.names)}"
        self.world.register(name)
        self.model.workers.add(name)

    @precondition(lambda self: self.model.workers)
    @rule(data=st.data(), is_dead=st.booleans())
    def lose_a_worker(self, data: st.DataObject, is_dead: bool) -> None:
        worker = data.draw(st.sampled_from(sorted(self.model.workers)))
        had = sorted(job.id for job in self.model.jobs.values() if job.worker == worker)
        store = self.world.store
        found = store.workers.bury(worker, "killed") if is_dead else store.workers.sign_off(worker)
        assert sorted(found) == had
        self.model.take_back(worker, is_dead)
        self.model.advance()
        self.finish()

    # Steering.

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), act=st.sampled_from(ACTS))
    def steer(self, data: st.DataObject, act: str) -> None:
        """One rule for all of an operator's verbs: as many rules, they would crowd out the work."""
        getattr(self, f"_{act}")(data)

    def _draw_run(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.model.runs)))

    def _draw_job(self, data: st.DataObject) -> Job:
        return self.model.jobs[data.draw(st.sampled_from(sorted(self.model.jobs)))]

    def _cancel_job(self, data: st.DataObject) -> None:
        job = self._draw_job(data)
        may = job.state in (*OPEN, JobState.QUARANTINED)
        assert self.world.store.jobs.cancel(job.id, "ops", "") == may
        if may:
            self.model.cancel(job)
            self.model.advance()
        self.finish()

    def _retry_job(self, data: st.DataObject) -> None:
        job = self._draw_job(data)
        may = (
            job.state in (JobState.QUARANTINED, JobState.WAITING)
            and self.model.runs[job.run_id] is not RunState.CANCELLED
        )
        assert self.world.store.jobs.retry(job.id, "ops", "") == may
        if may:
            self.model.retry(job)

    def _retry_failed(self, data: st.DataObject) -> None:
        run_id = self._draw_run(data)
        is_cancelled = self.model.runs[run_id] is RunState.CANCELLED
        failed = [
            job
            for job in self.model.jobs.values()
            if job.run_id == run_id and job.state is JobState.QUARANTINED and not is_cancelled
        ]
        assert self.world.store.runs.retry_failed(run_id, "ops", "") == len(failed)
        for job in failed:
            self.model.retry(job)

    def _release_or_discard(self, data: st.DataObject) -> None:
        run_id, is_release = self._draw_run(data), data.draw(st.booleans())
        is_cancelled = self.model.runs[run_id] is RunState.CANCELLED
        entries = [
            job
            for job in self.model.jobs.values()
            if job.run_id == run_id and job.state is JobState.QUARANTINED
        ]
        store, wanted = self.world.store, EntryFilter(run_id=run_id)
        assert store.quarantine.count(wanted) == len(entries)
        if is_release:
            released = sum(store.quarantine.release(wanted, "ops", ""))
            assert released == (0 if is_cancelled else len(entries))
            for job in entries[:released]:
                self.model.retry(job)
            return
        assert sum(store.quarantine.discard(wanted, "ops", "")) == len(entries)
        for job in entries:
            self.model.cancel(job)
        self.model.advance()
        self.finish()

    def _cancel_run(self, data: st.DataObject) -> None:
        run_id = self._draw_run(data)
        may = self.model.runs[run_id] in ACTIVE
        assert self.world.store.runs.cancel(run_id, "ops", "") == may
        while may and self.world.store.runs.sweep_cancelled(3):
            pass
        if may:
            self.model.runs[run_id] = RunState.CANCELLED
            for job in self.model.jobs.values():
                if job.run_id == run_id and job.state in OPEN:
                    self.model.cancel(job)

    def _pause_or_resume_run(self, data: st.DataObject) -> None:
        run_id, is_pause = self._draw_run(data), data.draw(st.booleans())
        state = self.model.runs[run_id]
        store = self.world.store
        if is_pause:
            may = state in (RunState.QUEUED, RunState.RUNNING)
            assert store.runs.pause(run_id, "ops", "") == may
        else:
            may = state is RunState.PAUSED
            assert store.runs.resume(run_id, "ops", "") == may
        if may:
            was = RunState.RUNNING if run_id in self.model.begun else RunState.QUEUED
            self.model.runs[run_id] = RunState.PAUSED if is_pause else was

    def _hold_or_unhold_job(self, data: st.DataObject) -> None:
        """Anything of an active run may be set aside, and what is set aside is let go half of the time."""
        held = [job.id for job in self.model.jobs.values() if job.state is JobState.HELD]
        job, is_let_go = self._draw_job(data), data.draw(st.booleans())
        if held and is_let_go:
            job = self.model.jobs[data.draw(st.sampled_from(held))]
        store, is_held = self.world.store, job.state is JobState.HELD
        may = job.state in (JobState.QUEUED, JobState.WAITING)
        assert store.jobs.hold(job.id, "ops", "") == may
        if may:
            self.model.hold(job)
        elif is_held:
            assert store.jobs.unhold(job.id, "ops", "")
            self.model.unhold(job)

    def _hold_or_unhold(self, data: st.DataObject) -> None:
        """The project (0 in the model) or a source, for maintenance."""
        scope = data.draw(st.sampled_from(("", *SOURCES)))
        of = self.world.source(scope, LIMITS) if scope else 0
        is_held, store = of in self.model.held, self.world.store
        # Held for one act in three: else nothing would ever be done.
        if is_held or data.draw(st.integers(0, 2)):
            assert store.sources.unhold(scope, "ops", "") == is_held
            self.model.held.discard(of)
        else:
            assert store.sources.hold(scope, "ops", "")
            self.model.held.add(of)

    @rule(source=st.sampled_from(SOURCES), is_pause=st.booleans())
    def pause_or_resume_source(self, source: str, is_pause: bool) -> None:
        source_id, store = self.world.source(source, LIMITS), self.world.store
        is_paused = source_id in self.model.paused
        if is_pause:
            assert store.sources.pause(source_id, "ops", "") == (not is_paused)
            self.model.paused.add(source_id)
        else:
            assert store.sources.resume(source_id, "ops", "") == is_paused
            self.model.paused.discard(source_id)

    @rule(seconds=st.sampled_from((1.0, 5.0, 60.0)))
    def let_time_pass(self, seconds: float) -> None:
        self.world.clock.advance(seconds)
        self.model.now = self.world.clock.now()

    # What always holds.

    @invariant()
    def store_and_model_agree(self) -> None:
        rows = {row.id: row for run_id in self.model.runs for row in self.world.jobs(run_id)}
        found = {
            row.id: (
                row.run_id, row.stage, row.key, row.state, row.attempt, row.tries,
                row.throttles, row.deaths, row.worker, row.due_at,
            )
            for row in rows.values()
        }  # fmt: skip
        assert found == {job.id: job.as_row() for job in self.model.jobs.values()}
        assert {
            run.id: run.state for run in self.world.store.runs.newest(limit=100)
        } == self.model.runs
        records = {r.key: (r.data, r.version) for r in self.world.store.records.of("product")}
        assert records == self.model.records

    @invariant()
    def everything_is_accounted_for(self) -> None:
        for row in self.world.store.runs.newest(limit=100):
            account = self.world.store.runs.account(row)
            assert account.is_kept
            assert (account.pages.unaccounted, account.candidates.unaccounted) == (0, 0)
            found = account.candidates
            skipped = self.model.in_state(row.id, "persist", JobState.SKIPPED)
            assert {
                "accepted": found.accepted, "duplicate": found.duplicate, "passed": found.passed,
                "rejected": found.rejected, "dropped": found.dropped - skipped,
            } == {name: self.model.fates[row.id, name] for name in FATES}  # fmt: skip
            assert row.inserted + row.updated + row.unchanged == self.model.saves[row.id]

    @invariant()
    def store_is_sound(self) -> None:
        assert self.world.store.upkeep.check() == []

    @invariant()
    def nothing_open_needs_somebody_to_notice_it(self) -> None:
        for job in self.model.jobs.values():
            if job.state is JobState.RUNNING:
                assert job.worker in self.model.workers
            elif job.state is JobState.WAITING:
                assert job.due_at is not None
            elif job.state is JobState.QUEUED:
                assert self.model.runs[job.run_id] in ACTIVE

    @invariant()
    def attempt_ends_once_and_only_as_the_tables_allow(self) -> None:
        moves = self.world.moves()
        ends = Counter(
            (id_, n) for what, id_, n, leaves, _ in moves if (what, leaves) == ("job", "running")
        )
        assert all(count == 1 for count in ends.values())
        for what, _, _, leaves, enters in moves:
            table = JOB_MOVES if what == "job" else RUN_MOVES
            assert (leaves, enters) in table, f"a {what} went from {leaves} to {enters}"

    @invariant()
    def every_move_is_in_the_journal(self) -> None:
        moves = Counter(what for what, *_ in self.world.moves())
        kinds = Counter(kind.split(".")[0] for kind in self.world.kinds())
        # What leaves quarantine by an operator's act is told under that noun.
        assert kinds["job"] + kinds["quarantine"] == moves["job"]
        assert kinds["run"] >= moves["run"]


QUICK = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    max_examples=25,
    stateful_step_count=50,
)


# Shrinking a counterexample takes longer than a test may; without it the failure says little.
@pytest.mark.timeout(600)
def test_store_does_what_the_model_does_whatever_the_verbs_and_their_order() -> None:
    run_state_machine_as_test(Machine, settings=QUICK)


@pytest.mark.torture
@pytest.mark.timeout(7200)
def test_store_does_what_the_model_does_for_very_long() -> None:
    deep = settings(QUICK, max_examples=1500, stateful_step_count=120)
    run_state_machine_as_test(Machine, settings=deep)
