"""Sessions: one login for the jobs of a source, renewed when it expires, and cookies that stay at home."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.errors import ConfigError, PipelineError
from penstock.http.addresses import look_at
from penstock.http.cookies import Jar, cookie_header, parse_cookie
from penstock.http.failures import AddressRefused, FetchError
from penstock.http.network import AiohttpNetwork
from penstock.http.network import Request as WireRequest
from penstock.http.redirects import Hop
from penstock.pipeline.fetch_options import FetchOptions
from penstock.settings import load_settings
from penstock.testing import RawResponse, Request, ScriptedNetwork, Simulation, VirtualClock

PIPELINE = """
from penstock import AuthFailed, Pipeline

account = Pipeline("account")


@account.login
async def login(ctx):
    form = {"user": "me", "password": ctx.params["password"]}
    await ctx.session.fetch("https://shop.example/login", data=form)
    if not ctx.session.cookies("https://shop.example/"):
        raise AuthFailed("no cookie came")


@account.step(unit="run")
def discover(ctx):
    for number in range(8):
        yield {"number": number}


@account.step(after="discover", unit="page", key="number")
async def read(item, ctx):
    response = await ctx.session.fetch(f"https://shop.example/page/{item['number']}")
    ctx.save("page", key=item["number"], data=response.json())
"""
PAGES = 8


@dataclass
class Shop:
    """A site behind a login, whose sessions end after some pages."""

    session: str = ""
    logins: int = 0
    served: int = 0
    lasts: int = 1000
    refused: int = 0
    password: str = "right"
    elsewhere: list[Request] = field(default_factory=list)

    async def __call__(self, request: Request) -> RawResponse:
        sent = {name.lower(): value for name, value in request.headers.items()}
        if not request.url.startswith("https://shop.example/"):
            self.elsewhere.append(request)
            return RawResponse(200, {}, b"{}")
        if request.url.endswith("/login"):
            if f"password={self.password}" not in (request.body or b"").decode():
                self.refused += 1
                return RawResponse(403, {}, b"")
            self.logins += 1
            self.session, self.served = f"sesame-{self.logins}", 0
            cookie = f"sid={self.session}; Path=/; HttpOnly"
            return RawResponse(302, {"location": "/home"}, b"", 0, (cookie, "seen=1"))
        if f"sid={self.session}" not in sent.get("cookie", "") or not self.session:
            return RawResponse(401, {}, b"")
        self.served += 1
        if self.served >= self.lasts:
            self.session = ""
        if request.url.endswith("/page/1"):
            return RawResponse(302, {"location": "https://other.example/moved"}, b"")
        body = json.dumps({"url": request.url}).encode()
        return RawResponse(200, {"set-cookie": "track=abc123secret"}, body)


def a_project(folder: Path, name: str, password: str = "right") -> Path:  # noqa: S107
    (folder / f"{name}.py").write_text(PIPELINE)
    source = {
        "pipeline": f"{name}:account",
        "params": {"password": password},
        "fetch": {"robots": False},
    }
    (folder / "penstock.yaml").write_text(json.dumps({"sources": {"shop.example": source}}))
    return folder


def performed(folder: Path, shop: Shop, *, replayed: bool = False) -> dict[str, Any]:
    with Project.load(folder) as project:
        with Simulation(project, ScriptedNetwork(shop), seed=3, clock=VirtualClock()) as simulation:
            run = project.run("shop.example")
            simulation.run()
            found: dict[str, Any] = {"state": project.require_run(run).state}
            if replayed:
                logins = shop.logins
                replay = project.replays.start(run=run).run.id
                simulation.run()
                found["replay"] = project.require_run(replay).state
                assert shop.logins == logins
        found["keys"] = [each.key for each in project.records("page")]
        found["quarantined"] = [each.kind for each in project.quarantine.list().items]
    return found


def test_one_login_serves_all_jobs_and_cookies_are_stored_nowhere(tmp_path: Path) -> None:
    shop = Shop()

    found = performed(a_project(tmp_path, "account_once"), shop)

    assert found["state"] == "completed"
    assert len(found["keys"]) == PAGES
    assert shop.logins == 1
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"sesame" not in stored
    assert b"abc123secret" not in stored


def test_cookies_do_not_follow_to_another_origin(tmp_path: Path) -> None:
    shop = Shop()

    performed(a_project(tmp_path, "account_elsewhere"), shop)

    [request] = shop.elsewhere
    assert not {name.lower() for name in request.headers} & {"cookie", "authorization"}


def test_session_that_expires_is_renewed_and_no_page_is_lost(tmp_path: Path) -> None:
    shop = Shop(lasts=3)

    found = performed(a_project(tmp_path, "account_expiring"), shop)

    assert found["state"] == "completed"
    assert len(found["keys"]) == PAGES
    assert 3 <= shop.logins <= PAGES + 1


def test_refused_login_is_not_tried_again_and_is_of_kind_auth(tmp_path: Path) -> None:
    shop = Shop()

    found = performed(a_project(tmp_path, "account_refused", "wrong"), shop)

    assert found["quarantined"] == ["auth"] * PAGES
    assert (shop.logins, shop.refused) == (0, 1)


def test_replay_of_pages_behind_a_login_stays_offline(tmp_path: Path) -> None:
    shop = Shop()

    found = performed(a_project(tmp_path, "account_replayed"), shop, replayed=True)

    assert found["replay"] == "completed"


OWN = ("shop.example", "www.shop.example")


@pytest.mark.parametrize(
    ("line", "came_from", "goes_to", "is_sent"),
    [
        ("a=1", "https://shop.example/x", "https://shop.example/y", True),
        ("a=1", "https://shop.example/x", "http://shop.example/y", False),
        ("a=1", "https://shop.example/x", "https://shop.example:8443/y", False),
        ("a=1", "https://shop.example/x", "https://www.shop.example/y", False),
        ("a=1; Domain=shop.example", "https://www.shop.example/", "https://shop.example/", True),
        ("a=1; Domain=.example", "https://shop.example/", "https://evil.example/", False),
        ("a=1; Domain=other.example", "https://shop.example/", "https://other.example/", False),
        ("a=1; Domain=cdn.example", "https://a.cdn.example/", "https://b.cdn.example/", False),
        ("a=1; Path=/in", "https://shop.example/", "https://shop.example/in/side", True),
        ("a=1; Path=/in", "https://shop.example/", "https://shop.example/inside", False),
        ("a=1; Secure", "http://shop.example/", "http://shop.example/", False),
        ("a=1; Max-Age=0", "https://shop.example/", "https://shop.example/", False),
        (
            "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "https://shop.example/",
            "https://shop.example/",
            False,
        ),
        ("a=1\r\nX: y", "https://shop.example/", "https://shop.example/", False),
        ("no cookie", "https://shop.example/", "https://shop.example/", False),
    ],
)
def test_cookie_goes_back_only_where_it_came_from(
    line: str, came_from: str, goes_to: str, is_sent: bool
) -> None:
    jar = Jar([], OWN, 1000.0)
    jar.learn(look_at(came_from), [line])

    sent = jar.on(Hop("GET", look_at(goes_to), {"Accept": "*/*"}))

    assert ("Cookie" in sent.headers) == is_sent


def test_cookies_of_one_fetch_are_a_header_and_can_not_add_others() -> None:
    _, about = FetchOptions(cookies={"a": "1", "b": "2"}).request("https://shop.example/")
    assert about["headers"] == {"Cookie": "a=1; b=2"}
    for odd in ({"a": "1\r\nX: y"}, {"a;b": "1"}, {"": "1"}, {"a": "ü"}):
        with pytest.raises(PipelineError, match="cookies take"):
            FetchOptions(cookies=odd).request("https://shop.example/")
    assert parse_cookie("x" * 5000 + "=1", look_at("https://shop.example/"), OWN, 0.0) is None
    assert cookie_header({}) == ""


@asynccontextmanager
async def a_proxy(seen: list[str]) -> AsyncIterator[str]:
    """A proxy that answers for every site itself, and notes what it was asked for."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        seen.append(head.partition("\r\n")[0])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"http://127.0.0.1:{port}"


