"""Two workers on one store, on virtual time: what a site asks for holds over both of them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from penstock.http.network import RawResponse, Request
from penstock.jobs.job import JobState
from penstock.project import Project
from penstock.store.jobs import JobFilter
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal, run_together

pytestmark = pytest.mark.usefixtures("pipelines")

MODULE = "polite_pipelines"
PIPELINES = """
import asyncio

from penstock import Pipeline
from penstock.http.failures import FetchError

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range(ctx.params["pages"]):
        yield {"url": f"https://shop.example/{ctx.source.key}/{number}"}


@pages.step(after="discover", unit="page", key="url")
async def extract(page, ctx):
    await ctx.fetch(page["url"])


crawl = Pipeline("crawl")


@crawl.step(unit="run")
async def walk(ctx):
    for number in range(ctx.params["pages"]):
        await ctx.fetch(f"https://shop.example/{ctx.source.key}/{number}")
        await asyncio.sleep(0.2)


patient = Pipeline("patient")


@patient.step(unit="run")
async def walk_on(ctx):
    for number in range(ctx.params["pages"]):
        try:
            await ctx.fetch(f"https://shop.example/{ctx.source.key}/{number}")
        except FetchError:
            ctx.note("another time")
        await asyncio.sleep(0.2)
"""
# A worker that is busy looks at what others have closed about once a second.
KNOWN_WITHIN_S = 2.0


def source(pipeline: str, pages: int, **limits: object) -> dict[str, object]:
    return {
        "pipeline": f"{MODULE}:{pipeline}",
        "params": {"pages": pages},
        "limits": limits,
        "fetch": {"robots": False},
    }


@dataclass
class Site:
    """Answers every page after a moment, and writes down who asked for it when.

    For a while it asks for a pause: everybody, or only the source that it meets first.
    """

    clock: VirtualClock
    closed_from: float = float("inf")
    closed_until: float = float("inf")
    tells_one_source: bool = False
    told: str = ""
    seen: list[tuple[float, str, str]] = field(default_factory=list)

    def asked_by(self, worker: str) -> ScriptedNetwork:
        async def answer(request: Request) -> RawResponse:
            now, key = self.clock.monotonic(), request.url.split("/")[3]
            self.seen.append((now, worker, key))
            await asyncio.sleep(0.05)
            if not self.closed_from <= now < self.closed_until:
                return RawResponse(200, {}, b"hello")
            self.told = self.told or key
            if self.tells_one_source and key != self.told:
                return RawResponse(200, {}, b"hello")
            return RawResponse(429, {"retry-after": f"{self.closed_until - now:.0f}"}, b"")

        return ScriptedNetwork(answer)

    def times(self, key: str) -> list[float]:
        return [at for at, _, asked in self.seen if asked == key]

    def pairs_before(self, moment: float) -> set[tuple[str, str]]:
        """Which worker was at work for which source."""
        return {(worker, key) for at, worker, key in self.seen if at < moment}


def two_workers(
    folder: Path, site: Site, sources: dict[str, dict[str, object]], slots: int = 4
) -> Project:
    """Run every source once, with two workers that share nothing but the store."""
    folder.mkdir()
    config = {"project": "polite", "worker": {"slots": slots}, "sources": sources}
    (folder / "penstock.yaml").write_text(json.dumps(config))
    with ExitStack() as stack:
        projects = [Project.load(folder) for _ in range(2)]
        for project in projects[1:]:
            stack.callback(project.close)
        workers = [
            stack.enter_context(
                Simulation(project, site.asked_by(f"w{seed}"), seed=seed, clock=site.clock)
            )
            for seed, project in enumerate(projects)
        ]
        for key in sources:
            projects[0].run(key, actor="test")
        run_together(site.clock, *workers)
    return projects[0]


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


def test_rate_holds_over_two_workers(tmp_path: Path) -> None:
    site = Site(VirtualClock())
    sources = {"a": source("pages", 40, rate="2/s", concurrency=8)}
    project = two_workers(tmp_path / "project", site, sources)

    times = site.times("a")
    assert len(times) == 40
    assert min(Counter(worker for _, worker, _ in site.seen).values()) >= 5
    assert min(gaps(times)) > 0.5 - 1e-4
    assert times[-1] - times[0] == pytest.approx(39 * 0.5, rel=0.05)
    jobs = project.connection.jobs.find(JobFilter(limit=1000))
    assert {(job.state, job.tries) for job in jobs} == {(JobState.SUCCEEDED, 0)}
    project.close()


def test_a_rate_belongs_to_its_source_alone(tmp_path: Path) -> None:
    site = Site(VirtualClock())
    sources = {key: source("pages", 10, rate="1/s") for key in ("a", "b")}
    project = two_workers(tmp_path / "project", site, sources)

    for key in sources:
        assert min(gaps(site.times(key))) > 1 - 1e-4
        assert site.times(key)[-1] < 12
    project.close()


def test_slow_rate_does_not_stir_up_a_long_queue(tmp_path: Path) -> None:
    """For each place at most as many jobs are started in vain as there are other workers."""
    site = Site(VirtualClock())
    sources = {"a": source("pages", 60, rate="10/m")}
    project = two_workers(tmp_path / "project", site, sources)

    assert min(gaps(site.times("a"))) > 6 - 1e-4
    kinds = Counter(event.kind for event in journal(project))
    assert kinds["job.succeeded"] == 61
    assert kinds["job.snoozed"] <= 60
    project.close()


def test_host_that_closes_for_one_worker_is_left_alone_by_the_other(tmp_path: Path) -> None:
    """Two sources on one host, each in the hands of another worker."""
    site = Site(VirtualClock(), closed_from=5.0, closed_until=65.0, tells_one_source=True)
    sources = {key: source("pages", 120, concurrency=1) for key in ("a", "b")}
    project = two_workers(tmp_path / "project", site, sources, slots=1)

    assert len(site.pairs_before(5.0)) == 2
    turned_away = [at for at, _, _ in site.seen if 5 <= at < 65]
    assert max(turned_away) < 5 + 0.2, "the next page that is claimed is not asked for any more"
    jobs = project.connection.jobs.find(JobFilter(limit=1000))
    assert {(job.state, job.tries) for job in jobs} == {(JobState.SUCCEEDED, 0)}
    project.close()


AWAY = ("job.throttled", "job.snoozed")


def test_attempt_of_many_requests_learns_that_another_closed_its_host(tmp_path: Path) -> None:
    """Without a new claim: it runs on while the other worker is told to go away."""
    site = Site(VirtualClock(), closed_from=5.0, closed_until=65.0, tells_one_source=True)
    sources = {key: source("crawl", 60) for key in ("a", "b")}
    project = two_workers(tmp_path / "project", site, sources, slots=1)

    assert len(site.pairs_before(5.0)) == 2
    [other] = {"a", "b"} - {site.told}
    late = [at for at in site.times(other) if 5 <= at < 65]
    assert late, "it was at work when that happened"
    assert max(late) < 5 + KNOWN_WITHIN_S
    told = {event.source: event.kind for event in journal(project) if event.kind in AWAY}
    # Who was answered is throttled; who only found the host closed waits, and that is not counted.
    assert told == {site.told: "job.throttled", other: "job.snoozed"}
    project.close()


def test_step_that_bears_with_a_closed_host_does_not_keep_it_to_itself(tmp_path: Path) -> None:
    """Its attempt goes on and succeeds, so its end says nothing of the host."""
    site = Site(VirtualClock(), 5.0, 65.0, tells_one_source=True, told="a")
    sources = {"a": source("patient", 60), "b": source("crawl", 60)}
    project = two_workers(tmp_path / "project", site, sources, slots=1)

    assert len(site.pairs_before(5.0)) == 2
    assert max(at for at in site.times("b") if at < 65) < 5 + KNOWN_WITHIN_S
    away = [event.source for event in journal(project) if event.kind in AWAY]
    assert away == ["b"]
    project.close()
