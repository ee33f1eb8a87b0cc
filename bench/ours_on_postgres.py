"""Penstock's side where only Postgres is asked for: several workers, and a snapshot that is held."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import psycopg

from bench import projects
from bench.projects import new_job, nothing, project_in, span, up
from penstock import Project

WARM_UP_S = 3.0
LOOK_S = 0.05
TABLES = ("job", "job_item", "event")


def noop(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Enqueue all jobs, then let worker processes claim, perform and settle them."""
    worker = {"count": size["workers"]}
    with project_in(folder, nothing(size["sources"]), size["store"], worker) as project:
        runs = [project.run(key) for key in project.settings.sources]
        began = time.perf_counter()
        projects.enqueue(project.connection, runs, size["jobs"], size["chunk"])
        enqueue_seconds = time.perf_counter() - began
        project.runs.finish(runs, tell=print)
        drain_seconds, done = span(project, runs)
    if done != size["jobs"] + len(runs):
        raise ValueError(f"{done} of {size['jobs']} jobs and {len(runs)} first ones ended")
    return {
        "seconds": enqueue_seconds + drain_seconds,
        "done": size["jobs"],
        "enqueue_seconds": enqueue_seconds,
        "drain_seconds": drain_seconds,
        "rows": rows_per_job(size["store"], size["jobs"]),
    }


def rows_per_job(store: str, jobs: int) -> dict[str, float]:
    """To one decimal, so that the few rows of a run as a whole don't count."""
    with psycopg.connect(store) as db:
        counts = {
            table: db.execute(f"SELECT count(*) FROM penstock.{table}").fetchall()[0][0]
            for table in TABLES
        }
    return {table: round(count / jobs, 1) for table, count in counts.items()}


def held(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Jobs flow in as fast as they are worked off; what is settled is read off every so often.

    The queue is kept as deep as at the beginning, so that a claim always has enough to take.
    """
    with project_in(folder, nothing(size["sources"]), size["store"]) as project:
        flow = Flow(project, size["chunk"], size["depth"])
        flow.fill()
        with up(folder):
            flow.warm_up()
            with _snapshot(size["store"]) if size["is_held"] else nullcontext():
                points = flow.settle_for(size["seconds"])
    seconds, done = points[-1]
    quarter = [point for point in points if point[0] <= seconds * 0.75][-1]
    return {
        "seconds": seconds,
        "done": done,
        "late_rate": (done - quarter[1]) / (seconds - quarter[0]),
        "points": points,
    }


@contextmanager
def _snapshot(store: str) -> Iterator[None]:
    """What a long report or a backup does: see the database as it is now, for as long as it takes."""
    with psycopg.connect(store) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT count(*) FROM penstock.source")
        yield
        reader.rollback()


class Flow:
    """Keeps a project's queue as deep as it is asked to be, a chunk for one run after another."""

    def __init__(self, project: Project, chunk: int, depth: int) -> None:
        self._project = project
        self._runs = [project.run(key) for key in project.settings.sources]
        self._chunk = chunk
        self._depth = depth
        self._added = 0

    def fill(self) -> int:
        """Top the queue up; answer how many jobs have ended so far."""
        seen = self._project.connection.overview()
        for _ in range(0, self._depth - seen.queued, self._chunk):
            run_id = self._runs[self._added // self._chunk % len(self._runs)]
            numbers = range(self._added, self._added + self._chunk)
            jobs = [new_job(run_id, number) for number in numbers]
            self._project.connection.jobs.enqueue(run_id, jobs)
            self._added += self._chunk
        return self._added - seen.queued - seen.running

    def warm_up(self) -> None:
        """Until the worker is there and has been at it for a while."""
        while not self.fill():
            time.sleep(LOOK_S)
        self.settle_for(WARM_UP_S)

    def settle_for(self, seconds: float) -> list[tuple[float, int]]:
        """(seconds since now, jobs ended since now), again and again."""
        began, before = time.monotonic(), self.fill()
        points = [(0.0, 0)]
        while points[-1][0] < seconds:
            time.sleep(LOOK_S)
            ended = self.fill()
            points.append((time.monotonic() - began, ended - before))
        return points
