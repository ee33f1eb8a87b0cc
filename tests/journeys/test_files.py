"""Files that are taken away, cut off, linked or read-only while a project lives in them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.rig import Rig, counting_site, source_of, until

PAGES = 8


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with counting_site() as site, Rig(tmp_path, {"site": source_of(site, PAGES)}) as made:
        yield made


# The database.


@pytest.mark.parametrize("fate", ["removed", "replaced"])
def test_a_database_that_is_taken_away_stops_up_loudly(tmp_path: Path, fate: str) -> None:
    with counting_site() as site:
        slow = source_of(site, 200, page_ms=50, limits={"concurrency": 1})
        with Rig(tmp_path, {"site": slow}) as rig:
            [run_id] = rig.enqueue("site")
            up = rig.start("up", "--until-idle")
            rig.wait_for_pages(run_id, 2, up)
            if fate == "replaced":
                other = tmp_path / "other.db"
                rig.penstock("db", "backup", str(other))
                os.replace(other, rig.database)
            else:
                rig.database.unlink()

            assert up.wait(timeout=60) == 5
            assert "was removed or replaced while it was in use" in rig.output(up)


def test_a_database_that_is_taken_away_from_an_idle_project_is_noticed(tmp_path: Path) -> None:
    with counting_site() as site, Rig(tmp_path, {"site": source_of(site, 1)}) as rig:
        up = rig.start("up")
        until(rig.store.workers.all, "it works", process=up)
        rig.database.unlink()

        assert up.wait(timeout=60) == 5
        assert "was removed or replaced while it was in use" in rig.output(up)


def test_a_second_restore_leaves_what_the_first_one_kept(rig: Rig) -> None:
    rig.penstock("db", "check")
    for number in (1, 2):
        rig.penstock("run", "site")
        rig.penstock("db", "backup", f"{number}.db")
    kept = []
    for number in (1, 2):
        live = rig.database.read_bytes()
        done = rig.penstock("db", "restore", f"{number}.db", "--yes")
        assert done.returncode == 0, done.stderr
        kept.append((done.stdout.split()[-1], live))

    assert len({name for name, _ in kept}) == 2
    for name, live in kept:
        assert (rig.folder / name).read_bytes() == live
        assert name in {path.name for path in rig.folder.iterdir()}


def test_two_who_open_one_database_by_different_names_share_its_lock(tmp_path: Path) -> None:
    with counting_site() as site:
        slow = source_of(site, 200, page_ms=50, limits={"concurrency": 1})
        (tmp_path / "one").mkdir()
        (tmp_path / "two").mkdir()
        with (
            Rig(tmp_path / "one", {"site": slow}) as one,
            Rig(tmp_path / "two", {"site": slow}) as two,
        ):
            up = one.start("up")
            until(one.store.workers.all, "it works", process=up)
            two.database.symlink_to(one.database)
            refused = two.penstock("up", "--until-idle")

            assert refused.returncode == 6
            assert f"another Penstock (pid {up.pid})" in refused.stderr


LOOKING = (
    ("status",),
    ("sources",),
    ("runs",),
    ("jobs",),
    ("records", "page"),
    ("events",),
    ("quarantine", "list"),
    ("schedules",),
    ("db", "check"),
)


def test_a_project_on_a_read_only_file_system_can_be_looked_at_and_backed_up(
    tmp_path: Path,
) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=40m,mode=700", "penstock-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True).returncode != 0:
        pytest.skip("can't mount a file system here")
    try:
        with counting_site() as site, Rig(place, {"site": source_of(site, PAGES)}) as rig:
            assert rig.penstock("run", "site").returncode == 0
            subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
            for words in LOOKING:
                looked = rig.penstock(*words)
                assert looked.returncode == 0, (words, looked.stderr)
            copy = tmp_path / "copy.db"
            assert rig.penstock("db", "backup", str(copy)).returncode == 0
            refused = rig.penstock("run", "site", "--detach")
            assert (refused.returncode, "can't be written" in refused.stderr) == (5, True)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
    assert copy.stat().st_size > 0


def test_many_who_run_one_source_at_once_start_one_run(rig: Rig) -> None:
    commands = [rig.start("run", "site", "--detach") for _ in range(8)]
    assert [command.wait(timeout=60) for command in commands] == [0] * len(commands)
    assert len(rig.store.runs.newest()) == 1
    assert rig.penstock("run", "site", "--detach", "--new").returncode == 0
    assert len(rig.store.runs.newest()) == 2


# The snapshots.


def segments(rig: Rig) -> list[Path]:
    return sorted((rig.folder / "snapshots").glob("*.warc.gz"))


def damaged(segment: Path, how: str) -> None:
    if how == "lost":
        segment.unlink()
    elif how == "cut off":
        os.truncate(segment, segment.stat().st_size // 2)
    else:
        content = bytearray(segment.read_bytes())
        for at in range(200, len(content), 50):
            content[at] ^= 0xFF
        segment.write_bytes(content)


@pytest.mark.parametrize("how", ["lost", "cut off", "damaged"])
def test_stored_pages_that_can_not_be_read_are_named_and_stored_again(rig: Rig, how: str) -> None:
    assert rig.penstock("run", "site").returncode == 0
    assert rig.penstock("db", "check").returncode == 0
    for segment in segments(rig):
        damaged(segment, how)

    checked = rig.penstock("db", "check")
    assert checked.returncode == 5
    assert "stores it again" in checked.stdout

    assert rig.penstock("run", "site").returncode == 0
    checked = rig.penstock("db", "check")
    assert checked.returncode == 0, checked.stdout
    replayed = rig.penstock("replay", "2", "--diff")
    assert replayed.returncode == 0, replayed.stderr


def test_a_quick_check_reads_no_page(rig: Rig) -> None:
    assert rig.penstock("run", "site").returncode == 0
    for segment in segments(rig):
        damaged(segment, "damaged")

    assert rig.penstock("db", "check", "--quick").returncode == 0
    assert rig.penstock("db", "check").returncode == 5
