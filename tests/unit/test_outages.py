"""Outages on virtual time: what is away is left alone, tried with care, and nothing is lost by it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.http.failures import FetchError
from penstock.http.network import RawResponse, Request
from penstock.jobs.job import JobState
from penstock.project import Project
from penstock.store.jobs import JobFilter
from penstock.store.rows import RunRow
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal, run_together
from tests.unit import catalogue

pytestmark = pytest.mark.usefixtures("pipelines")

MODULE = "outage_pipelines"
PIPELINES = catalogue.PIPELINES


def a_source(host: str, pages: int, **more: object) -> dict[str, object]:
    return {
        "pipeline": f"{MODULE}:catalogue",
        "params": {"host": host, "pages": pages},
        "fetch": {"robots": False},
        **more,
    }


def a_project(folder: Path, sources: dict[str, dict[str, object]]) -> Project:
    if not folder.exists():
        folder.mkdir()
        text = json.dumps({"project": "outage", "sources": sources})
        (folder / "penstock.yaml").write_text(text)
    return Project.load(folder)


@dataclass
class Web:
    """A web that is away from one moment to another, and writes down who came when."""

    clock: VirtualClock
    down: tuple[float, float] = (0.0, 0.0)
    takes_s: float = 0.5
    status: int | None = None
    at: list[float] = field(default_factory=list)
    met_down: list[float] = field(default_factory=list)
    busy: int = 0
    most_while_down: int = 0

    @property
    def is_down(self) -> bool:
        return self.down[0] <= self.clock.monotonic() < self.down[1]

    async def answer(self, request: Request) -> RawResponse:
        self.at.append(self.clock.monotonic())
        self.busy += 1
        try:
            if self.is_down:
                self.met_down.append(self.clock.monotonic())
                await asyncio.sleep(0.05)
                if self.status is not None:
                    return RawResponse(self.status, {"retry-after": "600"}, b"")
                raise FetchError("connection refused", request.url)
            await asyncio.sleep(self.takes_s)
            return RawResponse(200, {"content-type": "text/plain"}, b"hello")
        finally:
            self.busy -= 1

    def per_second(self, start: float, end: float) -> list[int]:
        counts = Counter(int(at - start) for at in self.at if start <= at < end)
        return [counts[second] for second in range(int(end - start))]


def kinds(project: Project) -> Counter[str]:
    return Counter(event.kind for event in journal(project))


@contextmanager
def worked_off_by_two(
    folder: Path, sources: dict[str, dict[str, object]], web: Web
) -> Iterator[tuple[Project, list[RunRow]]]:
    """A project whose sources two workers have run to the end together."""
    clock = web.clock
    first, second = a_project(folder, sources), a_project(folder, sources)
    with (
        closing(first),
        closing(second),
        Simulation(first, ScriptedNetwork(web.answer), seed=1, clock=clock) as here,
        Simulation(second, ScriptedNetwork(web.answer), seed=2, clock=clock) as there,
    ):
        runs = [first.run(name, actor="test") for name in sources]
        run_together(clock, here, there)
        yield first, [first.require_run(run_id) for run_id in runs]


def test_server_that_is_away_for_an_hour_costs_no_try_and_no_herd(tmp_path: Path) -> None:
    """D2: a thousand are queued when it comes back; one asks, then two, never more than the limit."""
    pages, rate = 1200, 10
    sources = {
        "acme.com": a_source("acme.com", pages, limits={"concurrency": 16, "rate": f"{rate}/s"})
    }
    project, clock = a_project(tmp_path / "p", sources), VirtualClock()
    web = Web(clock, down=(30.0, 3630.0))
    with Simulation(project, ScriptedNetwork(web.answer), seed=1, clock=clock) as simulation:
        run_id = project.run("acme.com", actor="test")
        simulation.run()
        run = project.require_run(run_id)
        jobs = project.connection.jobs.find(JobFilter(run_id=run_id, limit=100_000))
        events = [each for each in journal(project) if each.kind.startswith("breaker.")]
        told = kinds(project)
        breakers = {row.key: row.state for row in project.connection.breakers.all()}
        project.close()

    assert run.state == "completed"
    assert (run.pages_done, run.quarantined, run.throttled) == (pages, 0, 0)
    assert {job.state for job in jobs} == {JobState.SUCCEEDED}
    assert max(job.tries for job in jobs) <= 1, "only what failed before it opened has lost a try"
    assert set(breakers.values()) == {"closed"}

    tries = [at for at in web.met_down if at > 60.0]
    assert 5 <= len(tries) <= 30, "an hour, tried ever more rarely"
    gaps = [after - before for before, after in itertools.pairwise(tries)]
    assert max(gaps) <= 1.3 * 1800
    assert clock.monotonic() < 3630 + 2200 + pages / rate * 1.2

    seconds = web.per_second(0.0, clock.monotonic() + 1)
    assert max(seconds) <= rate + 1
    back = next(at for at in web.at if at >= 3630.0)
    first = web.per_second(back, back + 4)
    assert first[0] <= 4, "one asks first, and others when it was answered"
    assert first[0] < first[1] <= first[2], "then more, as far as the rate goes"

    assert told["breaker.opened"] >= 6
    assert told["breaker.closed"] >= 1
    last = [each for each in events if each.source == "acme.com"][-1]
    assert last.kind == "breaker.closed"
    assert "it was unavailable for" in last.detail


def test_nothing_but_tries_goes_to_a_host_that_is_away_whoever_shares_it(tmp_path: Path) -> None:
    """Three sources of two workers share a host: while it is away, one request at a time is sent."""
    sources = {name: a_source("cdn.example", 200) for name in ("one.org", "two.org", "three.org")}
    web = Web(VirtualClock(), down=(20.0, 1220.0))
    with worked_off_by_two(tmp_path / "p", sources, web) as (project, runs):
        for run in runs:
            assert (run.state, run.pages_done, run.throttled) == ("completed", 200, 0)
        assert {row.state for row in project.connection.breakers.all()} == {"closed"}

    tries = [at for at in web.met_down if at > 22.0]
    assert 3 <= len(tries) <= 9, "each try is one request, and not one of each source"
    gaps = [after - before for before, after in itertools.pairwise(tries)]
    assert sum(gap < 1.0 for gap in gaps) <= 2, "one at a time, over all workers and sources"


def test_sources_on_other_hosts_go_on_as_if_nothing_were(tmp_path: Path) -> None:
    sources = {
        "bad.org": a_source("bad.example", 300),
        "good.org": a_source("good.example", 300),
    }
    project, clock = a_project(tmp_path / "p", sources), VirtualClock()
    web = Web(clock, down=(0.0, 600.0))

    async def answer(request: Request) -> RawResponse:
        if "good.example" in request.url:
            await asyncio.sleep(0.5)
            return RawResponse(200, {}, b"hello")
        return await web.answer(request)

    with Simulation(project, ScriptedNetwork(answer), seed=1, clock=clock) as simulation:
        bad, good = project.run("bad.org", actor="test"), project.run("good.org", actor="test")
        simulation.run()
        rows = {run_id: project.require_run(run_id) for run_id in (bad, good)}
        project.close()
    assert {row.state for row in rows.values()} == {"completed"}
    finished = rows[good].finished_at
    assert finished is not None
    assert finished - rows[good].created_at < 300 * 0.5 / 4 + 10


@pytest.mark.parametrize("status", [429, 503])
def test_provider_that_asks_for_a_pause_is_left_alone_by_all_sources_and_workers(
    tmp_path: Path, status: int
) -> None:
    sources = {name: a_source("cdn.example", 50) for name in ("one.org", "two.org")}
    web = Web(VirtualClock(), down=(5.0, 15.0), status=status)
    with worked_off_by_two(tmp_path / "p", sources, web) as (project, runs):
        for run in runs:
            assert (run.state, run.pages_done, run.quarantined) == ("completed", 50, 0)
            assert run.throttled <= 8, "only what was answered so is counted"
        tries = {job.tries for job in project.connection.jobs.find(JobFilter(limit=1000))}
        assert tries == {0}
        assert not project.connection.breakers.all(), "it has a pause of its own, and is no failure"
    asked = min(web.met_down)
    quiet = [at for at in web.at if asked + 1.5 < at < asked + 600]
    assert quiet == []


@pytest.mark.parametrize("broken", [range(34, 40), range(12)])
def test_pages_that_are_broken_for_good_hold_nobody_up_for_long(
    tmp_path: Path, broken: range
) -> None:
    """A few at the end of a run, or a whole section in its beginning, that always answer 500."""
    sources = {"acme.com": a_source("acme.com", 40)}
    project, clock = a_project(tmp_path / "p", sources), VirtualClock()

    async def answer(request: Request) -> RawResponse:
        await asyncio.sleep(0.3)
        is_broken = int(request.url.rpartition("/")[2]) in broken
        return RawResponse(500 if is_broken else 200, {}, b"hello")

    with Simulation(project, ScriptedNetwork(answer), seed=1, clock=clock) as simulation:
        run_id = project.run("acme.com", actor="test")
        simulation.run()
        run = project.require_run(run_id)
        project.close()
    assert (run.state, run.quarantined) == ("partial", len(broken))
    assert run.succeeded == 41 - len(broken)
    assert clock.monotonic() < (60 if len(broken) < 10 else 1800)


def test_breaker_that_is_off_asks_again_and_again(tmp_path: Path) -> None:
    """What the others are spared: every page is tried as often as its retry class says, and lost."""
    sources = {"acme.com": a_source("acme.com", 20, breaker="off")}
    project, clock = a_project(tmp_path / "p", sources), VirtualClock()
    web = Web(clock, down=(0.0, 1e9))
    with Simulation(project, ScriptedNetwork(web.answer), seed=1, clock=clock) as simulation:
        run_id = project.run("acme.com", actor="test")
        simulation.run()
        assert project.require_run(run_id).quarantined == 20
        assert project.connection.breakers.all() == []
        project.close()
    assert len(web.at) >= 20 * 2


def test_window_holds_requests_until_it_opens(tmp_path: Path) -> None:
    """Virtual time begins on 2027-01-15 at 08:00 UTC."""
    limits = {"windows": ["09:20-10:00"], "timezone": "Europe/Paris"}
    sources = {"acme.com": a_source("acme.com", 5, limits=limits)}
    project, clock = a_project(tmp_path / "p", sources), VirtualClock()
    web = Web(clock)
    with Simulation(project, ScriptedNetwork(web.answer), seed=1, clock=clock) as simulation:
        run_id = project.run("acme.com", actor="test")
        simulation.run()
        assert project.require_run(run_id).state == "completed"
        project.close()
    assert 20 * 60 <= min(web.at) < 20 * 60 + 5


def test_same_outage_is_the_same_story(tmp_path: Path) -> None:
    def story(name: str) -> str:
        sources = {"acme.com": a_source("acme.com", 100)}
        project, clock = a_project(tmp_path / name, sources), VirtualClock()
        web = Web(clock, down=(5.0, 100.0))
        with Simulation(project, ScriptedNetwork(web.answer), seed=7, clock=clock) as simulation:
            project.run("acme.com", actor="test")
            simulation.run()
            told = repr(journal(project))
            project.close()
        return told

    assert story("first") == story("second")
