"""The whole engine on virtual time: twenty sources, seeded faults, the same journal for the same seed."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.gates.capacity import Capacity
from penstock.http.failures import FetchError
from penstock.http.network import RawResponse, Request
from penstock.jobs.effects import Effects
from penstock.jobs.job import AGEING_S, JobState, NewJob
from penstock.jobs.outcome import Flush, Settlement
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.project import Project
from penstock.store.jobs import JobFilter
from penstock.store.rows import EventRow, RunRow
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal

SOURCES = 20
PAGES = 12
pytestmark = pytest.mark.usefixtures("pipelines")

MODULE = "simulated_pipelines"
PIPELINES = """
from penstock import Pipeline, Reject

catalogue = Pipeline("catalogue")


@catalogue.step(unit="run")
async def discover(ctx):
    async for url in ctx.sitemap(ctx.params["sitemap"]):
        yield {"url": url}


@catalogue.step(after="discover", unit="page", key="url", timeout="30s")
async def extract(page, ctx):
    response = await ctx.fetch(page["url"])
    yield response.json()


@catalogue.step(after="extract", unit="candidate")
def normalize(product):
    if product["price"] == 0:
        raise Reject("it costs nothing")
    return {**product, "price": float(product["price"])}


@catalogue.step(after="normalize", unit="candidate")
def persist(product, ctx):
    ctx.save("product", key=product["sku"], data=product)


@catalogue.step(after="persist", unit="run", gather=True)
def report(ctx):
    ctx.note("all is in")


wide = Pipeline("wide")
watch = []


@wide.step(unit="run")
async def find(ctx):
    for number in range(ctx.params["items"]):
        watch[0](number)
        yield {"n": number, "text": f"{number:06}" * 120}
    watch[1](ctx.run.id)


@wide.step(after="find", unit="page", key="n")
def use(item, ctx):
    ctx.note("never reached")
