"""A project in which every act of a person can be done: what makes each possible, and its arguments."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from penstock import Project
from penstock.alerts.history import Cause, Finding
from penstock.jobs.canary.guardrails import Limits
from penstock.store.address import open_end
from penstock.store.alert_rows import Opening
from penstock.store.canaries import CanarySource
from penstock.store.project_name import rename
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

PIPELINES = """
import itertools

from penstock import Pipeline
from penstock.errors import PenstockError

shop, broken, prices = Pipeline("shop"), Pipeline("broken"), Pipeline("prices")
learns = Pipeline("learns")
versions = itertools.count()


@shop.step(unit="run")
async def discover(ctx):
    for number in range(3):
        yield {"number": number}


@shop.step(after="discover", unit="page", key="number")
async def extract(page, ctx):
    if page["number"] == 2:
        ctx.reject("no price", code="no-price")
        return
    ctx.save("product", key=str(page["number"]), data={"version": next(versions)})


@broken.step(unit="run")
async def list_all(ctx):
    for number in range(3):
        yield {"number": number}


@broken.step(after="list_all", unit="page", key="number")
def fail(item):
    raise ValueError("it is broken")


@learns.step(unit="run")
async def learn(ctx):
    about = {"kind": "images", "name": "a badge", "description": "", "proposed_at": "2026-11-19T00:00:00Z"}
    proposals = [{"id": str(next(versions)), **about, "change": {"exclude": [".badge"]}}]
    schema = {"domain": "site.example", "schema_proposals": proposals}
    ctx.save("site_schemas", key="site.example", data=schema)


@prices.step(unit="run")
async def windows(ctx):
    yield {"partition": "EUR", "from": "2026-01-05", "to": "2026-01-06"}
    ctx.checkpoint(f"cursor {next(versions)}", partition="EUR")


@prices.step(after="windows", unit="page", windows=True)
async def fetch(ctx):
    ctx.save("price", key=f"{ctx.window.start:%Y-%m-%d}", data={})
"""


def write(folder: Path, receiver: str) -> None:
    sources = {
        "shop": {"pipeline": "acts_steps:shop", "schedule": {"cadence": "auto"}},
        "broken": {
            "pipeline": "acts_steps:broken",
            "schedule": {"signal": "go"},
            "degrade_after": 0,
        },
        "extra": {"pipeline": "acts_steps:shop"},
        "learns": {"pipeline": "acts_steps:learns"},
        "prices": {"pipeline": "acts_steps:prices", "backfill": {"window": "1d"}},
    }
    route = {"to": f"http://{receiver}/hook", "name": "oncall", "allow_private": True}
    config = {"project": "acts", "sources": sources, "alerts": [route]}
    (folder / "penstock.yaml").write_text(json.dumps(config))
    (folder / "acts_steps.py").write_text(PIPELINES)


class Stage:
    """Makes one act after the other possible. Everything here is done as `stage`, from Python."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.clock = VirtualClock(time.time())
        project.clock = self.clock
        self.seeds = iter(range(1, 1000))
        self._rules = iter(("zero-yield", "quality-drop", "stale-source"))

    def set_for(self, act: str) -> dict[str, Any]:
        """Make the act possible; answers with its arguments."""
        for run in self.project.runs.list(limit=20).items:
            if run.state in ("draft", "queued", "running", "paused"):
                list(self.project.runs.cancel(run.id, actor="stage"))
        return dict(SCENES[act](self))

    def started(self, source: str = "shop", **about: Any) -> int:
        begun = self.project.runs.start(source, new=True, actor="stage", **about)
        assert begun.run is not None
        return begun.run.id

    def prepared(self) -> int:
        run = self.project.runs.prepare("shop", actor="stage").run
        assert run is not None
        return run.id

    def worked(self, source: str = "shop") -> int:
        run = self.started(source)
        self.work()
        return run

    def work(self) -> None:
        network, seed = ScriptedNetwork.of_pages({}), next(self.seeds)
        with Simulation(self.project, network, seed=seed, clock=self.clock) as simulation:
            simulation.run()

    def onboarded(self, state: str) -> dict[str, Any]:
        """A source of its own, in this state of its onboarding."""
        sources = self.project.sources
        sources.legal_release("extra", actor="stage", reason="stage")
        if sources.onboarding("extra").state != "retired":
            sources.retire("extra", actor="stage")
        if state != "retired":
            sources.propose("extra", owner="team", actor="stage")
            sources.check("extra", actor="stage")
            sources.accept_terms("extra", actor="stage", reason="stage")
        if state in ("trial", "tried"):
            sources.approve("extra", actor="stage")
        if state == "tried":
            sources.trial("extra", actor="stage")
            self.work()
        return {"source": "extra"}

    def on_hold(self) -> dict[str, Any]:
        given = self.onboarded("trial")
        self.project.sources.legal_hold("extra", actor="stage", reason="stage")
        return given

    def replayed(self) -> int:
        replay = self.project.replays.start(self.worked(), actor="stage").run.id
        self.work()
        return replay

    def queued_job(self) -> int:
        return self.project.jobs.list(run=self.started(), limit=1).items[0].id

    def queued_page(self) -> int:
        job = self.failed_job()
        self.project.jobs.retry(job, actor="stage")
        return job

    def held_job(self) -> int:
        job = self.queued_job()
        self.project.jobs.hold(job, actor="stage")
        return job

    def failed_job(self) -> int:
        run = self.worked("broken")
        return self.project.jobs.list(run=run, states=["quarantined"], limit=1).items[0].id

    def proposal(self) -> dict[str, str]:
        self.worked("learns")
        [found] = self.project.sites.proposals("site.example").items
        return {"domain": "site.example", "proposal": found.id}

    def alert(self) -> int:
        rule, now = next(self._rules), self.clock.now()
        about: Any = {"rule": rule, "source": "shop", "severity": "high", "summary": "nothing"}
        finding = Finding(
            **about,
            numbers=(),
            cause=Cause(kind="host", key="shop", words="the source"),
            since=now,
        )
        opening = Opening(
            rule,
            self.project.source_ids["shop"],
            "high",
            "nothing",
            finding=msgspec.json.encode(finding).decode(),
        )
        found = self.project.connection.alerts.open(opening)
        assert found is not None
        return found

    def delivery(self) -> int:
        alerts = self.project.connection.alerts
        about = (self.project.source_ids["shop"], "high", "nothing")
        alerts.open(Opening("breaker-open", *about, routes=("oncall",)))
        found = alerts.send("oncall", "{}", alerts.waiting())
        assert found is not None
        return found

    def release(self) -> str:
        """A release of the folder without what must not be in one: a route's address."""
        root = self.project.settings.root
        file, before = root / "penstock.yaml", (root / "penstock.yaml").read_text()
        lean = json.loads(before)
        del lean["alerts"], lean["sources"]["broken"]["schedule"]
        file.write_text(json.dumps(lean))
        with Project.open(root) as other:
            found = other.releases.create(actor="stage", reason="to be tried").release
        file.write_text(before)
        return found

    def canary(self) -> int:
        """A canary of one source, in the place of the one before."""
        self.end_canaries()
        store = self.project.connection
        source = CanarySource(self.project.source_ids["shop"], True, "v", "{}")
        about = (10.0, "salt", Limits(), [source], "stage", "")
        return store.canaries.begin("f" * 64, "pages", *about)

    def end_canaries(self) -> None:
        store = self.project.connection.canaries
        for row in store.open():
            if row.state == "stopping":
                store.rolled_back(row.id, 0, 0)
            else:
                store.end(row.id, row.state, "stage", "")


