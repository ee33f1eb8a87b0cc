"""Files of ours are their owner's alone, and no link that somebody left leads us to another file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from penstock.cli import exits, main
from penstock.clock import SystemClock
from penstock.engine.supervisor.lock import ProjectLock, lock_file
from penstock.errors import StoreError
from penstock.private_files import make_private, open_report
from penstock.snapshots.directory import DirectorySnapshots
from penstock.snapshots.warc import Capture
from penstock.store.sqlite.backup import restore
from penstock.store.sqlite.filesystem import RESERVE_BYTES, Reserve
from penstock.store.sqlite.store import SqliteStore

PRECIOUS = "what must not be lost"


@pytest.fixture(autouse=True)
def _open_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "victim"
    file.write_text(PRECIOUS)
    return file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_everything_that_is_made_for_a_project_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    store = SqliteStore(folder / "penstock.db", SystemClock())
    lock = ProjectLock(store.path)
    store.sources.ensure(["shop"])
    assert store.reserve.hold()
    for _ in store.backup(folder / "monday.db"):
        pass
    snapshots = DirectorySnapshots(folder / "snapshots", "w")
    snapshots.append([Capture("https://shop/", 200, {}, b"page", 0.0)])
    with open_report(folder / "report.html"):
        pass
    made = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name for path in made} >= {
        "penstock.db",
        "penstock.db-wal",
        "penstock.db-shm",
        "penstock.db.lock",
        "penstock.db.reserve",
        "monday.db",
        "report.html",
    }
    assert {mode(path) for path in made} == {0o600}
    assert mode(folder / "snapshots") == 0o700
    assert len(list((folder / "snapshots").iterdir())) == 1
    snapshots.close()
    lock.release()
    store.close()


def test_what_everybody_could_read_is_closed_with_a_note_and_a_group_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "penstock.yaml").write_text("project: shop\n")
    (tmp_path / "penstock.yaml").chmod(0o644)
    assert main(["status"]) == exits.DONE
    (tmp_path / "penstock.db").chmod(0o644)
    (tmp_path / "snapshots").mkdir(mode=0o755)
    capsys.readouterr()
    assert main(["status"]) == exits.DONE
    told = capsys.readouterr().err
    assert "penstock.db could be read by everybody; only its owner can now" in told
    assert "snapshots could be read by everybody" in told
    assert mode(tmp_path / "penstock.db") == 0o600
    assert mode(tmp_path / "snapshots") == 0o700
    (tmp_path / "penstock.db").chmod(0o640)
    assert main(["status"]) == exits.DONE
    assert "could be read" not in capsys.readouterr().err
    assert mode(tmp_path / "penstock.db") == 0o640


def test_a_snapshots_folder_that_holds_the_project_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text("snapshots: .\n")
    tmp_path.chmod(0o755)
    DirectorySnapshots(tmp_path, "w").close()
    assert mode(tmp_path) == 0o755


def test_a_link_in_the_place_of_the_lock_is_refused_and_its_target_is_whole(
    tmp_path: Path, victim: Path
) -> None:
    lock_file(tmp_path / "penstock.db").symlink_to(victim)
    with pytest.raises(StoreError, match="is a symbolic link"):
        ProjectLock(tmp_path / "penstock.db")
    assert victim.read_text() == PRECIOUS


def test_a_pipe_in_the_place_of_the_lock_is_refused(tmp_path: Path) -> None:
    os.mkfifo(lock_file(tmp_path / "penstock.db"))
    with pytest.raises(StoreError, match="is not a regular file"):
        ProjectLock(tmp_path / "penstock.db")


def test_a_link_in_the_place_of_the_reserve_is_replaced_and_its_target_is_whole(
    tmp_path: Path, victim: Path
) -> None:
    (tmp_path / "penstock.db.reserve").symlink_to(victim)
    reserve = Reserve(tmp_path / "penstock.db")
    assert not reserve.hold()
    assert reserve.hold()
    assert victim.read_text() == PRECIOUS
    assert (tmp_path / "penstock.db.reserve").lstat().st_size == RESERVE_BYTES


@pytest.mark.parametrize("tail", [".restoring", ".before-restore"])
def test_a_link_in_the_way_of_a_restore_is_replaced_and_its_target_is_whole(
    tmp_path: Path, victim: Path, tail: str
) -> None:
    store = SqliteStore(tmp_path / "penstock.db", SystemClock())
    for _ in store.backup(tmp_path / "monday.db"):
        pass
    store.close()
    (tmp_path / f"penstock.db{tail}").symlink_to(victim)
    restore(tmp_path / "monday.db", tmp_path / "penstock.db")
    assert victim.read_text() == PRECIOUS
    assert mode(tmp_path / "penstock.db") == 0o600


def test_a_link_in_the_way_of_a_backup_is_replaced_and_its_target_is_whole(
    tmp_path: Path, victim: Path
) -> None:
    (tmp_path / "monday.db.part").symlink_to(victim)
    store = SqliteStore(tmp_path / "penstock.db", SystemClock())
    for _ in store.backup(tmp_path / "monday.db"):
        pass
    store.close()
    assert victim.read_text() == PRECIOUS


def test_closing_files_follows_no_link(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "link").symlink_to(victim)
    before = mode(victim)
    assert make_private([tmp_path / "link", tmp_path / "missing"]) == []
    assert mode(victim) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_lock_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = lock_file(tmp_path / "penstock.db")
    path.touch()
    os.chown(path, 43_210, -1)
    with pytest.raises(StoreError, match="belongs to another user"):
        ProjectLock(tmp_path / "penstock.db")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_root_makes_beside_a_database_belongs_to_its_owner(tmp_path: Path) -> None:
    (tmp_path / "penstock.db").touch()
    os.chown(tmp_path / "penstock.db", 43_210, 43_210)
    ProjectLock(tmp_path / "penstock.db").release()
    assert lock_file(tmp_path / "penstock.db").stat().st_uid == 43_210
