"""Backfills on virtual time: planned as they go, behind live work, and only what is missing."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.backfill_estimate import estimate
from penstock.engine.leader.scheduler import Scheduler
from penstock.errors import ConfigError, PipelineError, Refused, UsageError
from penstock.http.network import RawResponse, Request
from penstock.jobs.job import JobState
from penstock.jobs.run import RunKind, RunState
from penstock.jobs.windows import windows_of
from penstock.pipeline.planner import AHEAD_JOBS, CHUNK_UNITS, PLANNER
from penstock.project.backfills import missing, start_linked_backfill
from penstock.store.health import HealthRow
from penstock.store.jobs import JobFilter
from penstock.store.rows import RunRow
from penstock.testing import EPOCH, ScriptedNetwork, Simulation, VirtualClock, journal

pytestmark = pytest.mark.usefixtures("pipelines")

MODULE = "backfilled_pipelines"
PIPELINES = """
from penstock import Pipeline, Skip

prices = Pipeline("prices")


@prices.step(unit="run")
async def discover(ctx):
    for n in range(ctx.params.get("live", 0)):
        yield {"partition": "live", "from": f"2020-01-{n + 1:02}", "to": f"2020-01-{n + 2:02}"}


@prices.step(after="discover", unit="page", windows=True)
async def fetch(window, ctx):
    span = ctx.window
    assert span.end > span.start and span.partition == window["partition"]
    response = await ctx.fetch(f"http://prices.example/{span.partition}/{span.start:%Y-%m-%dT%H}")
    ctx.checkpoint(span.start.isoformat(), partition=span.partition)
    if response.text == "none":
        raise Skip("nothing on that day")
    yield {"key": f"{span.partition} {span.start:%Y-%m-%dT%H}", "seen": await ctx.cursor(span.partition)}


@prices.step(after="fetch", unit="candidate")
def persist(row, ctx):
    ctx.save("price", key=row["key"], data={"key": row["key"]})


@prices.step(after="persist", unit="run", gather=True)
def report(ctx):
    ctx.note("all is in")


bare = Pipeline("bare")


@bare.step(unit="run")
def nothing(ctx):
    return None