Scene = Callable[[Stage], dict[str, Any]]


def _paused(stage: Stage) -> dict[str, Any]:
    run = stage.started()
    stage.project.runs.pause(run, actor="stage")
    return {"run": run}


def _cancelled(stage: Stage) -> dict[str, Any]:
    run = stage.started()
    list(stage.project.runs.cancel(run, actor="stage"))
    return {"run": run}


def _after(verb: Callable[[Stage], object], given: dict[str, Any]) -> Scene:
    def scene(stage: Stage) -> dict[str, Any]:
        verb(stage)
        return given

    return scene


def _rewindable(stage: Stage) -> dict[str, Any]:
    stage.worked("prices")
    stage.clock.advance(3600)
    between = datetime.fromtimestamp(stage.clock.now(), UTC)
    stage.clock.advance(3600)
    stage.worked("prices")
    return {"source": "prices", "partition": "EUR", "to_time": f"{between:%Y-%m-%dT%H:%M:%SZ}"}


def _renamed(stage: Stage) -> dict[str, Any]:
    settings = stage.project.settings
    end = open_end(settings.store, settings.root, stage.clock)
    rename(end.db, "another", "stage")
    end.close()
    return {}


def _released(stage: Stage) -> dict[str, Any]:
    """Two releases of folders that are not the same."""
    root = stage.project.settings.root
    for name in ("one", "two"):
        (root / f"penstock.{name}.yaml").write_text("worker: {slots: 3}\n")
        stage.project.releases.create(actor="stage", reason="stage")
    return {}


def _tested(stage: Stage) -> dict[str, Any]:
    """A release that another environment runs."""
    root = stage.project.settings.root
    (root / "penstock.tested.yaml").write_text("store: sqlite:tested.db\n")
    return _tested_by(root)


def _tested_by(root: Path) -> dict[str, Any]:
    with Project.open(root, "tested") as other:
        other.releases.create(actor="stage", reason="stage")
    return {"source": "tested"}


def _fetchable(stage: Stage) -> dict[str, Any]:
    """A release that only another environment has."""
    root = stage.project.settings.root
    (root / "penstock.tested.yaml").write_text(f"store: sqlite:{next(stage.seeds)}.db\n")
    return _tested_by(root)


def _canary_to_be(stage: Stage) -> dict[str, Any]:
    stage.end_canaries()
    return {"release": stage.release(), "percent": 10}


