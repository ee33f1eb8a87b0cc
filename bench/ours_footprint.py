"""Penstock's side where not work is measured but what it costs to be there: memory, and the start."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench import commands, projects, site
from bench.dashboards import copy_jobs
from bench.projects import crawl, nothing, percentiles, up, write
from penstock import Project

LOOK_S = 0.5
GIVE_UP_S = 1800.0
# Jobs that are worked off for real before they are copied.
REAL = 100_000
CHUNK = 10_000


def memory(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The peak of the worker of `penstock up` while it works on such a queue, after many turns."""
    write(folder, nothing(size["sources"]), {})
    with Project.load(folder) as project:
        if size["finished"]:
            _finish(project, size["finished"])
        runs = [project.run(key) for key in project.settings.sources]
        projects.enqueue(project.connection, runs, size["queued"], CHUNK)
    with up(folder) as supervisor, Project.load(folder) as project:
        peaks = _watch(project, supervisor, size)
    own = peaks.pop(supervisor)
    return {"rss_mb": max(peaks.values()), "supervisor_mb": own}


def _finish(project: Project, finished: int) -> None:
    real = min(finished, REAL)
    runs = [project.run(key) for key in project.settings.sources]
    projects.enqueue(project.connection, runs, real, CHUNK)
    project.runs.finish(runs, tell=print)
    copy_jobs(project, finished // real - 1)


def _watch(project: Project, supervisor: int, size: dict[str, Any]) -> dict[int, float]:
    """The peaks of all processes when enough has been settled."""
    began, peaks = time.monotonic(), dict[int, float]()
    goal = size["queued"] - size["settled"]
    while project.connection.overview().queued > goal:
        if time.monotonic() - began > GIVE_UP_S:
            raise TimeoutError("the worker does not get on")
        time.sleep(LOOK_S)
        for pid in (supervisor, *_children(supervisor)):
            peaks[pid] = max(peaks.get(pid, 0.0), _peak_mb(pid))
    return peaks


def _children(pid: int) -> list[int]:
    """All processes that descend from this one."""
    found = [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]
    return [*found, *(grandchild for child in found for grandchild in _children(child))]


def _peak_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    peaks = [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")]
    return peaks[0] if peaks else 0.0


def cold_start(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """From the start of `penstock run` to its first request at the site, in a new project or an old one."""
    waits_ms = []
    for number in range(size["starts"]):
        place = folder / str(number)
        place.mkdir()
        source = crawl(size["origin"] + "/sitemap.xml", size["concurrency"])
        write(place, {"site.test": source}, {})
        if not size["is_new"]:
            commands.run(place, "run", "--all")
        site.forget_first(size["origin"])
        began = time.time()
        commands.run(place, "run", "--all")
        waits_ms.append((site.first_request_at(size["origin"]) - began) * 1000)
    return percentiles(waits_ms)
