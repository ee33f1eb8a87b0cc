"""How cost grows with what is behind a project: finished jobs and sources, on both databases.

    python -m bench.scale                       measure the sizes that are usual here, write docs/scale.md
    python -m bench.scale --only sqlite:1000000:1000    one size; may be repeated
    python -m bench.scale --write               only write the page, from what was measured before

Each size is measured in a process of its own, and its figures are kept in `bench/scale.json`: sizes may be
measured on different days. What was not measured is projected on the page, and marked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psycopg

from bench import dashboards, ours, projects, scale_page
from bench.projects import SQLITE, nothing, project_in
from bench.rounds import environment_in
from penstock import Project
from penstock.engine.worker.process import SWITCH_INTERVAL_S
from penstock.store.store import Store
from penstock.store.upkeep import Keep

HERE = Path(__file__).parent
RESULTS = HERE / "scale.json"
SCRATCH = HERE.parent / ".scale"
USUAL = [
    f"{kind}:{jobs}:{sources}"
    for jobs in (10_000, 1_000_000)
    for sources in (10, 1_000, 10_000)
    for kind in ("sqlite", "postgres")
]
# Jobs that are worked off for real; the others are copies of them.
WORKED_OFF = 2_000
TURNS, SLOTS = 100, 16
LOOKS, PAGE_LOOKS = 10, 3
BATCHES, BATCH = 10, 1_000


def measured(kind: str, jobs: int, sources: int, folder: Path, store: str) -> dict[str, Any]:
    """Fill a project, then time what users and workers do with it."""
    began = time.perf_counter()
    with project_in(folder, nothing(sources), store) as project:
        runs = [project.run(key) for key in project.settings.sources]
        worked_off = min(jobs, max(WORKED_OFF, sources))
        projects.enqueue(project.connection, runs, worked_off, 10_000)
        project.runs.finish(runs, tell=print)
        dashboards.copy_jobs(project, jobs // worked_off - 1)
        if kind == "postgres":
            _go_on_behind_copies(store)
        runs = [project.run(key) for key in project.settings.sources]
        projects.enqueue(project.connection, runs, max(2 * TURNS * SLOTS, sources), 10_000)
    found: dict[str, Any] = {"filled_s": time.perf_counter() - began}
    meter = Meter(store if kind == "postgres" else "")
    with Project.load(folder) as project:
        source = list(project.settings.sources)[sources // 2]
        found |= _looks(meter, "status", project.status)
        found |= _looks(meter, "explain", lambda: project.explain(source))
        found |= asyncio.run(_pages(meter, project))
    found |= _turns(meter, folder, sources, store)
    with Project.load(folder) as project:
        found |= _retention(meter, project)
    return {"kind": kind, "jobs": jobs, "sources": sources, **found}


class Meter:
    """Processor time, of this process and of the server: what others do on the machine adds nothing to it."""

    def __init__(self, store: str) -> None:
        self._server = _server_pid(store) if store else 0

    def used_ms(self) -> float:
        return time.process_time() * 1000 + self.server_ms()

    def server_ms(self) -> float:
        return _family_ms(self._server) if self._server else 0.0

    def mean_ms(self, look: Callable[[], Any], looks: int) -> tuple[float, float]:
        """(processor time of one look, its median time on the clock)"""
        look()
        times, before = [], self.used_ms()
        for _ in range(looks):
            began = time.perf_counter()
            look()
            times.append((time.perf_counter() - began) * 1000)
        return (self.used_ms() - before) / looks, statistics.median(times)


def _server_pid(store: str) -> int:
    """The parent of all processes of a server on this machine."""
    with psycopg.connect(store) as connection:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        return _stat(row[0] if row else 0)[1]


def _family_ms(pid: int) -> float:
    """Processor time of a process, of its children, and of those that have ended."""
    total = 0.0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                mine, parent, own_ms, ended_ms = _stat(int(name))
            except (OSError, IndexError):
                continue
            if parent == pid or mine == pid:
                total += own_ms + (ended_ms if mine == pid else 0.0)
    return total


def _stat(pid: int) -> tuple[int, int, float, float]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    tick_ms = 1000 / os.sysconf("SC_CLK_TCK")
    own, ended = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    return pid, int(fields[1]), own * tick_ms, ended * tick_ms


def _go_on_behind_copies(store: str) -> None:
    """Copies were given ids by us: the next one that the server gives out comes after them."""
    with psycopg.connect(store, autocommit=True) as connection:
        for table in ("job", "event"):
            sequence = f"pg_get_serial_sequence('penstock.{table}', 'id')"
            connection.execute(f"SELECT setval({sequence}, max(id)) FROM penstock.{table}")


def _looks(meter: Meter, name: str, look: Callable[[], Any]) -> dict[str, float]:
    used, took = meter.mean_ms(look, LOOKS)
    return {f"{name}_ms": used, f"{name}_took_ms": took}


async def _pages(meter: Meter, project: Project) -> dict[str, Any]:
    """Every page of the dashboard, as a browser gets it; the client is in this process, too."""
    pages: dict[str, float] = {}
    async with dashboards._browser(project) as (browser, origin):
        for path in dashboards.paths(project):
            await _look_at(browser, origin + path)
            before = meter.used_ms()
            for _ in range(PAGE_LOOKS):
                await _look_at(browser, origin + path)
            pages[path] = (meter.used_ms() - before) / PAGE_LOOKS
    slowest = max(pages, key=lambda path: pages[path])
    return {"page": slowest, "page_ms": pages[slowest], "overview_ms": pages["/"], "pages": pages}


async def _look_at(browser: Any, url: str) -> None:
    """Again where a machine that is busy has not answered in time."""
    for left in reversed(range(5)):
        try:
            await dashboards._took_ms(browser, url)
            return
        except RuntimeError:
            if not left:
                raise


class MeteredProject(ours.TimedProject):
    """Notes what turns that claim cost: of the thread that makes them, and of the server."""

    meter: Meter
    used_s = 0.0
    server_ms: tuple[float, float] | None = None

    def open_store(self) -> Store:
        store = super().open_store()
        turn = store.turn

        def metered(*arguments: Any) -> Any:
            before, taken = time.thread_time(), len(self.turns)
            answer = turn(*arguments)
            if len(self.turns) > taken:
                self.used_s += time.thread_time() - before
                now = self.meter.server_ms()
                self.server_ms = (now if self.server_ms is None else self.server_ms[0], now)
            return answer

        store.turn = metered  # type: ignore[method-assign]
        return store


def _turns(meter: Meter, folder: Path, sources: int, store: str) -> dict[str, float]:
    """One turn of a worker: settle 16 jobs and claim 16, with work queued for every source."""
    projects.write(folder, nothing(sources), {"slots": SLOTS}, store)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with MeteredProject.load(folder) as project:
        project.meter = meter
        asyncio.run(ours._work_for(project, TURNS))
        turns = len(project.turns)
        first, last = project.server_ms or (0.0, 0.0)
        used = 1000 * project.used_s / turns + (last - first) / max(turns - 1, 1)
        return {"turn_ms": used, "turn_took_ms": 1000 * statistics.median(project.turns)}


def _retention(meter: Meter, project: Project) -> dict[str, float]:
    """Drop finished jobs and their journal in batches, after what they came to was summed."""
    keep = Keep(jobs_s=0.0, events_s=0.0, versions_s=None, snapshots_s=None)
    upkeep = project.connection.upkeep
    before = meter.used_ms()
    upkeep._fold_rest()
    folded_ms = meter.used_ms() - before
    dropped, before = 0, meter.used_ms()
    for _ in range(BATCHES):
        dropped += upkeep.prune(keep, BATCH)
    used = meter.used_ms() - before
    return {
        "fold_s": folded_ms / 1000,
        "prune_ms": used / max(dropped, 1) * 1000,
        "dropped": dropped,
    }


def main() -> int:
    asked = _arguments()
    if asked.one:
        kind, jobs, sources = _size(asked.one)
        with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
            store = asked.store or SQLITE
            print(json.dumps(measured(kind, jobs, sources, Path(folder), store)))
        return 0
    if not asked.write:
        _measure(asked.only or USUAL)
    scale_page.write(_known())
    return 0


def _measure(sizes: list[str]) -> None:
    SCRATCH.mkdir(exist_ok=True)
    try:
        with _server(sizes) as server:
            for size in sizes:
                _keep(_apart(size, server))
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)


def _server(sizes: list[str]) -> Any:
    from bench import postgres

    wanted = any(size.startswith("postgres") for size in sizes)
    return postgres.running(SCRATCH) if wanted else nullcontext()


def _apart(size: str, server: Any) -> dict[str, Any]:
    """Measure in a process of its own: nothing of one size is warm in the next."""
    from bench import postgres

    with postgres.database(server) if size.startswith("postgres") else nullcontext("") as store:
        command = [sys.executable, "-m", "bench.scale", "--one", size, "--store", store]
        load = os.getloadavg()[0]
        done = subprocess.run(
            command,
            cwd=HERE.parent,
            env=environment_in(SCRATCH),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    found["load"] = round(max(load, os.getloadavg()[0]), 1)
    said = {key: round(value, 2) for key, value in found.items() if isinstance(value, float)}
    print(size, said, flush=True)
    return found


def _known() -> list[dict[str, Any]]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else []


def _keep(found: dict[str, Any]) -> None:
    def which(each: dict[str, Any]) -> tuple[str, int, int]:
        return each["kind"], each["jobs"], each["sources"]

    others = [each for each in _known() if which(each) != which(found)]
    rounded = {
        key: float(f"{value:.4g}") if isinstance(value, float) and math.isfinite(value) else value
        for key, value in found.items()
    }
    rounded["pages"] = {path: float(f"{ms:.3g}") for path, ms in found["pages"].items()}
    RESULTS.write_text(json.dumps(sorted([*others, rounded], key=which), indent=1) + "\n")


def _size(text: str) -> tuple[str, int, int]:
    kind, jobs, sources = text.split(":")
    return kind, int(jobs), int(sources)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--only", action="append", metavar="KIND:JOBS:SOURCES", help="this size")
    parser.add_argument("--write", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--store", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
