"""Streams on virtual time: offset and records together, on from the latest, and nothing missed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.engine.foreground import nothing_left
from penstock.errors import PipelineError
from penstock.gates.capacity import Capacity
from penstock.http.network import RawResponse, Request
from penstock.jobs.job import JobState
from penstock.jobs.run import RunKind
from penstock.pipeline.pipeline import Pipeline
from penstock.store.jobs import JobFilter
from penstock.store.rows import JobRow
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal

pytestmark = pytest.mark.usefixtures("pipelines")

MODULE = "streamed_pipelines"
PIPELINES = """
import asyncio

from penstock import Pipeline

ticker = Pipeline("ticker")
trouble = []
what_breaks = ConnectionError


@ticker.step(unit="stream")
async def listen(ctx):
    latest = await ctx.cursor("ticks") or 0
    while True:
        await asyncio.sleep(1.0)
        latest += 1
        if latest in trouble:
            trouble.remove(latest)
            raise what_breaks("the line went dead")
        ctx.save("tick", key=latest, data={"n": latest})
        ctx.checkpoint(latest, "ticks")
        yield {"n": latest}


@ticker.step(after="listen", unit="candidate", key="n")
def double(tick, ctx):
    ctx.save("double", key=tick["n"], data={"n": 2 * tick["n"]})


ending = Pipeline("ending")


@ending.step(unit="stream")
async def read(ctx):
    for number in range(3):
        ctx.save("tick", key=number, data={})
    await ctx.commit()


@ending.step(unit="run")
def everything(ctx):
    ctx.save("whole", key="all", data={})
"""


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def a_project(tmp_path: Path, clock: VirtualClock, pipeline: str = "ticker") -> Project:
    (tmp_path / "penstock.yaml").write_text(
        f"sources:\n  ticks:\n    pipeline: {MODULE}:{pipeline}\n    retry: fast\n"
    )
    project = Project.load(tmp_path)
    project.clock = clock
    return project


async def nowhere(request: Request) -> RawResponse:
    raise AssertionError(f"nothing is fetched here: {request.url}")


def listened(project: Project, clock: VirtualClock, for_s: float, seed: int) -> None:
    with Simulation(project, ScriptedNetwork(nowhere), seed=seed, clock=clock) as simulation:
        simulation.run(for_s)


def stream_of(project: Project, kind: RunKind = RunKind.STREAM) -> int:
    return project.start_run("ticks", kind.value).id


def the_job(project: Project) -> JobRow:
    [job] = [
        job for job in project.connection.jobs.find(JobFilter(limit=10_000)) if job.unit == "run"
    ]
    return job


def ticks(project: Project) -> list[int]:
    return sorted(int(row.key) for row in project.connection.records.of("tick", limit=10_000))


def cursor(project: Project) -> object:
    return project.connection.checkpoints.cursors(project.source_ids["ticks"]).get("ticks")


def test_stream_commits_its_offset_with_its_records(tmp_path: Path, clock: VirtualClock) -> None:
    project = a_project(tmp_path, clock)
    run_id = stream_of(project)

    listened(project, clock, 30.5, seed=1)

    assert len(ticks(project)) >= 28
    assert ticks(project) == list(range(1, 1 + len(ticks(project))))
    assert cursor(project) == ticks(project)[-1]
    assert project.require_run(run_id).state == "running"
    doubled = {int(row.key) for row in project.connection.records.of("double", limit=10_000)}
    assert doubled
    assert doubled <= set(ticks(project))


def test_stream_that_is_drained_stops_at_once_and_spends_nothing(
    tmp_path: Path, clock: VirtualClock
) -> None:
    project = a_project(tmp_path, clock)
    stream_of(project)
    began = clock.now()

    listened(project, clock, 30.5, seed=1)

    assert clock.now() - began < 32.0
    job = the_job(project)
    assert (job.state, job.tries, job.deaths) == (JobState.QUEUED, 0, 0)


def test_stream_goes_on_from_the_latest_after_a_restart(
    tmp_path: Path, clock: VirtualClock
) -> None:
    project = a_project(tmp_path, clock)
    run_id = stream_of(project)

    for seed in range(5):
        listened(project, clock, 20.5, seed)
    seen = ticks(project)

    assert len(seen) >= 90
    assert seen == list(range(1, 1 + len(seen)))
    assert project.require_run(run_id).updated == 0
    assert cursor(project) == seen[-1]


def test_stream_that_breaks_is_tried_again_and_progress_makes_up_for_it(
    tmp_path: Path, clock: VirtualClock
) -> None:
    project = a_project(tmp_path, clock)
    stream_of(project)
    sys.modules[MODULE].trouble[:] = [10 * number for number in range(1, 13)]

    listened(project, clock, 300.0, seed=3)

    assert not sys.modules[MODULE].trouble
    assert the_job(project).state is JobState.QUEUED
    assert ticks(project) == list(range(1, 1 + len(ticks(project))))
    assert sum(event.kind == "job.retry_scheduled" for event in journal(project)) == 12


def test_stream_that_breaks_for_no_known_reason_is_tried_again_after_it_came_further(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of such failures two in a row are too many, and these are not in a row."""
    project = a_project(tmp_path, clock)
    stream_of(project)
    # Without an errno it says nothing.
    monkeypatch.setattr(sys.modules[MODULE], "what_breaks", OSError)
    sys.modules[MODULE].trouble[:] = [10, 20, 30, 40]

    listened(project, clock, 120.0, seed=3)

    assert not sys.modules[MODULE].trouble
    assert the_job(project).state is JobState.QUEUED
    assert sum(event.kind == "job.retry_scheduled" for event in journal(project)) == 4


