"""Downloads: files that can't be read range by range, on this machine's disk while they are read.

What is there stays there when a worker dies. Another machine, or one that has lost it, downloads it again.
"""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.connectors.dump.remote import LARGEST_BLOCK, RemoteFile, block_of, headers_of
from penstock.counting import count
from penstock.jobs.failures import Transient
from penstock.private_files import FOLDER_MODE, open_private, put_in_place, touch_private

if TYPE_CHECKING:
    from penstock.connectors.dump.places import RemotePlace
    from penstock.pipeline.context import Context

# What one job downloads.
PIECE = 64_000_000


class Download:
    """A file in one state of it."""

    def __init__(self, root: Path, source: str, name: str, found: RemoteFile) -> None:
        mark = hashlib.blake2b(f"{source}\0{name}".encode(), digest_size=8).hexdigest()
        self._folder = root / ".penstock" / "downloads"
        self._mark = mark
        self._found = found
        self.file = self._folder / f"{mark}-{found.stamp}"
        self._begun = self._folder / f"{mark}-{found.stamp}.part"

    @property
    def is_whole(self) -> bool:
        return self.file.exists()

    async def go_on(self, ctx: Context, place: RemotePlace) -> None:
        """Bring the next piece of it."""
        start = await ctx.in_thread(self._begin)
        until = min(start + PIECE, self._found.size)
        while start < until:
            headers = headers_of(self._found, start, min(LARGEST_BLOCK, until - start))
            body = await block_of(place.send(ctx, headers), self._found)
            start = await ctx.in_thread(lambda at=start, body=body: self._write(at, body))  # type: ignore[misc]
        await ctx.in_thread(self._end)

    def make_empty(self) -> None:
        """There is nothing to bring."""
        self._begin()
        touch_private(self.file)

    def remove(self) -> None:
        for each in (self.file, self._begun):
            each.unlink(missing_ok=True)

    def _begin(self) -> int:
        """How much is there; what was downloaded of other states is deleted."""
        self._folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        for old in self._folder.glob(f"{self._mark}-*"):
            if old not in (self.file, self._begun):
                old.unlink(missing_ok=True)
        return self._begun.stat().st_size if self._begun.exists() else 0

    def _write(self, at: int, body: bytes) -> int:
        try:
            with os.fdopen(open_private(self._begun), "r+b") as file:
                file.seek(at)
                file.write(body)
                file.truncate()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise Transient(
                f"no room on the disk for {count(self._found.size, 'byte')}", cause="disk full"
            ) from None
        return at + len(body)

    def _end(self) -> None:
        """Durable before it counts as whole."""
        if not self._begun.exists() or self._begun.stat().st_size < self._found.size:
            return
        put_in_place(self._begun, self.file)
