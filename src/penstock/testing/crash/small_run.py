"""A whole small run on virtual time, what it must come to, and how it is taken up after a crash.

Seven pages: one fails the first time, one is rejected, one is skipped, one yields two records; a
checkpoint is committed on the way, and a gather step counts the records at the end. The same pages are
those of seven days in the scene of a backfill, which is planned two units at a time.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.clock import Clock
from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.http.network import RawResponse, Request
from penstock.jobs.outcome import Flush, Settlement
from penstock.pipeline import planner
from penstock.project import Project
from penstock.settings import load_settings
from penstock.snapshots import SegmentPlace, directory, open_snapshots
from penstock.store.jobs import JobFilter
from penstock.store.snapshots import Kept
from penstock.store.sqlite.store import SqliteStore
from penstock.store.turn.turn import Turn
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal
from penstock.testing.crash.faults import FaultyDisk, FaultyOs, Plan

CONFIG = """
project: small
sources:
  shop:
    pipeline: steps:shop
    fetch: {allow_private: true, robots: false}
    limits: {concurrency: 3}
    backfill: {partitions: [shop], share: 1}
"""

STEPS = """
from penstock import Pipeline, Reject, Skip

shop = Pipeline("shop")


@shop.step(unit="run")
async def discover(ctx):
    for number in range(7):
        if number == 4:
            ctx.checkpoint({"page": number})
            await ctx.commit()
        yield {"url": f"http://shop.example/{number}"}
    ctx.checkpoint({"page": 7})


@shop.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    if response.text == "empty":
        raise Skip("nothing there")
    for word in response.text.split():
        yield {"word": word}


@shop.step(after="extract", unit="candidate")
def persist(candidate, ctx):
    if candidate["word"] == "junk":
        raise Reject("junk")
    ctx.save("word", key=candidate["word"], data=candidate)
    ctx.note("saved " + candidate["word"])


@shop.step(after="persist", unit="run", gather=True)
async def summary(ctx):
    words = [row["key"] async for row in ctx.records("word")]
    ctx.save("summary", key="all", data={"words": words})
"""

# The same pages as days: the steps that find and fetch them are others.
BACKFILLED = """
from penstock import Pipeline, Reject, Skip

shop = Pipeline("shop")


@shop.step(unit="page", windows=True)
async def extract(ctx):
    number = ctx.window.start.day - 1
    response = await ctx.fetch(f"http://shop.example/{number}")
    ctx.checkpoint(number, partition=f"day {number}")
    if response.text == "empty":
        raise Skip("nothing there")
    for word in response.text.split():
        yield {"word": word}

