"""A full disk: said once, nothing lost, nothing spent, and work resumes automatically when there is space."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.jobs.job import JobState
from penstock.prove.small_disk import SmallDisk
from tests.journeys.rig import Rig, until

RECORDS = 600
BYTES = 40_000
GREEDY = f"""
from penstock import Pipeline

pages = Pipeline("pages")


@pages.step(unit="run")
async def discover(ctx):
    for number in range({RECORDS}):
        yield {{"number": number}}


@pages.step(after="discover", unit="page", key="number")
async def fill(page, ctx):
    ctx.save("page", key=str(page["number"]), data={{"text": "x" * {BYTES}}})
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MB. Without the right to mount one, the sweep's injected errors must do."""
    place = tmp_path / "disk"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=12m,mode=0700", "penstock-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True).returncode != 0:
        pytest.skip(
            "can't mount a small file system here: only injected errors were tried (sweep fail)"
        )
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.skipif(bool(SmallDisk.why_not()), reason="can't mount a small file system here")
def test_small_disk_is_removed_while_a_killed_process_still_has_a_file_open(tmp_path: Path) -> None:
    with SmallDisk(tmp_path / "small") as disk:
        still_open = (disk.folder / "log").open("w")
    with still_open:
        assert not os.path.ismount(disk.folder)
        assert list(disk.folder.iterdir()) == []


def test_full_disk_is_waited_out(small_disk: Path) -> None:
    source = {"pipeline": "steps:pages", "limits": {"concurrency": 8}}
    with Rig(small_disk, {"shop": source}, GREEDY) as rig:
        [run_id] = rig.enqueue("shop")
        process = rig.start("up", "--until-idle")
        until(lambda: "the disk is full" in rig.output(process), "it is said", process=process)
        # Long enough for a second word, if one came.
        done = len(rig.jobs(JobState.SUCCEEDED))
        until(lambda: not rig.jobs(JobState.RUNNING), "what ran has been written down or waits")
        assert process.poll() is None, rig.output(process)
        assert rig.output(process).count("the disk is full") == 1
        assert len(rig.jobs(JobState.SUCCEEDED)) >= done

        subprocess.run(["mount", "-o", "remount,size=200m,mode=0700", str(small_disk)], check=True)

        assert process.wait(timeout=120) == 0, rig.output(process)
        assert "Traceback" not in rig.output(process)
        assert rig.run(run_id).state == "completed"
        assert [job for job in rig.jobs() if job.tries or job.deaths] == []
        rig.assert_records({str(number) for number in range(RECORDS)})
        rig.assert_sound()
