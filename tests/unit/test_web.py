"""The web server: who gets in, from where, and what every answer has."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from starlette.applications import Starlette

from penstock import Project
from penstock.web.access import Access
from penstock.web.application import application
from penstock.web.guard import HEADERS
from penstock.web.listener import Listener
from penstock.web.protocol import Connections
from penstock.web.settings import WebSettings

FILE = "sources: {a: {pipeline: 'x:y', schedule: {signal: go}}, b.com/shop: {pipeline: 'x:y'}}\n"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "penstock.yaml").write_text(FILE)
    with Project.open(tmp_path) as found:
        yield found


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class Site:
    """A running server and one browser of it."""

    port: int
    access: Access
    told: list[str]
    browser: aiohttp.ClientSession
    app: Starlette
    csrf: str = ""
    links: list[str] = field(default_factory=list)

    async def ask(self, method: str, path: str, **options: Any) -> Answer:
        url = f"http://127.0.0.1:{self.port}{path}"
        async with self.browser.request(method, url, allow_redirects=False, **options) as answer:
            text = (await answer.read()).decode("utf-8", "replace")
            return Answer(answer.status, dict(answer.headers), text)

    async def log_in(self) -> None:
        link = self.access.new_link()
        answer = await self.ask("GET", link[link.index("/login") :])
        assert answer.status == 200
        [session] = self.access.sessions._sessions.values()
        self.csrf = session.csrf

    async def act(self, path: str, body: Any = None, **headers: str) -> Answer:
        given = {"Origin": f"http://127.0.0.1:{self.port}", "X-CSRF-Token": self.csrf, **headers}
        return await self.ask("POST", path, json=body or {}, headers=given)


@asynccontextmanager
async def site(project: Project, connections: Connections | None = None) -> AsyncIterator[Site]:
    settings, told, links = WebSettings(port=0), list[str](), list[str]()
    access = Access(settings, "ann", links.append)
    app = application(project, settings, access)
    listener = Listener(app, settings, told.append, connections)
    listening = asyncio.Event()

    def begin(port: int) -> None:
        access.listens_at(port)
        listening.set()

    listener.on_listening = begin
    listener.on_stopping = app.state.follower.stop
    serving = asyncio.create_task(listener.serve())
    await listening.wait()
    jar = aiohttp.CookieJar(unsafe=True)
    try:
        async with aiohttp.ClientSession(cookie_jar=jar) as browser:
            yield Site(listener.port, access, told, browser, app, links=links)
    finally:
        listener.stop()
        await serving
        await access.close()


def visit(project: Project, steps: Callable[[Site], Awaitable[None]]) -> None:
    async def run() -> None:
        async with site(project) as found:
            await steps(found)

    asyncio.run(run())


def test_nobody_gets_in_without_a_session_or_a_token(project: Project) -> None:
    async def steps(at: Site) -> None:
        assert (await at.ask("GET", "/api/v1/overview")).json["code"] == "login_needed"
        assert (await at.ask("POST", "/api/v1/sources/a/pause")).status == 401
        page = await at.ask("GET", "/", headers={"Accept": "text/html"})
        assert (page.status, page.headers["Location"]) == (303, "/login")

    visit(project, steps)


def test_the_link_logs_in_one_browser_once(project: Project) -> None:
    async def steps(at: Site) -> None:
        link = at.access.new_link()
        first = await at.ask("GET", link[link.index("/login") :])
        assert re.search(r"^penstock-\d+=.*HttpOnly.*SameSite=strict", first.headers["Set-Cookie"])
        assert (await at.ask("GET", "/api/v1/overview")).status == 200
        again = await at.ask("GET", link[link.index("/login") :])
        assert again.status == 403
        assert "Set-Cookie" not in again.headers
        assert at.links[0] != link  # the next one, for another browser

    visit(project, steps)


def test_logging_in_ends_the_session_that_was_there_before(project: Project) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        before = {cookie.key: cookie.value for cookie in at.browser.cookie_jar}
        link = at.access.new_link()
        await at.ask("GET", link[link.index("/login") :])
        after = {cookie.key: cookie.value for cookie in at.browser.cookie_jar}
        assert before != after
        at.browser.cookie_jar.clear()
        assert (await at.ask("GET", "/api/v1/overview", cookies=before)).status == 401

    visit(project, steps)


def test_an_act_is_done_in_the_name_of_the_identity(project: Project) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        done = await at.act("/api/v1/sources/b.com%2Fshop/pause", {"reason": "rest"}, User="eve")
        assert done.json == {"changed": True}

    visit(project, steps)
    [event] = project.journal.list(kind="source.paused").items
    assert (event.source, event.actor, event.data) == ("b.com/shop", "ann", {"reason": "rest"})


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://127.0.0.1:PORT"},
        {"Origin": "http://127.0.0.1:1"},
        {"X-CSRF-Token": "guessed"},
        {"X-CSRF-Token": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Host": "127.0.0.1:PORT@evil.example"},
    ],
)
def test_a_page_of_another_site_can_not_act(project: Project, headers: dict[str, str]) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        given = {name: value.replace("PORT", str(at.port)) for name, value in headers.items()}
        assert (await at.act("/api/v1/sources/a/pause", **given)).status in (403, 421)

    visit(project, steps)
    assert project.sources.state("a").paused_at is None


def test_our_own_form_may_act_although_no_referrer_makes_its_origin_null(project: Project) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        own = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
        assert (await at.act("/api/v1/sources/a/pause", {"reason": "rest"}, **own)).status == 200

    visit(project, steps)
    assert project.sources.state("a").paused_at is not None


def test_a_cookie_without_an_origin_changes_nothing(project: Project) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        token = {"X-CSRF-Token": at.csrf}
        refused = await at.ask("POST", "/api/v1/sources/a/pause", json={}, headers=token)
        assert refused.json["code"] == "no_origin"

    visit(project, steps)


def test_every_answer_has_the_headers_that_keep_it_in_place(project: Project) -> None:
    async def steps(at: Site) -> None:
        for path in ("/", "/login", "/api/v1/overview", "/nothing", "/healthz"):
            answer = await at.ask("GET", path)
            assert [name for name in HEADERS if name not in answer.headers] == []
            assert "Server" not in answer.headers
            assert "unsafe" not in answer.headers["Content-Security-Policy"]

    visit(project, steps)


def test_a_dead_database_is_said_and_comes_back_by_itself(project: Project, tmp_path: Path) -> None:
    store, aside = tmp_path / "penstock.db", tmp_path / "aside.db"

    async def steps(at: Site) -> None:
        await at.log_in()
        assert (await at.ask("GET", "/api/v1/overview")).status == 200
        project.close()
        store.rename(aside)
        store.mkdir()
        dead = await at.ask("GET", "/api/v1/overview")
        assert (dead.status, dead.headers["Retry-After"]) == (503, "5")
        assert str(tmp_path) not in dead.text
        store.rmdir()
        aside.rename(store)
        assert (await at.ask("GET", "/api/v1/overview")).status == 200

    visit(project, steps)
