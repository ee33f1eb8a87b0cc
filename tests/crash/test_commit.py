"""A commit or an undo that is killed at any write is whole up to a batch, and goes on to the same end."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.app import replay_service
from penstock.app import undo as undo_service
from penstock.store.sqlite.store import SqliteStore
from penstock.testing import VirtualClock
from penstock.testing.crash.faults import KILLED, Count, FaultyDisk, KillAt, Plan, PowerCut
from tests.contract.replaying import Shop
from tests.contract.scenes import SQLITE, World

PAGES = {f"p{n}": {"n": n} for n in range(6)}
BETTER = {f"p{n}": {"n": n, "better": True} for n in range(5)}
TOO_LONG_S = 60
REPLAY = 2
History = dict[str, list[tuple[int, Any, bool]]]


def small_batches(store: SqliteStore) -> SqliteStore:
    """Two records at a time, and a log that is written back often."""
    commit, undo = store.replays.commit_batch, store.undos.undo
    store.replays.commit_batch = lambda *a, **o: commit(*a, **{**o, "limit": 2})  # type: ignore[method-assign]
    store.undos.undo = lambda *a, **o: undo(*a, **{**o, "limit": 2})  # type: ignore[method-assign]
    store._db.connection.pragma("wal_autocheckpoint", 4)
    return store


def commit(store: SqliteStore) -> None:
    if store.replays.state(REPLAY).state != "committed":
        replay_service.commit(store, REPLAY, is_forced=False, actor="ops", reason="")


def undo(store: SqliteStore) -> None:
    undo_service.undo(store, REPLAY, 5, actor="ops", reason="")


def laid_out(folder: Path, act: Callable[[SqliteStore], None]) -> Path:
    """A database in which this act is the next thing to do."""
    world = World(SQLITE, folder / "before.db")
    shop = Shop(world)
    assert shop.replay(shop.run(PAGES), BETTER) == REPLAY
    if act is undo:
        shop.commit(REPLAY)
    world.close()
    return folder / "before.db"


def history(store: SqliteStore) -> History:
    return {
        key: [
            (row.version, row.data, row.is_removed)
            for row in store.records.versions("product", key)
        ]
        for key in PAGES
    }


def in_child(path: Path, plan: Plan, act: Callable[[SqliteStore], None]) -> int:
    pid = os.fork()
    if pid == 0:
        signal.alarm(TOO_LONG_S)
        disk = FaultyDisk(plan)
        try:
            act(small_batches(SqliteStore(path, VirtualClock(), vfs=disk.name)))
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def renewed(folder: Path, before: Path) -> Path:
    place = folder / "now"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    shutil.copy(before, place / "penstock.db")
    return place / "penstock.db"


def ends(
    folder: Path, before: Path, act: Callable[[SqliteStore], None]
) -> tuple[int, History, History]:
    """How many writes it takes, and the records before and after, when nothing happens."""
    path = renewed(folder, before)
    store = SqliteStore(path, VirtualClock())
    first = history(store)
    store.close()
    count = Count()
    disk = FaultyDisk(count)
    store = small_batches(SqliteStore(path, VirtualClock(), vfs=disk.name))
    act(store)
    last = history(store)
    store.close()
    return sum(number for kind, number in count.seen.items() if kind != "read"), first, last


def assert_goes_on(
    path: Path, act: Callable[[SqliteStore], None], first: History, last: History, where: str
) -> None:
    store = SqliteStore(path, VirtualClock())
    assert store.upkeep.check() == [], where
    found = history(store)
    for key, versions in found.items():
        assert versions in (first[key], last[key]), (where, key, "is neither before nor after")
    act(store)
    assert history(store) == last, where
    assert not store.replays.has_staged(REPLAY), where
    assert store.upkeep.check() == [], where
    store.close()


def swept(folder: Path, act: Callable[[SqliteStore], None], step: int) -> None:
    before = laid_out(folder, act)
    points, first, last = ends(folder, before, act)
    assert points > 20
    assert first != last
    for point in range(1, points + 1, step):
        for is_power_cut in (False, True):
            path = renewed(folder, before)
            plan: Plan = KillAt(point)
            if is_power_cut:
                on_disk = {str(path): path.read_bytes()}
                plan = PowerCut(random.Random(point), point, durable=on_disk)
            where = f"{type(plan).__name__} at {point} of {points}"
            assert in_child(path, plan, act) in (KILLED, 0), where
            assert_goes_on(path, act, first, last, where)


@pytest.mark.parametrize("act", [commit, undo])
def test_killed_at_a_write_it_goes_on_where_it_was(
    tmp_path: Path, act: Callable[[SqliteStore], None]
) -> None:
    swept(tmp_path, act, step=7)


@pytest.mark.torture
@pytest.mark.parametrize("act", [commit, undo])
def test_killed_at_any_write_it_goes_on_where_it_was(
    tmp_path: Path, act: Callable[[SqliteStore], None]
) -> None:
    swept(tmp_path, act, step=1)
