"""Where snapshots can be at home. Whatever the kind, a test sees names and bytes, and may damage them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from penstock.settings.snapshot_address import parse_snapshots
from penstock.snapshots import Capture, SnapshotStore, open_snapshots
from penstock.snapshots.bucket import BucketSnapshots
from penstock.snapshots.directory import DirectorySnapshots
from tests.snapshots.s3 import ask

SUFFIX = ".warc.gz"


def a_page(number: int, size: int = 10) -> Capture:
    headers = {"content-type": "text/html"}
    url = f"https://shop.example/{number}"
    return Capture(url, 200, headers, b"%d " % number * size, 1_700_000_000.5)


class Home(Protocol):
    """A place for snapshots, and a look behind them."""

    setting: str

    def open(self, writer: str = "writer", max_bytes: int | None = None) -> SnapshotStore: ...

    def files(self) -> dict[str, bytes]:
        """Everything under the root, by its name there."""

    def write(self, name: str, data: bytes) -> None:
        """Put something there behind the snapshots' back."""


class FolderHome:
    def __init__(self, folder: Path, *, as_url: bool = False) -> None:
        self.folder = folder / "shared folder"
        self.setting = f"file://{quote(str(self.folder))}" if as_url else str(self.folder)

    def open(self, writer: str = "writer", max_bytes: int | None = None) -> SnapshotStore:
        where = parse_snapshots(self.setting, Path("/nowhere"))
        if max_bytes is not None:
            assert isinstance(where, Path)
            return DirectorySnapshots(where, writer, max_bytes)
        return open_snapshots(where, writer)

    def files(self) -> dict[str, bytes]:
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


class BucketHome:
    def __init__(self, server: int, bucket: str, prefix: str = "project/snapshots") -> None:
        self.server = server
        self.bucket = bucket
        self.prefix = prefix
        self.setting = f"s3://{bucket}/{prefix}"
        assert ask(server, "PUT", f"/{bucket}").status == 200

    def open(self, writer: str = "writer", max_bytes: int | None = None) -> SnapshotStore:
        where = parse_snapshots(self.setting, Path("/nowhere"))
        if max_bytes is not None:
            assert isinstance(where, str)
            return BucketSnapshots(where, max_bytes)
        return open_snapshots(where, writer)

    def files(self) -> dict[str, bytes]:
        listed = ask(self.server, "GET", f"/{self.bucket}?list-type=2").body.decode()
        keys = re.findall("<Key>(.*?)</Key>", listed)
        mine = [key.removeprefix(f"{self.prefix}/") for key in keys if key.startswith(self.prefix)]
        return {name: self._get(name) for name in mine}

    def write(self, name: str, data: bytes) -> None:
        assert ask(self.server, "PUT", f"/{self.bucket}/{self.prefix}/{name}", data).status == 200

    def _get(self, name: str) -> bytes:
        answer = ask(self.server, "GET", f"/{self.bucket}/{self.prefix}/{name}")
        assert answer.status == 200
        return answer.body