"""
SCENES = {
    "full": STEPS,
    "backfill": BACKFILLED + STEPS[STEPS.index('\n@shop.step(after="extract"') :],
}

BODIES = ["zero", "one", "junk", "three", "empty", "five again", "six"]
FLAKY = "http://shop.example/3"
WORDS = {"zero", "one", "three", "five", "again", "six"}
ENDS = ("job.succeeded", "job.skipped", "job.retry_scheduled", "job.snoozed", "job.released")
LAST_ENDS = ("job.succeeded", "job.skipped", "job.quarantined", "job.cancelled")
CHECKPOINT_PAGES = 30


class CrashingProject(Project):
    """A project whose disk follows a plan, and which says what was acknowledged to it, on another disk."""

    def __init__(self, folder: Path, plan: Plan | None = None, acks: Path | None = None) -> None:
        self.virtual = VirtualClock()
        super().__init__(load_settings(folder), self.virtual)
        self._disk = FaultyDisk(plan) if plan is not None else None
        self._acks = acks

    def open_store(self) -> SqliteStore:
        vfs = self._disk.name if self._disk is not None else None
        return Acknowledging(self.settings.store_file, self.clock, vfs=vfs, acks=self._acks)


class Acknowledging(SqliteStore):
    """Writes down what it was told is durable, where no fault reaches."""

    def __init__(self, path: Path, clock: Clock, *, vfs: str | None, acks: Path | None) -> None:
        self._acks = acks
        super().__init__(path, clock, vfs=vfs)
        self._start_run, self.runs.start = self.runs.start, self._acknowledged  # type: ignore[method-assign]
        self._checkpoint_often()

    def reopen(self) -> None:
        super().reopen()
        self._checkpoint_often()

    def _checkpoint_often(self) -> None:
        # A run this small would never fill the log: let checkpoints be among the crash points.
        self._db.connection.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)

    def acknowledge(self, kind: str, things: Sequence[object]) -> None:
        if self._acks is not None and things:
            with open(self._acks, "a") as file:
                file.write("".join(json.dumps([kind, thing]) + "\n" for thing in things))

    def _acknowledged(self, *args: Any, **kwargs: Any) -> tuple[int, bool]:
        answer = self._start_run(*args, **kwargs)
        self.acknowledge("run", [answer[0]])
        return answer

    def turn(
        self,
        worker: str,
        ends: Sequence[Settlement | Flush],
        capacity: Capacity,
        limits: Mapping[int, LaneLimits],
        kept: Sequence[Kept] = (),
    ) -> Turn:
        turn = super().turn(worker, ends, capacity, limits, kept)
        lost = set(turn.lost)
        settled = [end for end in ends if isinstance(end, Settlement) and end.job_id not in lost]
        self.acknowledge("end", [(end.job_id, end.attempt) for end in settled])
        known = set(turn.snapshot_ids)
        self.acknowledge("page", [(k.job_id, k.url) for k in kept if k.id in known])
        return turn


def lay_out(folder: Path, scene: str = "full") -> None:
    (folder / "penstock.yaml").write_text(CONFIG)
    (folder / "steps.py").write_text(SCENES[scene])


def network(acks: Path) -> ScriptedNetwork:
    """Fails once in all, also when Penstock has died meanwhile."""
    has_failed = acks.with_name("has-failed")

    async def script(request: Request) -> RawResponse:
        if request.url == FLAKY and not has_failed.exists():
            has_failed.touch()
            return RawResponse(500, {}, b"not yet")
        return RawResponse(200, {}, BODIES[int(request.url.rpartition("/")[2])].encode())

    return ScriptedNetwork(script)


def work(folder: Path, plan: Plan | None, acks: Path, seed: int, scene: str = "full") -> None:
    """Do what `penstock run` does: take over from whoever died, have one run, and work it off."""
    project = CrashingProject(folder, plan, acks)
    vars(planner).update(CHUNK_UNITS=2, AHEAD_JOBS=3)
    if plan is not None:
        vars(directory)["os"] = FaultyOs(plan)
    try:
        take_over(project)
        if not project.connection.runs.newest():
            if scene == "backfill":
                project.backfill("shop", "2024-01-01", "2024-01-07")
            else:
                project.run("shop")
        finish(project, acks, seed)
    finally:
        vars(directory)["os"] = os
        project.close()


def take_over(project: Project) -> None:
    """What a supervisor does when it begins: it holds the lock, so whoever is registered is dead."""
    project.connection.quick_check()
    for worker in project.connection.workers.all():
        project.connection.workers.bury(worker.id, "it was gone")


def finish(project: CrashingProject, acks: Path, seed: int) -> None:
    with Simulation(project, network(acks), seed=seed, clock=project.virtual) as simulation:
        simulation.run()


def acknowledged(acks: Path, kind: str) -> list[Any]:
    if not acks.exists():
        return []
    lines = [json.loads(line) for line in acks.read_text().splitlines()]
    return [thing for name, thing in lines if name == kind]


def problems_after_crash(folder: Path, acks: Path) -> list[str]:
    """What is wrong with the files as a crash left them: acknowledged things that are not there."""
    project = CrashingProject(folder)
    try:
        store = project.connection
        found = store.upkeep.check()
        runs = {run.id for run in store.runs.newest(limit=1000)}
        found += [f"run {run} is lost" for run in acknowledged(acks, "run") if run not in runs]
        ends = {(e.job_id, e.attempt) for e in journal(project) if e.kind in ENDS}
        found += [
            f"job {job} lost the end of attempt {attempt}"
            for job, attempt in acknowledged(acks, "end")
            if (job, attempt) not in ends
        ]
        return found + _lost_pages(project, acknowledged(acks, "page"))
    finally:
        project.close()


def _lost_pages(project: Project, wanted: list[tuple[int, str]]) -> list[str]:
    snapshots = open_snapshots(project.settings.snapshots, "reader")
    found = []
    for job_id, url in wanted:
        row = project.connection.snapshots.of(job_id, url)
        if row is None:
            found.append(f"the page of job {job_id} is lost")
            continue
        body = snapshots.read(SegmentPlace(row.hash, row.segment, row.offset, row.length)).body
        if body.decode() != BODIES[int(url.rpartition("/")[2])]:
            found.append(f"the page of job {job_id} has another body")
    snapshots.close()
    return found


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a run came to that must not depend on when it was interrupted."""

    state: str
    counts: tuple[int, ...]
    records: dict[tuple[str, str], tuple[Any, int]]
    checkpoints: dict[str, Any]
    jobs: dict[tuple[str, str], str]
    notes: dict[str, int]
    cursors: dict[str, Any]
    covered: list[tuple[float, float]]


def facts(folder: Path) -> Facts:
    project = CrashingProject(folder)
    try:
        store = project.connection
        [run] = store.runs.newest(limit=100)
        return Facts(
            str(run.state),
            (run.inserted, run.updated, run.unchanged, run.rejected),
            {
                (name, row.key): (row.data, row.version)
                for name, _ in store.records.collections()
                for row in store.records.of(name)
            },
            store.checkpoints.cursors(project.source_ids["shop"]),
            {
                (job.stage, job.key): str(job.state)
                for job in store.jobs.find(JobFilter(limit=1000))
            },
            Counter(event.detail for event in journal(project) if event.kind == "job.noted"),
            {
                name: cursor["next"] if name == planner.CURSOR else cursor
                for name, cursor in store.checkpoints.of_run(run.id).items()
            },
            [
                (row.start_at, row.end_at)
                for row in store.sources.covered(run.source_id, ["shop"], 0, project.clock.now())
            ],
        )
    finally:
        project.close()


def problems_at_the_end(folder: Path, expected: Facts) -> list[str]:
    """What is wrong with the finished run: the oracle."""
    project = CrashingProject(folder)
    try:
        found = [*project.connection.upkeep.check(), *_wrong_ends(project)]
    finally:
        project.close()
    seen = facts(folder)
    for name in Facts.__slots__:
        has, wants = getattr(seen, name), getattr(expected, name)
        if has != wants:
            found.append(f"{name}: {has} instead of {wants}")
    return found


def _wrong_ends(project: Project) -> list[str]:
    last = {job.id: job.attempt for job in project.connection.jobs.find(JobFilter(limit=1000))}
    ends = [event for event in journal(project) if event.kind in LAST_ENDS]
    found = [
        f"job {event.job_id} was ended by attempt {event.attempt}"
        for event in ends
        if event.job_id is not None and event.attempt != last[event.job_id]
    ]
    if any(count > 1 for count in Counter(event.job_id for event in ends).values()):
        found.append("a job ended twice")
    if any(worker.running for worker in project.connection.workers.all()):
        found.append("a dead worker owns a job")
    return found
