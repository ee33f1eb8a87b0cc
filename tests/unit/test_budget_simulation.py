"""Budgets on virtual time: they stop what needs them, nothing is lost, and midnight lets it go on."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from penstock import Project
from penstock.engine.leader.upkeep import UpkeepChore
from penstock.engine.worker.request_limiter import StoreRequestLimiter
from penstock.gates.project_terms import rules_of
from penstock.http.network import RawResponse, Request
from penstock.jobs.job import JobState
from penstock.settings import Retention
from penstock.store.budgets import Budgets
from penstock.store.jobs import JobFilter
from penstock.store.rows import RunRow
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal, run_together
from tests.tapped import Tapped
from tests.unit import pages

pytestmark = pytest.mark.usefixtures("pipelines")

MODULE = "budgeted_pipelines"
PIPELINES = (
    pages.PIPELINES
    + """

@pages.step(after="persist", unit="run", gather=True)
def report(ctx):
    ctx.note("all is in")


paid = Pipeline("paid")


@paid.step(unit="run")
async def find(ctx):
    for number in range(ctx.params["pages"]):
        yield {"n": number}


@paid.step(after="find", unit="page", key="n")
async def enrich(item, ctx):
    ctx.spend(money=0.25, reason="a model was asked")
    yield item


@paid.step(after="enrich", unit="candidate")
def keep(item, ctx):
    ctx.save("item", key=item["n"], data=item)


judged = Pipeline("judged")


@judged.step(unit="run")
async def look(ctx):
    for number in range(ctx.params["pages"]):
        yield {"n": number}


@judged.step(after="look", unit="candidate")
def judge(item, ctx):
    ctx.spend(money=0.10, reason="a model was asked")
    ctx.save("item", key=item["n"], data=item)


broken = Pipeline("broken")


@broken.step(unit="run")
async def seek(ctx):
    for number in range(ctx.params["pages"]):
        yield {"n": number}


@broken.step(after="seek", unit="page", key="n")
async def ask(item, ctx):
    ctx.spend(money=0.10, reason="a model was asked")
    raise TimeoutError("the model's answer was lost")
"""
)
PARIS = ZoneInfo("Europe/Paris")
# Two in the afternoon in Paris.
AFTERNOON = datetime(2026, 11, 15, 14, 0, tzinfo=PARIS).timestamp()
MIDNIGHT = datetime(2026, 11, 16, 0, 0, tzinfo=PARIS).timestamp()


def a_source(number: int = 10, pipeline: str = "pages", **more: Any) -> dict[str, Any]:
    params = {"pages": number, **more.pop("params", {})}
    fetch = {"robots": False, "max_bytes": "1KB", "timeout": "10s"}
    return {"pipeline": f"{MODULE}:{pipeline}", "params": params, "fetch": fetch, **more}


class Web:
    """Answers after a second with a hundred bytes; knows how many requests are under way."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.at: list[float] = []
        self.under_way = 0
        self.most = 0
        self.network = ScriptedNetwork(self.answer)

    async def answer(self, request: Request) -> RawResponse:
        self.at.append(self.clock.now())
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(1.0)
        self.under_way -= 1
        return RawResponse(200, {"content-type": "text/plain"}, b"x" * 100)