def _passed_canary(stage: Stage) -> dict[str, Any]:
    canary = stage.canary()
    stage.project.connection.canaries.has_passed(canary, "")
    return {"canary": canary}


SHOP = {"source": "shop"}
SCENES: dict[str, Scene] = {
    "runs.start": lambda stage: SHOP,
    "runs.start_many": lambda stage: {},
    "runs.probe": lambda stage: SHOP,
    "runs.begin": lambda stage: {"run": stage.started(draft=True)},
    "runs.hand_over": lambda stage: {"run": stage.prepared()},
    "runs.pause": lambda stage: {"run": stage.started()},
    "runs.resume": _paused,
    "runs.cancel": lambda stage: {"run": stage.started()},
    "runs.retry": lambda stage: {"run": stage.worked("broken")},
    "runs.continue_from": _cancelled,
    "runs.undo": lambda stage: {"run": stage.worked()},
    "sources.pause": lambda stage: SHOP,
    "sources.resume": _after(lambda stage: stage.project.sources.pause("shop"), SHOP),
    "sources.propose": lambda stage: stage.onboarded("retired"),
    "sources.own": lambda stage: {
        **stage.onboarded("proposed"),
        "owner": f"team {next(stage.seeds)}",
    },
    "sources.check": lambda stage: stage.onboarded("proposed"),
    "sources.accept_terms": lambda stage: stage.onboarded("proposed"),
    "sources.approve": lambda stage: stage.onboarded("proposed"),
    "sources.trial": lambda stage: stage.onboarded("trial"),
    "sources.activate": lambda stage: stage.onboarded("tried"),
    "sources.retire": lambda stage: stage.onboarded("trial"),
    "sources.legal_hold": lambda stage: stage.onboarded("trial"),
    "sources.legal_release": lambda stage: stage.on_hold(),
    "sources.hold": lambda stage: SHOP,
    "sources.unhold": _after(lambda stage: stage.project.sources.hold("shop"), SHOP),
    "jobs.retry": lambda stage: {"job": stage.failed_job()},
    "jobs.cancel": lambda stage: {"job": stage.queued_page()},
    "jobs.hold": lambda stage: {"job": stage.queued_job()},
    "jobs.unhold": lambda stage: {"job": stage.held_job()},
    "breakers.open": lambda stage: {"name": "shop", "for_s": "1h"},
    "breakers.close": lambda stage: {"name": "shop"},
    "quarantine.release": lambda stage: {"job_id": stage.failed_job()},
    "quarantine.discard": lambda stage: {"job_id": stage.failed_job()},
    "quarantine.note": lambda stage: {"job": stage.failed_job(), "text": "a note"},
    "records.forget": _after(lambda stage: stage.worked(), {**SHOP, "key": "0"}),
    "rejects.redrive": _after(lambda stage: stage.worked(), SHOP),
    "checkpoints.rewind": _rewindable,
    "backfills.start": lambda stage: {
        "source": "prices",
        "start": "2026-01-05T00:00:00Z",
        "end": "2026-01-06T00:00:00Z",
    },
    "releases.create": lambda stage: {},
    "releases.promote": _tested,
    "releases.fetch": _fetchable,
    "releases.rollback": _released,
    "releases.approve": lambda stage: {"release": "ab" * 32},
    "replays.start": lambda stage: {"run": stage.worked()},
    "replays.commit": lambda stage: {"run": stage.replayed()},
    "replays.drop": lambda stage: {"run": stage.replayed()},
    "schedules.set_cadence": lambda stage: {**SHOP, "level": "low"},
    "schedules.undo_cadence": lambda stage: SHOP,
    "alerts.acknowledge": lambda stage: {"alert": stage.alert()},
    "alerts.snooze": lambda stage: {"alert": stage.alert(), "for_s": "1h"},
    "alerts.resolve": lambda stage: {"alert": stage.alert()},
    "alerts.test": lambda stage: {"route": "oncall"},
    "runbooks.do": lambda stage: {"runbook": "source-broke", "step": "stop-requests", **SHOP},
    "runbooks.skip": lambda stage: {"runbook": "source-broke", "step": "compare", **SHOP},
    "runbooks.end": lambda stage: {"runbook": "source-broke", **SHOP},
    "hooks.redeliver": lambda stage: {"delivery": stage.delivery()},
    "sites.approve": lambda stage: stage.proposal(),
    "sites.reject": lambda stage: stage.proposal(),
    "signals.raise_": lambda stage: {"name": "go"},
    "tokens.revoke": _after(
        lambda stage: stage.project.tokens.create("ci", "viewer", actor="stage"), {"name": "ci"}
    ),
    "store.rename": _renamed,
    "sql.install": lambda stage: {},
    "sql.remove": _after(lambda stage: stage.project.sql.install(actor="stage"), {}),
    "shadows.start": lambda stage: {**SHOP, "release": stage.release()},
    "canaries.start": _canary_to_be,
    "canaries.stop": lambda stage: {"canary": stage.canary()},
    "canaries.widen": _passed_canary,
    "canaries.end": lambda stage: {"canary": stage.canary()},
}
