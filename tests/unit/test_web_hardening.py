"""The web server against whoever means harm: slow clients, crowds, other sites' pages, odd paths, logs."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from penstock import Project
from penstock.app import calls
from penstock.app.verbs.acts import ACTS, Act
from penstock.app.verbs.parameters import parameters_of
from penstock.app.verbs.reads import READS, Read
from penstock.errors import Refused
from penstock.web import api
from penstock.web import body as bodies
from penstock.web.access import Access
from penstock.web.application import application
from penstock.web.listener import Listener
from penstock.web.origins import origin_of
from penstock.web.protocol import Connections
from penstock.web.run import refuse_open_door
from penstock.web.settings import WebSettings
from tests.unit.test_web import Site, project, site, visit

__all__ = ["project"]
CERTIFICATE = Path(__file__).parent / "localhost_test.pem"
OVERVIEW = "/api/v1/overview"


def visit_with(
    project: Project, connections: Connections, steps: Callable[[Site], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with site(project, connections) as found:
            await steps(found)

    asyncio.run(run())


async def raw(at: Site, data: bytes) -> bytes:
    """Everything that is answered until the other side closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
    writer.write(data)
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.transport.abort()


# Slow clients and crowds.


@pytest.mark.parametrize("data", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
def test_a_connection_that_sends_no_headers_in_time_is_closed(
    project: Project, data: bytes
) -> None:
    connections = Connections(header_s=0.05)

    async def steps(at: Site) -> None:
        assert await raw(at, data) == b""
        # Also after a request that was answered: the next one has its own time.
        line = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{at.port}\r\n\r\n".encode()
        assert b"200 OK" in await raw(at, line)
        assert len(connections) == 0

    visit_with(project, connections, steps)


def test_a_body_that_does_not_come_in_time_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_S", 0.05)
    token = project.tokens.create("ci", "operator").text

    async def steps(at: Site) -> None:
        head = (
            f"POST /api/v1/sources/a/pause HTTP/1.1\r\nHost: 127.0.0.1:{at.port}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        )
        answer = await raw(at, f"{head}Content-Length: 100\r\n\r\n{{".encode())
        assert b"408 Request Timeout" in answer
        large = await raw(at, f"{head}Content-Length: 1000001\r\n\r\n".encode())
        assert b"413 " in large
        chunked = f"{head}Transfer-Encoding: chunked\r\n\r\nF4241\r\n".encode() + b"x" * 1_000_001
        assert b"413 " in await raw(at, chunked)

    visit(project, steps)
    assert project.sources.state("a").paused_at is None


def test_headers_are_bounded_in_size(project: Project) -> None:
    async def steps(at: Site) -> None:
        head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{at.port}\r\nX: ".encode()
        assert b"400 " in await raw(at, head + b"x" * 100_000)

    visit(project, steps)


def test_only_who_waits_makes_room_and_nobody_has_all_of_it(project: Project) -> None:
    connections = Connections(header_s=60, most=3, most_per_address=2)

    async def steps(at: Site) -> None:
        gate, begun = asyncio.Event(), asyncio.Event()

        async def slow(call: Callable[[], Any]) -> Any:
            begun.set()
            await gate.wait()
            return call()

        await at.log_in()
        usual = at.access.tables._calls  # type: ignore[attr-defined]
        at.access.tables._calls = slow  # type: ignore[attr-defined]
        # Not by the browser, which would ask again.
        [cookie] = [f"{each.key}={each.value}" for each in at.browser.cookie_jar]
        head = f"GET {OVERVIEW} HTTP/1.1\r\nHost: 127.0.0.1:{at.port}\r\nCookie: {cookie}\r\n"
        asked = f"{head}Connection: close\r\n\r\n".encode()
        busy = asyncio.create_task(raw(at, asked))
        await begun.wait()
        idle = await asyncio.open_connection("127.0.0.1", at.port)
        fresh = await asyncio.open_connection("127.0.0.1", at.port)
        with suppress(ConnectionResetError):
            assert await idle[0].read() == b""  # it made room for the one that came after it
        line = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{at.port}\r\n\r\n".encode()
        fresh[1].write(line)
        assert b"200 OK" in await fresh[0].readline()
        gate.set()
        at.access.tables._calls = usual  # type: ignore[attr-defined]
        assert b"200 OK" in await busy  # whose request was being answered stayed
        for _, writer in (idle, fresh):
            writer.transport.abort()

    visit_with(project, connections, steps)


# Logs.


def test_no_header_is_ever_logged(
    project: Project, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    secret = "penstock_0123456789_very-secret"
    told: list[str] = []

    async def steps(at: Site) -> None:
        head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{at.port}\r\nAuthorization: Bearer {secret}"
        for bad in ("\x00", "\r", "\x7f\x01", "\n", "\xff"):
            data = f"{head}{bad}x\r\nContent-Length: x\r\n\r\n"
            assert b"200 OK" not in await raw(at, data.encode("latin-1"))
        await raw(at, f"{head}\r\nConnection: close\r\n\r\n".encode())
        told.extend(at.told)

    visit_with(project, Connections(header_s=0.2), steps)
    captured = capfd.readouterr()
    assert "secret" not in f"{told}{caplog.text}{captured.out}{captured.err}"


def test_a_mistake_of_ours_is_told_by_its_kind_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def broken(*_: object) -> None:
        raise ValueError("the password is hunter2")

    async def steps(at: Site) -> None:
        await at.log_in()
        monkeypatch.setattr(Project, "overview", broken)
        answer = await at.ask("GET", OVERVIEW)
        assert (answer.status, answer.json["code"]) == (500, "internal")
        assert "hunter2" not in answer.text
        told.extend(at.told)

    visit(project, steps)
    assert told
    assert "hunter2" not in "".join(told)


# Other sites' pages.


def test_csrf_another_sites_form_does_nothing(project: Project) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for headers in (
            {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
            {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
            {"Origin": f"http://127.0.0.1:{at.port}"},  # ours, but without the session's token
            {},
        ):
            given = {**form, **headers}
            answer = await at.ask("POST", "/api/v1/sources/a/pause", data="x=1", headers=given)
            assert answer.status == 403, headers
        # Nor does it log somebody in as another, or out.
        for path in ("/login", "/logout"):
            given = {**form, "Origin": "https://evil.example"}
            assert (await at.ask("POST", path, data="token=x", headers=given)).status == 403
        assert (await at.ask("GET", OVERVIEW)).status == 200

    visit(project, steps)
    assert project.sources.state("a").paused_at is None


def test_dns_rebinding_a_name_that_points_here_is_not_known(project: Project) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        port = at.port
        for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", ""):
            assert (await at.ask("GET", OVERVIEW, headers={"Host": host})).status in (400, 421)
            assert (await at.ask("GET", "/login", headers={"Host": host})).status in (400, 421)
        for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"127.0.0.1:{port}"):
            assert (await at.ask("GET", "/login", headers={"Host": host})).status == 200
        twice = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n"
        assert b"200 OK" not in await raw(at, twice.encode())

    visit_with(project, Connections(header_s=0.2), steps)


def test_clickjacking_no_page_may_be_framed(project: Project) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        for path in ("/", "/login", "/runs", OVERVIEW, "/nothing"):
            answer = await at.ask("GET", path, headers={"Accept": "text/html"})
            policy = answer.headers["Content-Security-Policy"]
            assert re.search(r"frame-ancestors 'none'(;|$)", policy), path
            assert answer.headers["X-Frame-Options"] == "DENY"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"

    visit(project, steps)


def test_session_fixation_a_cookie_that_was_planted_is_never_a_session(project: Project) -> None:
    token = project.tokens.create("ann", "viewer").text

    async def steps(at: Site) -> None:
        name = f"penstock-{at.port}"
        given = {"Origin": f"http://127.0.0.1:{at.port}", "Cookie": f"{name}=planted"}
        form = aiohttp.FormData({"token": token})
        answer = await at.ask("POST", "/login", data=form, headers=given)
        [made] = re.findall(rf"^{name}=([^;]+)", answer.headers["Set-Cookie"])
        assert made != "planted"
        at.browser.cookie_jar.clear()
        planted = {"Cookie": f"{name}=planted"}
        assert (await at.ask("GET", OVERVIEW, headers=planted)).status == 401

    visit(project, steps)


TRICKS = r"""
/static/../../../settings.py
/static/%2e%2e/%2e%2e/pages.py
/static/..%2f..%2fpages.py
/static//etc/passwd
/static/%00
/static/..%5c..%5cpages.py
/api/v1/../../etc/passwd
/api/v1/sources/..%2f..%2fetc%2fpasswd
/api/v1/snapshots/..%2f..%2fpenstock.db
//evil.example/
/\evil.example
/%0d%0aSet-Cookie:%20a=b
""".split()


def test_path_tricks_lead_nowhere(project: Project) -> None:
    async def steps(at: Site) -> None:
        await at.log_in()
        [cookie] = [f"{each.key}={each.value}" for each in at.browser.cookie_jar]
        for path in TRICKS:
            head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{at.port}\r\nCookie: {cookie}\r\n"
            found = await raw(at, f"{head}Connection: close\r\n\r\n".encode())
            answer = found.decode("utf-8", "replace")
            assert re.match(r"HTTP/1.1 (400|404|422) ", answer), (path, answer[:200])
            assert "root:" not in answer
            assert "set-cookie" not in answer.lower()
            assert "import annotations" not in answer

    visit(project, steps)


# What a request may say.


def test_no_endpoint_takes_an_address_a_path_code_or_sql() -> None:
    refused = {
        "url", "urls", "path", "file", "folder", "sql", "query", "module", "pipeline", "set",
        "changes", "assume", "actor", "command", "address", "anchor", "code_path",
    }  # fmt: skip
    rows: list[Act | Read] = [*ACTS.values(), *READS.values()]
    taken = {
        f"{row.name}: {field}"
        for row in rows
        for field in parameters_of(row.name, (*row.takes, *row.path_names)).__struct_fields__
        if field in refused
    }
    assert taken == set()


def test_every_act_is_an_event_in_the_name_of_who_did_it() -> None:
    from penstock.app.verbs.parameters import verb_of

    for act in ACTS.values():
        assert "actor" in inspect.signature(verb_of(act.name)).parameters, act.name
        assert "actor" not in act.parameters.__struct_fields__


def test_reads_are_bounded_in_rows_bytes_and_time_and_can_not_write(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def writes(self: Project) -> Any:
        return self.sources.pause("a", actor="eve")

    def lasts(self: Project) -> Any:
        return self.connection._db.run_sql(  # type: ignore[attr-defined]
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        )

    async def steps(at: Site) -> None:
        await at.log_in()
        for limit in ("1001", "0", "-1", "1e9", "9" * 30):
            assert (await at.ask("GET", f"/api/v1/runs?limit={limit}")).status == 422
        monkeypatch.setattr(api, "MOST_BYTES", 10)
        assert (await at.ask("GET", OVERVIEW)).json["code"] == "answer_too_large"
        monkeypatch.setattr(api, "MOST_BYTES", 1_000_000)
        monkeypatch.setattr(Project, "overview", writes)
        assert (await at.ask("GET", OVERVIEW)).status == 500
        monkeypatch.setattr(Project, "overview", lasts)
        at.access.tables._longest_s = 0.05  # type: ignore[attr-defined]
        slow = await at.ask("GET", OVERVIEW)
        assert (slow.status, slow.json["code"]) == (503, "store_too_slow")

    visit(project, steps)
    assert project.sources.state("a").paused_at is None
    assert calls.LONGEST_READ_S <= 10


def test_an_answer_has_no_secret_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(
        "trigger: {token: '${T}'}\nsources: {a: {pipeline: 'x:y', schedule: {signal: go}}}\n"
    )
    (tmp_path / ".env").write_text("T=swordfish-swordfish\n")
    with Project.open(tmp_path) as opened:
        opened.sources.pause("a", reason="it said swordfish-swordfish")

        async def steps(at: Site) -> None:
            await at.log_in()
            answer = await at.ask("GET", "/api/v1/journal")
            assert "it said" in answer.text
            assert "swordfish" not in answer.text

        visit(opened, steps)


# TLS.


@asynccontextmanager
async def tls_site(project: Project) -> AsyncIterator[tuple[int, Access]]:
    settings = WebSettings(port=0, certificate=CERTIFICATE, key=CERTIFICATE)
    access, begun = Access(settings, "ann"), asyncio.Event()
    listener = Listener(application(project, settings, access), settings, lambda _: None)

    def begin(port: int) -> None:
        access.listens_at(port)
        begun.set()

    listener.on_listening = begin
    serving = asyncio.create_task(listener.serve())
    await begun.wait()
    try:
        yield listener.port, access
    finally:
        listener.stop()
        await serving
        await access.close()


def test_over_tls_the_cookie_is_bound_to_the_host_and_the_browser_stays_with_tls(
    project: Project,
) -> None:
    trusted = ssl.create_default_context(cafile=str(CERTIFICATE))
    trusted.check_hostname = False

    async def exchange() -> None:
        async with tls_site(project) as (port, access), aiohttp.ClientSession() as browser:
            link = access.new_link()
            assert link.startswith(f"https://127.0.0.1:{port}/login?link=")
            async with browser.get(link, ssl=trusted) as answer:
                cookie = answer.headers["Set-Cookie"]
                assert re.match(r"__Host-penstock=[^;]+; ", cookie)
                attributes = {each.strip().lower() for each in cookie.split(";")[1:]}
                assert {"secure", "httponly", "samesite=strict", "path=/"} <= attributes
                assert not [each for each in attributes if each.startswith("domain")]
                assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
            origin = {"Origin": f"http://127.0.0.1:{port}"}
            url = f"https://127.0.0.1:{port}/login"
            async with browser.post(url, ssl=trusted, headers=origin) as refused:
                assert (refused.status, json.loads(await refused.read())["code"]) == (
                    403,
                    "other_origin",
                )

    asyncio.run(exchange())


def test_other_machines_come_over_tls_or_through_a_proxy_that_has_it() -> None:
    proxied = WebSettings("0.0.0.0", 8787, (origin_of("https://penstock.example.com"),))
    refuse_open_door(proxied)
    known = proxied.known_origins()
    assert str(known.of_host("penstock.example.com", ("10.0.0.5", 8787))) == (
        "https://penstock.example.com"
    )
    # Not past the proxy, in the clear.
    assert known.of_host("10.0.0.5:8787", ("10.0.0.5", 8787)) is None
    assert known.of_host("0.0.0.0:8787", ("10.0.0.5", 8787)) is None
    for settings in (
        WebSettings("0.0.0.0"),
        WebSettings("10.0.0.5", 8787, (origin_of("http://penstock.example.com"),)),
    ):
        with pytest.raises(Refused, match="without TLS"):
            refuse_open_door(settings)
