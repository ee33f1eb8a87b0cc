"""Backups: whole while work goes on; what is put back is checked, and what was there is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import Refused, StoreCorrupt, StoreError
from penstock.gates.capacity import Capacity
from penstock.store.sqlite.backup import restore
from tests.contract.foreign import (
    make_foreign,
    make_foreign_with_id,
    make_newer,
    make_text,
    open_store,
)
from tests.contract.scenes import SQLITE, StoreKind, World, done


@pytest.fixture
def kind() -> StoreKind:
    """The file is SQLite's alone."""
    return SQLITE


def backed_up(world: World, name: str = "backup.db") -> Path:
    target = world.file.with_name(name)
    assert list(world.store.backup(target))[-1] == 1.0
    return target


def content(path: Path) -> dict[str, list[object]]:
    return {
        table: rows
        for table, rows in SQLITE.dump(path).items()
        if table not in ("worker", "event", "sqlite_sequence")
    }


def test_backup_is_whole_while_work_goes_on(world: World) -> None:
    world.start_with_pages(3000)
    target = world.file.with_name("backup.db")

    for _ in world.store.backup(target):
        world.turn("w", done(world.one()))

    copy = open_store(target)
    assert copy.upkeep.check() == []
    assert copy.overview().queued > 2900
    copy.close()
    assert not target.with_name("backup.db.part").exists()


def test_restored_database_equals_its_backup_with_a_stale_log_beside(
    world: World, tmp_path: Path
) -> None:
    world.start_with_pages(5)
    backup = backed_up(world)
    world.turn("w", *(done(job) for job in world.claim()))
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for tail in ("", "-wal", "-shm"):
        shutil.copyfile(f"{world.file}{tail}", f"{crashed}/penstock.db{tail}")
    target = crashed / "penstock.db"
    assert Path(f"{target}-wal").stat().st_size > 0
    before = content(world.file)

    restore(backup, target, world.clock)

    assert content(target) == content(backup)
    assert content(target.with_name("penstock.db.before-restore")) == before, "kept with its log"
    store = open_store(target)
    assert store.upkeep.check() == []
    store.close()


def test_leases_in_a_backup_are_void_and_their_jobs_released(world: World, tmp_path: Path) -> None:
    world.start_with_pages(2)
    claimed = world.claim()
    backup = backed_up(world)
    target = tmp_path / "elsewhere.db"

    restore(backup, target, world.clock)

    store = open_store(target)
    assert store.workers.all() == []
    store.workers.register("new", "here", 1, "test")
    again = store.turn("new", [], Capacity(100), {}).claimed
    assert {(job.id, job.tries, job.deaths) for job in again} == {(j.id, 0, 0) for j in claimed}
    assert store.turn("w", [done(claimed[0])], Capacity(0), {}).lost == [claimed[0].id]
    store.close()


def damage(backup: Path) -> None:
    data = bytearray(backup.read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 200] = b"\xff" * 200
    backup.write_bytes(bytes(data))


def twist(backup: Path) -> None:
    """What no statement of ours can write, where opening the file does not look."""
    SQLITE.tamper(
        backup, "PRAGMA ignore_check_constraints = 1; UPDATE job SET state = 'odd' WHERE id = 50"
    )


def truncate(backup: Path) -> None:
    backup.write_bytes(backup.read_bytes()[:-5000])


def replace_by_text(backup: Path) -> None:
    make_text(backup)


def replace_by_foreign(backup: Path) -> None:
    backup.unlink()
    make_foreign(backup)


def replace_by_foreign_with_id(backup: Path) -> None:
    backup.unlink()
    make_foreign_with_id(backup)


def replace_by_newer(backup: Path) -> None:
    backup.unlink()
    make_newer(backup)


@pytest.mark.parametrize(
    "spoil",
    [
        damage,
        twist,
        truncate,
        replace_by_text,
        replace_by_foreign,
        replace_by_foreign_with_id,
        replace_by_newer,
    ],
)
def test_bad_backup_is_refused_and_the_database_untouched(
    world: World, spoil: Callable[[Path], None]
) -> None:
    world.start_with_pages(200)
    backup = backed_up(world)
    spoil(backup)
    before = world.dump()
    files = sorted(world.file.parent.glob("penstock.db*"))

    with pytest.raises((StoreCorrupt, StoreError, Refused)):
        restore(backup, world.file)

    assert world.dump() == before
    assert sorted(world.file.parent.glob("penstock.db*")) == files


def test_backup_that_is_not_there_is_named(world: World) -> None:
    with pytest.raises(StoreError, match="no backup at"):
        restore(world.file.with_name("nothing.db"), world.file)


def test_what_is_kept_gets_a_name_that_no_file_or_log_has(world: World, tmp_path: Path) -> None:
    world.start()
    backup = backed_up(world)
    target = tmp_path / "twice.db"
    stale = target.with_name("twice.db.before-restore-wal")
    stale.write_bytes(b"stale")
    kept = [restore(backup, target, world.clock) for _ in range(3)]

    names = ["twice.db.before-restore-2", "twice.db.before-restore-3"]
    assert kept == [None, *(target.with_name(name) for name in names)]
    assert stale.read_bytes() == b"stale", "a log of somebody else's file is left alone"
