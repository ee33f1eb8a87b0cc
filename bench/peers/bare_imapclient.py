"""Bare imapclient: the loop that people write. It fetches by hundreds, parses, and saves rows in SQLite."""

from __future__ import annotations

import email
import json
import time
from email.message import Message
from pathlib import Path
from typing import Any

import apsw
from imapclient import IMAPClient

BATCH = 100
CREATE = "CREATE TABLE message (uid INTEGER PRIMARY KEY, data TEXT NOT NULL, raw BLOB NOT NULL)"


def read(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Read all messages of INBOX; a hundred of them are one FETCH and one durable transaction."""
    began = time.perf_counter()
    database = apsw.Connection(str(folder / "mail.db"))
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute(CREATE)
    with IMAPClient("127.0.0.1", size["port"], ssl=False) as client:
        client.login(size["user"], size["password"])
        client.select_folder("INBOX", readonly=True)
        uids = client.search()
        for at in range(0, len(uids), BATCH):
            found = client.fetch(uids[at : at + BATCH], ["BODY.PEEK[]", "FLAGS"])
            with database:
                rows = [(uid, _data(about), about[b"BODY[]"]) for uid, about in found.items()]
                database.executemany("INSERT INTO message VALUES (?, ?, ?)", rows)
    seconds = time.perf_counter() - began
    [[done]] = database.execute("SELECT count(*) FROM message")
    return {"seconds": seconds, "done": done, "messages": done}


def _data(about: dict[bytes, Any]) -> str:
    message = email.message_from_bytes(about[b"BODY[]"])
    names = ("subject", "from", "to", "date", "message-id", "references")
    return json.dumps(
        {
            **{name: str(message.get(name, "")) for name in names},
            "text": _text(message),
            "flags": [flag.decode() for flag in about[b"FLAGS"]],
        }
    )


def _text(message: Message) -> str:
    for part in message.walk():
        if part.get_content_type() == "text/plain":
            payload = part.get_payload(decode=True)
            assert isinstance(payload, bytes)
            return payload.decode(part.get_content_charset() or "utf-8", "replace")
    return ""