def test_stream_that_never_comes_further_ends_in_quarantine(
    tmp_path: Path, clock: VirtualClock
) -> None:
    project = a_project(tmp_path, clock)
    run_id = stream_of(project)
    sys.modules[MODULE].trouble[:] = [1] * 50

    listened(project, clock, 3600.0, seed=3)

    assert the_job(project).state is JobState.QUARANTINED
    assert project.require_run(run_id).state == "failed"


def test_stream_whose_workers_die_is_no_poison_while_it_comes_further(
    tmp_path: Path, clock: VirtualClock
) -> None:
    project = a_project(tmp_path, clock)
    stream_of(project)
    store = project.connection

    for seed in range(6):
        listened(project, clock, 10.5, seed)
        name = f"dies-{seed}"
        store.workers.register(name, "here", 1, "1")
        [claimed] = [
            job
            for job in store.turn(name, [], Capacity(100), project.limits()).claimed
            if job.stage == "listen"
        ]
        assert claimed.deaths <= 1
        store.workers.bury(name, "killed")

    assert the_job(project).state is JobState.QUEUED


def test_stream_that_ends_by_itself_completes_its_run(tmp_path: Path, clock: VirtualClock) -> None:
    project = a_project(tmp_path, clock, "ending")
    run_id = stream_of(project)

    listened(project, clock, 5.0, seed=1)

    assert project.require_run(run_id).state == "completed"
    assert ticks(project) == [0, 1, 2]
    assert not project.connection.records.of("whole")


def test_other_kinds_leave_streams_out(tmp_path: Path, clock: VirtualClock) -> None:
    project = a_project(tmp_path, clock, "ending")
    run_id = stream_of(project, RunKind.FULL)

    listened(project, clock, 5.0, seed=1)

    assert project.require_run(run_id).state == "completed"
    assert [row.key for row in project.connection.records.of("whole")] == ["all"]
    assert ticks(project) == []


def test_pipeline_that_only_streams_has_no_full_run(tmp_path: Path, clock: VirtualClock) -> None:
    project = a_project(tmp_path, clock)

    with pytest.raises(PipelineError, match="no step that begins a run and ends"):
        stream_of(project, RunKind.FULL)


