"""Logins by token at a real Dovecot, which asks a server of the test's own whether a token is good."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from penstock.http.network import Network, RawResponse, Request
from penstock.testing import VirtualClock
from penstock.testing.connectors import Trial
from tests.connectors.dovecot import Dovecot, running
from tests.connectors.test_imap import MailNetwork, MailPlace, a_message

REFRESH, CLIENT = "refresh-of-the-tests", "client-of-the-tests"


@dataclass
class TokenServer:
    """Gives tokens for a refresh token, and says whose a token is. Each one is good until it is revoked."""

    url: str = ""
    user: str = ""
    given: list[str] = field(default_factory=list)
    revoked: set[str] = field(default_factory=set)

    def answer(self, path: str, asked: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if path == "/token":
            if (asked.get("refresh_token"), asked.get("client_id")) != (REFRESH, CLIENT):
                return 400, {"error": "invalid_grant"}
            self.given.append(f"token-{len(self.given)}-of-the-tests")
            return 200, {"access_token": self.given[-1], "expires_in": 3600}
        token = asked.get("token", "")
        is_good = token in self.given and token not in self.revoked
        return 200, {"active": is_good, "username": self.user} if is_good else {"active": False}


@contextmanager
def token_server() -> Iterator[TokenServer]:
    made = TokenServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            asked = {name: values[0] for name, values in parse_qs(body).items()}
            status, answer = made.answer(self.path, asked)
            said = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


class TokenNetwork(MailNetwork):
    """Asks the token server at once: virtual time does not pass meanwhile."""

    async def send(self, request: Request) -> RawResponse:
        where = urlsplit(request.url)
        connection = http.client.HTTPConnection("127.0.0.1", where.port or 80, timeout=30)
        try:
            connection.request(request.method, where.path, request.body, dict(request.headers))
            answer = connection.getresponse()
            return RawResponse(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()


class TokenPlace(MailPlace):
    tokens: TokenServer

    def keys(self) -> dict[str, Any]:
        login = {
            "url": f"{self.tokens.url}/token",
            "client_id": CLIENT,
            "client_secret": "${SECRET}",
            "refresh_token": REFRESH,
        }
        keys = super().keys()
        del keys["password"]
        return {**keys, "oauth": login}

    def network(self, clock: VirtualClock) -> Network:
        return TokenNetwork(self)


@pytest.fixture(scope="module")
def tokens() -> Iterator[TokenServer]:
    with token_server() as server:
        yield server


@pytest.fixture(scope="module")
def server(tokens: TokenServer) -> Iterator[Dovecot]:
    with running(introspection=f"{tokens.url}/introspect") as server:
        yield server


@pytest.fixture
def place(
    server: Dovecot, tokens: TokenServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> TokenPlace:
    monkeypatch.setattr(MailPlace, "server", server, raising=False)
    monkeypatch.setattr(TokenPlace, "tokens", tokens, raising=False)
    place = TokenPlace(tmp_path)
    tokens.user = place.user
    tokens.given.clear()
    place.append(a_message("one", "the text of one"))
    return place


def test_a_mailbox_is_read_with_a_token_that_is_asked_for_once_and_written_nowhere(
    place: TokenPlace, tokens: TokenServer, tmp_path: Path
) -> None:
    trial = Trial(tmp_path, place)
    assert trial.run().state == "completed"
    assert [each["title"] for each in trial.documents().values()] == ["one"]
    assert b"AUTHENTICATE XOAUTH2" in b"".join(place.asked(b"XOAUTH2"))
    place.append(a_message("two", "the text of two"))
    assert trial.run().state == "completed"
    assert len(trial.documents()) == 2
    # The second run began within its hour, with a connector that was made anew; one for each process at most.
    assert len(tokens.given) <= 2
    for file in tmp_path.rglob("*"):
        if file.is_file() and file.name != "penstock.yaml":
            body = file.read_bytes()
            assert not any(each.encode() in body for each in (*tokens.given, place.secret)), file


@pytest.mark.parametrize("is_other_user", [False, True])
def test_a_token_that_the_server_refuses_is_tried_once(
    is_other_user: bool, place: TokenPlace, tokens: TokenServer, tmp_path: Path
) -> None:
    if is_other_user:
        tokens.user = "somebody-else"
    else:
        tokens.revoked = {f"token-{n}-of-the-tests" for n in range(9)}
    run = Trial(tmp_path, place).run()
    tokens.revoked = set()
    assert run.state == "failed"
    [job] = Trial(tmp_path, place).jobs(run)
    assert (job.kind, job.tries) == ("auth", 1)
    assert "refuses" in str(job.error)
