"""What was fetched is on the disk before the step sees it, and known by the id the step was given."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.engine.worker.calls import Answer, Inline
from penstock.engine.worker.snapshot_writer import LARGE, SnapshotWriter
from penstock.engine.worker.store_backoff import StoreBackoff
from penstock.errors import StoreFull
from penstock.http.response import Response
from penstock.jobs.job import Claimed
from penstock.snapshots import Capture, Packed, SegmentPlace, content_hash
from penstock.snapshots.directory import DirectorySnapshots
from penstock.store.snapshots import Kept
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import VirtualClock, VirtualLoop

JOB = Claimed(1, 1, 1, "extract", "k", 1, 0, 0, 0, False, "null")


class Watched(DirectorySnapshots):
    """Snapshots that remember what was synced, and whose disk is full for the first few writes."""

    def __init__(self, root: Path, full_for: int = 0) -> None:
        super().__init__(root, "worker")
        self.unsynced: list[SegmentPlace] = []
        self.synced: list[SegmentPlace] = []
        self.appends = 0
        self._full_for = full_for

    def append(self, captures: Sequence[Capture | Packed]) -> list[SegmentPlace]:
        if self._full_for:
            self._full_for -= 1
            raise StoreFull("no space left")
        self.appends += 1
        places = super().append(captures)
        self.unsynced += places
        return places

    def sync(self) -> None:
        super().sync()
        self.synced += self.unsynced
        self.unsynced = []


class Rig:
    def __init__(self, root: Path, full_for: int = 0) -> None:
        self.clock = VirtualClock()
        self.store = SqliteStore(root / "penstock.db", self.clock)
        self.snapshots = Watched(root / "snapshots", full_for)
        self.keeper = SnapshotWriter("worker", self.snapshots, self.store, Inline(), self.clock)
        self.said: list[str] = []
        self.keeper.backoff = StoreBackoff(self.store, self.clock, self.said.append)

    def response(self, url: str, body: bytes) -> Response:
        return Response(url, url, 200, {"etag": "x"}, body, self.clock.now())

    def keep(self, *pages: tuple[str, bytes]) -> list[Response]:
        async def all_of_them() -> list[Response]:
            waiting = [self.keeper.keep(JOB, self.response(*page)) for page in pages]
            return await asyncio.gather(*waiting)

        loop = VirtualLoop(self.clock)
        try:
            return loop.run_until_complete(all_of_them())
        finally:
            loop.close()


def test_a_page_is_synced_before_it_is_handed_over(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    [page] = rig.keep(("http://a/", b"body"))
    [place] = rig.snapshots.synced
    assert rig.snapshots.read(place).body == b"body"
    [kept] = rig.keeper.take()
    assert kept.id == page.snapshot_id
    assert (kept.url, kept.hash, kept.headers) == ("http://a/", place.hash, {"etag": "x"})


def test_an_archive_holds_no_secret_in_addresses_and_headers(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    about = (rig.snapshots, rig.store, Inline(), rig.clock)
    rig.keeper = SnapshotWriter("worker", *about, secrets=frozenset({"hunter2/more"}))
    url = "http://a/?token=hunter2%2Fmore&page=2"
    [page] = rig.keep((url, b"body"))
    capture = rig.snapshots.read(rig.snapshots.synced[0])
    assert capture.url == "http://a/?token=***&page=2"
    assert capture.body == b"body"
    # What is fetched and replayed by is whole.
    assert (page.url, rig.keeper.take()[0].url) == (url, url)


def test_pages_that_come_together_share_one_write(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    pages = rig.keep(*((f"http://a/{i}", b"%d" % i) for i in range(20)))
    assert rig.snapshots.appends == 1
    assert len({page.snapshot_id for page in pages}) == 20
    assert len(rig.keeper.take()) == 20


def test_equal_content_is_written_once_within_a_batch_and_across_workers(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.keep(("http://a/1", b"same"), ("http://a/2", b"same"))
    assert len(rig.snapshots.synced) == 1
    one, two = rig.keeper.take()
    assert (one.hash, one.segment, one.offset) == (two.hash, two.segment, two.offset)


def test_ids_grow_with_time_even_when_the_clock_stands_still(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    first = [page.snapshot_id for page in rig.keep(("http://a/", b"1"), ("http://a/", b"2"))]
    rig.clock.advance(1.0)
    [later] = rig.keep(("http://a/", b"3"))
    ids = [*first, later.snapshot_id]
    assert ids == sorted(set(ids), key=lambda number: number or 0)


def test_a_full_disk_delays_a_page_and_loses_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path, full_for=3)
    [page] = rig.keep(("http://a/", b"body"))
    assert page.body == b"body"
    assert len(rig.snapshots.synced) == 1
    assert len(rig.said) == 1
    assert rig.clock.monotonic() >= 3.0


def test_rows_that_a_failed_turn_could_not_write_go_with_the_next(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.keep(("http://a/", b"1"))
    taken = rig.keeper.take()
    assert rig.keeper.take() == []
    rig.keeper.put_back(taken)
    assert rig.keeper.has_rows
    assert rig.keeper.take() == taken


def test_what_a_turn_takes_while_more_is_written_is_taken_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    taken: list[Kept] = []

    class TakingTurns(Inline):
        async def __call__(self, verb: Callable[[], Answer]) -> Answer:
            taken.extend(rig.keeper.take())
            return await super().__call__(verb)

    rig.keeper = SnapshotWriter("worker", rig.snapshots, rig.store, TakingTurns(), rig.clock)
    pages = [rig.keep((f"http://a/{number}", b"%d" % number))[0] for number in range(3)]
    taken += rig.keeper.take()

    assert [kept.id for kept in taken] == [page.snapshot_id for page in pages]


class Held:
    """Calls that wait until they are let go."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, verb: Callable[[], Answer]) -> Answer:
        self.asked.set()
        await self.go_on.wait()
        return verb()

    def close(self) -> None:
        return None


def test_no_page_waits_while_a_large_one_is_hashed_and_packed(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    packing = Held()
    rig.keeper = SnapshotWriter("worker", rig.snapshots, rig.store, Inline(), rig.clock, packing)
    body = random.Random(1).randbytes(2 * LARGE)

    async def both() -> None:
        large = asyncio.ensure_future(rig.keeper.keep(JOB, rig.response("http://a/large", body)))
        await packing.asked.wait()
        await rig.keeper.keep(JOB, rig.response("http://a/", b"short"))
        assert not large.done()
        packing.go_on.set()
        assert (await large).content_hash == content_hash(body)

    loop = VirtualLoop(rig.clock)
    loop.run_until_complete(both())
    loop.close()
    assert [rig.snapshots.read(place).body for place in rig.snapshots.synced] == [b"short", body]
