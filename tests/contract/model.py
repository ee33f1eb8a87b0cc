"""What the store is held to: the same verbs over plain Python values, with nothing clever in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from penstock.gates.lane import LaneLimits
from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import Plan, PlannedStage, RunState
from penstock.store.rows import JobRow
from tests.contract.scenes import Ends

PLAN = Plan(
    (
        PlannedStage("discover", "run", is_required=True),
        PlannedStage("extract", "page", ("discover",)),
        PlannedStage("persist", "candidate", ("extract",)),
        PlannedStage("report", "run", ("extract", "persist"), is_gather=True, is_required=True),
    )
)
LIMITS = LaneLimits(concurrency=3, candidates=2)
OPEN = (JobState.QUEUED, JobState.RUNNING, JobState.WAITING, JobState.HELD)
ACTIVE = (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED)
MAX_DEATHS, WARD_DEATHS = 3, 2


@dataclass
class Job:
    id: int
    run_id: int
    stage: str
    key: str
    state: JobState = JobState.QUEUED
    attempt: int = 0
    tries: int = 0
    throttles: int = 0
    deaths: int = 0
    worker: str | None = None
    due_at: float | None = None
    # Where it returns to when it is held.
    returns: tuple[JobState, float | None] = (JobState.QUEUED, None)

    def as_row(self) -> tuple[object, ...]:
        return (
            self.run_id, self.stage, self.key, self.state, self.attempt, self.tries,
            self.throttles, self.deaths, self.worker, self.due_at,
        )  # fmt: skip


@dataclass
class Model:
    now: float
    sources: dict[int, int] = field(default_factory=dict)
    runs: dict[int, RunState] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    records: dict[str, tuple[int, int]] = field(default_factory=dict)
    # What the present turn has changed: a record's versions are what was committed.
    changed: set[str] = field(default_factory=set)
    workers: set[str] = field(default_factory=set)
    # Runs of which a job was claimed, or that were opened again.
    begun: set[int] = field(default_factory=set)
    paused: set[int] = field(default_factory=set)
    held: set[int] = field(default_factory=set)
    cooling: dict[int, float] = field(default_factory=dict)
    expected: list[tuple[int, str, str]] = field(default_factory=list)
    # How many saves each run made, and what became of its candidates that succeeded.
    saves: Counter[int] = field(default_factory=Counter)
    fates: Counter[tuple[int, str]] = field(default_factory=Counter)

    # What the verbs do.

    def start(self, run_id: int, source_id: int) -> None:
        self.sources[run_id] = source_id
        self.runs[run_id] = RunState.QUEUED
        self.expect(run_id, "discover", "root")

    def expect(self, run_id: int, stage: str, key: str) -> None:
        """From now on there is such a job; its number is the store's business."""
        if self.find(run_id, stage, key) is None:
            self.expected.append((run_id, stage, key))

    def learn(self, rows: list[JobRow]) -> None:
        """Take the numbers of new jobs from the store; there must be those expected and no others."""
        new = [row for row in rows if row.id not in self.jobs]
        assert sorted((r.run_id, r.stage, r.key) for r in new) == sorted(set(self.expected))
        for row in new:
            self.jobs[row.id] = Job(row.id, row.run_id, row.stage, row.key)
        self.expected.clear()

    def judge(self, worker: str, ends: list[Ends]) -> tuple[list[Ends], list[Ends]]:
        """Which of these ends count, and which come too late; an attempt ends once."""
        self.changed.clear()
        owned: list[Ends] = []
        lost: list[Ends] = []
        over: set[tuple[int, int]] = set()
        for end in ends:
            job = self.jobs[end.job_id]
            is_mine = (job.state, job.worker, job.attempt) == (
                JobState.RUNNING, worker, end.attempt,
            )  # fmt: skip
            counts = is_mine and (end.job_id, end.attempt) not in over
            (owned if counts else lost).append(end)
            if isinstance(end, Settlement):
                over.add((end.job_id, end.attempt))
        return owned, lost

    def settle(self, end: Ends) -> None:
        job = self.jobs[end.job_id]
        if isinstance(end, Settlement):
            job.state, job.worker = end.state, None
            job.due_at = self.now + end.delay_s if end.state is JobState.WAITING else None
            job.tries += end.spends_try
            job.throttles += end.is_throttle
            if end.closes_host:
                source_id = self.sources[job.run_id]
                until = self.now + end.closes_for_s
                self.cooling[source_id] = max(self.cooling.get(source_id, 0.0), until)
        has_changed = self._apply(job, end.effects)
        is_good = isinstance(end, Settlement) and end.state is JobState.SUCCEEDED
        if is_good and job.stage == "persist":
            self.fates[job.run_id, self._fate(end.effects, has_changed)] += 1

    def _apply(self, job: Job, effects: Effects) -> bool:
        has_changed = False
        for child in effects.children:
            self.expect(job.run_id, child.stage, child.key)
        for save in effects.saves:
            data, version = self.records.get(save.key, (None, 0))
            self.saves[job.run_id] += 1
            if data != int(save.data):
                self.records[save.key] = (int(save.data), version + (save.key not in self.changed))
                self.changed.add(save.key)
                has_changed = True
        return has_changed

    def _fate(self, effects: Effects, has_changed: bool) -> str:
        if effects.saves:
            return "accepted" if has_changed else "duplicate"
        if effects.rejections:
            return "rejected"
        if effects.children:
            return "passed"
        return "dropped" if effects.is_dropped else "accepted"

    def close(self, job_id: int, ended: list[int]) -> None:
        """The store has closed an entry of quarantine; one of these runs must have answered it."""
        job = self.jobs[job_id]
        assert job.state is JobState.QUARANTINED
        assert any(
            self._answers(other, job) for other in self.jobs.values() if other.run_id in ended
        )
        job.state = JobState.CANCELLED

    def _answers(self, other: Job, entry: Job) -> bool:
        """A later job of the same source, stage and key; or of a candidate's page, which succeeded."""
        if other.run_id == entry.run_id or self.sources[other.run_id] != self.sources[entry.run_id]:
            return False
        if (other.stage, other.key) == (entry.stage, entry.key):
            return other.state not in OPEN and other.state is not JobState.CANCELLED
        is_page = (other.stage, entry.stage) == ("extract", "persist")
        return is_page and other.state is JobState.SUCCEEDED

    def wake(self) -> None:
        for job in self.jobs.values():
            if job.due_at is not None and job.due_at <= self.now:
                job.state, job.due_at = JobState.QUEUED, None

    def advance(self) -> None:
        """Every active run with nothing open gathers, or ends."""
        for run_id, state in self.runs.items():
            if state not in ACTIVE or any(run_id == where for where, _, _ in self.expected):
                continue
            jobs = [job for job in self.jobs.values() if job.run_id == run_id]
            if any(job.state in OPEN for job in jobs):
                continue
            [root] = [job for job in jobs if job.stage == "discover"]
            if root.state in (JobState.SUCCEEDED, JobState.SKIPPED) and not self.find(
                run_id, "report", "gather"
            ):
                self.expect(run_id, "report", "gather")
            else:
                verdict = self._verdict(state, jobs)
                is_good = verdict in (RunState.COMPLETED, RunState.PARTIAL)
                if is_good and self._is_empty(run_id, jobs) and self._usually_yields(run_id):
                    verdict = RunState.PARTIAL
                self.runs[run_id] = verdict

    def _is_empty(self, run_id: int, jobs: list[Job]) -> bool:
        work = [job.state for job in jobs if job.stage in ("extract", "persist")]
        return not self._records(run_id) and JobState.CANCELLED not in work

    def _records(self, run_id: int) -> int:
        accepted = self.fates[run_id, "accepted"] + self.fates[run_id, "duplicate"]
        return self.saves[run_id] + accepted

    def _pages(self, run_id: int) -> int:
        return self.in_state(run_id, "extract", JobState.SUCCEEDED)

    def _usually_yields(self, run_id: int) -> bool:
        """Three of the last five ended runs of the source did."""
        alike = [
            other
            for other in sorted(self.runs, reverse=True)
            if other != run_id
            and self.sources[other] == self.sources[run_id]
            and self.runs[other] in (RunState.COMPLETED, RunState.PARTIAL, RunState.FAILED)
        ][:5]
        if sum(self._records(other) > 0 for other in alike) >= 3:
            return True
        return not self._pages(run_id) and sum(self._pages(other) > 0 for other in alike) >= 3

    def _verdict(self, state: RunState, jobs: list[Job]) -> RunState:
        required = [job.state for job in jobs if job.stage in ("discover", "report")]
        bad = [job for job in jobs if job.state is JobState.QUARANTINED]
        pages = [job for job in jobs if job.stage == "extract"]
        if JobState.QUARANTINED in required:
            return RunState.FAILED
        if JobState.CANCELLED in required or state is RunState.QUEUED:
            return RunState.CANCELLED
        if pages and all(job.state is JobState.QUARANTINED for job in pages):
            return RunState.FAILED
        return RunState.PARTIAL if bad else RunState.COMPLETED

    def claim(self, worker: str, claimed: list[Claimed]) -> None:
        for taken in claimed:
            job = self.jobs[taken.id]
            assert self.may_start(job), "claimed what a gate holds back"
            assert taken.attempt == job.attempt + 1
            assert (taken.tries, taken.deaths) == (job.tries, job.deaths)
            job.state, job.worker, job.attempt = JobState.RUNNING, worker, taken.attempt
            if self.runs[job.run_id] is RunState.QUEUED:
                self.runs[job.run_id] = RunState.RUNNING
                self.begun.add(job.run_id)

    def take_back(self, worker: str, is_dead: bool) -> None:
        self.workers.discard(worker)
        for job in self.jobs.values():
            if job.worker == worker:
                job.worker, job.state = None, JobState.QUEUED
                job.deaths += is_dead
                job.tries += is_dead
                if is_dead and job.deaths >= MAX_DEATHS:
                    job.state = JobState.QUARANTINED

    def cancel(self, job: Job) -> None:
        job.state, job.worker, job.due_at = JobState.CANCELLED, None, None

    def hold(self, job: Job) -> None:
        job.returns = (job.state, job.due_at)
        job.state, job.due_at = JobState.HELD, None

    def unhold(self, job: Job) -> None:
        job.state, job.due_at = job.returns

    def retry(self, job: Job) -> None:
        job.state, job.due_at = JobState.QUEUED, None
        job.tries = job.throttles = job.deaths = 0
        if self.runs[job.run_id] in (RunState.PARTIAL, RunState.FAILED):
            self.runs[job.run_id] = RunState.RUNNING
            self.begun.add(job.run_id)

    # What may be asked of it.

    def find(self, run_id: int, stage: str, key: str) -> Job | None:
        jobs = self.jobs.values()
        return next((j for j in jobs if (j.run_id, j.stage, j.key) == (run_id, stage, key)), None)

    def may_start(self, job: Job) -> bool:
        source_id = self.sources[job.run_id]
        return (
            job.state is JobState.QUEUED
            and self.runs[job.run_id] in (RunState.QUEUED, RunState.RUNNING)
            and source_id not in self.paused
            and not self.held & {0, source_id}
            and self.cooling.get(source_id, 0.0) <= self.now
        )

    def running(self, source_id: int, is_candidate: bool) -> int:
        return sum(
            job.state is JobState.RUNNING
            and self.sources[job.run_id] == source_id
            and (job.stage == "persist") == is_candidate
            for job in self.jobs.values()
        )

    def has_room(self, source_id: int, is_candidate: bool) -> bool:
        limit = LIMITS.candidates if is_candidate else LIMITS.concurrency
        return self.running(source_id, is_candidate) < limit

    def left_behind(self) -> list[Job]:
        """Jobs that may start and whose lane has room for them; suspects wait for the ward."""
        return [
            job
            for job in self.jobs.values()
            if self.may_start(job)
            and self.has_room(self.sources[job.run_id], job.stage == "persist")
        ]

    def in_state(self, run_id: int, stage: str, state: JobState) -> int:
        wanted = (run_id, stage, state)
        return sum((job.run_id, job.stage, job.state) == wanted for job in self.jobs.values())

    def in_ward(self, worker: str) -> int:
        jobs = self.jobs.values()
        return sum(job.worker == worker and job.deaths >= WARD_DEATHS for job in jobs)
