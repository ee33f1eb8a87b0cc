"""Upkeep deletes what nothing refers to, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.leader.sweep import EVERY_S, Sweep
from penstock.engine.leader.upkeep import UpkeepChore
from penstock.errors import StoreError
from penstock.gates.capacity import Capacity
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import Plan, PlannedStage, RunKind
from penstock.settings import Retention
from penstock.snapshots import Capture
from penstock.snapshots.directory import DirectorySnapshots
from penstock.snapshots.segment import IDLE_S
from penstock.store.entries import EntryFilter
from penstock.store.snapshots import Kept
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import VirtualClock

DAY_S = 86400.0
PLAN = Plan((PlannedStage("discover", "run", is_required=True),))


class AtOnce(Executor):
    """A thread that has done its work before it is asked for it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        ended: Future[Any] = Future()
        try:
            ended.set_result(fn(*args, **kwargs))
        except Exception as error:
            ended.set_exception(error)
        return ended


class House:
    """A store and snapshots with one payload that a finished run refers to."""

    def __init__(self, root: Path) -> None:
        self.clock = VirtualClock()
        self.database = root / "penstock.db"
        self.store = self.open_store()
        self.root = root / "snapshots"
        self.snapshots = DirectorySnapshots(self.root, "worker", clock=self.clock)
        self.sweep = Sweep(
            DirectorySnapshots(self.root, "upkeep"), self.open_store, self.clock, AtOnce()
        )
        self.upkeep = UpkeepChore(self.store, Retention(), self.sweep, self.clock)

    def open_store(self) -> SqliteStore:
        return SqliteStore(self.database, self.clock)

    def keep_a_page(self) -> str:
        source_id = self.store.sources.ensure(["acme.com"])["acme.com"]
        run_id, _ = self.store.runs.start(
            source_id, RunKind.FULL, PLAN, "v1", key="k", actor="test"
        )
        self.store.workers.register("w", "host", 1, "0")
        [job] = self.store.turn("w", [], Capacity(1), {}).claimed
        capture = Capture("http://acme.com/", 200, {}, b"page", self.clock.now())
        [place] = self.snapshots.append([capture])
        self.snapshots.sync()
        where = (place.hash, place.segment, place.offset, place.length)
        kept = Kept(1, job.id, run_id, capture.url, 200, {}, capture.fetched_at, *where)
        self.store.turn("w", [], Capacity(0), {}, [kept])
        self.store.runs.cancel(run_id, "test", "")
        return place.segment

    def files(self) -> list[str]:
        return sorted(name.split(".")[0] for name in os.listdir(self.root))

    def live(self, seconds: float) -> None:
        """Let time pass, and do all the upkeep that is due."""
        self.clock.advance(seconds)
        while self.upkeep.do_a_little():
            pass
        self.sweep.look()

    def live_through(self, rounds: int) -> None:
        for _ in range(rounds):
            self.live(EVERY_S)


def a_page(text: bytes = b"x") -> Capture:
    return Capture("http://acme.com/", 200, {}, text, 1.0)


def test_a_segment_that_a_snapshot_refers_to_stays(tmp_path: Path) -> None:
    house = House(tmp_path)
    segment = house.keep_a_page()
    house.live_through(4)
    assert house.files() == [segment]


def test_a_segment_goes_an_hour_after_its_last_row(tmp_path: Path) -> None:
    house = House(tmp_path)
    segment = house.keep_a_page()
    house.live(91 * DAY_S)
    assert house.store.snapshots.segments_in_use([segment]) == set()
    assert house.files() == [segment], "a worker that was about to refer to it has an hour to do so"
    house.live_through(1)
    assert house.files() == []


def test_a_segment_that_a_dead_writer_left_without_rows_goes(tmp_path: Path) -> None:
    house = House(tmp_path)
    DirectorySnapshots(house.root, "dead").append([a_page()])
    house.live_through(1)
    assert len(house.files()) == 1
    house.live_through(1)
    assert house.files() == []


def test_a_segment_in_which_somebody_writes_stays(tmp_path: Path) -> None:
    house = House(tmp_path)
    busy = DirectorySnapshots(house.root, "busy", clock=house.clock)
    for number in range(12):
        busy.append([a_page(b"%d" % number)])
        house.live(EVERY_S / 3)
    assert len(house.files()) == 1


def test_nobody_writes_to_a_segment_that_upkeep_may_have_removed(tmp_path: Path) -> None:
    house = House(tmp_path)
    [old] = house.snapshots.append([a_page()])
    house.live_through(3)
    assert house.files() == []
    [new] = house.snapshots.append([a_page()])
    house.snapshots.sync()
    assert new.segment != old.segment
    assert house.snapshots.read(new) == a_page()
    assert IDLE_S <= EVERY_S / 2


def test_what_the_clocks_of_the_disk_and_the_store_say_does_not_matter(tmp_path: Path) -> None:
    house = House(tmp_path)
    DirectorySnapshots(house.root, "fresh").append([a_page()])
    for name in os.listdir(house.root):
        os.utime(house.root / name, (0, 0))
    house.live_through(1)
    assert len(house.files()) == 1, "it looks old, and is a moment old"


def test_a_round_that_fails_is_told_and_followed_by_the_next(tmp_path: Path) -> None:
    house = House(tmp_path)
    DirectorySnapshots(house.root, "dead").append([a_page()])
    house.database.rename(tmp_path / "away.db")
    house.database.mkdir()
    house.clock.advance(EVERY_S)
    house.sweep.look()
    with pytest.raises(StoreError):
        house.sweep.look()
    house.database.rmdir()
    (tmp_path / "away.db").rename(house.database)
    house.live_through(2)
    assert house.files() == []


def test_what_is_in_quarantine_for_too_long_is_discarded(tmp_path: Path) -> None:
    house = House(tmp_path)
    source_id = house.store.sources.ensure(["acme.com"])["acme.com"]
    house.store.runs.start(source_id, RunKind.FULL, PLAN, "v1", key="k", actor="test")
    house.store.workers.register("w", "host", 1, "0")
    [job] = house.store.turn("w", [], Capacity(1), {}).claimed
    broken = Settlement(job.id, 1, JobState.QUARANTINED, reason="data", error="no price", cause="x")
    house.store.turn("w", [broken], Capacity(0), {})

    house.live(89 * DAY_S)
    assert house.store.quarantine.count(EntryFilter()) == 1
    assert len(house.store.quarantine.causes()) == 1
    house.live(2 * DAY_S)

    assert house.store.quarantine.count(EntryFilter()) == 0
    assert house.store.quarantine.causes() == []
    [event] = [e for e in house.store.journal.events(limit=100) if e.kind == "quarantine.expired"]
    assert (event.job_id, event.actor) == (job.id, "upkeep")
    assert event.detail == "in quarantine for more than 90 days"