"""


def a_project(folder: Path, sources: dict[str, dict[str, object]]) -> Project:
    folder.mkdir()
    (folder / "penstock.yaml").write_text(json.dumps({"project": "simulated", "sources": sources}))
    return Project.load(folder)


# Twenty sources with faults.


def host(number: int) -> str:
    return f"shop{number:02}.example"


def twenty_sources() -> dict[str, dict[str, object]]:
    return {
        host(number): {
            "pipeline": f"{MODULE}:catalogue",
            "params": {"sitemap": f"https://{host(number)}/sitemap.xml"},
            "limits": {"concurrency": 1 + number % 4},
            "weight": 1 + number % 3,
            "retry": ("fast", "conservative", "provider-safe")[number % 3],
        }
        for number in range(SOURCES)
    }


def faulty_web(seed: int) -> Callable[[Request], object]:
    """A web whose moods depend on the seed, the address and how often it was asked, on nothing else."""
    asked: Counter[str] = Counter()

    async def answer(request: Request) -> RawResponse:
        url = request.url
        asked[url] += 1
        chance = random.Random(f"{seed} {url} {asked[url]}")
        await asyncio.sleep(chance.uniform(0.01, 2.0))
        if url.endswith("robots.txt"):
            return RawResponse(404, {}, b"")
        await trouble(chance, url)
        if url.endswith("sitemap.xml"):
            return RawResponse(200, {"content-type": "application/xml"}, sitemap(url))
        return page(seed, url, chance)

    return answer


async def trouble(chance: random.Random, url: str) -> None:
    kind = chance.random()
    if kind < 0.05:
        await asyncio.sleep(10_000)
    if kind < 0.10:
        raise FetchError("connection reset", url)


def page(seed: int, url: str, chance: random.Random) -> RawResponse:
    kind = chance.random()
    if kind < 0.08:
        return RawResponse(500, {}, b"")
    if kind < 0.12:
        return RawResponse(429, {"retry-after": str(chance.randint(1, 120))}, b"")
    name = url.rpartition("/")[2]
    if random.Random(f"{seed} {url}").random() < 0.05:
        return RawResponse(200, {"content-type": "text/html"}, b"<html>broken, every time")
    product = {"sku": f"{url.split('/')[2]} {name}", "price": int(name) % 7}
    return RawResponse(200, {"content-type": "application/json"}, json.dumps(product).encode())


def sitemap(url: str) -> bytes:
    start = url.removesuffix("sitemap.xml")
    found = "".join(f"<url><loc>{start}p/{number}</loc></url>" for number in range(PAGES))
    return f"<urlset>{found}</urlset>".encode()


@dataclass
class Told:
    events: list[EventRow]
    runs: list[RunRow]
    records: dict[str, int]
    jobs: Counter[tuple[str, JobState]]
    seconds: float
    requests: int


def simulate(folder: Path, seed: int) -> Told:
    project, clock = a_project(folder, twenty_sources()), VirtualClock()
    network = ScriptedNetwork(faulty_web(seed))  # type: ignore[arg-type]
    with Simulation(project, network, seed=seed, clock=clock) as simulation:
        runs = [project.run(source, actor="test") for source in project.settings.sources]
        simulation.run()
        assert project.connection.upkeep.check() == []
        records = {
            row.key: row.version for row in project.connection.records.of("product", limit=100_000)
        }
        jobs = project.connection.jobs.find(JobFilter(limit=100_000))
        told = Told(
            journal(project),
            [project.require_run(run_id) for run_id in runs],
            records,
            Counter((job.stage, job.state) for job in jobs),
            clock.monotonic(),
            len(network.requests),
        )
        project.close()
    return told


def test_same_seed_tells_the_same_story_byte_for_byte(tmp_path: Path) -> None:
    first, again = simulate(tmp_path / "one", 1), simulate(tmp_path / "two", 1)
    other = simulate(tmp_path / "three", 2)

    assert repr(first.events).encode() == repr(again.events).encode()
    assert (first.seconds, first.requests) == (again.seconds, again.requests)
    assert repr(first.events) != repr(other.events)
    assert len(first.events) > SOURCES * PAGES * 4


@pytest.mark.parametrize("seed", [3, 4])
def test_no_record_is_lost_or_doubled_among_faults(tmp_path: Path, seed: int) -> None:
    told = simulate(tmp_path / "project", seed)

    assert all(run.is_ended for run in told.runs)
    assert {run.state for run in told.runs} >= {"completed", "partial"}
    found = told.jobs["extract", JobState.SUCCEEDED]
    failed = told.jobs["extract", JobState.QUARANTINED]
    rejected = sum(run.rejected for run in told.runs)
    discovered = sum(run.state != "failed" for run in told.runs) * PAGES
    assert found + failed == discovered
    assert len(told.records) + rejected == found
    assert set(told.records.values()) == {1}
    assert sum(run.inserted for run in told.runs) == len(told.records)
    assert sum(run.updated + run.unchanged for run in told.runs) == 0
    assert sum(run.retried for run in told.runs) > 10
    assert sum(run.throttled for run in told.runs) > 3


def test_retry_never_comes_before_its_time(tmp_path: Path) -> None:
    told = simulate(tmp_path / "project", 5)

    due: dict[int, float] = {}
    for event in told.events:
        if event.job_id is None:
            continue
        if event.kind in ("job.retry_scheduled", "job.throttled"):
            wait_s = float(event.detail.rpartition("again in ")[2].split()[0])
            due[event.job_id] = event.at + wait_s - 0.051
        elif event.kind == "job.started" and event.job_id in due:
            assert event.at >= due.pop(event.job_id)


# Fairness.

FLAT = Plan((PlannedStage("work", "page"),))


@dataclass
class Load:
    """A store, a worker with some slots, and jobs that take a second each."""

    store: SqliteStore
    clock: VirtualClock
    slots: int

    def __post_init__(self) -> None:
        self.store.workers.register("w", "here", 1, "test")
        self.running: list[Settlement] = []
        self.hanging = 0

    def start(self, source: str) -> int:
        source_id = self.store.sources.ensure([source])[source]
        run_id, _ = self.store.runs.start(source_id, RunKind.FULL, FLAT, "v", key="1", actor="test")
        return run_id

    def second(self) -> list[str]:
        """A second passes, what ran is done, and free slots are filled; answers what was started.

        A job whose key begins with `hang` is never done and keeps its slot.
        """
        self.clock.advance(1.0)
        turn = self.store.turn("w", self.running, Capacity(self.slots - self.hanging), {})
        self.hanging += sum(job.key.startswith("hang") for job in turn.claimed)
        self.running = [
            Settlement(job.id, job.attempt, JobState.SUCCEEDED)
            for job in turn.claimed
            if not job.key.startswith("hang")
        ]
        return [job.key for job in turn.claimed]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    clock = VirtualClock()
    store = SqliteStore(tmp_path / "load.db", clock)
    yield Load(store, clock, 4)
    assert store.upkeep.check() == []
    store.close()


def flat(keys: list[str], priority: int = 5) -> list[NewJob]:
    return [NewJob("work", key, b"null", priority) for key in keys]


@pytest.mark.parametrize("priority", [3, 9])
def test_low_priority_starts_within_its_bound_under_full_load_of_high(
    load: Load, priority: int
) -> None:
    """The bound: a minute for each step of priority, and what was queued before, however long it lasts."""
    run_id = load.start("acme.com")
    backlog_s = 30
    load.store.jobs.enqueue(run_id, flat([f"before-{n}" for n in range(4 * backlog_s)], 1))
    load.store.jobs.enqueue(run_id, flat(["low"], priority))
    bound_s = (priority - 1) * AGEING_S + backlog_s + 5

    started_after_s = 0
    while "low" not in load.second():
        started_after_s += 1
        assert started_after_s < bound_s
        load.store.jobs.enqueue(run_id, flat([f"high-{started_after_s}-{n}" for n in range(4)], 1))

    assert started_after_s > (priority - 1) * AGEING_S / 2, "urgent work does come first"


def test_single_job_beside_a_flood_of_100_000_starts_at_once(load: Load) -> None:
    flood = load.start("flood.org")
    for start in range(0, 100_000, 10_000):
        load.store.jobs.enqueue(flood, flat([f"f{n}" for n in range(start, start + 10_000)]))
    for _ in range(3):
        load.second()

    load.start("small.org")

    started = load.second() + load.second()
    assert "root" in started


def test_sources_that_hang_do_not_slow_a_healthy_one(load: Load) -> None:
    """Ten sources whose jobs never end, and one that is well."""
    load.slots = 44
    for number in range(10):
        run_id = load.start(f"bad{number}.org")
        load.store.jobs.enqueue(run_id, flat([f"hang-{number}-{n}" for n in range(500)]))
    load.second()
    healthy = load.start("healthy.org")
    load.store.jobs.enqueue(healthy, flat([f"good-{n}" for n in range(400)]))

    done = sum(key.startswith("good") for _ in range(50) for key in load.second())

    assert done >= 0.9 * 50 * 4, "its four slots are its own, whoever else is waiting"


# Memory.


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def test_discovering_200_000_items_takes_no_more_memory_than_20_000(tmp_path: Path) -> None:
    """The items are 150 MB in all; what stays in memory is a buffer and the database's own cache."""
    items = 200_000
    seen: dict[int, float] = {}
    source: dict[str, dict[str, object]] = {
        "wide.org": {
            "pipeline": f"{MODULE}:wide",
            "params": {"items": items},
            "limits": {"concurrency": 1},
        }
    }
    project, clock = a_project(tmp_path / "project", source), VirtualClock()

    def look(number: int) -> None:
        if number % 20_000 == 0:
            seen[number] = resident_mb()

    def stop(run_id: int) -> None:
        seen[items] = resident_mb()
        project.connection.runs.cancel(run_id, "test", "that is enough")

    __import__(MODULE).watch[:] = [look, stop]
    with Simulation(project, ScriptedNetwork(nothing), seed=1, clock=clock) as simulation:
        run_id = project.run("wide.org", actor="test")
        simulation.run()
        queued = project.require_run(run_id).queued

    project.close()
    assert queued > 0.97 * items
    assert max(seen.values()) - seen[20_000] < 40


async def nothing(request: Request) -> RawResponse:
    return RawResponse(404, {}, b"")


def test_flush_of_a_lost_attempt_leaves_no_children(load: Load) -> None:
    """What a zombie discovered is dropped with it; the next attempt finds it again."""
    load.start("acme.com")
    [job] = load.store.turn("w", [], Capacity(1), {}).claimed
    load.store.workers.bury("w", "killed")

    late = Flush(job.id, job.attempt, Effects(children=flat(["late"])))

    assert load.store.turn("w", [late], Capacity(0), {}).lost == [job.id]
    assert [row.key for row in load.store.jobs.find(JobFilter())] == ["root"]
