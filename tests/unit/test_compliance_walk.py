"""Whatever is asked for, and wherever: nothing is fetched of a source that may not be fetched."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock import Project
from penstock.app.verbs.act_words import command_of
from penstock.app.verbs.acts import ACTS
from penstock.cli.entry import main
from penstock.engine.leader.requests import RequestChore
from penstock.engine.leader.scheduler import Scheduler
from penstock.engine.leader.signals import SignalChore
from penstock.mcp.left_out import LEFT_OUT
from penstock.mcp.tools import tool_name
from penstock.settings.values import TriggerSettings
from penstock.testing import RawResponse, ScriptedNetwork, Simulation, VirtualClock
from tests.contract.sql_clients import Client
from tests.unit.mcp_clients import connected_to, done
from tests.unit.test_onboarding import Site, site
from tests.unit.test_trigger import JSON, ask
from tests.unit.test_web import Site as Served
from tests.unit.test_web import visit

__all__ = ["site"]
TOKEN = "token-of-the-trigger"
REASON = "in a hurry"
SOURCES = ("shop", "waits")
# A check is always possible, its terms are accepted by a person, who may also end a legal hold: those are
# the ways to open the gate.
OPENS = {"sources.check", "sources.accept_terms", "sources.legal_release"}
# They end or hold something back, or decide about what nobody has begun here.
SHUTS = {
    "runs.pause", "runs.cancel", "runs.undo", "sources.pause", "sources.hold", "sources.retire",
    "sources.legal_hold", "jobs.cancel", "jobs.hold", "breakers.open", "quarantine.discard",
    "quarantine.note",
    "records.forget", "releases.approve", "releases.fetch", "releases.rollback", "releases.promote",
    "replays.commit", "replays.drop", "canaries.stop", "canaries.end", "alerts.acknowledge", "alerts.snooze",
    "alerts.resolve", "alerts.test", "runbooks.skip", "runbooks.end", "hooks.redeliver", "tokens.revoke",
    "sites.approve", "sites.reject", "cells.place", "cells.move", "store.migrate", "store.rename",
    "sql.remove",
}  # fmt: skip
# All that could begin something, with what is said beside the names in its path.
SAID: dict[str, dict[str, Any]] = {
    "runs.start": {"kind": "full", "new": True},
    "runs.start_many": {"kind": "full", "new": True},
    "runs.probe": {},
    "runs.begin": {},
    "runs.hand_over": {},
    "runs.resume": {},
    "runs.retry": {},
    "runs.continue_from": {},
    "sources.resume": {},
    "sources.unhold": {"source": "shop"},
    "sources.propose": {},
    "sources.own": {"owner": "me"},
    "sources.approve": {},
    "sources.trial": {},
    "sources.activate": {},
    "jobs.retry": {},
    "jobs.unhold": {},
    "breakers.close": {},
    "quarantine.release": {"everything": True},
    "rejects.redrive": {"source": "shop"},
    "checkpoints.rewind": {"to": "null", "force": True},
    "backfills.start": {"start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"},
    "releases.create": {},
    "replays.start": {},
    "shadows.start": {},
    "canaries.start": {"percent": 50},
    "canaries.widen": {"force": True},
    "schedules.set_cadence": {"level": "high"},
    "schedules.undo_cadence": {},
    "runbooks.do": {"source": "shop"},
    "signals.raise_": {},
    "sql.install": {},
}


def test_walk_knows_every_act() -> None:
    assert {*SAID, *OPENS, *SHUTS} == ACTS.keys()
    assert not {*SAID} & (OPENS | SHUTS)


def write(folder: Path, site: Site) -> None:
    source = {
        "connector": "web",
        "sitemap": f"{site.url}/sitemap.xml",
        "fetch": {"allow_private": True},
    }
    settings = {
        "project": "walk",
        "onboarding": {"required": True},
        "sources": {
            "shop": {**source, "schedule": {"every": "1h"}},
            "waits": {**source, "schedule": {"signal": ["go", "schedule.due"]}},
        },
    }
    (folder / "penstock.yaml").write_text(json.dumps(settings))
    links = "".join(f"<url><loc>{site.url}/{n}</loc></url>" for n in (1, 2, 3))
    site.pages |= {"/sitemap.xml": f"<urlset>{links}</urlset>", "/1": "one", "/2": "two"}


class Walk:
    """A project whose sources were read once, if they ever might have been, and may not be read now."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.folder, self.site = folder, site
        self.network = ScriptedNetwork.of_pages({})
        self.named: dict[str, Any] = {
            "name": "go",
            "run": 1,
            "job": 1,
            "canary": 1,
            "release": "0" * 64,
        }
        self.named |= {"runbook": "source-broke", "step": "probe"}
        self.runs: dict[str, int] = {}
        # Else once for each front end: that takes a tenth of the time.
        self.leads_each_time = False

    @contextlib.contextmanager
    def project(self) -> Iterator[Project]:
        with Project.open(self.folder) as made:
            yield made

    def read_once(self) -> None:
        """All that may be left of sources that were active: runs of every kind, and failures to retry."""
        with self.project() as project:
            for source in SOURCES:
                project.sources.propose(source, owner="team", actor="ann")
                project.sources.check(source, terms=f"{self.site.url}/terms")
                project.sources.accept_terms(source, actor="ann", reason="read")
                project.sources.approve(source, actor="ann", reason="fine")
                project.sources.trial(source, actor="ann")
            self.work(project, self.answers())
            for source in SOURCES:
                project.sources.activate(source, actor="ann", reason="good")
            read = self.begun(project)
            self.work(project, self.answers())
            [failed] = project.jobs.list(run=read, states=["quarantined"], limit=1).items
            paused, cancelled, draft = (
                self.begun(project, draft=each) for each in (False, False, True)
            )
            project.runs.pause(paused)
            list(project.runs.cancel(cancelled))
            release = project.releases.create(actor="ann", reason="r").release
        self.named |= {"run": read, "job": failed.id, "release": release}
        self.runs = {"runs.resume": paused, "runs.continue_from": cancelled, "runs.begin": draft}
        self.site.asked.clear()

    def begun(self, project: Project, **about: Any) -> int:
        run = project.runs.start("shop", "full", new=True, **about).run
        assert run is not None
        return run.id

    def answers(self) -> ScriptedNetwork:
        pages = {f"{self.site.url}{path}": text for path, text in self.site.pages.items()}
        broken = f"{self.site.url}/3"
        return ScriptedNetwork.of_pages({**pages, broken: RawResponse(403, {}, b"no")})

    def work(self, project: Project, network: ScriptedNetwork) -> None:
        project.clock = VirtualClock(project.connection.now())
        with Simulation(project, network, seed=1, clock=project.clock) as simulation:
            # Behind a shut gate, work waits for ever.
            simulation.run(for_s=60.0)

    def given(self, act: str) -> list[dict[str, Any]]:
        """What it is asked with; of an act about a source, once for each."""
        row, said = ACTS[act], dict(SAID[act])
        if "run" in row.takes:
            said["run"] = self.named["run"]
        if "release" in row.takes:
            said["release"] = self.named["release"]
        known = {**self.named, "run": self.runs.get(act, self.named["run"])}
        said |= {each: known[each] for each in row.path_names if each in known}
        if "source" in row.path_names:
            return [{**said, "source": source} for source in SOURCES]
        return [said]

    def asked(self) -> list[str]:
        """What the site was asked for since the last look."""
        found = [*self.site.asked, *self.network.requests]
        self.site.asked.clear()
        self.network.requests.clear()
        return found

    def lead(self) -> None:
        """Whoever leads and works does all that there is to do."""
        with self.project() as project:
            project.clock = clock = VirtualClock(project.connection.now())
            scheduler = Scheduler(project, project.connection)
            signals = SignalChore(project, project.connection)
            for chore in (scheduler, signals):
                chore.plan()
            clock.advance(3700)
            scheduler.tick()
            signals.look()
            RequestChore(project, project.connection).look()
            self.work(project, self.network)

    def must_be_quiet(self, what: str) -> None:
        if self.leads_each_time:
            self.lead()
        assert self.asked() == [], what

    def must_stay_quiet(self, what: str) -> None:
        self.lead()
        assert self.asked() == [], what

    def by_command(self, look: Callable[[str], object]) -> None:
        for act in SAID:
            for given in self.given(act):
                _, *words = shlex.split(command_of(act, given, REASON))
                main([*words, "--yes"] if "--yes" in words else words)
                look(f"penstock {' '.join(words)}")
        page = f"{self.site.url}/1"
        for words in (
            ["probe", "shop"], ["try", "shop", page], ["add", self.site.url, "--yes"], ["run", "shop"],
            ["run", "--all"], ["prepare", "shop"], ["drain", "1", "--stages", "discover"],
            ["backfill", "shop", "--from", "2026-01-01", "--to", "2026-01-02"],
            ["golden", "record", "shop"], ["simulate", "--days", "1"], ["explain", "shop"],
            ["sources", "report", "shop"],
        ):  # fmt: skip
            main(words)
            look(f"penstock {' '.join(words)}")

    async def by_api(self, at: Served, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        for act in SAID:
            for given in self.given(act):
                row, path = ACTS[act], f"/api/v1{ACTS[act].path}"
                for name in row.path_names:
                    path = path.replace(f"{{{name}}}", str(given.pop(name)))
                await at.ask("POST", path, json={**given, "reason": REASON}, headers=headers)
                await asyncio.to_thread(self.must_be_quiet, f"POST {path}")

    async def by_form(self, at: Served) -> None:
        await at.log_in()
        origin = {"Origin": f"http://127.0.0.1:{at.port}", "Accept": "text/html"}
        for act in SAID:
            for given in self.given(act):
                texts = {name: str(value) for name, value in given.items()}
                form = {"csrf": at.csrf, "reason": REASON, **texts}
                await at.ask("POST", f"/acts/{act}", data=form, headers=origin)
                await asyncio.to_thread(self.must_be_quiet, f"form of {act}")

    async def by_mcp(self, at: Served, token: str) -> None:
        async with connected_to(at, token, name="Some Client") as client:
            for act in (each for each in SAID if each not in LEFT_OUT):
                for given in self.given(act):
                    await done(client, tool_name(act), {**given, "reason": REASON}, lambda: None)
                    await asyncio.to_thread(self.must_be_quiet, f"tool {tool_name(act)}")

    def by_sql(self) -> None:
        with self.project() as project:
            project.sql.install()
        for statement in (
            "INSERT INTO ingestion_jobs (source, priority) VALUES ('shop', 0)",
            "UPDATE ingestion_jobs SET status = 'queued' WHERE status = 'failed'",
            "UPDATE ingestion_jobs SET status = 'queued' WHERE status = 'blocked'",
            "UPDATE organizations SET status = 'active'",
        ):
            client = Client(self.folder / "penstock.db")
            with contextlib.suppress(apsw.Error):
                client.do(statement)
            client.close()
        self.must_stay_quiet("by SQL")

    def by_trigger(self) -> None:
        with self.project() as project:
            project.settings = replace(project.settings, trigger=TriggerSettings(TOKEN))
            headers = {**JSON, "Authorization": f"Bearer {TOKEN}"}
            for path in ("/signals/go", "/signals/schedule.due?source=waits"):
                status, *_ = ask(project, path, b'{"schedule": "main"}', headers)
                assert status == 202
        self.must_stay_quiet("signals by HTTP")


def stale(walk: Walk) -> None:
    database = apsw.Connection(str(walk.folder / "penstock.db"))
    database.execute("UPDATE onboarding SET robots_at = 1")
    database.close()


def shut(verb: str) -> Callable[[Walk], None]:
    def close(walk: Walk) -> None:
        with walk.project() as project:
            for source in SOURCES:
                getattr(project.sources, verb)(source, actor="ann", reason="no more")

    return close


STATES: dict[str, Callable[[Walk], None] | None] = {
    "never proposed": None,
    "stale": stale,
    "on legal hold": shut("legal_hold"),
    "retired": shut("retire"),
}
QUICK = ("never proposed, quick", "stale, quick")


@pytest.mark.parametrize(
    "state",
    [*QUICK, *(pytest.param(each, marks=pytest.mark.torture) for each in STATES)],
)
def test_nothing_that_anybody_asks_for_leads_around_the_gate(
    tmp_path: Path,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, site)
    walk = Walk(tmp_path, site)
    walk.leads_each_time = "quick" not in state
    close = STATES[state.removesuffix(", quick")]
    if close is not None:
        walk.read_once()
        close(walk)

    walk.by_command(walk.must_be_quiet)
    walk.must_stay_quiet("by command")
    walk.by_sql()
    walk.by_trigger()
    with Project.open(tmp_path) as project:
        token = project.tokens.create("robot", "admin").text

        async def steps(at: Served) -> None:
            await walk.by_api(at, token)
            await asyncio.to_thread(walk.must_stay_quiet, "by the API")
            await walk.by_mcp(at, token)
            await asyncio.to_thread(walk.must_stay_quiet, "by MCP")
            await walk.by_form(at)
            await asyncio.to_thread(walk.must_stay_quiet, "by forms")

        visit(project, steps)


@pytest.mark.torture
def test_where_the_gate_is_open_the_same_walk_asks_the_site(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, site)
    walk = Walk(tmp_path, site)
    walk.read_once()
    walk.lead()
    found = []

    def look(what: str) -> None:
        walk.lead()
        if walk.asked():
            found.append(what)

    walk.by_command(look)
    begun = {each.split()[1] for each in found}
    assert begun >= {"run", "start", "resume", "retry", "quarantine", "signal", "probe", "try"}
