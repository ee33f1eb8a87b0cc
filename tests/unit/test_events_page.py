"""The dashboard's page of events: where one look goes through a part of the journal, it offers the rest."""

from __future__ import annotations

import re
from html import unescape

import pytest

from penstock import Project
from penstock.store import journal
from tests.unit.test_web import Site, project, visit

__all__ = ["project"]


def test_what_is_rare_is_found_further_back(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.sources.pause("b.com/shop", reason="the one that is looked for")
    for _ in range(3):
        project.sources.pause("a", reason="others")
        project.sources.resume("a", reason="others")
    monkeypatch.setattr(journal, "LOOKED", 4)

    async def steps(at: Site) -> None:
        await at.log_in()
        page = {"Accept": "text/html"}
        first = (await at.ask("GET", "/events?source=b.com/shop", headers=page)).text
        assert "the part of the journal that was looked through" in first
        assert "the one that is looked for" not in first
        further = re.search(r'href="([^"]+)" rel="next">Look further back', first)
        assert further is not None
        second = (await at.ask("GET", unescape(further[1]), headers=page)).text
        assert "the one that is looked for" in second
        assert "Look further back" not in second

    visit(project, steps)
