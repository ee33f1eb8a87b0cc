"""An object store that is away delays pages: none is lost, and none is counted as a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from penstock.engine.worker.calls import Inline
from penstock.engine.worker.snapshot_writer import LATE_S, SnapshotWriter
from penstock.engine.worker.store_backoff import StoreBackoff
from penstock.errors import StoreCorrupt
from penstock.http.response import Response
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Cancelled, Failed, Snoozed
from penstock.pipeline.error_outcome import timed_out
from penstock.snapshots import SegmentPlace
from penstock.snapshots import bucket as buckets
from penstock.store.rows import SnapshotRow
from penstock.store.snapshots import Kept
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import VirtualClock, VirtualLoop
from tests.snapshots.homes import SUFFIX, BucketHome
from tests.snapshots.s3 import Wire

Answer = TypeVar("Answer")
JOB = Claimed(1, 1, 1, "extract", "k", 1, 0, 0, 0, False, "null")
TIMED_OUT = timed_out(60.0)
PAGES = 30


@pytest.fixture(autouse=True)
def _soon_out_of_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "RETRY_S", 0.1)
    # On a busy machine a sound request takes its time too, and must not pass for one that hangs.
    monkeypatch.setattr(buckets, "REQUEST_S", 3.0)


class Rig:
    """A keeper that writes to a bucket; what it says may be acted upon."""

    def __init__(self, folder: Path, home: BucketHome) -> None:
        self.clock = VirtualClock()
        self.store = SqliteStore(folder / "penstock.db", self.clock)
        self.snapshots = home.open()
        self.keeper = SnapshotWriter("worker", self.snapshots, self.store, Inline(), self.clock)
        self.said: list[str] = []
        self.on_said: Callable[[], None] = lambda: None
        self.keeper.backoff = StoreBackoff(self.store, self.clock, self._tell)
        self.loop = VirtualLoop(self.clock)

    def _tell(self, text: str) -> None:
        self.said.append(text)
        self.on_said()

    def keep(self, pages: int) -> list[Response]:
        async def all_of_them() -> list[Response]:
            waiting = [self.keeper.keep(JOB, self.response(number)) for number in range(pages)]
            return await asyncio.gather(*waiting)

        return self.loop.run_until_complete(all_of_them())

    def read(self, kept: Kept) -> Response:
        return self.loop.run_until_complete(self.keeper.read(JOB, row_of(kept)))

    def response(self, number: int) -> Response:
        url = f"http://a/{number}"
        return Response(url, url, 200, {}, b"page %d" % number, self.clock.now())


def row_of(kept: Kept) -> SnapshotRow:
    return SnapshotRow(
        kept.id,
        kept.url,
        kept.status,
        dict(kept.headers),
        kept.fetched_at,
        kept.hash,
        kept.segment,
        kept.offset,
        kept.length,
    )


@pytest.fixture
def rig(tmp_path: Path, bucket: BucketHome) -> Iterator[Rig]:
    made = Rig(tmp_path, bucket)
    yield made
    made.loop.close()
    made.store.close()


def test_a_payload_is_in_the_bucket_before_a_row_refers_to_it(rig: Rig, bucket: BucketHome) -> None:
    seen: list[dict[str, bytes]] = []
    rig.keeper.on_kept = lambda: seen.append(bucket.files())
    rig.keep(PAGES)
    [files] = seen
    for kept in rig.keeper.take():
        assert f"{kept.segment}{SUFFIX}" in files
        place = SegmentPlace(kept.hash, kept.segment, kept.offset, kept.length)
        assert rig.snapshots.read(place).url == kept.url


@pytest.mark.parametrize("trouble", ["down", "hung", "denied", "throttled", "no bucket"])
def test_pages_wait_while_the_object_store_is_away_and_none_is_lost(
    rig: Rig, bucket: BucketHome, wire: Wire, trouble: str
) -> None:
    match trouble:
        case "down":
            wire.cut()
        case "hung":
            wire.hang()
        case "denied":
            wire.fail(403, "AccessDenied")
        case "throttled":
            wire.fail(503, "SlowDown")
        case "no bucket":
            wire.fail(404, "NoSuchBucket")
    rig.on_said = wire.mend
    pages = rig.keep(PAGES)
    assert [page.body for page in pages] == [b"page %d" % number for number in range(PAGES)]
    kept = rig.keeper.take()
    assert len(kept) == PAGES
    for row, page in zip(kept, pages, strict=True):
        assert rig.read(row).body == page.body
    [said] = rig.said
    assert said.startswith(f"can't write snapshots to {bucket.setting}: ")


def test_a_page_is_read_again_when_the_object_store_is_back(rig: Rig, wire: Wire) -> None:
    rig.keep(1)
    [kept] = rig.keeper.take()
    wire.cut()
    rig.on_said = wire.mend
    assert rig.read(kept).body == b"page 0"
    assert len(rig.said) == 1


def test_a_page_is_read_while_others_can_not_be_written(rig: Rig) -> None:
    rig.keep(1)
    [kept] = rig.keeper.take()
    busy: asyncio.Future[None] = rig.loop.create_future()

    class Busy(Inline):
        async def __call__(self, verb: Callable[[], Answer]) -> Answer:
            await busy
            return verb()

    rig.keeper = SnapshotWriter("worker", rig.snapshots, rig.store, Busy(), rig.clock, Inline())

    async def read_meanwhile() -> None:
        writing = asyncio.ensure_future(rig.keeper.keep(JOB, rig.response(1)))
        assert (await rig.keeper.read(JOB, row_of(kept))).body == b"page 0"
        assert not writing.done()
        busy.set_result(None)
        await writing

    rig.loop.run_until_complete(read_meanwhile())


def test_a_page_that_is_damaged_is_not_waited_for(rig: Rig, bucket: BucketHome) -> None:
    rig.keep(1)
    [kept] = rig.keeper.take()
    bucket.write(f"{kept.segment}{SUFFIX}", b"something else")
    with pytest.raises(StoreCorrupt):
        rig.read(kept)


def test_an_attempt_that_waits_for_the_snapshots_is_not_to_blame_for_being_late(
    rig: Rig, wire: Wire
) -> None:
    wire.cut()

    async def out_of_time() -> None:
        waiting = asyncio.ensure_future(rig.keeper.keep(JOB, rig.response(1)))
        await asyncio.sleep(1.0)
        early = rig.keeper.is_late
        await asyncio.sleep(LATE_S)
        assert (early, rig.keeper.is_late) == (False, True)
        waiting.cancel()
        await asyncio.wait([waiting])
        rig.keeper.close()

    rig.loop.run_until_complete(out_of_time())
    other = Claimed(2, 1, 1, "extract", "k", 1, 0, 0, 0, False, "null")
    assert rig.keeper.excuse(other, TIMED_OUT) == TIMED_OUT
    assert isinstance(rig.keeper.excuse(JOB, TIMED_OUT), Snoozed)
    assert rig.keeper.excuse(JOB, TIMED_OUT) == TIMED_OUT, "one excuse for one wait"


def test_there_is_no_excuse_for_any_other_end(rig: Rig, wire: Wire) -> None:
    wire.cut()

    async def stopped(after_s: float) -> None:
        waiting = asyncio.ensure_future(rig.keeper.keep(JOB, rig.response(1)))
        await asyncio.sleep(after_s)
        waiting.cancel()
        await asyncio.wait([waiting])
        rig.keeper.close()

    for outcome, after_s in (
        (Failed("boom"), 2 * LATE_S),
        (Cancelled("drained"), 2 * LATE_S),
        (TIMED_OUT, LATE_S / 2),
    ):
        rig.loop.run_until_complete(stopped(after_s))
        assert rig.keeper.excuse(JOB, outcome) == outcome
    wire.mend()
    rig.keep(1)
    rig.clock.advance(60.0)
    assert rig.keeper.excuse(JOB, TIMED_OUT) == TIMED_OUT
