"""A mailbox on this machine: a Maildir, with its folders, as Dovecot, mbsync and OfflineIMAP keep it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.connectors.contract import Found, Gone, Item
from penstock.connectors.files.paths import key_of
from penstock.connectors.imap.documents import headers_of
from penstock.connectors.imap.folders import (
    Folder,
    address_prefix,
    folder_of,
    key_of_address,
    wanted_folders,
)
from penstock.counting import count
from penstock.jobs.failures import Permanent
from penstock.pipeline.context import Captured

if TYPE_CHECKING:
    from penstock.connectors.imap.keys import ImapKeys
    from penstock.pipeline.context import Context

SLICE = 500
# Of what stands behind `:2,` in the name of a file.
FLAGS = {"D": "\\Draft", "F": "\\Flagged", "R": "\\Answered", "S": "\\Seen", "T": "\\Deleted"}
INFO = ":2,"


class Maildir:
    """Reads it as it is. A message is known by the name of its file, without the flags in it."""

    def __init__(self, root: Path, source: str, keys: ImapKeys) -> None:
        self._root = root
        self._source = source
        self._keys = keys

    async def discover(self, ctx: Context) -> AsyncIterator[Found]:
        folders = await ctx.in_thread(self._folders)
        left_out = 0
        for folder in wanted_folders(list(folders), self._keys.folders, self._keys.exclude):
            walked = self._walk(folders[folder])
            while files := await ctx.in_thread(lambda walked=walked: list(islice(walked, SLICE))):  # type: ignore[misc]
                for path, size, came_at in files:
                    if self._is_left_out(size, came_at):
                        left_out += 1
                    else:
                        yield self._item(folder, path, size)
        if left_out:
            ctx.note(f"{count(left_out, 'message')} too large or too old left out")

    async def read(self, ctx: Context, file: str) -> Captured:
        return await ctx.in_thread(lambda: self._read(file))

    def _folders(self) -> dict[Folder, Path]:
        """The Maildir itself is INBOX; `.Lists.python` beside its messages is Lists/python."""
        if not (self._root / "cur").is_dir():
            raise Permanent(
                f"{self._keys.mailbox} is not a Maildir: it has no folder cur", cause="no mailbox"
            )
        found = {folder_of((), b".", b"INBOX"): self._root}
        for entry in sorted(os.scandir(self._root), key=lambda each: each.name):
            if entry.name.startswith(".") and (Path(entry) / "cur").is_dir():
                found[folder_of((), b".", os.fsencode(entry.name[1:]))] = Path(entry)
        return found

    def _walk(self, folder: Path) -> Iterator[tuple[Path, int, float]]:
        for part in ("cur", "new"):
            if not (folder / part).is_dir():
                continue
            for entry in os.scandir(folder / part):
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith("."):
                    about = entry.stat(follow_symlinks=False)
                    yield Path(entry), about.st_size, about.st_mtime

    def _is_left_out(self, size: int, came_at: float) -> bool:
        day = self._keys.first_day
        return size > self._keys.max_bytes or (day is not None and came_at < day.timestamp())

    def _item(self, folder: Folder, path: Path, size: int) -> Item:
        name, _, flags = path.name.partition(INFO)
        address = f"{address_prefix(self._source, folder.name)}maildir/{key_of(name)}"
        fingerprint = f"{size}."
        about = {"file": str(path.relative_to(self._root))}
        if self._keys.follow_flags:
            about["anew"], fingerprint = "yes", fingerprint + flags
        return Item(key_of_address(self._source, address), address, fingerprint, about)

    def _read(self, file: str) -> Captured:
        path = self._found(file)
        flags = sorted(FLAGS[each] for each in path.name.partition(INFO)[2] if each in FLAGS)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as opened:
            body = opened.read(self._keys.max_bytes + 1)
        return Captured(body[: self._keys.max_bytes], headers_of(flags, ""))

    def _found(self, file: str) -> Path:
        """The file, which has another name by now if its flags have changed."""
        path = self._root / file
        if path.is_file():
            return path
        name = path.name.partition(INFO)[0]
        for part in ("cur", "new"):
            place = path.parent.parent / part
            for entry in os.scandir(place) if place.is_dir() else ():
                if entry.name.partition(INFO)[0] == name:
                    return Path(entry)
        raise Gone("the message is not in its folder any more")


SAMPLE = {
    "cur/1700000001.M1P1.demo:2,S": """\
From: Ada <ada@example.com>
To: team@example.com
Subject: Lunch on Friday?
Message-ID: <lunch-1@example.com>
Date: Fri, 10 Nov 2023 09:00:00 +0000

Shall we go to the new place by the river?
""",
    "cur/1700000002.M2P1.demo:2,RS": """\
From: Grace <grace@example.com>
To: team@example.com
Subject: =?utf-8?q?Re=3A_Lunch_on_Friday=3F?=
Message-ID: <lunch-2@example.com>
In-Reply-To: <lunch-1@example.com>
References: <lunch-1@example.com>
Date: Fri, 10 Nov 2023 09:12:00 +0000
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=part

--part
Content-Type: text/plain; charset=utf-8

Yes! The prices are attached.
--part
Content-Type: text/csv; name=prices.csv
Content-Disposition: attachment; filename=prices.csv

dish,price
soup,4.50
--part--
""",
    ".Sent/cur/1700000003.M3P1.demo:2,S": """\
From: team@example.com
To: ada@example.com
Subject: Minutes
Message-ID: <minutes@example.com>
Date: Mon, 13 Nov 2023 16:30:00 +0000

We meet again in a week.
""",
}


def write_sample(folder: Path) -> None:
    """A Maildir of three messages, one of them in another folder."""
    for name, text in SAMPLE.items():
        file = folder / name
        for part in ("cur", "new", "tmp"):
            (file.parent.parent / part).mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
