"""Routes of alerts: what Slack, a mail server, Apprise and any other receiver get, and what they refuse."""

from __future__ import annotations

import email
import hashlib
import hmac
import json
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from email.message import Message as Mail
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from penstock.engine.alerting.message import Told, message_of, slack_payload, subject_of, text_of
from penstock.engine.alerting.routes import is_slack, send_on_route
from penstock.engine.leader.hooks import addressed, delivery_id
from penstock.settings.alerts import RouteSettings
from penstock.store.hooks import Parcel

NOW = 1_800_000_000.0
SLACK = "/services/T0000/B0000/XXXX"
PEM = Path(__file__).with_name("localhost_test.pem")
SECRET = "s3cret-of-the-receiver"
Around = Callable[[], AbstractContextManager[None]]


def told(**more: Any) -> Told:
    usual: dict[str, Any] = {
        "alert": 12,
        "change": "opened",
        "rule": "zero-yield",
        "source": "acme.com",
        "severity": "high",
        "state": "open",
        "summary": "2 runs saved nothing",
        "opened_at": "2026-11-16T03:00:00.000Z",
        "numbers": ["records: 0, usually 120"],
        "commands": ["penstock alerts ack 12"],
    }
    return Told(**usual | more)


def parcel(*alerts: Told) -> Parcel:
    body = msgspec.json.encode(message_of(alerts or [told()])).decode()
    return addressed(Parcel(7, "alert:oncall", 0, "alert", body, 1), "shop-watch")


class Receiver:
    """Answers as it is told to, and remembers what it was sent. `around` is what happens around an answer."""

    def __init__(self, statuses: list[int], around: Around = nullcontext) -> None:
        self.seen: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.seen.append((dict(self.headers), body))
                with around():
                    self.send_response(statuses.pop(0) if statuses else 200)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *words: object) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self.server.server_port}"