def test_nobody_waits_for_a_stream_to_end(tmp_path: Path, clock: VirtualClock) -> None:
    project = a_project(tmp_path, clock)
    stream_of(project)
    store = project.connection
    store.workers.register("w", "here", 1, "1")
    assert not nothing_left(store)
    store.turn("w", [], Capacity(10), project.limits())
    assert nothing_left(store)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"after": "first"}, "begins a run"),
        ({"isolation": "process"}, "child process"),
    ],
)
def test_stream_in_the_wrong_place_is_refused(options: dict[str, Any], complaint: str) -> None:
    pipeline = Pipeline("wrong")

    @pipeline.step(unit="run")
    def first(ctx: Any) -> Any:
        yield {}

    @pipeline.step(unit="stream", **options)
    def second(ctx: Any) -> Any:
        yield {}

    with pytest.raises(PipelineError, match=complaint):
        pipeline.compile()


# What was missed.

GAPS = """
import asyncio

from penstock import Pipeline

quotes = Pipeline("quotes")


@quotes.step(unit="stream")
async def listen(ctx):
    while True:
        await asyncio.sleep(1.0)
        ctx.save("quote", key=int(ctx.now()), data={"from": "stream"})
        ctx.checkpoint(ctx.now(), "AAPL")
        yield {"live": True}


@quotes.step(unit="page", windows=True)
def fetch(window, ctx):
    start, end = ctx.window.start.timestamp(), ctx.window.end.timestamp()
    ctx.note(f"window {start:.0f} {end:.0f}")
    for second in range(int(start), int(end) + 1):
        ctx.save("quote", key=second, data={"from": "backfill"}, merge="keep")
"""


@pytest.fixture
def quoted(tmp_path: Path, clock: VirtualClock) -> Project:
    (tmp_path / "modules" / f"{MODULE}.py").write_text(GAPS)
    (tmp_path / "penstock.yaml").write_text(
        f"""
sources:
  ticks:
    pipeline: {MODULE}:quotes
    stream: {{gap: 60s}}
    backfill: {{window: 10m, partitions: [AAPL]}}
"""
    )
    project = Project.load(tmp_path)
    project.clock = clock
    return project


def backfills(project: Project) -> list[int]:
    return [
        run.id for run in project.connection.runs.newest(limit=100) if run.kind is RunKind.BACKFILL
    ]


def test_what_a_stream_missed_is_filled_by_a_backfill_that_is_linked_to_it(
    quoted: Project, clock: VirtualClock
) -> None:
    run_id = stream_of(quoted)
    listened(quoted, clock, 100.0, seed=1)
    left_at = int(clock.now())
    clock.advance(1800.0)

    listened(quoted, clock, 100.0, seed=2)

    [filling] = backfills(quoted)
    assert quoted.require_run(filling).of_run_id == run_id
    assert quoted.require_run(filling).state == "completed"
    seconds = {int(row.key) for row in quoted.connection.records.of("quote", limit=100_000)}
    assert seconds >= set(range(left_at, left_at + 1800))
    assert "stream was away" in quoted.require_run(filling).reason


def test_short_absence_is_no_gap(quoted: Project, clock: VirtualClock) -> None:
    stream_of(quoted)
    for seed in range(4):
        listened(quoted, clock, 100.0, seed)
        clock.advance(50.0)

    assert backfills(quoted) == []


def test_stream_that_listens_is_known_to_be_alive(quoted: Project, clock: VirtualClock) -> None:
    """It beats while it listens, whether anything comes or not."""
    run_id = stream_of(quoted)
    listened(quoted, clock, 600.0, seed=1)
    alive_at = quoted.connection.jobs.stream_alive_at(quoted.source_ids["ticks"])

    assert alive_at is not None
    assert clock.now() - alive_at < 10.0
    assert quoted.require_run(run_id).state == "running"


def test_second_run_of_a_stream_fills_what_was_missed_since_the_first(
    quoted: Project, clock: VirtualClock
) -> None:
    first = stream_of(quoted)
    listened(quoted, clock, 100.0, seed=1)
    list(quoted.cancel(first))
    clock.advance(600.0)
    second = stream_of(quoted)

    listened(quoted, clock, 100.0, seed=2)

    [filling] = backfills(quoted)
    assert quoted.require_run(filling).of_run_id == second
