"""The connector `imap` without a server: what a hostile one may send, logins, Maildirs and addresses."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import create_connection, create_server
from typing import Any

import pytest

from penstock.app import Project
from penstock.connectors.imap import Imap
from penstock.connectors.imap.folders import folder_of, wanted_folders
from penstock.connectors.imap.session import Busy, FolderGone, Session, TooMuch
from penstock.connectors.target import Target
from penstock.errors import ConfigError
from penstock.http.fetch import Fetcher
from penstock.http.network import AiohttpNetwork
from penstock.jobs.failures import AuthFailed, Permanent, Transient
from penstock.settings import FetchPolicy, load_settings
from penstock.store.jobs import JobFilter
from penstock.testing import RawResponse, Request, ScriptedNetwork, Simulation, VirtualClock
from tests.connectors.dovecot import CERTIFICATE, PASSWORD, running
from tests.hostile.loopback import Names
from tests.hostile.offline import FakeClock, FakeDoor

Answer = Callable[[str, str], bytes]
GREETING = b"* OK [CAPABILITY IMAP4rev1 AUTH=XOAUTH2 SASL-IR] ready\r\n"


@contextmanager
def a_session(answer: Answer) -> Iterator[Session]:
    """A session with a server that answers each command as it is told: `answer(tag, rest)`."""
    with create_server(("127.0.0.1", 0)) as listening:
        opened = create_connection(listening.getsockname(), timeout=10)
        theirs, _ = listening.accept()

    def serve() -> None:
        with theirs, theirs.makefile("rb") as lines:
            theirs.sendall(GREETING)
            for line in lines:
                tag, _, rest = line.decode().strip().partition(" ")
                known = f"* CAPABILITY IMAP4rev1\r\n{tag} OK done\r\n".encode()
                with suppress(OSError):  # it leaves when it has heard enough
                    theirs.sendall(known if rest == "CAPABILITY" else answer(tag, rest))

    thread = threading.Thread(target=serve)
    thread.start()
    session = Session(opened, "mail.example", 993)
    try:
        session.greet()
        yield session
    finally:
        session.close()
        thread.join()


def said(text: str) -> Answer:
    return lambda tag, rest: text.format(tag=tag).encode()


@contextmanager
def logged_in(text: str) -> Iterator[Session]:
    def answer(tag: str, rest: str) -> bytes:
        return f"{tag} OK done\r\n".encode() if "LOGIN" in rest else said(text)(tag, rest)

    with a_session(answer) as session:
        session.login("me", "x")
        yield session


def test_a_literal_of_any_size_is_not_waited_for() -> None:
    with (
        logged_in('* LIST () "/" {{99999999999}}\r\n') as session,
        pytest.raises(TooMuch),
    ):
        session.folders()


def test_more_than_was_asked_for_ends_the_session() -> None:
    line = '* LIST () "/" "' + "x" * 900_000 + '"\r\n'
    with logged_in(line * 30 + "{tag} OK done\r\n") as session, pytest.raises(TooMuch):
        session.folders()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("{tag} NO [AUTHENTICATIONFAILED] no\r\n", AuthFailed),
        ("{tag} NO wrong password\r\n", AuthFailed),
        ("{tag} NO [UNAVAILABLE] later\r\n", Busy),
        ("{tag} NO [LIMIT] later\r\n", Busy),
        ("* BYE overload\r\n", Busy),
        ("* BYE going down\r\n", ConnectionResetError),
    ],
)
def test_what_a_refused_login_means(answer: str, error: type[Exception]) -> None:
    with a_session(said(answer)) as session, pytest.raises(error) as raised:
        session.login("me", "hunter2-canary")
    assert "hunter2-canary" not in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("{tag} NO [THROTTLED] slow down\r\n", Busy),
        ("{tag} NO [NONEXISTENT] gone\r\n", FolderGone),
        ("{tag} NO [NOPERM] no\r\n", AuthFailed),
        ("{tag} BAD what?\r\n", Permanent),
        ("* STATUS\r\n{tag} OK done\r\n", Transient),
        ("* STATUS x (UIDVALIDITY banana)\r\n{tag} OK done\r\n", Transient),
    ],
)
def test_what_a_refused_command_means(answer: str, error: type[Exception]) -> None:
    with logged_in(answer) as session, pytest.raises(error):
        session.status(b"INBOX")


def test_a_token_is_sent_as_xoauth2_has_it() -> None:
    seen: list[tuple[str, str]] = []

    def answer(tag: str, rest: str) -> bytes:
        seen.append((tag, rest))
        return f"{seen[0][0]} OK welcome\r\n".encode() if len(seen) == 2 else b"+ \r\n"

    with a_session(answer) as session:
        session.login_with_token("me@example.com", "token-1")
    [(_, asked), (token, _)] = seen
    assert asked == "AUTHENTICATE XOAUTH2"
    assert base64.b64decode(token) == b"user=me@example.com\1auth=Bearer token-1\1\1"


def test_starttls_checks_the_certificate_for_the_host() -> None:
    async def folders(host: str, port: int) -> list[str]:
        network = AiohttpNetwork(
            Names([["127.0.0.1"]]), tls=ssl.create_default_context(cafile=CERTIFICATE)
        )
        fetcher = Fetcher(network, FakeClock(), random.Random(1), FakeDoor())
        door = fetcher.door(host, port, FetchPolicy(allow_private=True), tls=False)
        session = Session(await door.connect(), host, port)

        def talk() -> list[str]:
            session.greet()
            session.begin_tls(door.tls_context())
            session.login("somebody", PASSWORD)
            return [folder.name for folder in session.folders()]

        try:
            return await door.ask(lambda: asyncio.to_thread(talk))
        finally:
            session.close()

    with running(ssl="required") as server:
        assert asyncio.run(folders("localhost", server.port)) == ["INBOX"]
        with pytest.raises(Exception, match="certificate"):
            asyncio.run(folders("mail.example", server.port))


def test_folders_are_meant_by_name_pattern_and_use() -> None:
    listed = [
        folder_of([b"\\HasNoChildren"], b".", b"INBOX"),
        folder_of([b"\\Sent"], b".", b"INBOX.Gesendet"),
        folder_of([b"\\All"], b".", b"INBOX.All"),
        folder_of([b"\\Noselect"], b".", b"INBOX.Lists"),
        folder_of([], b".", b"INBOX.Lists.Entw&APw-rfe"),
        folder_of([], b".", b"&broken"),
    ]

    def names(include: list[str], exclude: list[str] | None = None) -> list[str]:
        return [folder.name for folder in wanted_folders(listed, include, exclude or [])]

    assert names(["INBOX"]) == ["INBOX"]
    assert names(["\\Sent"]) == ["INBOX/Gesendet"]
    assert names(["*"]) == ["INBOX", "INBOX/Gesendet", "INBOX/Lists/Entwürfe", "&broken"]
    assert names(["*"], ["\\Sent", "INBOX/Lists/*"]) == ["INBOX", "&broken"]
    assert names(["\\All"]) == ["INBOX/All"]
    with pytest.raises(Permanent, match="there are 'INBOX'"):
        names(["Nowhere"])


def recognised(text: str, path: Path | None = None) -> Any:
    target = Target(text=text, root=Path("/project"), path=path)
    return asyncio.run(Imap.recognise(target))


def test_addresses_of_mailboxes_are_recognised(tmp_path: Path) -> None:
    found = recognised("imaps://ada%40x.example:hunter2-canary@mail.example:1993/Lists")
    assert found.keys == {
        "host": "mail.example",
        "port": 1993,
        "user": "ada@x.example",
        "password": "${MAIL_PASSWORD}",
        "folders": ["Lists"],
    }
    assert recognised("imap://mail.example").keys["tls"] == "starttls"
    for text in ("https://mail.example", "imap://", "imaps://:x", "mail.example"):
        assert recognised(text) is None
    assert recognised("x", tmp_path) is None
    Imap.sample(tmp_path)
    assert recognised("x", tmp_path).keys["mailbox"] == str(tmp_path)


@contextmanager
def a_project(folder: Path, network: ScriptedNetwork, **keys: Any) -> Iterator[Any]:
    source = {"connector": "imap", "collection": "mail", **keys}
    (folder / "penstock.yaml").write_text(json.dumps({"project": "p", "sources": {"m": source}}))
    settings = load_settings(folder, environ={"SECRET": "refresh-canary"})
    clock = VirtualClock()
    with (
        Project(settings, clock) as project,
        Simulation(project, network, seed=1, clock=clock) as simulation,
    ):

        def run() -> Any:
            run_id = project.run("m")
            simulation.run()
            return project.require_run(run_id)

        yield project, run


def no_network() -> ScriptedNetwork:
    return ScriptedNetwork.of_pages({})


def documents(project: Any) -> dict[str, Any]:
    return {row.key: row.data for row in project.connection.records.of("mail", "", 100)}


def test_a_maildir_has_threads_attachments_and_folders(tmp_path: Path) -> None:
    Imap.sample(tmp_path / "mail")
    with a_project(tmp_path, no_network(), mailbox="./mail", folders=["*"]) as (project, run):
        assert run().state == "completed"
        found = {each["meta"]["message_id"]: each for each in documents(project).values()}
        first, second = found["<lunch-1@example.com>"], found["<lunch-2@example.com>"]
        assert first["meta"]["thread"] == second["meta"]["thread"] == "<lunch-1@example.com>"
        assert second["meta"]["flags"] == ["\\Answered", "\\Seen"]
        assert "soup" in second["data"]["attachments"][0]["text"]
        assert found["<minutes@example.com>"]["meta"]["folder"] == "Sent"


def test_a_message_of_a_maildir_keeps_its_key_when_it_is_read_elsewhere(tmp_path: Path) -> None:
    Imap.sample(tmp_path / "mail")
    new = tmp_path / "mail" / "new" / "1700000009.M9P1.demo"
    new.write_text("Subject: fresh\n\ntext\n")
    keys = {"mailbox": "./mail", "follow_flags": True}
    with a_project(tmp_path, no_network(), **keys) as (project, run):
        run()
        before = documents(project)
        new.rename(tmp_path / "mail" / "cur" / f"{new.name}:2,S")
        run()
        after = documents(project)
        assert after.keys() == before.keys()
        [fresh] = [each for each in after.values() if each["title"] == "fresh"]
        assert fresh["meta"]["flags"] == ["\\Seen"]
        (tmp_path / "mail" / "cur" / f"{new.name}:2,S").unlink()
        run()
        assert documents(project)[fresh["key"]]["deleted"] is True


def test_what_is_no_maildir_is_refused_in_one_line(tmp_path: Path) -> None:
    with a_project(tmp_path, no_network(), mailbox="./nothing") as (project, run):
        failed = run()
        assert failed.state == "failed"
        [job] = project.connection.jobs.find(JobFilter(run_id=failed.id))
        assert "./nothing is not a Maildir" in job.error
        assert (job.kind, job.tries) == ("permanent", 1)


def test_a_refused_refresh_token_is_tried_once_and_shown_nowhere(tmp_path: Path) -> None:
    async def script(request: Request) -> RawResponse:
        return RawResponse(400, {}, b'{"error": "invalid_grant"}')

    oauth = {"url": "https://login.example/token", "refresh_token": "${SECRET}", "client_id": "c"}
    keys = {"host": "mail.example", "user": "me", "oauth": oauth, "fetch": {"robots": False}}
    network = ScriptedNetwork(script)
    with a_project(tmp_path, network, **keys) as (_, run):
        assert run().state == "failed"
        assert network.requests == ["https://login.example/token"]
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert b"refresh-canary" not in file.read_bytes()


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({}, "needs a host, or a mailbox"),
        ({"host": "mail.example"}, "needs a user"),
        ({"host": "mail.example", "user": "me"}, "needs a password or oauth"),
        ({"host": "mail.example", "mailbox": "./mail"}, "a host or a mailbox, not both"),
        (
            {"host": "mail.example", "user": "me", "oauth": {"scope": "x"}},
            "needs a token, or the url",
        ),
        ({"mailbox": "./mail", "since": "yesterday"}, "must be a day such as"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(
    tmp_path: Path, keys: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem), a_project(tmp_path, no_network(), **keys):
        pass
