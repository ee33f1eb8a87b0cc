"""Pages behind a login, over HTTPS and through a proxy, by the real command."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.connectors.dovecot import CERTIFICATE
from tests.journeys.commands import run_command
from tests.journeys.rig import ENVIRONMENT
from tests.unit.test_proxies import CREDENTIALS, Tunnel

PIPELINE = """
from penstock import AuthFailed, Pipeline

account = Pipeline("account")


@account.login
async def login(ctx):
    site = ctx.params["site"]
    await ctx.session.fetch(f"{site}/login", data={"password": ctx.params["password"]})
    if not ctx.session.cookies(site):
        raise AuthFailed("no cookie came")


@account.step(unit="run")
async def discover(ctx):
    response = await ctx.session.fetch(f"{ctx.params['site']}/list")
    for number in response.json():
        yield {"number": number}


@account.step(after="discover", unit="page", key="number")
async def read(item, ctx):
    response = await ctx.session.fetch(f"{ctx.params['site']}/pages/{item['number']}")
    ctx.save("page", key=str(item["number"]), data={"size": len(response.body)})
"""
COOKIE = "sesame-of-the-site"


class Account(Tunnel):
    """A site behind the tunnel that gives a cookie for the right password, and pages for the cookie."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._begin(writer)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head)
        if head.startswith("POST /login"):
            is_let_in = b"password=open" in await reader.read(1000)
        else:
            is_let_in = f"sid={COOKIE}" in head
        status = "200 OK" if is_let_in else "403 Forbidden"
        cookie = f"Set-Cookie: sid={COOKIE}; Secure; HttpOnly\r\n" if "/login" in head else ""
        about = "Content-Type: application/json\r\nContent-Length: 6\r\nConnection: close\r\n"
        writer.write(
            f"HTTP/1.1 {status}\r\n{cookie if is_let_in else ''}{about}\r\n[1, 2]".encode()
        )
        await writer.drain()
        writer.close()


@contextmanager
def serving() -> Iterator[Account]:
    loop, is_up, account = asyncio.new_event_loop(), threading.Event(), Account()
    ends = asyncio.Event()

    async def serve() -> None:
        async with account:
            is_up.set()
            await ends.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    is_up.wait()
    try:
        yield account
    finally:
        loop.call_soon_threadsafe(ends.set)
        thread.join()
        loop.close()


@pytest.mark.parametrize("password", ["open-sesame", "closed-sesame"])
def test_pages_behind_a_login_are_read_by_https_through_a_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setattr("tests.unit.test_proxies.PEM", CERTIFICATE)
    (tmp_path / "account_by_proxy.py").write_text(PIPELINE)
    with serving() as account:
        site = f"https://localhost:{account.ports[1]}"
        source = {
            "pipeline": "account_by_proxy:account",
            "params": {"site": site, "password": "${PASSWORD}"},
            "fetch": {"allow_private": True, "robots": False, "proxy": account.url},
        }
        (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": {"shop": source}}))
        surroundings = {**ENVIRONMENT, "PASSWORD": password, "SSL_CERT_FILE": str(CERTIFICATE)}
        done = run_command(["run", "shop"], tmp_path, surroundings, 60)
    asked = [head.split()[1] for head in account.asked]
    assert len(account.told) == len(asked) > 0
    assert all(f"Proxy-Authorization: Basic {CREDENTIALS}" in told for told in account.told)
    if password.startswith("open"):
        assert done.returncode == 0, done.stderr
        assert (asked[:2], sorted(asked[2:])) == (["/login", "/list"], ["/pages/1", "/pages/2"])
    else:
        # A refused login is of kind auth, and is not tried again.
        assert (done.returncode, asked) == (4, ["/login"]), done.stderr
        assert "auth: " in done.stdout
    for file in tmp_path.rglob("*"):
        if file.is_file() and file.name != "penstock.yaml":
            body = file.read_bytes()
            assert not any(each.encode() in body for each in (COOKIE, password, "proxy-secret")), (
                file
            )
