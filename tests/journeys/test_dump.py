"""A large table, read by real workers that are killed in the middle of it, again and again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from penstock.jobs.run import RunState
from tests.journeys.rig import Rig, kill, until

MOST_RSS_MB = 150


def write_table(file: Path, size: int) -> int:
    """Rows with line breaks and quotes in their cells; answers how many."""
    rng, rows = random.Random(3), 0
    pads = ["x" * length for length in (20, 700, 1_500)]
    with file.open("w", encoding="utf-8") as table:
        table.write("id,name,text,when\n")
        while table.tell() < size:
            for number in range(rows + 1, rows + 1_001):
                text = f'one\n""two"" {number},\n{rng.choice(pads)}'
                table.write(f'{number},"name, {number}","{text}",2026-11-18\n')
            rows += 1_000
    return rows


def peak_rss_mb(pid: int) -> float:
    """What a process has held in memory at most; 0 if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return float(found[0].split()[1]) / 1000 if found else 0.0


def read_under_kills(folder: Path, size: int, kills: int) -> None:
    rows = write_table(folder / "table.csv", size)
    source = {"connector": "dump", "path": "./table.csv", "key": "id"}
    rng, peaks = random.Random(5), [0.0]
    with Rig(folder, {"table": source}) as rig:
        [run_id] = rig.enqueue("table")
        # No part has more than this many bytes, and its last row.
        parts = size // 500_000
        for point in sorted(rng.sample(range(1, max(kills + 1, parts)), kills)):
            working = rig.start("up", "--until-idle")
            rig.wait_for_pages(run_id, point, working)
            pids = [*rig.worker_pids(working), working.pid]
            peaks += map(peak_rss_mb, pids)
            for pid in pids:
                kill(pid)
            working.wait()
        last = rig.start("up", "--until-idle")

        def is_done() -> bool:
            peaks.extend(map(peak_rss_mb, [*rig.worker_pids(last), last.pid]))
            return last.poll() is not None

        until(is_done, "the table is read", within_s=3_600, process=last)
        assert rig.run(run_id).state is RunState.COMPLETED, rig.output(last)
        seen = 0
        for record in rig.store.records.each("table"):
            assert record.version == 1
            seen += record.data["kind"] == "row"
        assert seen == rows
        assert rig.run(run_id).rejected == 0
        rig.assert_sound()
        assert max(peaks) < MOST_RSS_MB, f"{max(peaks):.0f} MB"


def test_no_row_is_lost_or_doubled_by_workers_that_are_killed(tmp_path: Path) -> None:
    read_under_kills(tmp_path, 2_000_000, kills=2)


@pytest.mark.torture
@pytest.mark.timeout(7_200)
def test_two_gigabytes_are_read_in_little_memory_by_workers_that_are_killed(tmp_path: Path) -> None:
    read_under_kills(tmp_path, 2_000_000_000, kills=30)
