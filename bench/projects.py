"""Projects to measure with: written, filled, worked off."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from penstock import Project
from penstock.jobs.job import NewJob
from penstock.store.store import Store

STAGE = "work"
# Where a project keeps its store if nobody says otherwise.
SQLITE = "sqlite:penstock.db"


@contextmanager
def project_in(
    folder: Path,
    sources: dict[str, Any],
    store: str = SQLITE,
    worker: dict[str, Any] | None = None,
) -> Iterator[Project]:
    write(folder, sources, worker or {}, store)
    with Project.load(folder) as project:
        yield project


def write(
    folder: Path, sources: dict[str, Any], worker: dict[str, Any], store: str = SQLITE
) -> None:
    settings = {"project": "bench", "store": store, "worker": worker, "sources": sources}
    (folder / "penstock.yaml").write_text(json.dumps(settings))  # JSON is YAML too


# Every gate is there and none of them closes: what is measured is the asking.
GUARDED: dict[str, Any] = {
    "breaker": {"ratio": 0.5, "at_least": 10},
    "budget": {"requests": "1000000000/d", "bytes": "1000000GB/d"},
}
RATE = "100000/s"


def nothing(sources: int) -> dict[str, Any]:
    """So many sources whose jobs do nothing."""
    return alike(sources, {"pipeline": "bench.pipelines:nothing"})


def alike(sources: int, source: dict[str, Any]) -> dict[str, Any]:
    """So many sources that differ by their names only."""
    guarded = {"limits": {"rate": RATE, "adaptive": True}, **GUARDED, **source}
    return {f"source-{number}.test": guarded for number in range(sources)}


def crawl(sitemap: str, concurrency: int) -> dict[str, Any]:
    """A source that crawls what a sitemap lists."""
    return {
        "pipeline": "bench.pipelines:crawl",
        "params": {"sitemap": sitemap},
        "limits": {"concurrency": concurrency, "rate": RATE, "adaptive": True},
        "fetch": {"allow_private": True},
        **GUARDED,
    }


def enqueue(store: Store, runs: list[int], jobs: int, chunk: int) -> None:
    """Source by source, as a run enqueues its own jobs."""
    per_source = jobs // len(runs)
    for run_id in runs:
        new = (new_job(run_id, number) for number in range(per_source))
        while batch := list(islice(new, chunk)):
            store.jobs.enqueue(run_id, batch)


def new_job(run_id: int, number: int) -> NewJob:
    url = f"https://example.test/{run_id}/{number}"
    return NewJob(STAGE, url, f'{{"url":"{url}"}}'.encode())


def span(project: Project, runs: list[int]) -> tuple[float, int]:
    """From the first claim of these runs to the end of the last, and how many jobs they settled."""
    rows = [project.require_run(run_id) for run_id in runs]
    began = min(row.started_at or math.inf for row in rows)
    ended = max(row.finished_at or math.inf for row in rows)
    return ended - began, sum(row.succeeded for row in rows)


def percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "p50_ms": ordered[len(ordered) // 2],
        "p99_ms": ordered[min(len(ordered) - 1, math.ceil(len(ordered) * 0.99) - 1)],
    }


@contextmanager
def up(folder: Path) -> Iterator[int]:
    """`penstock up` in processes of its own; yields the first one's."""
    command = [sys.executable, "-m", "penstock", "up", "--project", str(folder)]
    with subprocess.Popen(command) as process:
        try:
            yield process.pid
        finally:
            process.terminate()
