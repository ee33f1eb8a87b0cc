"""The dashboard's pages of sites and proposals: what is to be decided, with its buttons, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.app import Project
from penstock.cli import exits, main
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


def test_a_proposal_that_is_out_of_date_is_refused_at_every_front_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "127.0.0.1:9")
    with Project.load(tmp_path) as project:
        given = Stage(project).proposal()
        [about] = project.sites.get(given["domain"]).data["schema_proposals"]
        old = {**about, "kind": "redesign", "version": 1, "contents": "of another schema"}
        fields = {"schema_proposals": [old]}
        project.connection.record_edits.edit("site_schemas", given["domain"], fields, "ann", "test")
        domain, proposal = given["domain"], given["proposal"]

        assert main(["sites", "approve", domain, proposal, "--yes"]) == exits.REFUSED
        told = capsys.readouterr().err
        assert "is out of date: it was made about version 1" in told
        assert "reject it; agents propose again" in told
        assert main(["sites", "proposal", domain, proposal]) == 0
        shown = capsys.readouterr().out
        assert "the schema has changed since" in shown
        assert "sites approve" not in shown

        async def steps(at: Site) -> None:
            await at.log_in()
            refused = await at.act(f"/api/v1/sites/{domain}/proposals/{proposal}/approve")
            assert (refused.status, refused.json["code"]) == (409, "proposal_outdated")
            for path in ("/sites", f"/sites/{domain}/proposals/{proposal}"):
                page = await at.ask("GET", path, headers={"Accept": "text/html"})
                assert "out of date" in page.text.lower()
                assert "/acts/sites.approve" not in page.text
                assert "/acts/sites.reject" in page.text
            form = f"/acts/sites.approve?domain={domain}&proposal={proposal}"
            preview = await at.ask("GET", form, headers={"Accept": "text/html"})
            assert "is out of date" in preview.text
            assert "Traceback" not in preview.text

        visit(project, steps)
    sys.modules.pop("acts_steps", None)
