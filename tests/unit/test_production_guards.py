"""Production asks for its name before anything that can't be taken back, on every front end."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.guard import GRAVE, UNGUARDED, is_grave
from penstock.app.verbs.act_words import WORDS, command_of
from penstock.app.verbs.acts import ACTS
from penstock.cli import exits
from penstock.cli.entry import main
from penstock.mcp.left_out import LEFT_OUT
from penstock.mcp.tools import tool_name
from penstock.testing import journal
from penstock.web.dashboard.acts import takes_reason
from tests.unit.every_act import SCENES, Scene, Stage, write
from tests.unit.mcp_clients import called, code_of, connected_to
from tests.unit.test_every_act import NOTHING_TO_DO
from tests.unit.test_web import Site, visit

PRODUCTION = "production"
REASON = "because it has to be"
WALKED: dict[str, Scene] = {
    name: SCENES[name] for name in ACTS if is_grave(name) and name not in NOTHING_TO_DO
}
WRONG_NAMES = ("", "staging", "Production")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "127.0.0.1:9")
    (tmp_path / "penstock.production.yaml").write_text("store: sqlite:production.db\n")
    with Project.load(tmp_path, PRODUCTION) as made:
        yield made
    sys.modules.pop("acts_steps", None)


class Walk:
    """Goes through the acts: each is refused until the name is typed, and done then."""

    def __init__(self, folder: Path) -> None:
        self.project = Project.load(folder, PRODUCTION)
        self.stage = Stage(self.project)
        self.wrong: list[str] = []

    def prepare(self, act: str) -> dict[str, Any]:
        self.act, given = act, self.stage.set_for(act)
        self.before = self.newest()
        return given

    def newest(self) -> int:
        return max((each.id for each in journal(self.project)), default=0)

    def refused(self, is_so: bool, said: object) -> None:
        if not is_so or self.newest() != self.before:
            self.wrong.append(f"{self.act} was not refused: {said}")

    def done(self, is_so: bool, said: object) -> None:
        if not is_so or self.newest() == self.before:
            self.wrong.append(f"{self.act} was not done: {said}")

    def end(self) -> None:
        self.project.close()
        assert not self.wrong, "\n".join(self.wrong)


def test_what_is_asked_about_destroys_something_and_the_rest_lets_in_or_closes_a_door() -> None:
    assert {*WALKED} == {
        *("runs.cancel", "runs.undo", "jobs.cancel", "quarantine.discard", "records.forget"),
        *("checkpoints.rewind", "replays.drop", "sources.retire", "sources.legal_release"),
        *("store.rename", "sql.remove"),
    }
    assert {"store.restore", "store.rename"} == GRAVE
    assert all(WORDS[name].is_grave for name in UNGUARDED)


def test_the_command_line(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    walk = Walk(project.settings.root)
    for act in WALKED:
        given = walk.prepare(act)
        _, *words = shlex.split(command_of(act, given, REASON))
        command = ["--env", PRODUCTION, *words]
        for name in WRONG_NAMES:
            code = main([*command, *(["--confirm", name] if name else [])])
            said = capsys.readouterr().err
            walk.refused(code == exits.REFUSED and "--confirm production" in said, said)
        code = main([*command, "--confirm", PRODUCTION])
        walk.done(code == exits.DONE, capsys.readouterr())
    walk.end()


def test_the_command_line_alone_restores_a_database(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.sources.pause("shop", reason="to have a database")
    project.close()
    assert main(["--env", PRODUCTION, "db", "backup", "copy.db"]) == exits.DONE
    command = ["--env", PRODUCTION, "db", "restore", "copy.db", "--yes", "--reason", REASON]
    assert main(command) == exits.REFUSED
    assert "this is production" in capsys.readouterr().err
    assert main([*command, "--confirm", PRODUCTION]) == exits.DONE, capsys.readouterr().err


def test_the_api(project: Project) -> None:
    token = project.tokens.create("robot", "admin").text
    walk = Walk(project.settings.root)

    async def steps(at: Site) -> None:
        for act in WALKED:
            given = await asyncio.to_thread(walk.prepare, act)
            row, path = ACTS[act], f"/api/v1{ACTS[act].path}"
            for name in row.path_names:
                path = path.replace(f"{{{name}}}", str(given.pop(name)))
            body = {**given, "reason": REASON} if takes_reason(row) else given
            for typed in (*WRONG_NAMES, PRODUCTION):
                headers = {"Authorization": f"Bearer {token}", "Penstock-Confirm": typed}
                answer = await at.ask("POST", path, json=body, headers=headers)
                is_asked = answer.status == 409 and "confirmation_needed" in answer.text
                look = walk.done if typed == PRODUCTION else walk.refused
                is_so = answer.status == 200 if typed == PRODUCTION else is_asked
                await asyncio.to_thread(look, is_so, answer.text)
        step = "/api/v1/runbooks/workers-dead/steps/discard/do"
        headers = {"Authorization": f"Bearer {token}"}
        asked = await at.ask("POST", step, json={"reason": REASON}, headers=headers)
        assert asked.json["code"] == "confirmation_needed"
        headers["Penstock-Confirm"] = PRODUCTION
        named = await at.ask("POST", step, json={"reason": REASON}, headers=headers)
        assert named.json["code"] != "confirmation_needed"  # it applies to nothing here

    visit(project, steps)
    walk.end()


def test_the_forms_of_the_dashboard(project: Project) -> None:
    walk = Walk(project.settings.root)

    async def steps(at: Site) -> None:
        await at.log_in()
        origin = {"Origin": f"http://127.0.0.1:{at.port}", "Accept": "text/html"}
        for act in WALKED:
            given = await asyncio.to_thread(walk.prepare, act)
            form = {"csrf": at.csrf, "reason": REASON, **{k: str(v) for k, v in given.items()}}
            for typed in (*WRONG_NAMES, PRODUCTION):
                filled = {**form, "confirm": typed}
                answer = await at.ask("POST", f"/acts/{act}", data=filled, headers=origin)
                is_asked = answer.status == 409 and "this is production" in answer.text.lower()
                look = walk.done if typed == PRODUCTION else walk.refused
                is_so = answer.status == 200 if typed == PRODUCTION else is_asked
                await asyncio.to_thread(look, is_so, answer.text[-1500:])
            shown = await at.ask("GET", f"/acts/{act}", headers={"Accept": "text/html"})
            assert 'name="confirm"' in shown.text, act
        step = "/acts/runbooks.do?runbook=workers-dead&step="
        for name, is_asked in (("discard", True), ("hold", False)):
            shown = await at.ask("GET", step + name, headers={"Accept": "text/html"})
            assert ('name="confirm"' in shown.text) == is_asked
        paused = await at.ask("GET", "/acts/sources.pause?source=shop", headers=origin)
        assert 'name="confirm"' not in paused.text

    visit(project, steps)
    walk.end()


def test_a_client_of_mcp_hands_on_what_the_person_has_typed(project: Project) -> None:
    token = project.tokens.create("robot", "admin").text
    walk = Walk(project.settings.root)
    project.clock = walk.stage.clock

    async def steps(at: Site) -> None:
        async with connected_to(at, token) as client:
            for act in (each for each in WALKED if each not in LEFT_OUT):
                given = await asyncio.to_thread(walk.prepare, act)
                body, tool = {**given, "reason": REASON}, tool_name(act)
                seen = (await called(client, tool, body)).structured_content
                assert seen["asks_for"] == "environment", seen
                body["confirm"] = seen["confirm"]
                for typed in WRONG_NAMES:
                    answer = await called(client, tool, {**body, "environment": typed})
                    is_asked = code_of(answer) == "confirmation_needed"
                    await asyncio.to_thread(walk.refused, is_asked, answer.structured_content)
                answer = await called(client, tool, {**body, "environment": PRODUCTION})
                await asyncio.to_thread(walk.done, not answer.is_error, answer.structured_content)

    visit(project, steps)
    walk.end()
