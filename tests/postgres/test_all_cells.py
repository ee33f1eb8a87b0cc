"""All cells at one look: each row says its cell and leads there, and a cell that is down hurts no other."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.contract.test_alert_nouns import FINDING, opened
from tests.postgres.test_cells import World, shop, world
from tests.unit.test_web import Site, visit

__all__ = ["world"]
PAGE = {"Accept": "text/html"}


def divided(world: World) -> dict[str, int]:
    """`acme` with a run and an alert is in north, `other` with a run in main; each cell's newest run."""
    world.write({"acme": shop(), "other": shop()})
    with world.cell("main") as project:
        runs = {"main": project.run("other")}
        project.cells.place("acme", to="north", actor="ann")
    with world.cell("north") as project:
        runs["north"] = project.run("acme")
        opened(project, source="acme")
    return runs


@contextmanager
def without_south(world: World) -> Iterator[None]:
    """Nobody listens where south should be."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        world.stores["south"] = f"postgresql://penstock@127.0.0.1:{taken.getsockname()[1]}/nothing"
        world.write({"acme": shop(), "other": shop()})
        yield


def visit_main(world: World, steps: Callable[[Site], Awaitable[None]]) -> None:
    async def logged_in(at: Site) -> None:
        await at.log_in()
        try:
            await steps(at)
        finally:
            at.app.state.cell_calls.close()

    with world.cell("main") as project:
        visit(project, logged_in)


def links_of(text: str) -> set[str]:
    found = set(re.findall(r'\s(?:href|action|hx-get)="(/[^"]*)"', text))
    return {link for link in found if not link.startswith(("/static/", "/api"))}


def test_pages_of_all_cells_lead_to_the_cell_that_has_it(world: World) -> None:
    runs = divided(world)

    async def steps(at: Site) -> None:
        seen = (await at.ask("GET", "/cells", headers=PAGE)).text
        links = links_of(seen)
        assert {f"/cell/north/runs/{runs['north']}", f"/runs/{runs['main']}"} <= links
        assert {"/cell/north/sources/acme", "/sources/other", "/cell/south/"} <= links
        assert FINDING.summary in seen
        for path in ("/cells/sources", "/cells/runs", "/cells/alerts", "/cells/search?q=acme"):
            found = (await at.ask("GET", path, headers=PAGE)).text
            assert "/cell/north/sources/acme" in links_of(found), path
            assert "/sources/acme" not in links_of(found), path

        overview = (await at.ask("GET", "/cell/north/", headers=PAGE)).text
        assert "Start one: penstock --cell north up" in overview
        there = f"/cell/north/runs/{runs['north']}"
        page = await at.ask("GET", there, headers=PAGE)
        assert page.status == 200, page.text
        beneath = {link for link in links_of(page.text) if not link.startswith("/cells")}
        assert {link for link in beneath if not link.startswith("/cell/north/")} == set()
        for link in sorted(beneath):
            followed = await at.ask("GET", link, headers=PAGE)
            assert followed.status == 200, (link, followed.text)
        here = await at.ask("GET", f"/runs/{runs['north']}", headers=PAGE)
        assert here.status == 404, "the run is in no other cell"

    visit_main(world, steps)


def test_pages_of_another_cell_only_show(world: World) -> None:
    divided(world)

    async def steps(at: Site) -> None:
        own = (await at.ask("GET", "/sources/other", headers=PAGE)).text
        assert 'href="/acts/' in own
        other = (await at.ask("GET", "/cell/north/sources/acme", headers=PAGE)).text
        assert "/acts/" not in other
        assert (await at.act("/cell/north/acts/sources.pause")).status in (404, 405)
        assert (await at.ask("GET", "/cell/nowhere/runs", headers=PAGE)).status == 404

    visit_main(world, steps)


def test_cell_that_is_down_is_shown_as_such_and_the_others_as_they_are(world: World) -> None:
    runs = divided(world)

    async def steps(at: Site) -> None:
        for path in (
            "/cells",
            "/cells/sources",
            "/cells/runs",
            "/cells/alerts",
            "/cells/search?q=a",
        ):
            page = await at.ask("GET", path, headers=PAGE)
            assert page.status == 200, path
            assert "south does not answer" in page.text, path
            assert "/cell/north/sources/acme" in links_of(page.text), path
        gone = await at.ask("GET", "/cell/south/runs", headers=PAGE)
        assert gone.status == 503
        assert '<a href="/cells"' in gone.text, "a page of its own, with the way back"
        for path in ("/runs", f"/cell/north/runs/{runs['north']}"):
            assert (await at.ask("GET", path, headers=PAGE)).status == 200
        found = (await at.ask("GET", "/api/v1/cells/runs?active=true")).json
        assert (found["is_whole"], found["unreachable"]) == (False, ["south"])

    with without_south(world):
        visit_main(world, steps)


def test_commands_name_the_cell_of_each_row_and_say_when_one_is_missing(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = divided(world)
    found = json.loads(world.penstock(capsys, "cells", "runs", "--active", "--json").stdout)
    assert {(each["cell"], each["run"]["run"]) for each in found["runs"]} == set(runs.items())
    found = json.loads(world.penstock(capsys, "cells", "alerts", "--json").stdout)
    [alert] = found["alerts"]
    assert (alert["cell"], alert["alert"]["source"]) == ("north", "acme")
    told = world.penstock(capsys, "cells", "search", "acme", "--json")
    assert told.code == 0
    [one] = json.loads(told.stdout)["cells"]
    assert (one["cell"], one["found"]["sources"]) == ("north", ["acme"])
    assert str(runs["north"]) in world.penstock(capsys, "cells", "runs").stdout
    assert FINDING.summary in world.penstock(capsys, "cells", "alerts").stdout
    assert "acme" in world.penstock(capsys, "cells", "search", "acme").stdout
    with without_south(world):
        for words in (["runs"], ["sources"], ["alerts"], ["search", "acme"]):
            told = world.penstock(capsys, "cells", *words)
            assert told.code == 3, words
            assert "cell south does not answer" in told.stderr