def test_requests_go_through_the_proxy_under_the_same_address_rules() -> None:
    async def perform() -> list[str]:
        seen: list[str] = []
        network = AiohttpNetwork()
        async with a_proxy(seen) as proxy:
            got = await network.send(WireRequest("GET", "http://93.184.216.34/x", {}, proxy=proxy))
            assert got.body == b"hi"
            for inside in ("http://127.0.0.1:1/", "http://169.254.169.254/", "http://localhost:1/"):
                with pytest.raises(AddressRefused):
                    await network.send(WireRequest("GET", inside, {}, proxy=proxy))
        with pytest.raises(FetchError, match="proxy"):
            await network.send(WireRequest("GET", "http://93.184.216.34/x", {}, proxy=proxy))
        await network.close()
        return seen

    assert asyncio.run(perform()) == ["GET http://93.184.216.34/x HTTP/1.1"]


@pytest.mark.parametrize("proxy", ["proxy:3128", "socks5://p:1", "http://p:99999", "http://p/x"])
def test_proxy_that_is_no_url_is_refused_without_repeating_it(tmp_path: Path, proxy: str) -> None:
    source = {"pipeline": "m:p", "fetch": {"proxy": proxy}}
    (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": {"a.example": source}}))

    with pytest.raises(ConfigError, match="must be the URL of a proxy") as raised:
        load_settings(tmp_path)

    assert proxy not in raised.value.message
