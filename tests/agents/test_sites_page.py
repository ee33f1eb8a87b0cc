"""The dashboard's pages of sites and proposals: what is to be decided, with its buttons, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.app import Project
from tests.unit.every_act import Stage, write
from tests.unit.test_web import Site, visit


def test_a_proposal_is_looked_at_and_decided_in_the_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "127.0.0.1:9")
    with Project.load(tmp_path) as project:
        given = Stage(project).proposal()
        address = f"/sites/site.example/proposals/{given['proposal']}"

        async def steps(at: Site) -> None:
            await at.log_in()
            page = await at.ask("GET", "/sites", headers={"Accept": "text/html"})
            assert page.status == 200
            assert address in page.text
            assert "/acts/sites.approve?domain=site.example" in page.text
            one = await at.ask("GET", address, headers={"Accept": "text/html"})
            assert one.status == 200
            assert ".badge" in one.text
            gone = await at.ask("GET", "/sites/nobody/proposals/1", headers={"Accept": "text/html"})
            assert gone.status == 404

        visit(project, steps)
    sys.modules.pop("acts_steps", None)
