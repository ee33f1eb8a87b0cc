"""The connector `imap`, on a real Dovecot."""

from __future__ import annotations

import os
import shutil
import socket
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.header import Header
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import pytest

from penstock.http.network import AiohttpNetwork, Network, RawResponse, Request
from penstock.testing import VirtualClock
from penstock.testing.connectors import ALL_WRITES, ConnectorSuite, Place, Trial
from tests.connectors.dovecot import Dovecot, running

VALIDITY = 1_700_000_000
CAME = datetime(2026, 3, 1, 12, tzinfo=UTC)
UIDLIST = "3 V{validity} N1 G0123456789abcdef0123456789abcdef\n"


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[Dovecot]:
    with running() as server:
        MailPlace.server = server
        yield server


class _WatchedSocket(socket.socket):
    """Says when messages are asked for."""

    on_send: Callable[[bytes], None]

    def sendall(self, data: Any, flags: int = 0) -> None:
        self.on_send(bytes(data))
        super().sendall(data, flags)


class MailNetwork(AiohttpNetwork):
    """The real network, which writes down connections and commands."""

    def __init__(self, place: MailPlace) -> None:
        super().__init__()
        self._place = place

    async def send(self, request: Request) -> RawResponse:
        raise AssertionError(f"nothing is fetched over HTTP: {request.url}")

    async def connect(self, target: Any, allow_private: Any) -> socket.socket:
        assert not self._place.is_away, "a connection was opened"
        self._place.connections += 1
        if self._place.greetings:
            return greeted_with(self._place.greetings.pop(0))
        opened = await super().connect(target, allow_private)
        watched = _WatchedSocket(fileno=opened.detach())
        watched.on_send = self._sent
        return watched

    def _sent(self, data: bytes) -> None:
        self._place.commands.append(data)
        if b"BODY.PEEK[]" in data:
            self._place.on_read()
            if self._place.cuts:
                self._place.cuts -= 1
                raise ConnectionResetError(104, "cut by the test")