@contextmanager
def receiving(*statuses: int, around: Around = nullcontext) -> Iterator[Receiver]:
    receiver = Receiver(list(statuses), around)
    threading.Thread(target=receiver.server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()


class Mailbox:
    """What a mail server hands on to, with who had signed in."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.mails: list[Mail] = []
        self.tls: list[bool] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if self.refusal:
            return self.refusal
        self.tls.append(session.ssl is not None)
        self.mails.append(email.message_from_bytes(envelope.content))
        return "250 OK"


def sign_in(server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
    is_known = (given.login, given.password) == (b"me@example.com", SECRET.encode())
    return AuthResult(success=is_known, handled=is_known)


@contextmanager
def mail_server(mailbox: Mailbox, **options: Any) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(mailbox, hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


def test_slack_gets_blocks_that_mention_nobody() -> None:
    hostile = told(summary="<!channel> & <https://evil.example|click>")
    with receiving() as slack:
        route = RouteSettings("oncall", f"http://{slack.place}{SLACK}", allow_private=True)
        assert send_on_route(route, parcel(hostile), NOW) == ""
    [(_, body)] = slack.seen
    payload = json.loads(body)
    assert set(payload) == {"text", "blocks"}
    assert payload["text"].startswith("shop-watch: [high] acme.com: &lt;!channel&gt; &amp; ")
    assert "<" not in payload["blocks"][1]["text"]["text"]
    assert [block["type"] for block in payload["blocks"]] == ["header", "section"]


def test_message_to_slack_keeps_within_its_bounds() -> None:
    many = message_of([told(alert=n, summary="x" * 5000) for n in range(1, 60)])
    payload = slack_payload(many)
    assert len(payload["blocks"]) <= 50
    assert all(len(block["text"]["text"]) <= 3000 for block in payload["blocks"])
    assert subject_of(many) == "59 alerts: 59 high"


@pytest.mark.parametrize(
    ("address", "is_theirs"),
    [
        ("https://hooks.slack.com/services/T1/B1/abc", True),
        ("https://hooks.slack-gov.com/services/T1/B1/abc", True),
        ("https://proxy.example/services/T1/B1/abc", True),
        ("https://notslack.com/services/x", False),
        ("https://hooks.slack.com.evil.example/hook", False),
    ],
)
def test_slack_is_known_by_its_address(address: str, is_theirs: bool) -> None:
    assert is_slack(address) == is_theirs


def test_webhook_gets_the_alerts_as_json_signed_under_the_same_id_each_time() -> None:
    sent = parcel()
    with receiving(503, 200) as receiver:
        route = RouteSettings(
            "oncall", f"http://{receiver.place}/x", secret=SECRET, allow_private=True
        )
        assert send_on_route(route, sent, NOW) == "it answered 503"
        assert send_on_route(route, sent, NOW) == ""
    (first, _), (headers, body) = receiver.seen
    assert headers["Penstock-Delivery"] == first["Penstock-Delivery"] == delivery_id(sent)
    assert headers["Penstock-Event"] == "alert.opened"
    got = json.loads(body)
    assert (got["project"], got["event"]) == ("shop-watch", "alert.opened")
    assert (got["alerts"][0]["alert"], got["alerts"][0]["severity"]) == (12, "high")
    at, v1 = (part.partition("=")[2] for part in headers["Penstock-Signature"].split(","))
    signed = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    assert v1 == signed


def test_webhook_on_a_private_address_is_refused_unless_it_is_allowed() -> None:
    with receiving() as receiver:
        route = RouteSettings("oncall", f"http://{receiver.place}/x")
        assert "not a public address" in send_on_route(route, parcel(), NOW)
    assert receiver.seen == []


def test_mail_arrives_with_one_subject_and_an_id_that_stays() -> None:
    mailbox = Mailbox()
    hostile = told(summary="nothing\r\nBcc: all@example.com")
    with mail_server(mailbox) as port:
        to = f"smtp://127.0.0.1:{port}/?to=ops@example.com,lead@example.com&from=p@example.com"
        for _ in range(2):
            assert send_on_route(RouteSettings("mail", to), parcel(hostile), NOW) == ""
    first, second = mailbox.mails
    assert first["Message-ID"] == second["Message-ID"]
    assert first["To"] == "ops@example.com, lead@example.com"
    assert first["Bcc"] is None
    assert first["Subject"].startswith("shop-watch: [high] acme.com: nothing")
    assert "penstock alerts ack 12" in first.get_payload()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_mail_signs_in_over_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(PEM)
    mailbox = Mailbox()
    login = f"me%40example.com:{SECRET}@"
    options = {"authenticator": sign_in, "auth_required": True}
    with mail_server(mailbox, tls_context=context, require_starttls=True, **options) as port:
        to = f"smtp://{login}localhost:{port}/?to=ops@example.com"
        assert send_on_route(RouteSettings("mail", to), parcel(), NOW) == ""
        wrong = to.replace(SECRET, "wrong")
        assert send_on_route(RouteSettings("mail", wrong), parcel(), NOW).startswith(
            "it answered 535"
        )
    with mail_server(mailbox, ssl_context=context, auth_require_tls=False, **options) as port:
        to = f"smtps://{login}localhost:{port}/?to=ops@example.com"
        assert send_on_route(RouteSettings("mail", to), parcel(), NOW) == ""
        monkeypatch.delenv("SSL_CERT_FILE")
        assert "no TLS with" in send_on_route(RouteSettings("mail", to), parcel(), NOW)
    assert mailbox.tls[0]
    assert {mail["From"] for mail in mailbox.mails} == {"me@example.com"}


def test_mail_that_is_refused_or_reaches_nobody_says_why() -> None:
    with mail_server(Mailbox("451 mailbox is full")) as port:
        to = f"smtp://127.0.0.1:{port}/?to=ops@example.com"
        error = send_on_route(RouteSettings("mail", to), parcel(), NOW)
        assert error == "it answered 451 mailbox is full"
    nobody = RouteSettings("mail", f"smtp://127.0.0.1:{port}/?to=ops@example.com", timeout_s=2.0)
    assert send_on_route(nobody, parcel(), NOW).startswith(f"no connection to 127.0.0.1:{port}")


def test_password_is_not_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.http.mail.OWN_MACHINE", frozenset())
    with mail_server(Mailbox()) as port:
        to = f"smtp://me:{SECRET}@127.0.0.1:{port}/?to=ops@example.com"
        assert "offers no TLS" in send_on_route(RouteSettings("mail", to), parcel(), NOW)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_apprise_delivers_to_what_it_knows_and_says_what_it_does_not() -> None:
    with receiving() as receiver:
        route = RouteSettings("chat", f"json://{receiver.place}/")
        assert send_on_route(route, parcel(), NOW) == ""
    [(_, body)] = receiver.seen
    assert json.loads(body)["title"] == subject_of(message_of([told()])).join(["shop-watch: ", ""])
    assert send_on_route(route, parcel(), NOW) != ""
    unknown = send_on_route(RouteSettings("chat", "nosuch://x"), parcel(), NOW)
    assert unknown.startswith("Apprise does not know this kind of address")


def test_apprise_that_is_not_installed_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    error = send_on_route(RouteSettings("chat", "json://127.0.0.1:9/"), parcel(), NOW)
    assert error == "Apprise is not installed: pip install 'penstock[alerts]'"


def test_digest_has_the_worst_first_and_what_is_over_last() -> None:
    over = told(alert=3, change="resolved", state="resolved", severity="critical")
    message = message_of([told(alert=1, severity="low"), over, told(alert=2)])
    assert [each.alert for each in message.alerts] == [2, 1, 3]
    assert message.event == "alert.digest"
    assert subject_of(message) == "3 alerts: 1 high, 1 low, 1 resolved"
    assert "safe to do now" not in text_of(message).rpartition("[resolved]")[2]
