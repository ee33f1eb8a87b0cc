"""Upkeep deletes what nothing refers to, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.engine.upkeep import SEGMENTS_EVERY_S, Upkeep
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.settings import Retention
from penstock.snapshots import Capture, SnapshotStore
from penstock.store.sqlite.store import SqliteStore
from penstock.store.store import Capacity, Kept
from penstock.testing import VirtualClock

DAY_S = 86400.0
PLAN = Plan((PlannedStage("discover", "run", is_required=True),))


class House:
    """A store and snapshots with one payload that a finished run refers to."""

    def __init__(self, root: Path) -> None:
        self.clock = VirtualClock()
        self.store = SqliteStore(root / "penstock.db", self.clock)
        self.snapshots = SnapshotStore(root / "snapshots", "worker")
        self.root = root / "snapshots"
        self.upkeep = Upkeep(
            self.store, Retention(), SnapshotStore(self.root, "upkeep"), self.clock
        )

    def keep_a_page(self) -> str:
        source_id = self.store.ensure_sources(["acme.com"])["acme.com"]
        run_id, _ = self.store.start_run(source_id, RunKind.FULL, PLAN, "v1", key="k", actor="test")
        self.store.register("w", "host", 1, "0")
        [job] = self.store.turn("w", [], Capacity(1), {}).claimed
        capture = Capture("http://acme.com/", 200, {}, b"page", self.clock.now())
        [place] = self.snapshots.append([capture])
        self.snapshots.sync()
        where = (place.hash, place.segment, place.offset, place.length)
        kept = Kept(1, job.id, run_id, capture.url, 200, {}, capture.fetched_at, *where)
        self.store.turn("w", [], Capacity(0), {}, [kept])
        self.store.cancel_run(run_id, "test", "")
        return place.segment

    def files(self) -> list[str]:
        return sorted(name.split(".")[0] for name in os.listdir(self.root))

    def live(self, seconds: float) -> None:
        """Let time pass, for the files too, and do all the upkeep that is due."""
        self.clock.advance(seconds)
        for name in os.listdir(self.root):
            os.utime(self.root / name, (self.clock.now() - seconds,) * 2)
        while self.upkeep.do_a_little():
            pass


def test_a_segment_that_a_snapshot_refers_to_stays(tmp_path: Path) -> None:
    house = House(tmp_path)
    segment = house.keep_a_page()
    house.live(2 * SEGMENTS_EVERY_S)
    assert house.files() == [segment]


def test_a_segment_goes_after_its_last_snapshot_and_one_more_round(tmp_path: Path) -> None:
    house = House(tmp_path)
    segment = house.keep_a_page()
    house.live(91 * DAY_S)
    assert house.files() == [segment], "the rows go first, so that nobody can refer to it again"
    house.live(2 * SEGMENTS_EVERY_S)
    assert house.files() == []


def test_a_segment_that_a_dead_writer_left_without_rows_goes(tmp_path: Path) -> None:
    house = House(tmp_path)
    SnapshotStore(house.root, "dead").append([Capture("http://acme.com/", 200, {}, b"x", 1.0)])
    assert len(house.files()) == 1
    house.live(2 * SEGMENTS_EVERY_S)
    assert house.files() == []


def test_a_segment_in_which_somebody_writes_stays(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.clock.advance(2 * SEGMENTS_EVERY_S)
    SnapshotStore(house.root, "busy").append([Capture("http://acme.com/", 200, {}, b"x", 1.0)])
    for name in os.listdir(house.root):
        os.utime(house.root / name, (house.clock.now(),) * 2)
    while house.upkeep.do_a_little():
        pass
    assert len(house.files()) == 1


def test_a_worker_that_is_seen_alive_is_renewed_when_the_clock_was_set_forward(
    tmp_path: Path,
) -> None:
    house = House(tmp_path)
    house.store.register("alive", "host", 1, "0")
    house.store.register("gone", "host", 2, "0")
    house.clock.advance(3600.0)
    house.upkeep.bury_expired(lambda text: None, lambda worker: worker == "alive")
    assert [worker.id for worker in house.store.workers()] == ["alive"]
    assert house.store.expired_workers() == []
