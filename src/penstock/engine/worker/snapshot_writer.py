"""The snapshot writer: what was fetched is on the disk before the step that asked for it sees it.

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
from penstock.engine.worker.calls import Calls
from penstock.engine.worker.store_backoff import StoreBackoff
from penstock.errors import StoreError
from penstock.http.kept_headers import without_cookies
from penstock.http.pace import rest_after, timed
from penstock.http.response import Response
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Failed, Outcome, Snoozed
from penstock.settings.secrets import masker_for
from penstock.snapshots import (
    Capture,
    Packed,
    SegmentPlace,
    SnapshotsAway,
    SnapshotStore,
    content_hash,
    packed_ahead,
)
from penstock.store.rows import SnapshotRow
from penstock.store.snapshots import Kept
from penstock.store.store import Store

# When a page has waited this long to be stored, nothing new is begun, and no attempt that waits is to blame.
LATE_S = 5.0
# A larger page is hashed and packed by itself, before it joins others: no page waits while that is done.
LARGE = 131_072
# After a page that is larger still, the next one waits: the machine's cores are everybody's, too.
VERY_LARGE = 1_000_000


@dataclass(slots=True)
class _Fetched:
    job: Claimed
    response: Response
    snapshot_id: int
    kept: asyncio.Future[None]
    hash: str = ""
    packed: Packed | None = None


class SnapshotWriter:
    """Writes payloads in a thread of its own, with a store connection of its own to find equal ones.

    `reading` has threads for what is read again, so that it need not wait for what is written, and for
    packing large pages, one at a time, so that others need not wait for those.
    """

    def __init__(
        self,
        worker: str,
        snapshots: SnapshotStore,
        store: Store,
        calls: Calls,
        clock: Clock,
        reading: Calls | None = None,
        secrets: frozenset[str] = frozenset(),
        backoff: StoreBackoff | None = None,
        on_kept: Callable[[], None] = lambda: None,
    ) -> None:
        self._snapshots = snapshots
        self._store = store
        self._calls = calls
        self._reading = reading or calls
        self._masker = masker_for(secrets)
        self._clock = clock
        self._mark = zlib.crc32(worker.encode()) & 0xFFF
        self._last_id = 0
        self._fetched: list[_Fetched] = []
        self._packing = asyncio.Lock()
        self._kept: list[Kept] = []
        self._writing: asyncio.Task[None] | None = None
        self._writing_since: float | None = None
        self._waits: dict[tuple[int, int], float] = {}
        self.backoff = backoff
        self.on_kept = on_kept

    async def keep(self, job: Claimed, response: Response) -> Response:
        """Put a payload on the disk; answers with the response and the id of its snapshot."""
        loop = asyncio.get_running_loop()
        fetched = _Fetched(job, response, self._new_id(), loop.create_future())
        self._begin_wait(job)
        if len(response.body) > LARGE:
            await self._pack(fetched)
        self._fetched.append(fetched)
        if self._writing is None or self._writing.done():
            self._writing = loop.create_task(self._write_all())
        await fetched.kept
        self._end_wait(job)
        return replace(response, snapshot_id=fetched.snapshot_id, content_hash=fetched.hash)

    async def read(self, job: Claimed, row: SnapshotRow, *, not_modified: bool = False) -> Response:
        """A stored page again. Its body may lie under another address that had the same one."""
        place = SegmentPlace(row.hash, row.segment, row.offset, row.length)
        self._begin_wait(job)
        capture = await self._read(place)
        self._end_wait(job)
        return Response(
            row.final_url or row.url,
            row.url,
            row.status,
            row.headers,
            capture.body,
            row.fetched_at,
            is_from_snapshot=True,
            snapshot_id=row.id,
            not_modified=not_modified,
            content_hash=row.hash,
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

    @property
    def is_late(self) -> bool:
        """Pages are fetched and can't be stored: to fetch more would be in vain."""
        return self._writing_since is not None and self._has_passed(self._writing_since)

    def excuse(self, job: Claimed, outcome: Outcome) -> Outcome:
        """What an attempt came to. To run out of time while waiting for the snapshots is no failure."""
        since = self._waits.pop((job.id, job.attempt), None)
        if not isinstance(outcome, Failed) or not outcome.is_timeout:
            return outcome
        if since is not None and self._has_passed(since):
            return Snoozed(LATE_S, "its page could not be stored or read", spent=outcome.spent)
        return outcome

    def close(self) -> None:
        if self._writing is not None:
            self._writing.cancel()

    def _begin_wait(self, job: Claimed) -> None:
        """Remembered beyond the end of an attempt that is stopped meanwhile, for its excuse."""
        self._waits.setdefault((job.id, job.attempt), self._clock.monotonic())

    def _end_wait(self, job: Claimed) -> None:
        self._waits.pop((job.id, job.attempt), None)

    def _has_passed(self, since: float) -> bool:
        return self._clock.monotonic() - since >= LATE_S

    async def _read(self, place: SegmentPlace) -> Capture:
        while True:
            try:
                return await self._reading(lambda: self._snapshots.read(place))
            except SnapshotsAway as error:
                await self._wait_after(error)

    async def _pack(self, fetched: _Fetched) -> None:
        name = f"{fetched.snapshot_id}/{fetched.response.requested_url}"
        async with self._packing:
            fetched.packed, spent_s = await self._reading(
                lambda: timed(lambda: packed_ahead(self._capture(fetched.response), name))
            )
            if len(fetched.response.body) > VERY_LARGE:
                await rest_after(spent_s)

    async def _write_all(self) -> None:
        while self._fetched:
            batch, self._fetched = self._fetched, []
            self._writing_since = self._clock.monotonic()
            try:
                await self._write_batch(batch)
            finally:
                self._writing_since = None

    async def _write_batch(self, batch: list[_Fetched]) -> None:
        while True:
            try:
                written = await self._calls(lambda: self._write(batch))
                break
            except StoreError as error:
                await self._wait_after(error)
        # Not in the line that waits: it would go on with the list from before, which a turn may have taken.
        self._kept += written
        for fetched in batch:
            if not fetched.kept.done():
                fetched.kept.set_result(None)
        self.on_kept()

    async def _wait_after(self, error: StoreError) -> None:
        if self.backoff is None:
            raise error
        await asyncio.sleep(self.backoff.wait_s(error))

    def _write(self, batch: list[_Fetched]) -> list[Kept]:
        """In the snapshot_writer's thread: equal content has one place, new content is appended and synced.

        What was stored and can't be read any more is stored again, and is known by its new place.
        """
        hashes = [_hash(fetched) for fetched in batch]
        for fetched, key in zip(batch, hashes, strict=True):
            fetched.hash = key
        known = self._store.snapshots.places(sorted(set(hashes)))
        found = (SegmentPlace(key, *where) for key, where in known.items())
        places = {place.hash: place for place in found if self._snapshots.holds(place)}
        lost = known.keys() - places.keys()
        new = {
            key: fetched.packed or self._capture(fetched.response, key)
            for key, fetched in zip(hashes, batch, strict=True)
            if key not in places
        }
        for place in self._snapshots.append(list(new.values())):
            places[place.hash] = place
        self._snapshots.sync()
        return [
            _kept(fetched, places[key], mends=key in lost)
            for key, fetched in zip(hashes, batch, strict=True)
        ]

    def _capture(self, response: Response, digest: str = "") -> Capture:
        """The page as it goes into an archive, which is read by other tools and handed on.

        Its address and headers there are for people alone: whoever fetches or replays has those of the
        database. The body stays as it came.
        """
        mask = self._masker.mask
        return Capture(
            mask(response.requested_url),
            response.status,
            {name: mask(value) for name, value in without_cookies(response.headers).items()},
            response.body,
            response.fetched_at,
            digest,
        )

    def _new_id(self) -> int:
        """Made here, so that a step can name its snapshot before the row exists: milliseconds, then
        the worker's mark, then a count. Later is larger."""
        now = (int(self._clock.now() * 1000) << 22) | (self._mark << 10)
        self._last_id = max(self._last_id + 1, now)
        return self._last_id


def _hash(fetched: _Fetched) -> str:
    return fetched.packed.hash if fetched.packed else content_hash(fetched.response.body)


def _kept(fetched: _Fetched, place: SegmentPlace, *, mends: bool) -> Kept:
    response = fetched.response
    return Kept(
        fetched.snapshot_id,
        fetched.job.id,
        fetched.job.run_id,
        response.requested_url,
        response.status,
        without_cookies(response.headers),
        response.fetched_at,
        place.hash,
        place.segment,
        place.offset,
        place.length,
        response.url if response.url != response.requested_url else "",
        mends,
    )
