"""Who may do what: every row of the two tables, asked for with every role."""

from __future__ import annotations

import aiohttp
import pytest

from penstock import Project
from penstock.app.verbs.acts import ACTS, Act
from penstock.app.verbs.reads import READS, Read
from penstock.app.verbs.roles import ROLES, Role
from tests.unit.test_web import Site, project, visit

__all__ = ["project"]
# What can't be taken back, or is about the database and who may come in.
ADMIN_ONLY = {
    "checkpoints.rewind",
    "quarantine.discard",
    "replays.commit",
    "runs.undo",
    "store.migrate",
    "store.rename",
    "tokens.list",
    "tokens.revoke",
}


def test_what_can_not_be_taken_back_is_for_administrators_and_no_act_is_for_viewers() -> None:
    rows: list[Act | Read] = [*ACTS.values(), *READS.values()]
    assert {row.name for row in rows if row.role is Role.ADMIN} >= ADMIN_ONLY
    assert [act.name for act in ACTS.values() if act.role is Role.VIEWER] == []


def path_of(row: Act | Read) -> str:
    """The path with something in each place: a source that there is, else a number that there is not."""
    path = f"/api/v1{row.path}"
    for name in row.path_names:
        path = path.replace(f"{{{name}}}", {"source": "a", "name": "go"}.get(name, "7"))
    return path


@pytest.mark.parametrize("role", ROLES)
def test_every_row_of_the_tables_is_open_to_its_role_and_closed_below(
    project: Project, role: Role
) -> None:
    token = project.tokens.create("walker", role.value).text
    wrong: list[str] = []

    async def steps(at: Site) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        for act in ACTS.values():
            # Whoever is let in is told that there is no such parameter: nothing is done.
            answer = await at.ask("POST", path_of(act), json={"no_such": 1}, headers=headers)
            expected = (422, "bad_parameter") if role.covers(act.role) else (403, "role_needed")
            if (answer.status, answer.json["code"]) != expected:
                wrong.append(f"{act.name}: {answer.status} {answer.text}")
        for read in READS.values():
            if read.is_long and role.covers(read.role):
                continue
            answer = await at.ask("GET", path_of(read), headers=headers)
            is_in = answer.status in (200, 404, 409, 422)
            is_refused = answer.status == 403 and answer.json["code"] == "role_needed"
            if is_in != role.covers(read.role) or is_refused == role.covers(read.role):
                wrong.append(f"{read.name}: {answer.status} {answer.text}")
        wrong.extend(at.told)

    visit(project, steps)
    assert wrong == []


def test_roles_hold_for_sessions_too(
    project: Project,
) -> None:
    viewer = project.tokens.create("eve", "viewer").text

    async def steps(at: Site) -> None:
        origin = {"Origin": f"http://127.0.0.1:{at.port}"}
        form = aiohttp.FormData({"token": viewer})
        assert (await at.ask("POST", "/login", data=form, headers=origin)).status == 303
        [session] = at.access.sessions._sessions.values()
        at.csrf = session.csrf
        assert (await at.ask("GET", "/api/v1/overview")).status == 200
        refused = await at.act("/api/v1/sources/a/pause", {"reason": "x"})
        assert (refused.status, refused.json["code"]) == (403, "role_needed")

    visit(project, steps)
    assert project.sources.state("a").paused_at is None
