"""Signals over HTTP: who may raise them, and what is answered."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import resource
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from penstock import Project
from penstock.engine.worker.calls import Inline
from penstock.errors import ConfigError, Refused
from penstock.settings import load_settings
from penstock.settings.values import TriggerSettings
from penstock.web.origins import is_loopback
from penstock.web.trigger import listener, refuse_open_door

TOKEN = "a-token-that-is-long-enough"
JSON = {"Content-Type": "application/json"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "penstock.yaml").write_text(
        "sources: {a: {pipeline: 'x:y', schedule: {signal: go}}}\n"
    )
    with Project.open(tmp_path) as found:
        yield found


def with_token(project: Project, **more: Any) -> Project:
    trigger = TriggerSettings(TOKEN, **more)
    project.settings = replace(project.settings, trigger=trigger)
    return project


@asynccontextmanager
async def listening(
    project: Project, host: str = "127.0.0.1", tell: Callable[[str], None] = lambda _: None
) -> AsyncIterator[int]:
    """The trigger, as the command serves it; its port."""
    server, begun = listener(project, Inline(), host, 0, tell), asyncio.Event()
    server.on_listening = lambda _: begun.set()
    serving = asyncio.create_task(server.serve())
    await begun.wait()
    try:
        yield server.port
    finally:
        server.stop()
        await serving


def ask(
    project: Project,
    path: str = "/signals/go",
    body: bytes = b"{}",
    headers: dict[str, str] | None = None,
    method: str = "POST",
    host: str = "127.0.0.1",
) -> tuple[int, dict[str, Any], str]:
    """The status, the answer, and all that was written to the client."""

    async def exchange() -> tuple[int, dict[str, Any], str]:
        async with (
            listening(project, host) as port,
            aiohttp.ClientSession() as session,
        ):
            url = f"http://127.0.0.1:{port}{path}"
            given = {**JSON} if headers is None else headers
            given = {name: value.replace("PORT", str(port)) for name, value in given.items()}
            async with session.request(method, url, data=body, headers=given) as answer:
                text = await answer.text()
                is_json = answer.content_type == "application/json"
                return answer.status, json.loads(text) if is_json else {}, text

    return asyncio.run(exchange())


def raised(project: Project) -> list[Any]:
    return [(row.name, row.data, row.key) for row in project.connection.signals.after()]


def test_a_post_raises_a_signal(project: Project) -> None:
    status, answer, _ = ask(project, body=b'{"day": 7}')
    assert (status, answer) == (202, {"signal": 1, "name": "go", "is_new": True})
    assert raised(project) == [("go", {"day": 7}, None)]


def test_an_idempotency_key_raises_it_once(project: Project) -> None:
    key = {**JSON, "Idempotency-Key": "order-1"}
    first = ask(project, headers=key)[1]
    again = ask(project, headers=key)[1]
    assert (again["signal"], again["is_new"]) == (first["signal"], False)
    assert len(raised(project)) == 1


def test_a_signal_may_be_about_a_source(project: Project) -> None:
    assert ask(project, "/signals/go?source=a")[0] == 202
    assert project.connection.signals.after()[0].source == "a"
    status, answer, _ = ask(project, "/signals/go?source=nobody")
    assert status == 400
    assert "nobody" in answer["error"]


def test_who_has_the_token_may(project: Project) -> None:
    assert ask(with_token(project), headers={**JSON, **BEARER})[0] == 202


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN]
)
def test_who_has_not_may_not(project: Project, header: str | None) -> None:
    given = {**JSON} if header is None else {**JSON, "Authorization": header}
    status, _, text = ask(with_token(project), headers=given)
    assert status == 401
    assert TOKEN not in text
    assert raised(project) == []


def signed(body: bytes, token: str = TOKEN) -> str:
    return f"sha256={hmac.new(token.encode(), body, hashlib.sha256).hexdigest()}"


def test_a_webhook_of_github_that_is_signed_with_the_token_raises_its_signal_once(
    project: Project,
) -> None:
    body = b'{"action": "opened"}'
    given = {**JSON, "X-Hub-Signature-256": signed(body), "X-GitHub-Delivery": "72d3162e"}
    for is_new in (True, False):
        status, answer, _ = ask(with_token(project), body=body, headers=given)
        assert (status, answer["is_new"]) == (202, is_new)
    assert raised(project) == [("go", {"action": "opened"}, "72d3162e")]


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "sha256=",
        signed(b"{}")[7:],
        signed(b"{}").upper(),
        signed(b"{ }"),
        signed(b"{}", "another"),
        signed(b"{}", ""),
        "sha256=\u00e9",
    ],
)
def test_a_signature_of_another_body_or_token_is_refused(project: Project, signature: str) -> None:
    given = {**JSON, "X-Hub-Signature-256": signature}
    assert ask(with_token(project), headers=given)[0] == 401
    # The right token beside it does not make a wrong signature right.
    assert ask(with_token(project), headers={**given, **BEARER})[0] == 401
    assert raised(project) == []


def test_a_signature_is_read_from_no_more_than_the_largest_body(project: Project) -> None:
    body = json.dumps("x" * 2_000).encode()
    given = {**JSON, "X-Hub-Signature-256": signed(body)}
    assert ask(with_token(project, max_bytes=1_000), body=body, headers=given)[0] == 413


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:PORT"},
        {"Origin": "http://localhost:PORT"},
        {"Origin": "http://[::1"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_somebody_else_can_not_use_it(project: Project, headers: dict[str, str]) -> None:
    assert ask(project, headers={**JSON, **headers})[0] == 403
    assert ask(with_token(project), headers={**JSON, **BEARER, **headers})[0] == 403
    assert raised(project) == []


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_only_json_is_taken(project: Project, kind: str) -> None:
    given = {"Content-Type": kind} if kind else {"Content-Type": "application/octet-stream"}
    assert ask(project, headers=given)[0] == 415
    assert raised(project) == []


def test_a_host_that_is_configured_is_known(project: Project) -> None:
    given = {**JSON, **BEARER, "Host": "Hooks.Example:8787"}
    assert ask(with_token(project, hosts=("hooks.example",)), headers=given)[0] == 202


def test_a_page_of_our_own_may_use_it(project: Project) -> None:
    assert ask(project, headers={**JSON, "Origin": "http://127.0.0.1:PORT"})[0] == 202
    known = with_token(project, hosts=("hooks.example",))
    given = {**JSON, **BEARER, "Host": "hooks.example", "Origin": "https://hooks.example"}
    assert ask(known, headers=given)[0] == 202


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """Enough for the clients of a crowd, and not for a server that holds on to all of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Beside those that this process has open already, for other tests.
    known = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1500 + known, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_descriptors")