"""
BACKFILL = {"window": "1d", "partitions": ["AAPL", "MSFT"]}
Script = Callable[[Request], Any]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def a_project(folder: Path, clock: VirtualClock, **source: Any) -> Project:
    folder.mkdir(exist_ok=True)
    settings = {
        "pipeline": f"{MODULE}:prices",
        "fetch": {"allow_private": True, "robots": False},
        "limits": {"concurrency": 8},
        "backfill": BACKFILL,
        **source,
    }
    config = {"project": "simulated", "sources": {"prices": settings}}
    (folder / "penstock.yaml").write_text(json.dumps(config))
    project = Project.load(folder)
    project.clock = clock
    return project


@pytest.fixture
def project(tmp_path: Path, clock: VirtualClock) -> Iterator[Project]:
    with closing(a_project(tmp_path / "project", clock)) as made:
        yield made


async def always(request: Request) -> RawResponse:
    await asyncio.sleep(0.1)
    return RawResponse(200, {}, b"1.0")


def simulate(
    project: Project, clock: VirtualClock, script: Script = always, seed: int = 1
) -> list[str]:
    """Work until every run has ended; answers with what was asked for."""
    network = ScriptedNetwork(script)
    with Simulation(project, network, seed=seed, clock=clock) as simulation:
        try:
            simulation.run()
        finally:
            end_tasks(simulation)
    return [url.removeprefix("http://prices.example/") for url in network.requests]


def end_tasks(simulation: Simulation) -> None:
    """What a worker that is gone leaves behind in this process, which is not gone."""
    loop = simulation._loop
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))


def row(project: Project, run_id: int) -> RunRow:
    return project.require_run(run_id)


def test_every_unit_is_fetched_once_and_covered(project: Project, clock: VirtualClock) -> None:
    run_id = project.backfill("prices", "2024-01-01", "2024-01-31")

    asked = simulate(project, clock)

    run = row(project, run_id)
    assert (run.state, run.kind, run.pages, run.inserted) == ("completed", RunKind.BACKFILL, 62, 62)
    assert max(Counter(asked).values()) == 1
    assert len(asked) == 62
    covered = project.connection.sources.covered(run.source_id, ["AAPL", "MSFT"], 0, EPOCH)
    assert len(covered) == 62
    assert {c.run_id for c in covered} == {run_id}
    assert "all is in" in [event.detail for event in journal(project)]
    assert project.connection.upkeep.check() == []


def test_backfill_has_cursors_of_its_own(project: Project, clock: VirtualClock) -> None:
    source_id = project.source_ids["prices"]
    run_id = project.backfill("prices", "2024-01-01", "2024-01-03", ["AAPL"])

    simulate(project, clock)

    assert project.connection.checkpoints.cursors(source_id) == {}
    assert project.connection.checkpoints.of_run(run_id)["AAPL"] == "2024-01-03T00:00:00+00:00"


def test_live_run_covers_its_windows_and_moves_its_checkpoints(
    tmp_path: Path, clock: VirtualClock
) -> None:
    with closing(a_project(tmp_path / "live", clock, params={"live": 3})) as project:
        run_id = project.run("prices")
        simulate(project, clock)

        source_id = project.source_ids["prices"]
        assert row(project, run_id).state == "completed"
        assert len(project.connection.sources.covered(source_id, ["live"], 0, EPOCH)) == 3
        assert project.connection.checkpoints.cursors(source_id) == {
            "live": "2020-01-03T00:00:00+00:00"
        }


def test_window_in_which_there_was_nothing_is_covered_and_a_failed_one_is_not(
    project: Project, clock: VirtualClock
) -> None:
    async def script(request: Request) -> RawResponse:
        if "01-02" in request.url:
            return RawResponse(404, {}, b"")
        return RawResponse(200, {}, b"none" if "01-01" in request.url else b"1.0")

    run_id = project.backfill("prices", "2024-01-01", "2024-01-03", ["AAPL"])
    simulate(project, clock, script)

    run = row(project, run_id)
    assert (run.state, run.skipped, run.quarantined) == ("partial", 1, 1)
    covered = project.connection.sources.covered(run.source_id, ["AAPL"], 0, EPOCH)
    assert [c.start_at for c in covered] == [1704067200.0, 1704067200.0 + 2 * 86400]


def test_units_are_planned_as_they_are_needed(tmp_path: Path, clock: VirtualClock) -> None:
    """However many there are, the queue is short and the planner asks for little at a time."""
    seen: list[int] = []

    async def script(request: Request) -> RawResponse:
        if len(seen) % 50 == 0:
            overview = project.connection.overview()
            assert overview.queued + overview.running + overview.waiting <= longest
        seen.append(1)
        await asyncio.sleep(0.01)
        return RawResponse(200, {}, b"none")

    # The chunk that was begun below the mark is still written, and the planner itself.
    longest = AHEAD_JOBS + CHUNK_UNITS + 1
    backfill = {"window": "1h", "partitions": ["AAPL"], "share": 1}
    with closing(a_project(tmp_path / "many", clock, backfill=backfill)) as project:
        run_id = project.backfill("prices", "2024-01-01", "2024-06-30")
        begun = len(project.connection.jobs.find(JobFilter(run_id=run_id, limit=100)))
        simulate(project, clock, script)

        assert begun == 1, "starting it makes one job, whatever it will come to"
        run = row(project, run_id)
        assert (run.state, run.pages, len(seen)) == ("completed", 4368, 4368)
        [planner] = project.connection.jobs.find(JobFilter(run_id=run_id, stage=PLANNER))
        assert planner.attempt > 2, "it steps aside and comes back"


class Gone(Exception):
    """The process has ended, as far as the project is concerned."""


def dying(project: Project, turns: int, is_written: bool) -> Callable[..., Any]:
    """A store's turn after which, or instead of which, the worker is gone."""
    take, left = type(project.connection).turn, [turns]

    def turn(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] <= 0 and not is_written:
            raise Gone
        answer = take(project.connection, *args, **kwargs)
        if left[0] <= 0:
            raise Gone
        return answer

    return turn


