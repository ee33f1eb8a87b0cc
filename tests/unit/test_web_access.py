"""Tokens and logins: who gets in, for how long, what is told of those who do not, and how many may try."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest

from penstock import Project
from penstock.app.tokens import Tokens
from penstock.app.views.tokens import TokenView
from penstock.errors import StoreError
from penstock.web import failures
from penstock.web.failures import FailureLimit, RefusalJournal, Refusals, group_of
from tests.unit.test_web import Answer, Site, project, visit

__all__ = ["project"]
OVERVIEW = "/api/v1/overview"


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


async def log_in(at: Site, text: str, **headers: str) -> Answer:
    given = {"Origin": f"http://127.0.0.1:{at.port}", **headers}
    return await at.ask("POST", "/login", data=aiohttp.FormData({"token": text}), headers=given)


def test_a_token_acts_in_its_own_name_and_its_use_is_noted(project: Project) -> None:
    token = project.tokens.create("ci", "operator", reason="for the pipeline").text

    async def steps(at: Site) -> None:
        headers = {**bearer(token), "X-Actor": "eve", "From": "eve@example.com"}
        done = await at.ask("POST", "/api/v1/sources/a/pause", json={}, headers=headers)
        assert done.json == {"changed": True}

    visit(project, steps)
    [event] = project.journal.list(kind="source.paused").items
    assert (event.actor, event.origin) == ("ci", "api")
    [view] = project.tokens.list().items
    assert view.used_at is not None


def test_a_token_without_a_name_is_named_after_its_role(project: Project) -> None:
    made = [project.tokens.create(None, "viewer").name for _ in range(2)]
    assert all(name.startswith("viewer-") for name in made)
    assert {view.name for view in project.tokens.list().items} == set(made)
    assert len(set(made)) == 2


@pytest.mark.parametrize(
    ("made_of", "code"),
    [
        (lambda text: text[:-1] + ("a" if text[-1] != "a" else "b"), "bad_token"),
        (lambda text: text[:19], "bad_token"),
        (lambda text: "\xff" * 5_000, "bad_token"),
        (lambda text: "", "bad_authorization"),
    ],
)
def test_what_is_no_token_lets_nobody_in(
    project: Project, made_of: Callable[[str], str], code: str
) -> None:
    token = project.tokens.create("ci", "admin").text

    async def steps(at: Site) -> None:
        refused = await at.ask("GET", OVERVIEW, headers=bearer(made_of(token)))
        assert (refused.status, refused.json["code"]) == (401, code)
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
        basic = await at.ask("GET", OVERVIEW, headers={"Authorization": f"Basic {token}"})
        assert basic.json["code"] == "bad_authorization"

    visit(project, steps)


def test_revoking_a_token_ends_what_it_began_at_once(project: Project) -> None:
    token = project.tokens.create("ann", "operator").text

    async def steps(at: Site) -> None:
        page = await log_in(at, token)
        assert (page.status, page.headers["Location"]) == (303, "/")
        assert (await at.ask("GET", OVERVIEW)).status == 200
        assert (await at.ask("GET", OVERVIEW, headers=bearer(token))).status == 200

        # In another process, as the command does.
        with Project.open(project.settings.root) as elsewhere:
            assert elsewhere.tokens.revoke("ann", actor="bob", reason="it leaked")

        assert (await at.ask("GET", OVERVIEW)).json["code"] == "login_needed"
        at.browser.cookie_jar.clear()
        again = await at.ask("GET", OVERVIEW, headers=bearer(token))
        assert again.json["code"] == "token_revoked"
        assert "revoked" in (await log_in(at, token)).text

    visit(project, steps)


def test_an_open_stream_ends_when_its_token_does(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    from penstock.web import api, guard

    token = project.tokens.create("ann", "viewer").text

    async def stream(request: object) -> StreamingResponse:
        async def lines() -> AsyncIterator[str]:
            while True:
                yield ": still here\n"
                await asyncio.sleep(0.01)

        return StreamingResponse(lines())

    usual = api.routes()
    monkeypatch.setattr(api, "routes", lambda: [*usual, Route("/api/v1/endless", stream)])
    monkeypatch.setattr(guard, "AGAIN_S", 0.0)

    async def steps(at: Site) -> None:
        url = f"http://127.0.0.1:{at.port}/api/v1/endless"
        async with at.browser.get(url, headers=bearer(token)) as answer:
            assert (await answer.content.readline()) == b": still here\n"
            project.tokens.revoke("ann")
            while await answer.content.readline():
                pass
        assert at.told == []

    visit(project, steps)


def test_an_expired_token_lets_nobody_in_and_says_so(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = project.tokens.create("ann", "operator", expires_in_s=60).text

    async def steps(at: Site) -> None:
        assert (await log_in(at, token)).status == 303
        usual = project.clock.now
        monkeypatch.setattr(project.clock, "now", lambda: usual() + 61)
        assert (await at.ask("GET", OVERVIEW)).json["code"] == "login_needed"
        refused = await at.ask("GET", OVERVIEW, headers=bearer(token))
        assert refused.json["code"] == "token_expired"

    visit(project, steps)


def test_refused_logins_are_events_without_the_text_of_a_token(project: Project) -> None:
    token = project.tokens.create("ann", "operator").text
    project.tokens.revoke("ann")
    guessed = "penstock_0123456789_guessed-guessed-guessed"

    async def steps(at: Site) -> None:
        await at.ask("GET", "/login?link=guessed-guessed")
        for text in (guessed, guessed, token):
            await at.ask("GET", OVERVIEW, headers=bearer(text))
        await log_in(at, guessed)

    visit(project, steps)
    first, rest = sorted(project.journal.list(kind="login").items, key=lambda event: event.id)
    assert (first.kind, first.actor, first.data["refusals"]) == ("login.refused", "web", 1)
    assert rest.data == {
        "refusals": 4,
        "causes": ["unknown_token", "revoked_token"],
        "addresses": ["127.0.0.1"],
        "tokens": ["ann"],
    }
    everything = repr(list(project.journal.each())) + repr(list(project.tokens.each()))
    assert "guessed" not in everything
    assert token[19:] not in everything


def test_a_flood_of_wrong_tokens_is_stopped_but_not_who_is_known(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, late = (project.tokens.create(name, "viewer").text for name in ("known", "late"))

    async def steps(at: Site) -> None:
        await at.log_in()
        assert (await at.ask("GET", OVERVIEW)).status == 200
        at.browser.cookie_jar.clear()
        assert (await at.ask("GET", OVERVIEW, headers=bearer(known))).status == 200
        asked: list[str] = []
        usual = Tokens.find

        def find(tokens: Tokens, text: str) -> TokenView | None:
            asked.append(text)
            return usual(tokens, text)

        monkeypatch.setattr(Tokens, "find", find)
        answers = [
            await at.ask("GET", OVERVIEW, headers=bearer(f"wrong-{number}")) for number in range(40)
        ]
        assert [each.status for each in answers[:10]] == [401] * 10
        assert {each.status for each in answers[11:]} == {429}
        assert len(asked) < 12  # the database was not asked for the rest
        assert re.fullmatch("[1-9][0-9]?", answers[-1].headers["Retry-After"])
        assert (await at.ask("GET", OVERVIEW, headers=bearer(late))).status == 429
        assert (await log_in(at, late)).status == 429
        assert (await at.ask("GET", OVERVIEW, headers=bearer(known))).status == 200

    visit(project, steps)
    told = project.journal.list(kind="login.refused").items
    assert len(told) <= 2
    assert sum(event.data["refusals"] for event in told) == 42


def test_failures_are_counted_by_address_and_in_all_in_bounded_memory() -> None:
    now = 0.0
    limit = FailureLimit(lambda: now)
    for _ in range(failures.MOST_OF_ADDRESS):
        assert limit.wait_s("192.0.2.1") == 0
        limit.count("192.0.2.1")
    assert 0 < limit.wait_s("192.0.2.1") <= 60
    assert limit.wait_s("192.0.2.2") == 0
    now = 7.0
    assert limit.wait_s("192.0.2.1") == 0
    for number in range(5_000):
        limit.count(f"2001:db8:{number:x}::1")
    assert len(limit) <= failures.MOST_ADDRESSES
    assert limit.wait_s("198.51.100.7") > 0  # too many in all
    assert group_of("2001:db8:0:1::5") == group_of("2001:db8:0:1:ffff::") != group_of("2001:db8::")
    assert group_of("::ffff:192.0.2.1") == "192.0.2.1"


def test_refusals_wait_for_a_database_that_is_away() -> None:
    async def flood() -> list[Refusals]:
        told: list[Refusals] = []
        is_away = True

        async def write(refusals: Refusals) -> None:
            if is_away:
                raise StoreError("away")
            told.append(refusals)

        journal = RefusalJournal(write, every_s=60)
        for number in range(1_000):
            journal.add("unknown_token", f"192.0.2.{number % 250}")
            await asyncio.sleep(0)
        is_away = False
        await journal.close()
        return told

    [told] = asyncio.run(flood())
    assert told.number == 1_000
    assert len(told.addresses) == failures.MOST_TOLD