def greeted_with(greeting: bytes) -> socket.socket:
    """A connection to somebody who says this, and leaves."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours = socket.create_connection(listening.getsockname())
        theirs, _ = listening.accept()
    with theirs:
        theirs.sendall(greeting)
    return ours


class MailPlace(Place):
    """A mailbox of its own on the server. A text that changes is another message."""

    connector = "imap"
    server: ClassVar[Dovecot]
    folders: ClassVar[tuple[str, ...]] = ("INBOX",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.user = self.server.new_user()
        self.connections = 0
        # So many times the connection is cut when messages are asked for.
        self.cuts = 0
        # What the first connections are answered with, before those to the server.
        self.greetings: list[bytes] = []
        self.commands: list[bytes] = []
        self.uids: dict[str, int] = {}
        self.recreate()

    def recreate(self, validity: int = VALIDITY) -> None:
        """An empty mailbox with this UIDVALIDITY."""
        root = self.server.maildir(self.user)
        shutil.rmtree(root, ignore_errors=True)
        for part in ("", "cur", "new", "tmp"):
            (root / part).mkdir()
        (root / "dovecot-uidlist").write_text(UIDLIST.format(validity=validity))
        above = root.parent.stat()
        for path in (root, *root.iterdir()):
            os.chown(path, above.st_uid, above.st_gid)
        self.uids.clear()

    @contextmanager
    def client(self) -> Iterator[Any]:
        with self.server.client(self.user) as client:
            yield client

    def keys(self) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.server.port,
            "tls": "none",
            "user": self.user,
            "password": "${SECRET}",
            "folders": list(self.folders),
        }

    def put(self, name: str, text: str) -> bool:
        if name in self.texts:
            self.remove(name)
        self.uids[name] = self.append(a_message(name, text))
        self.texts[name] = text
        return True

    def append(self, message: bytes, folder: str = "INBOX") -> int:
        with self.client() as client:
            answer = client.append(folder, message, msg_time=CAME)
        return int(answer.split()[2].rstrip(b"]"))

    def remove(self, name: str) -> None:
        with self.client() as client:
            client.select_folder("INBOX")
            client.delete_messages([self.uids[name]])
            client.expunge()
        self.texts.pop(name)

    def key(self, name: str) -> str:
        return f"INBOX/{VALIDITY}/{self.uids[name]}"

    def lock(self) -> bool:
        self.server.refuse(self.user)
        return True

    def network(self, clock: VirtualClock) -> Network:
        return MailNetwork(self)

    def asked(self, word: bytes) -> list[bytes]:
        return [each for each in self.commands if word in each]


def a_message(name: str, text: str) -> bytes:
    subject = Header(name.replace("\n", " ").replace("\0", ""), "utf-8").encode()
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:20]
    head = [
        "From: ada@example.com",
        f"Subject: {subject}",
        f"Message-ID: <{digest}@example.com>",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=utf-8",
        "Content-Transfer-Encoding: base64",
    ]
    body = b64encode(text.encode("utf-8", "surrogatepass")).decode()
    lines = [body[at : at + 70] for at in range(0, len(body), 70)]
    return "\r\n".join([*head, "", *lines, ""]).encode()


class TestImap(ConnectorSuite):
    place = MailPlace
    many = 60
    writes = 8


@pytest.mark.torture
class TestImapAtEveryWrite(TestImap):
    writes = ALL_WRITES


class AllFolders(MailPlace):
    folders = ("*",)


def a_trial(
    folder: Path, kind: type[MailPlace] = MailPlace, **keys: Any
) -> tuple[Trial, MailPlace]:
    place = kind(folder)
    made = place.keys

    def more() -> dict[str, Any]:
        return {**made(), **keys}

    place.keys = more  # type: ignore[method-assign]
    return Trial(folder, place), place


def started(folder: Path, *names: str, **keys: Any) -> tuple[Trial, MailPlace]:
    trial, place = a_trial(folder, **keys)
    for name in names:
        place.put(name, f"the text of {name}")
    return trial, place


def test_no_message_is_ever_marked_as_read(tmp_path: Path) -> None:
    trial, place = started(tmp_path, "one", "two")
    assert trial.run().state == "completed"
    trial.run("full")
    with place.client() as client:
        client.select_folder("INBOX", readonly=True)
        flags = client.get_flags(client.search())
    assert all(b"\\Seen" not in each for each in flags.values())
    assert place.asked(b"BODY.PEEK[]")
    for word in (b"SELECT", b"STORE", b"RFC822 ", b"BODY[]", b"EXPUNGE", b"CLOSE"):
        assert not [each for each in place.asked(word) if b"BODY.PEEK[]" not in each]


def test_an_unchanged_mailbox_is_not_even_opened(tmp_path: Path) -> None:
    trial, place = started(tmp_path, "one", "two")
    trial.run()
    place.commands.clear()
    run = trial.run()
    assert (run.state, trial.items_read(run)) == ("completed", [])
    assert place.asked(b"STATUS")
    assert not place.asked(b"EXAMINE")
    assert not place.asked(b"FETCH")


def test_messages_that_come_together_come_with_one_fetch(tmp_path: Path) -> None:
    trial, place = started(tmp_path, *(f"message {number}" for number in range(40)))
    trial.run()
    assert place.connections == 1
    assert len(place.asked(b"BODY.PEEK[]")) <= 4
    assert len(trial.documents()) == 40


def test_only_what_has_changed_is_listed(tmp_path: Path) -> None:
    trial, place = started(tmp_path, "one", "two", "three")
    trial.run()
    place.commands.clear()
    place.put("four", "the text of four")
    place.remove("one")
    trial.run()
    [listed] = [each for each in place.asked(b"FETCH") if b"BODY" not in each]
    assert b"CHANGEDSINCE" in listed
    assert set(trial.documents()) == {place.key(name) for name in ("two", "three", "four")}
    assert trial.records()[place.key("one")][0]["deleted"] is True


@pytest.mark.parametrize("capability", ["IMAP4rev1 UIDPLUS", "IMAP4rev1 UIDPLUS ENABLE CONDSTORE"])
def test_servers_that_tell_less_are_compared_with_what_is_known(
    tmp_path: Path, capability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(capability) as poor:
        monkeypatch.setattr(MailPlace, "server", poor)
        trial, place = started(tmp_path, "one", "two", "three")
        trial.run()
        place.remove("one")
        place.put("four", "the text of four")
        second = trial.run()
        assert trial.items_read(second) == [place.key("four"), place.key("one")]
        assert set(trial.documents()) == {place.key(name) for name in ("two", "three", "four")}
        assert trial.items_read(trial.run()) == []


def test_an_emptied_folder_is_believed(tmp_path: Path) -> None:
    trial, place = started(tmp_path, "one", "two")
    trial.run()
    place.remove("one")
    place.remove("two")
    assert trial.run().state == "completed"
    assert trial.documents() == {}


def test_a_message_that_was_moved_is_recognised(tmp_path: Path) -> None:
    trial, place = a_trial(tmp_path, AllFolders)
    place.put("one", "the text of one")
    place.put("two", "the text of two")
    with place.client() as client:
        client.create_folder("Archive")
    trial.run()
    with place.client() as client:
        client.select_folder("INBOX")
        client.move([place.uids["one"]], "Archive")
    trial.run()
    [moved] = [key for key in trial.documents() if key.startswith("Archive/")]
    records = trial.records()
    assert records[moved][0]["moved_from"] == place.key("one")
    assert records[moved][0]["meta"]["folder"] == "Archive"
    assert records[place.key("one")][0] == {
        "key": place.key("one"),
        "deleted": True,
        "moved_to": moved,
    }


def test_a_recreated_mailbox_is_read_anew_and_nothing_is_there_twice(tmp_path: Path) -> None:
    trial, place = started(tmp_path, "one", "two", "three")
    trial.run()
    before = {place.key(name) for name in ("one", "two", "three")}
    place.recreate(VALIDITY + 1)
    for name in ("one", "two", "four"):
        place.texts.pop(name, None)
        place.put(name, f"the text of {name}")
    assert trial.run().state == "completed"
    documents, records = trial.documents(), trial.records()
    assert {document["text"].strip() for document in documents.values()} == {
        "the text of one",
        "the text of two",
        "the text of four",
    }
    assert all(key.startswith(f"INBOX/{VALIDITY + 1}/") for key in documents)
    assert all(records[key][0]["deleted"] for key in before)
    assert {document.get("moved_from") for document in documents.values()} <= {None, *before}


def test_a_connection_that_is_cut_costs_no_message(tmp_path: Path) -> None:
    trial, place = started(tmp_path, "one", "two", "three")
    place.cuts = 2
    run = trial.run()
    assert run.state == "completed"
    assert {version for _, version in trial.records().values()} == {1}
    assert len(trial.documents()) == 3
    assert place.connections >= 2


def test_what_could_not_be_read_is_read_by_the_next_run(tmp_path: Path) -> None:
    trial, place = started(tmp_path, "one", "two")
    place.cuts = 1_000
    assert trial.run().state != "completed"
    place.cuts = 0
    assert trial.run().state == "completed"
    assert len(trial.documents()) == 2


@pytest.mark.parametrize(
    "greeting",
    [
        b"* BYE [UNAVAILABLE] come back later\r\n",
        b"* BYE Too many connections from your address\r\n",
    ],
)
def test_a_server_that_is_busy_is_left_alone_and_no_try_is_spent(
    tmp_path: Path, greeting: bytes
) -> None:
    trial, place = started(tmp_path, "one")
    place.greetings = [greeting]
    began = trial.clock.now()
    run = trial.run()
    assert run.state == "completed"
    assert trial.clock.now() - began >= 600
    assert {job.tries for job in trial.jobs(run)} == {0}


def test_folders_of_any_name_are_read(tmp_path: Path) -> None:
    trial, place = a_trial(tmp_path, AllFolders, exclude=["Spam*"])
    names = [f"Folder {number}" for number in range(12)]
    names += [
        "Entwürfe",
        "日本語/下",
        "a~b",
        "50% off",
        "a&b",
        "Lists/python",
        'quo"te',
        "Spam 1",
    ]
    with place.client() as client:
        for number, name in enumerate(names):
            client.create_folder(name)
            client.append(name, a_message(name, f"text {number}"), msg_time=CAME)
    assert trial.run().state == "completed"
    found = {data["meta"]["folder"]: data["title"] for data in trial.documents().values()}
    assert sorted(found.values()) == sorted(set(names) - {"Spam 1"})
    assert found["日本語/下"] == "日本語/下"
    again = trial.run()
    assert trial.items_read(again) == []
    assert trial.documents().keys() == {*trial.records()}


def test_uses_of_folders_name_them(tmp_path: Path) -> None:
    trial, place = a_trial(tmp_path, folders=["\\Sent"])
    place.put("one", "not in Sent")
    with place.client() as client:
        client.create_folder("Sent")
        client.append("Sent", a_message("sent", "a text"), msg_time=CAME)
    trial.run()
    [document] = trial.documents().values()
    assert document["meta"]["folder"] == "Sent"


def test_old_and_large_messages_are_left_out(tmp_path: Path) -> None:
    trial, place = a_trial(tmp_path, since="2026-02-01", max_bytes="2KB")
    place.put("fits", "short")
    place.put("large", "x" * 5_000)
    with place.client() as client:
        old = datetime(2020, 1, 1, tzinfo=UTC)
        client.append("INBOX", a_message("old", "old"), msg_time=old)
    trial.run()
    assert [document["title"] for document in trial.documents().values()] == ["fits"]
    place.commands.clear()
    trial.run()
    assert not place.asked(b"FETCH"), "what is left out makes no folder look unread"


def test_flags_are_followed_where_that_is_asked_for(tmp_path: Path) -> None:
    trial, place = started(tmp_path, "one", "two", follow_flags=True)
    trial.run()
    with place.client() as client:
        client.select_folder("INBOX")
        client.add_flags([place.uids["one"]], ["\\Flagged"])
    run = trial.run()
    assert trial.items_read(run) == [place.key("one")]
    assert trial.documents()[place.key("one")]["meta"]["flags"] == ["\\Flagged"]


BROKEN = {
    "no headers at all": b"hello\r\n",
    "unknown charset": b"Subject: x\r\nContent-Type: text/plain; charset=klingon\r\n\r\nq\xe9\r\n",
    "bytes in the subject": b"Subject: caf\xe9 \xff\xfe\r\nFrom: \x80\x81\r\n\r\ntext\r\n",
    "base64 that is none": b"Subject: x\r\nContent-Transfer-Encoding: base64\r\n\r\n%%%!!\r\n",
    "open multipart": (
        b"Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ninner text\r\n"
    ),
    "boundary that is missing": b"Subject: x\r\nContent-Type: multipart/mixed\r\n\r\ntext\r\n",
    "broken encoded word": b"Subject: =?utf-8?b?%%%?= =?x-y?q?=zz?=\r\n\r\ntext\r\n",
    "date of nowhere": b"Subject: x\r\nDate: 99 Foo 20260 25:61\r\nTo: <<<>>>,,\r\n\r\ntext\r\n",
    "no end of header": b"Subject: x",
    "long header": b"Subject: x\r\nTo: " + b"(" * 200_000 + b"\r\n\r\ntext\r\n",
    "deep": b"Content-Type: message/rfc822\r\n\r\n" * 300 + b"Subject: x\r\n\r\ntext\r\n",
}


def test_broken_messages_are_read_as_far_as_they_can_be(tmp_path: Path) -> None:
    trial, place = a_trial(tmp_path)
    for message in BROKEN.values():
        place.append(message)
    run = trial.run()
    assert (run.state, len(trial.documents())) == ("completed", len(BROKEN))
    assert all(document["kind"] == "email" for document in trial.documents().values())