@pytest.mark.parametrize("is_written", [False, True], ids=["unwritten", "written"])
def test_backfill_whose_worker_dies_again_and_again_fetches_only_the_rest(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """Each lives two turns longer than the one before: every turn is somebody's last."""
    asked: list[str] = []

    async def script(request: Request) -> RawResponse:
        asked.append(request.url)
        await asyncio.sleep(0.1)
        return RawResponse(200, {}, b"1.0")

    monkeypatch.setattr("penstock.pipeline.planner.CHUNK_UNITS", 7)
    monkeypatch.setattr("penstock.pipeline.planner.AHEAD_JOBS", 10)
    with closing(a_project(tmp_path / "often", clock)) as project:
        run_id = project.backfill("prices", "2024-01-01", "2024-02-29")
        deaths = 0
        while not row(project, run_id).is_ended:
            deaths += 1
            for worker in project.connection.workers.all():
                project.connection.workers.bury(worker.id, "gone")
            with monkeypatch.context() as once:
                once.setattr(project.connection, "turn", dying(project, 2 * deaths, is_written))
                with suppress(Gone):
                    simulate(project, clock, script, seed=deaths)

        run = row(project, run_id)
        assert (run.state, run.inserted, run.pages) == ("completed", 120, 120)
        # Two pages are in flight when a worker dies; one whose payload is known is not asked for again.
        assert len(asked) <= 120 + 2 * deaths
        assert deaths >= 8
        assert project.connection.upkeep.check() == []


def test_backfill_has_its_share_of_places_and_live_work_goes_first(
    tmp_path: Path, clock: VirtualClock
) -> None:
    inflight: Counter[str] = Counter()
    most: Counter[str] = Counter()
    done: list[str] = []

    async def script(request: Request) -> RawResponse:
        kind = "live" if "/live/" in request.url else "backfill"
        inflight[kind] += 1
        most[kind] = max(most[kind], inflight[kind])
        await asyncio.sleep(1)
        inflight[kind] -= 1
        done.append(kind)
        return RawResponse(200, {}, b"1.0")

    with closing(a_project(tmp_path / "shared", clock, params={"live": 24})) as project:
        project.backfill("prices", "2024-01-01", "2024-01-31")
        project.run("prices")
        simulate(project, clock, script)

    assert most["backfill"] == 2, "a quarter of eight"
    assert most["live"] >= 6
    assert done[:24].count("live") >= 18


def test_live_work_overtakes_a_backfill_that_waits_for_the_only_place(
    tmp_path: Path, clock: VirtualClock
) -> None:
    order: list[str] = []

    async def script(request: Request) -> RawResponse:
        order.append("live" if "/live/" in request.url else "backfill")
        await asyncio.sleep(1)
        return RawResponse(200, {}, b"1.0")

    settings = {"params": {"live": 10}, "limits": {"concurrency": 1}}
    with closing(a_project(tmp_path / "one", clock, **settings)) as project:
        project.backfill("prices", "2024-01-01", "2024-01-31", ["AAPL"])
        project.run("prices")
        simulate(project, clock, script)

    assert order[:11].count("live") == 10, "one at most was begun before"


def test_backfill_does_not_hold_up_the_schedule(tmp_path: Path, clock: VirtualClock) -> None:
    with closing(a_project(tmp_path / "timed", clock, schedule={"every": "1h"})) as project:
        scheduler = Scheduler(project, project.connection)
        scheduler.plan()
        project.backfill("prices", "2024-01-01", "2024-12-31")
        clock.advance(3601)

        scheduler.tick()

        kinds = [run.kind for run in project.connection.runs.newest()]
        assert kinds == [RunKind.FULL, RunKind.BACKFILL]


def test_past_does_not_get_stale(tmp_path: Path, clock: VirtualClock) -> None:
    """A retry that comes after hours is as useful as ever."""
    asked: list[str] = []

    async def script(request: Request) -> RawResponse:
        asked.append(request.url)
        return RawResponse(500 if len(asked) == 1 else 200, {}, b"1.0")

    settings = {"useful_for": "1s", "retry": "conservative"}
    with closing(a_project(tmp_path / "stale", clock, **settings)) as project:
        run_id = project.backfill("prices", "2024-01-01", "2024-01-01", ["AAPL"])
        simulate(project, clock, script)

        assert row(project, run_id).state == "completed"
        assert len(asked) == 2


def test_degraded_source_is_not_backfilled(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    degraded = HealthRow(degraded_at=1.0, degraded_reason="three bad runs")
    monkeypatch.setattr(project.connection.sources, "health", lambda source_id: degraded)

    with pytest.raises(Refused, match="prices is degraded: three bad runs"):
        project.backfill("prices", "2024-01-01", "2024-01-01")


# What is missing.


def test_missing_fills_gaps_only(project: Project, clock: VirtualClock) -> None:
    project.backfill("prices", "2024-01-05", "2024-01-07", ["AAPL"])
    simulate(project, clock)

    run_id = project.backfill("prices", "2024-01-01", "2024-01-10", missing=True)
    asked = simulate(project, clock, seed=2)

    assert sorted(Counter(url.split("/")[0] for url in asked).items()) == [
        ("AAPL", 7),
        ("MSFT", 10),
    ]
    assert row(project, run_id).inserted == 17
    again = project.backfill("prices", "2024-01-01", "2024-01-10", missing=True)
    assert simulate(project, clock, seed=3) == []
    assert row(project, again).state == "completed"
    assert row(project, again).options.reconciles is None


def test_window_that_is_partly_covered_is_fetched_in_part(
    project: Project, clock: VirtualClock
) -> None:
    project.backfill("prices", "2024-01-01T06:00Z", "2024-01-01T12:00Z", ["AAPL"])
    simulate(project, clock)

    project.backfill("prices", "2024-01-01", "2024-01-01", ["AAPL"], missing=True)
    simulate(project, clock, seed=2)

    covered = project.connection.sources.covered(project.source_ids["prices"], ["AAPL"], 0, EPOCH)
    hours = [((c.start_at - 1704067200) / 3600, (c.end_at - 1704067200) / 3600) for c in covered]
    assert hours == [(0, 6), (6, 12), (12, 24)]


def test_what_would_be_fetched_is_what_is_fetched(project: Project, clock: VirtualClock) -> None:
    project.backfill("prices", "2024-01-03", "2024-01-04")
    project.backfill("prices", "2024-01-08", "2024-01-08", ["MSFT"])
    simulate(project, clock)
    options = project.backfill_options("prices", "2024-01-01", "2024-01-10", missing=True)

    planned = missing(project.connection, project.source_ids["prices"], windows_of(options))
    project.start_backfill("prices", options)
    asked = simulate(project, clock, seed=2)

    assert planned.units == len(asked) == 15
    told = [(w.partition, w.start.day, w.end.day) for w in planned.stretches]
    assert told == [
        ("AAPL", 1, 3), ("AAPL", 5, 11), ("MSFT", 1, 3), ("MSFT", 5, 8), ("MSFT", 9, 11),
    ]  # fmt: skip


def test_days_on_which_there_is_nothing_are_not_missing(
    tmp_path: Path, clock: VirtualClock
) -> None:
    backfill = {"calendar": "weekdays", "holidays": ["2024-01-01"]}
    with closing(a_project(tmp_path / "market", clock, backfill=backfill)) as project:
        project.backfill("prices", "2024-01-01", "2024-01-14", missing=True)
        asked = simulate(project, clock)

        assert len(asked) == 9
        project.backfill("prices", "2024-01-01", "2024-01-14", missing=True)
        assert simulate(project, clock, seed=2) == []


def test_same_range_again_is_a_reconciliation_with_nothing_new(
    project: Project, clock: VirtualClock
) -> None:
    first = project.backfill("prices", "2024-01-01", "2024-01-10")
    simulate(project, clock)
    second = project.backfill("prices", "2024-01-02", "2024-01-09")
    simulate(project, clock, seed=2)
    wider = project.backfill("prices", "2024-01-02", "2024-01-11")

    assert row(project, first).options.reconciles is None
    run = row(project, second)
    assert run.options.reconciles == first
    assert (run.inserted, run.updated, run.unchanged) == (0, 0, 16)
    assert project.connection.records.collections() == [("price", 20)]
    assert row(project, second).options.reconciled_windows is None
    # Of its twenty windows eighteen were ingested before.
    overlapping = row(project, wider).options
    assert (overlapping.reconciles, overlapping.reconciled_windows) == (first, 18)
    apart = project.backfill("prices", "2024-03-01", "2024-03-02")
    assert row(project, apart).options.reconciles is None


def test_what_has_not_happened_yet_is_not_fetched(project: Project, clock: VirtualClock) -> None:
    run_id = project.backfill("prices", "2027-01-14", "2027-01-31", ["AAPL"])

    asked = simulate(project, clock)

    assert asked == ["AAPL/2027-01-14T00", "AAPL/2027-01-15T00"]
    assert row(project, run_id).options.end_at == EPOCH


# Linked ones.


def test_linked_backfill_is_started_once_for_a_key(project: Project, clock: VirtualClock) -> None:
    source = project.source("prices")
    run_id = project.run("prices")

    def start(end_at: float = EPOCH - 3600) -> int | None:
        return start_linked_backfill(
            project.connection,
            project.source_ids["prices"],
            source,
            project.graph(source),
            start_at=EPOCH - 7200,
            end_at=end_at,
            linked_to=run_id,
            reason="the stream was away",
        )

    first = start()

    assert first is not None
    assert start() == first
    assert start(EPOCH - 1800) != first
    linked = row(project, first)
    assert (linked.of_run_id, linked.actor, linked.reason) == (
        run_id, "penstock", "the stream was away",
    )  # fmt: skip
    assert start(EPOCH - 7200) is None, "nothing was missed"
    asked = simulate(project, clock)
    assert "AAPL/2027-01-15T06" in asked


def test_source_that_can_not_be_backfilled_is_not(tmp_path: Path, clock: VirtualClock) -> None:
    with closing(a_project(tmp_path / "bare", clock, pipeline=f"{MODULE}:bare")) as project:
        source = project.source("prices")
        assert (
            start_linked_backfill(
                project.connection, project.source_ids["prices"], source, project.graph(source),
                start_at=0.0, end_at=1.0, linked_to=None, reason="",
            )
            is None
        )  # fmt: skip
        with pytest.raises(PipelineError, match="no step that takes windows"):
            project.backfill("prices", "2024-01-01", "2024-01-02")


def test_source_without_settings_is_told_what_to_write(tmp_path: Path, clock: VirtualClock) -> None:
    with closing(a_project(tmp_path / "none", clock, backfill=None)) as project:
        with pytest.raises(ConfigError, match="no backfill settings") as told:
            project.backfill("prices", "2024-01-01", "2024-01-02")
        assert "backfill: {window: 1d" in told.value.hint


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("2024-01-02", "2024-01-01", "begins before it ends"),
        ("2099-01-01", "2099-01-02", "and before now"),
        ("soon", "2024-01-01", "'soon' is not a day"),
        ("2024-01-01", "2024-13-01", "is not a day"),
    ],
)
def test_range_that_makes_no_sense_is_told_in_a_line(
    project: Project, start: str, end: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        project.backfill("prices", start, end)


def test_range_of_too_many_units_is_refused(project: Project) -> None:
    with pytest.raises(UsageError, match="units, and 20,000,000 is the most"):
        project.backfill("prices", "1980-01-01", "2026-01-01", window_s=1.0)


# Pausing and cancelling.


def test_backfill_is_paused_resumed_and_cancelled_as_any_run(
    project: Project, clock: VirtualClock
) -> None:
    first = project.backfill("prices", "2024-01-01", "2024-01-10", ["AAPL"])
    project.pause(first)
    second = project.backfill("prices", "2024-01-01", "2024-01-05", ["MSFT"])
    list(project.cancel(second))
    project.resume(first)

    asked = simulate(project, clock)

    assert len(asked) == 10
    assert row(project, first).state == "completed"
    assert row(project, second).state == "cancelled"
    states = {job.state for job in project.connection.jobs.find(JobFilter(run_id=second))}
    assert states == {JobState.CANCELLED}


def test_cancelled_backfill_is_continued_with_only_the_rest(
    project: Project, clock: VirtualClock
) -> None:
    first = project.backfill("prices", "2024-01-01", "2024-01-31", ["AAPL"])
    asked: list[str] = []

    async def script(request: Request) -> RawResponse:
        asked.append(request.url)
        if len(asked) == 20:
            project.connection.runs.cancel(first, "ann", "enough")
        await asyncio.sleep(0.1)
        return RawResponse(200, {}, b"1.0")

    simulate(project, clock, script)
    assert row(project, first).state == "cancelled"
    again, _ = project.continue_run(first)
    simulate(project, clock, script, seed=2)

    assert row(project, again.id).state == "completed"
    assert project.connection.records.collections() == [("price", 31)]
    assert len(asked) <= 31 + 2, "and what was in flight"


# What it would take.


def measured(kind: RunKind, pages: int, seconds: float) -> RunRow:
    facts = (1, 1, "prices", kind, RunState.COMPLETED, "me", "", "v1", 0.0, 0.0, seconds)
    return RunRow(*facts, 0, 0, 0, 0, 0, 0, pages_done=pages)


@pytest.mark.parametrize(
    ("runs", "limits", "seconds", "basis"),
    [
        ([], {"concurrency": 8}, 50.0, "assumed: 1 s a unit, 2 at once"),
        ([], {"concurrency": 2}, 100.0, "assumed: 1 s a unit, one at a time"),
        ([measured(RunKind.BACKFILL, 10, 30)], {"concurrency": 8}, 300.0, "measured: run 1"),
        ([measured(RunKind.FULL, 10, 30)], {"concurrency": 8}, 1200.0, "measured: run 1"),
        ([], {"concurrency": 8, "rate": "60/m"}, 100.0, "by the source's rate"),
    ],
)
def test_what_a_backfill_would_take_is_known_or_assumed(
    tmp_path: Path,
    clock: VirtualClock,
    runs: list[RunRow],
    limits: dict[str, Any],
    seconds: float,
    basis: str,
) -> None:
    with closing(a_project(tmp_path / "estimated", clock, limits=limits)) as project:
        told = estimate(project.source("prices"), 100, runs, EPOCH)

    assert (told.units, told.calls, told.seconds, told.basis) == (100, 100, seconds, basis)


@pytest.mark.parametrize(
    ("backfill", "words"),
    [
        ({"windows": "1d"}, "unknown key, did you mean 'window'"),
        ({"window": "soon"}, "'soon' is not a duration"),
        ({"partitions": "AAPL"}, "must be a list"),
        ({"partitions": ["A", "A"]}, "has one of them twice"),
        ({"share": 2}, "must be from 0.01 to 1"),
        ({"calendar": "never"}, "must not be 'never'"),
        ({"holidays": ["christmas"]}, "write days as 2026-12-25"),
        ({"timezone": "Mars/Olympus"}, "is not a time zone"),
    ],
)
def test_settings_that_make_no_sense_are_told_with_their_place(
    tmp_path: Path, clock: VirtualClock, backfill: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as told:
        a_project(tmp_path / "wrong", clock, backfill=backfill)
    assert "sources.prices.backfill." in told.value.message