class World:
    """A project in a folder, and a simulation of it that can be run more than once."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.folder = folder
        self.clock = VirtualClock(AFTERNOON)
        self.web = Web(self.clock)
        self.configure(config)
        self.project = self.load()
        self.simulation = Simulation(self.project, self.web.network, seed=1, clock=self.clock)
        self.simulation.__enter__()

    def configure(self, config: dict[str, Any]) -> None:
        self.folder.mkdir(exist_ok=True)
        config = {"project": "simulated", **config}
        (self.folder / "penstock.yaml").write_text(json.dumps(config))

    def load(self) -> Project:
        project = Project.load(self.folder)
        project.clock = self.clock
        return project

    def run(self, run_id: int) -> RunRow:
        row = self.project.connection.runs.get(run_id)
        assert row is not None
        return row

    def used(self, scope: str, measure: str = "requests", period: str = "day") -> float:
        rows = self.project.connection.budgets.all()
        found = [r for r in rows if (r.scope, r.measure, r.period) == (scope, measure, period)]
        assert [row.held for row in found] == [0], "nothing stays reserved"
        return found[0].used

    def events(self, kind: str) -> list[str]:
        return [event.detail for event in journal(self.project) if event.kind == kind]

    def close(self) -> None:
        self.simulation.__exit__(None, None, None)
        assert self.project.connection.upkeep.check() == []
        self.project.close()


def test_day_budget_stops_the_run_and_midnight_in_its_zone_lets_it_go_on(tmp_path: Path) -> None:
    budget = {"requests": "8/d", "timezone": "Europe/Paris"}
    world = World(tmp_path / "project", {"sources": {"shop": a_source(20, budget=budget)}})
    run_id = world.project.run("shop")
    world.simulation.run()

    run = world.run(run_id)
    assert (run.state, run.end_reason) == ("partial", "budget")
    assert len(world.web.at) == 8
    assert (run.pages, run.quarantined, run.candidates) == (20, 13, 7)
    assert {job.kind for job in quarantined(world, run_id)} == {"budget"}
    assert {job.tries for job in quarantined(world, run_id)} == {0}
    assert "all is in" not in world.events("job.noted")
    assert world.events("budget.exhausted") == [
        "the budget of 8 requests a day of shop is exhausted"
    ]

    # The last moment before midnight, and midnight.
    world.clock.advance(MIDNIGHT - world.clock.now() - 1)
    assert world.simulation.upkeep() == 0
    world.clock.advance(1)
    assert world.simulation.upkeep() == 13
    assert world.run(run_id).state == "running"
    assert len(world.events("budget.reset")) == 1
    world.simulation.run()
    assert (world.run(run_id).state, len(world.web.at)) == ("partial", 16)

    for _ in range(2):
        world.clock.advance(86_400)
        world.simulation.upkeep()
        world.simulation.run()
    run = world.run(run_id)
    assert (run.state, run.end_reason, run.quarantined) == ("completed", "", 0)
    assert len(world.project.connection.records.of("page")) == 20
    # Each page once, the index once: nothing was fetched twice, nothing was left out.
    assert len(world.web.at) == 21 == run.requests
    assert run.bytes == 2100
    assert world.events("job.noted") == ["all is in"]
    world.close()


def quarantined(world: World, run_id: int) -> list[Any]:
    wanted = JobFilter(run_id=run_id, states=(JobState.QUARANTINED,), limit=1000)
    return world.project.connection.jobs.find(wanted)


def test_budget_that_stops_discover_itself_loses_nothing(tmp_path: Path) -> None:
    sources = {"one": a_source(3), "two": a_source(3)}
    world = World(tmp_path / "project", {"budget": {"requests": "4/d"}, "sources": sources})
    first = world.project.run("one")
    world.simulation.run()
    assert world.run(first).state == "completed"
    second = world.project.run("two")
    world.simulation.run()

    run = world.run(second)
    assert (run.state, run.end_reason, run.pages) == ("partial", "budget", 0)
    world.clock.advance(86_400)
    assert world.simulation.upkeep() == 1
    world.simulation.run()
    assert world.run(second).state == "completed"
    assert (world.used("project"), len(world.web.at)) == (4, 8)
    world.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bytes_and_seconds_stop_within_one_request(tmp_path: Path, seed: int) -> None:
    """A request brings 100 bytes and may bring 1000: the last ones go out one at a time."""
    source = a_source(40, budget={"bytes": "2.25KB/d"}, limits={"concurrency": 16})
    world = World(tmp_path / "bytes", {"sources": {"shop": source}})
    run_id = world.project.run("shop")
    world.simulation.run()
    assert 2250 <= world.used("source:shop", "bytes") <= 2250 + 100
    assert world.used("source:shop", "bytes") == world.run(run_id).bytes == 100 * len(world.web.at)
    assert world.run(run_id).end_reason == "budget"
    world.close()

    source = a_source(40, budget={"seconds": "15s/d"}, limits={"concurrency": 8})
    world = World(tmp_path / "seconds", {"sources": {"shop": source}})
    run_id = world.project.run("shop")
    world.simulation.run()
    assert 15 <= world.used("source:shop", "seconds") <= 16.1
    assert world.run(run_id).seconds == pytest.approx(world.used("source:shop", "seconds"))
    world.close()


def test_run_budget_waits_for_a_person_who_raises_it(tmp_path: Path) -> None:
    source = a_source(9, budget={"requests": "5/run"})
    world = World(tmp_path / "project", {"sources": {"shop": source}})
    first = world.project.run("shop")
    world.simulation.run()
    second = world.project.run("shop")
    world.simulation.run()
    assert [world.run(run).end_reason for run in (first, second)] == ["budget", "budget"]
    assert len(world.web.at) == 10
    world.clock.advance(40 * 86_400)
    assert world.simulation.upkeep() == 0

    world.configure({"sources": {"shop": a_source(9, budget={"requests": "50/run"})}})
    project = world.load()
    assert project.retry_failed(second) == 5
    with Simulation(project, world.web.network, seed=2, clock=world.clock) as simulation:
        simulation.run()
    assert world.run(second).state == "completed"
    assert world.run(first).state == "partial"
    assert len(world.web.at) == 15
    project.close()
    world.close()


def test_bound_that_is_raised_lets_the_work_go_on_by_itself(tmp_path: Path) -> None:
    world = World(
        tmp_path / "project", {"sources": {"shop": a_source(9, budget={"requests": "5/d"})}}
    )
    run_id = world.project.run("shop")
    world.simulation.run()
    assert world.run(run_id).state == "partial"
    world.configure({"sources": {"shop": a_source(9, budget={"requests": "50/d"})}})
    project = world.load()
    with Simulation(project, world.web.network, seed=2, clock=world.clock) as simulation:
        assert simulation.upkeep() == 5
        simulation.run()
    assert world.run(run_id).state == "completed"
    assert world.used("source:shop") == 10
    project.close()
    world.close()


def test_warnings_come_once_in_each_period(tmp_path: Path) -> None:
    world = World(
        tmp_path / "project", {"sources": {"shop": a_source(99, budget={"requests": "100/d"})}}
    )
    world.project.run("shop")
    world.simulation.run()
    warned = [detail.split(" of ")[0] for detail in world.events("budget.threshold_reached")]
    assert warned == ["80 %", "95 %"]
    assert len(world.events("budget.exhausted")) == 1
    world.clock.advance(86_400)
    world.project.run("shop")
    world.simulation.run()
    assert len(world.events("budget.threshold_reached")) == 4
    world.close()


def test_money_of_requests_and_of_steps_share_one_budget(tmp_path: Path) -> None:
    sources = {
        "model": a_source(20, "paid"),
        "shop": a_source(20, cost={"request": 0.5}),
    }
    world = World(tmp_path / "project", {"budget": {"money": "3.00/month"}, "sources": sources})
    shop = world.project.run("shop")
    world.simulation.run()
    assert (world.run(shop).money, len(world.web.at)) == (3.0, 6)

    model = world.project.run("model")
    world.simulation.run()
    run = world.run(model)
    assert (run.state, run.end_reason, run.money) == ("partial", "budget", 0)

    world.clock.advance(31 * 86_400)
    world.simulation.upkeep()
    world.simulation.run()
    # Its jobs take 0.25 each, and no more than four are under way when it is used up.
    spent = world.used("project", "money", "month")
    assert 3.0 <= spent <= 3.0 + 4 * 0.25
    assert spent == sum(world.run(run).money for run in (shop, model)) - 3.0
    world.close()


def test_two_workers_share_a_budget_and_a_host(tmp_path: Path) -> None:
    folder, clock = tmp_path / "project", VirtualClock(AFTERNOON)
    sources = {key: a_source(25, params={"site": "https://api.example"}) for key in ("one", "two")}
    config = {
        "project": "simulated",
        "sources": sources,
        "budget": {"requests": "20/d", "bytes": "8KB/d"},
        "hosts": {"api.example": {"concurrency": 3}},
        "worker": {"slots": 5},
    }
    folder.mkdir()
    (folder / "penstock.yaml").write_text(json.dumps(config))
    web = Web(clock)
    projects = [Project.load(folder) for _ in range(2)]
    simulations = [
        Simulation(project, web.network, seed=seed, clock=clock)
        for seed, project in enumerate(projects)
    ]
    for simulation in simulations:
        simulation.__enter__()
    runs = [projects[0].run(key) for key in sources]
    run_together(clock, *simulations)
    rows = [projects[0].connection.runs.get(run) for run in runs]
    assert [row.end_reason for row in rows if row] == ["budget", "budget"]
    assert len(web.at) == 20
    assert web.most == 3
    assert sum(row.requests for row in rows if row) == 20
    for simulation, project in zip(simulations, projects, strict=True):
        simulation.__exit__(None, None, None)
        assert [row.held for row in project.connection.budgets.all()] == [0, 0]
        project.close()


def test_rate_of_a_host_holds_for_all_sources_together(tmp_path: Path) -> None:
    sources = {
        key: a_source(20, params={"site": "https://api.example"}) for key in ("one", "two", "three")
    }
    hosts = {"api.example": {"rate": "30/m"}}
    world = World(tmp_path / "project", {"hosts": hosts, "sources": sources})
    runs = [world.project.run(key) for key in sources]
    world.simulation.run()
    assert {world.run(run).state for run in runs} == {"completed"}
    gaps = [later - sooner for sooner, later in zip(world.web.at, world.web.at[1:], strict=False)]
    assert min(gaps) >= 2.0 - 1e-3
    # It is made use of, too: hardly ever is nobody there to take the next place.
    assert world.web.at[-1] - world.web.at[0] < 63 * 2.0 * 1.25
    world.close()


def test_without_budgets_and_limits_no_request_asks_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("the store was asked")

    world = World(tmp_path / "project", {"sources": {"shop": a_source(5)}})
    monkeypatch.setattr(StoreRequestLimiter, "_exchange", asked)
    monkeypatch.setattr(Budgets, "exhausted", asked)
    run_id = world.project.run("shop")
    world.simulation.run()
    assert (world.run(run_id).state, world.run(run_id).requests) == ("completed", 6)
    world.close()


def test_leader_begins_budgets_anew_when_their_time_has_come(tmp_path: Path) -> None:
    """It looks at the start, at midnight in the zone, and once a minute; and not at all without budgets."""
    budget = {"requests": "3/d", "timezone": "Europe/Paris"}
    world = World(tmp_path / "project", {"sources": {"shop": a_source(5, budget=budget)}})
    run_id = world.project.run("shop")
    world.simulation.run()
    bounds = rules_of(world.project.settings).lasting()
    store, looks = world.project.connection, list[float]()

    def tap(verb: str) -> None:
        if verb == "budgets.renew":
            looks.append(world.clock.now())

    class NoSweep:
        def look(self) -> None:
            return None

    def upkeep(bounds: Any) -> UpkeepChore:
        return UpkeepChore(Tapped(store, tap), Retention(), NoSweep(), world.clock, bounds)  # type: ignore[arg-type]

    leader = upkeep(bounds)
    world.clock.advance(MIDNIGHT - world.clock.now() - 90)
    while world.clock.now() < MIDNIGHT + 1:
        while leader.do_a_little():
            pass
        world.clock.advance(0.5)
    assert [round(at - MIDNIGHT) for at in looks] == [-90, -30, 0, 0]
    assert world.run(run_id).state == "running"
    world.simulation.run()

    looks.clear()
    leader = upkeep([])
    for _ in range(5):
        leader.do_a_little()
        world.clock.advance(3600)
    assert len(looks) <= 2, "once, and once more for what it released"
    world.close()


def test_candidates_stop_spending_when_the_money_is_gone(tmp_path: Path) -> None:
    """Those that have begun go on: what is spent too much is at most one attempt for each place."""
    source = a_source(300, "judged", budget={"money": "1/d"}, limits={"candidates": 8})
    world = World(tmp_path / "p", {"sources": {"shop": source}})
    run_id = world.project.run("shop", actor="test")
    world.simulation.run()
    run = world.run(run_id)
    spent = sum(
        row.used for row in world.project.connection.budgets.all() if row.measure == "money"
    )
    assert 1.0 <= round(spent, 6) < 1.0 + 8 * 0.10
    assert (run.state, run.end_reason) == ("partial", "budget")
    jobs = world.project.connection.jobs.find(JobFilter(run_id=run.id, limit=1000))
    assert {job.tries for job in jobs if job.state is JobState.QUARANTINED} == {0}
    assert len(world.project.connection.records.of("item", limit=1000)) == round(spent / 0.10)
    world.close()


def test_attempts_that_fail_use_up_the_budget_too(tmp_path: Path) -> None:
    """Each try has been paid for: without a charge, retries would spend without an end."""
    source = a_source(300, "broken", budget={"money": "1/d"}, limits={"concurrency": 4})
    world = World(tmp_path / "p", {"sources": {"shop": source}})
    run_id = world.project.run("shop", actor="test")
    world.simulation.run()
    run = world.run(run_id)
    assert (run.state, run.end_reason) == ("partial", "budget")
    assert 1.0 <= round(world.used("source:shop", "money"), 6) < 1.0 + 4 * 0.10
    assert run.money == pytest.approx(world.used("source:shop", "money"))
    world.close()