def test_a_thousand_half_open_connections_do_not_make_it_unreachable(project: Project) -> None:
    async def crowd() -> int:
        async with listening(project) as port:
            idle = []
            try:
                for number in range(1010):
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.write(b"POST /signals/go HTTP/1.1\r\nHost: 127.0.0.1\r\n" * (number % 2))
                    idle.append((reader, writer))
                async with aiohttp.ClientSession() as session:
                    url = f"http://127.0.0.1:{port}/signals/go"
                    async with session.post(url, data=b"{}", headers=JSON) as answer:
                        return answer.status
            finally:
                for _, writer in idle:
                    writer.transport.abort()

    assert asyncio.run(crowd()) == 202


@pytest.mark.parametrize("bad", ["\x00", "\r", "\x7f\x01", "\n"])
def test_a_malformed_header_does_not_put_the_token_into_the_log(
    project: Project, bad: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    async def post() -> None:
        async with listening(with_token(project), tell=told.append) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            lines = f"POST /signals/go HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}{bad}x"
            writer.write(f"{lines}\r\nContent-Length: x\r\n\r\n".encode())
            with suppress(ConnectionResetError):
                await reader.read()
            writer.transport.abort()

    asyncio.run(post())
    captured = capfd.readouterr()
    assert TOKEN not in f"{told}{caplog.text}{captured.out}{captured.err}"
    assert told == []


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/signals/go", b"{", 400),
        ("/signals/go", b"[" * 100_000, 400),
        ("/signals/a%20b", b"{}", 400),
        ("/signals/run.completed", b"{}", 400),
        ("/signals/", b"{}", 404),
        ("/", b"{}", 404),
        ("/signals/go/more", b"{}", 404),
        ("/signals/go", b'"' + b"x" * 300_000 + b'"', 413),
    ],
)
def test_what_is_wrong_is_told(project: Project, path: str, body: bytes, status: int) -> None:
    assert ask(project, path, body)[0] == status
    assert raised(project) == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_nothing_but_post_does_anything(project: Project, method: str) -> None:
    assert ask(project, method=method)[0] == 405
    assert raised(project) == []


def test_without_a_token_it_listens_to_this_machine_alone(project: Project) -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.9.9.9"):
        assert is_loopback(host)
        refuse_open_door(project, host)
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.com", ""):
        with pytest.raises(Refused, match="loopback only"):
            refuse_open_door(project, host)
        refuse_open_door(with_token(project), host)
        project.settings = replace(project.settings, trigger=TriggerSettings())


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{token: short}", "at least 16 characters"),
        ("{tokens: x}", "unknown key"),
        ("{hosts: example.com}", r"such as \[hooks.example.com\], not 'example.com'"),
    ],
)
def test_settings_that_are_wrong_are_refused(tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "penstock.yaml").write_text(f"trigger: {text}\n")
    with pytest.raises(ConfigError, match=error):
        load_settings(tmp_path)


def test_the_token_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text("trigger: {token: '${T}'}\n")
    settings = load_settings(tmp_path, environ={"T": TOKEN})
    assert settings.trigger.token == TOKEN
    assert TOKEN not in repr(settings)
