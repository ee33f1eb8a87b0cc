"""The dashboard's pages of releases: what runs, who brought it, how two differ, and the way back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock import Project
from penstock.gates.loaded import Loaded
from tests.unit.every_act import write
from tests.unit.test_web import Answer, Site, visit

POLICY = "promotion: {staging: {approvals: 1}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "127.0.0.1:9")
    (tmp_path / "penstock.tested.yaml").write_text("store: sqlite:tested.db\n")
    (tmp_path / "penstock.staging.yaml").write_text(f"store: sqlite:staging.db\n{POLICY}")
    return tmp_path


def brought(folder: Path) -> list[str]:
    """Two releases were promoted to staging, each approved; the newest is the last."""
    found = []
    for slots in (3, 4):
        (folder / "penstock.tested.yaml").write_text(
            f"store: sqlite:tested.db\nworker: {{slots: {slots}}}\n"
        )
        with Project.open(folder, "tested") as tested:
            release = tested.releases.create(actor="ann", reason="new").release
        with Project.open(folder, "staging") as staging:
            staging.releases.fetch("tested", actor="ann")
            staging.releases.approve(release, actor="bob", reason="looks right")
            staging.releases.promote("tested", actor="eve", reason=f"slots are {slots}")
        found.append(release)
    return found


def test_history_difference_and_rollback_in_the_browser(folder: Path) -> None:
    old, new = brought(folder)
    with Project.load(folder, "staging") as project:
        project.connection.workers.register("w7", "far.example", 7, "1")
        project.connection.workers.announce("w7", Loaded(runs="another"), 7)
        project.releases.approve(old, actor="carl", reason="again")

        async def steps(at: Site) -> None:
            await at.log_in()

            async def page(path: str) -> Answer:
                return await at.ask("GET", path, headers={"Accept": "text/html"})

            shown = (await page("/releases")).text
            for part in (new[:12], old[:12], "eve", "bob", "slots are 4", "tested", "carl"):
                assert part in shown
            assert "1 worker with something else" in shown
            assert "far.example" in shown
            assert f"/acts/releases.rollback?release={old}" in shown
            assert (
                "1 worker of staging with something else than its release" in (await page("/")).text
            )

            one = await page(f"/releases/{old[:12]}")
            assert (one.status, "acts_steps.py" in one.text) == (200, True)
            differs = await page(f"/releases/{new}/diff?before={old}")
            assert (differs.status, "penstock.tested.yaml" in differs.text) == (200, True)
            assert "worker.slots" not in differs.text, "of the configuration, that of staging"
            for path in ("/releases/zzz", "/releases/abcdef12", f"/releases/{new}/diff?before=x"):
                assert (await page(path)).status in (404, 422), path

            form = {"csrf": at.csrf, "reason": "prices are wrong", "release": old}
            origin = {"Origin": f"http://127.0.0.1:{at.port}", "Accept": "text/html"}
            done = await at.ask("POST", "/acts/releases.rollback", data=form, headers=origin)
            assert done.status == 200, done.text
            assert f"penstock release rollback --yes {old}" in done.text
            assert "/runs/" not in done.text
            assert not at.told

        visit(project, steps)
        assert project.releases.running().release == old
        newest = project.releases.history().items[0]
        assert (newest.act, newest.actor, newest.reason) == ("rollback", "ann", "prices are wrong")
    sys.modules.pop("acts_steps", None)


def test_viewers_see_releases_and_have_no_buttons(folder: Path) -> None:
    brought(folder)
    with Project.load(folder, "staging") as project:
        token = project.tokens.create("eve", "viewer").text

        async def steps(at: Site) -> None:
            headers = {"Authorization": f"Bearer {token}", "Accept": "text/html"}
            shown = await at.ask("GET", "/releases", headers=headers)
            assert (shown.status, "/acts/" in shown.text) == (200, False)
            refused = await at.ask("GET", "/acts/releases.rollback", headers=headers)
            assert refused.status == 403

        visit(project, steps)
    sys.modules.pop("acts_steps", None)
