"""Every act of a person, from every front end, is in the journal with who did it, why, and from where."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.verbs.act_words import command_of
from penstock.app.verbs.acts import ACTS
from penstock.cli.entry import main
from penstock.mcp.left_out import LEFT_OUT
from penstock.mcp.tools import tool_name
from penstock.project.opened import default_actor
from penstock.store.rows import EventRow
from penstock.testing import journal
from penstock.web.dashboard.acts import takes_reason
from tests.unit.every_act import SCENES, Stage, write
from tests.unit.mcp_clients import connected_to, done, said_of
from tests.unit.test_alert_routes import receiving
from tests.unit.test_web import Site, visit

REASON = "because the walk asks for it"
# A database that was just made has nothing to migrate: tests of migrations look at this one.
# Of the cells of a project in one database, nobody can move a source: `tests/postgres/test_cells.py` does.
NOTHING_TO_DO = {"store.migrate", "cells.place", "cells.move"}
# The text of a note is why it was written; a signal is a fact, and mostly raised by a program.
WITHOUT_REASON = {"quarantine.note", "signals.raise_"}
# What follows from an act: the event of the act itself says who, and why.
CONSEQUENCES = {"job.cancelled": ("upkeep",), "run.partial": ("penstock",)}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.chdir(tmp_path)
    with receiving() as receiver:
        write(tmp_path, receiver.place)
        with Project.load(tmp_path) as made:
            yield made
    sys.modules.pop("acts_steps", None)


def wrong_with(act: str, events: list[EventRow], actor: str, origin: str) -> list[str]:
    if not events:
        return [f"{act}: no event"]
    wrong = [
        f"{act}: {event.kind} by {event.actor} from {event.origin}"
        for event in events
        if event.origin != origin or event.actor not in (actor, *CONSEQUENCES.get(event.kind, ()))
    ]
    if takes_reason(ACTS[act]) and not any(REASON in event.detail for event in events):
        wrong += [f"{act}: no reason in {[(each.kind, each.detail) for each in events]}"]
    return wrong


class Walk:
    """Goes through all acts, and looks at what each has left in the journal."""

    def __init__(self, folder: Path) -> None:
        self.project = Project.load(folder)
        self.stage = Stage(self.project)
        self.wrong: list[str] = []

    def prepare(self, act: str) -> dict[str, Any]:
        given = self.stage.set_for(act)
        self.before = journal(self.project)[-1].id if journal(self.project) else 0
        return given

    def look(self, act: str, actor: str, origin: str, answer: str = "") -> None:
        found = [each for each in journal(self.project) if each.id > self.before]
        wrong = wrong_with(act, found, actor, origin)
        self.wrong += [f"{each} {answer}" for each in wrong]


def test_walk_knows_every_act_and_every_act_takes_a_reason() -> None:
    assert {*SCENES, *NOTHING_TO_DO} == set(ACTS)
    assert {name for name, act in ACTS.items() if not takes_reason(act)} == WITHOUT_REASON


def test_acts_of_the_command_line(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    walk = Walk(project.settings.root)
    for act in SCENES:
        given = walk.prepare(act)
        _, *words = shlex.split(command_of(act, given, REASON))
        code = main(words)
        walk.look(act, default_actor(), "cli", f"{code} {words} {capsys.readouterr()}")
    walk.project.close()
    assert not walk.wrong, "\n".join(walk.wrong)


def test_acts_of_the_api(project: Project) -> None:
    token = project.tokens.create("robot", "admin").text
    walk = Walk(project.settings.root)

    async def steps(at: Site) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        for act in SCENES:
            given = await asyncio.to_thread(walk.prepare, act)
            row, path = ACTS[act], f"/api/v1{ACTS[act].path}"
            for name in row.path_names:
                path = path.replace(f"{{{name}}}", str(given.pop(name)))
            body = {**given, "reason": REASON} if takes_reason(row) else given
            if "for_s" in body:
                body["for_s"] = 3600
            answer = await at.ask("POST", path, json=body, headers=headers)
            await asyncio.to_thread(walk.look, act, "robot", "api", answer.text)

    visit(project, steps)
    walk.project.close()
    assert not walk.wrong, "\n".join(walk.wrong)


def test_acts_of_the_dashboard(project: Project) -> None:
    walk = Walk(project.settings.root)

    async def steps(at: Site) -> None:
        await at.log_in()
        origin = {"Origin": f"http://127.0.0.1:{at.port}", "Accept": "text/html"}
        for act in SCENES:
            given = await asyncio.to_thread(walk.prepare, act)
            texts = {name: str(value) for name, value in given.items()}
            form = {"csrf": at.csrf, "reason": REASON, **texts}
            answer = await at.ask("POST", f"/acts/{act}", data=form, headers=origin)
            await asyncio.to_thread(walk.look, act, "ann", "dashboard", answer.text[-1500:])

    visit(project, steps)
    walk.project.close()
    assert not walk.wrong, "\n".join(walk.wrong)


def test_acts_of_an_mcp_client(project: Project) -> None:
    token = project.tokens.create("robot", "admin").text
    walk = Walk(project.settings.root)
    project.clock = walk.stage.clock

    def wait() -> None:
        # Time alone makes no confirmation stale: people read what a dry run says.
        walk.stage.clock.advance(60)

    async def steps(at: Site) -> None:
        async with connected_to(at, token, name="Some Client") as client:
            for act in (each for each in SCENES if each not in LEFT_OUT):
                given = await asyncio.to_thread(walk.prepare, act)
                body = {**given, "reason": REASON} if takes_reason(ACTS[act]) else given
                if "for_s" in body:
                    body["for_s"] = 3600
                answer = await done(client, tool_name(act), body, wait)
                actor = "robot via Some-Client"
                await asyncio.to_thread(walk.look, act, actor, "mcp", said_of(answer))

    visit(project, steps)
    walk.project.close()
    assert not walk.wrong, "\n".join(walk.wrong)
