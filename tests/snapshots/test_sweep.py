"""Upkeep over every home of snapshots: what nothing refers to goes, and waiting for it holds up nobody."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.engine.leader.sweep import EVERY_S, Sweep
from penstock.gates.capacity import Capacity
from penstock.snapshots import SegmentPlace
from penstock.snapshots import bucket as buckets
from penstock.store.snapshots import Kept
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import VirtualClock
from tests.contract.scenes import SQLITE, World
from tests.snapshots.homes import SUFFIX, BucketHome, Home, a_page
from tests.snapshots.s3 import Wire


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(SQLITE, tmp_path / "penstock.db")
    yield made
    made.close()


class Rounds:
    """A sweep whose rounds are waited for."""

    def __init__(self, world: World, home: Home) -> None:
        self.clock = VirtualClock()
        database = Path(world.path)
        self.sweep = Sweep(
            home.open("upkeep"), lambda: SqliteStore(database, self.clock), self.clock
        )

    def one_more(self) -> None:
        self.clock.advance(EVERY_S)
        self.sweep.look()
        assert self.sweep._round is not None
        self.sweep._round.exception()
        self.sweep.look()


def refer_to(world: World, places: list[SegmentPlace]) -> None:
    world.start()
    job = world.one()
    kept = [
        Kept(
            number,
            job.id,
            job.run_id,
            f"https://a/{number}",
            200,
            {},
            world.clock.now(),
            place.hash,
            place.segment,
            place.offset,
            place.length,
        )
        for number, place in enumerate(places)
    ]
    world.store.turn("w", [], Capacity(0), {}, kept)


def test_what_is_referred_to_stays_and_the_rest_goes(world: World, home: Home) -> None:
    writer = home.open("writer", max_bytes=1)
    places = []
    for number in range(6):
        places += writer.append([a_page(number)])
        writer.sync()
    used, unused = places[:3], places[3:]
    refer_to(world, used)
    writer.close()
    rounds = Rounds(world, home)
    rounds.one_more()
    assert len(home.files()) == len(places)
    rounds.one_more()
    assert set(home.files()) == {f"{place.segment}{SUFFIX}" for place in used}
    rounds.one_more()
    assert len(home.files()) == len(used)
    assert {f"{place.segment}{SUFFIX}" for place in unused}.isdisjoint(home.files())
    rounds.sweep.close()


def test_an_object_store_that_hangs_holds_up_nobody(
    world: World, bucket: BucketHome, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "REQUEST_S", 5.0)
    monkeypatch.setattr(buckets, "RETRY_S", 0.1)
    rounds = Rounds(world, bucket)
    wire.hang()
    rounds.clock.advance(EVERY_S)
    for _ in range(100):
        rounds.sweep.look()
    assert rounds.sweep._round is not None
    assert not rounds.sweep._round.done()
    closing = threading.Thread(target=rounds.sweep.close)
    closing.start()
    wire.mend()
    closing.join()
