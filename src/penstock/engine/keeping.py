"""Keeping: what was fetched is on the disk before the step that asked for it sees it.

Payloads that arrive while others are being written share the next write and its sync. The rows that
refer to them travel with the worker's next turn, which is at the latest the one that settles the
attempt: a page is never known without its payload, and a payload without rows is only space.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.clock import Clock
from penstock.engine.calls import Calls
from penstock.engine.trouble import Trouble
from penstock.errors import StoreError
from penstock.jobs.job import Claimed
from penstock.snapshots import Capture, Place, SnapshotStore, content_hash
from penstock.sources.response import Response
from penstock.store.store import Kept, SnapshotRow, Store


@dataclass(slots=True)
class _Fetched:
    job: Claimed
    response: Response
    snapshot_id: int
    kept: asyncio.Future[None]


class Keeper:
    """Writes payloads in a thread of its own, with a store connection of its own to find equal ones."""

    def __init__(
        self, worker: str, snapshots: SnapshotStore, store: Store, calls: Calls, clock: Clock
    ) -> None:
        self._snapshots = snapshots
        self._store = store
        self._calls = calls
        self._clock = clock
        self._mark = zlib.crc32(worker.encode()) & 0xFFF
        self._last_id = 0
        self._fetched: list[_Fetched] = []
        self._kept: list[Kept] = []
        self._writing: asyncio.Task[None] | None = None
        self.trouble: Trouble | None = None
        self.on_kept: Callable[[], None] = lambda: None

    async def keep(self, job: Claimed, response: Response) -> Response:
        """Put a payload on the disk; answers with the response and the id of its snapshot."""
        loop = asyncio.get_running_loop()
        fetched = _Fetched(job, response, self._new_id(), loop.create_future())
        self._fetched.append(fetched)
        if self._writing is None or self._writing.done():
            self._writing = loop.create_task(self._write_all())
        await fetched.kept
        return replace(response, snapshot_id=fetched.snapshot_id)

    async def read(self, row: SnapshotRow, *, not_modified: bool = False) -> Response:
        """A stored page again. Its body may lie under another address that had the same one."""
        place = Place(row.hash, row.segment, row.offset, row.length)
        capture = await self._calls(lambda: self._snapshots.read(place))
        return Response(
            row.url,
            row.url,
            row.status,
            row.headers,
            capture.body,
            row.fetched_at,
            is_from_snapshot=True,
            snapshot_id=row.id,
            not_modified=not_modified,
        )

    def take(self) -> list[Kept]:
        """What was written and is not referred to yet."""
        taken, self._kept = self._kept, []
        return taken

    def put_back(self, kept: list[Kept]) -> None:
        """The turn that was to refer to these failed."""
        self._kept = [*kept, *self._kept]

    @property
    def has_rows(self) -> bool:
        return bool(self._kept)

    def close(self) -> None:
        if self._writing is not None:
            self._writing.cancel()

    async def _write_all(self) -> None:
        while self._fetched:
            batch, self._fetched = self._fetched, []
            await self._write_batch(batch)

    async def _write_batch(self, batch: list[_Fetched]) -> None:
        while True:
            try:
                self._kept += await self._calls(lambda: self._write(batch))
                break
            except StoreError as error:
                if self.trouble is None:
                    raise
                await asyncio.sleep(self.trouble.wait_s(error))
        for fetched in batch:
            if not fetched.kept.done():
                fetched.kept.set_result(None)
        self.on_kept()

    def _write(self, batch: list[_Fetched]) -> list[Kept]:
        """In the keeper's thread: equal content has one place, new content is appended and synced."""
        hashes = [content_hash(fetched.response.body) for fetched in batch]
        known = self._store.places(sorted(set(hashes)))
        places = {key: Place(key, *where) for key, where in known.items()}
        new = {
            key: _capture(fetched.response)
            for key, fetched in zip(hashes, batch, strict=True)
            if key not in places
        }
        for place in self._snapshots.append(list(new.values())):
            places[place.hash] = place
        self._snapshots.sync()
        return [_kept(fetched, places[key]) for key, fetched in zip(hashes, batch, strict=True)]

    def _new_id(self) -> int:
        """Made here, so that a step can name its snapshot before the row exists: milliseconds, then
        the worker's mark, then a count. Later is larger."""
        now = (int(self._clock.now() * 1000) << 22) | (self._mark << 10)
        self._last_id = max(self._last_id + 1, now)
        return self._last_id


def _capture(response: Response) -> Capture:
    return Capture(
        response.requested_url,
        response.status,
        response.headers,
        response.body,
        response.fetched_at,
    )


def _kept(fetched: _Fetched, place: Place) -> Kept:
    response = fetched.response
    return Kept(
        fetched.snapshot_id,
        fetched.job.id,
        fetched.job.run_id,
        response.requested_url,
        response.status,
        response.headers,
        response.fetched_at,
        place.hash,
        place.segment,
        place.offset,
        place.length,
    )
