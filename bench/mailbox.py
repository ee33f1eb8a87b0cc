"""The mailbox of the bench: Debian's Dovecot with one user, whose messages are those of a mailing list."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.connectors.dovecot import PASSWORD, Dovecot
from tests.connectors.dovecot import running as dovecot

WORDS = "the engine reads what it is given and keeps every message that came over the wire".split()


@contextmanager
def running(messages: int) -> Iterator[dict[str, Any]]:
    """A server whose mailbox is filled and indexed, so that no side pays for that."""
    with dovecot() as server:
        user = server.new_user()
        _fill(server.maildir(user), messages)
        _index(server, user, messages)
        yield {"port": server.port, "user": user, "password": PASSWORD}


def _fill(maildir: Path, messages: int) -> None:
    for part in ("", "cur", "new", "tmp"):
        (maildir / part).mkdir()
    for number in range(messages):
        (maildir / "cur" / f"17{number:08d}.M1P1.bench:2,").write_bytes(message(number))
    above = maildir.parent.stat()
    for path in (maildir, *maildir.rglob("*")):
        os.chown(path, above.st_uid, above.st_gid)


def message(number: int) -> bytes:
    """Two to four kilobytes, in a thread of ten."""
    lines = [" ".join(WORDS[(number + at) % 16 :] + WORDS) for at in range(12 + number % 16)]
    head = (
        f"From: Writer {number % 97} <writer{number % 97}@example.com>\r\n"
        f"To: list@example.com\r\nSubject: Message {number} of a long list\r\n"
        f"Message-ID: <{number}@example.com>\r\nReferences: <{number - number % 10}@example.com>\r\n"
        "Date: Mon, 02 Mar 2026 10:00:00 +0000\r\nMIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n\r\n"
    )
    return (head + "\r\n".join(lines) + "\r\n").encode()


def _index(server: Dovecot, user: str, messages: int) -> None:
    with server.client(user) as client:
        found = client.select_folder("INBOX", readonly=True)
        assert found[b"EXISTS"] == messages
        uids = client.search()
        for at in range(0, messages, 500):  # a longer list of them is refused
            client.fetch(uids[at : at + 500], ["RFC822.SIZE", "INTERNALDATE"])
