"""Bare apsw: the rows that Penstock writes, in its tables, with no engine around them.

The schema, pragmas and indexes are Penstock's own; every job costs the same inserts, updates and
journal lines, in transactions of the same size. What is missing is all that decides: no gates, no
fairness, no fences, no retries, and each row is bound directly instead of travelling as JSON.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from penstock.store.sqlite.database import Database

Job = tuple[int, int]  # its id and its source

NOW = 1_700_000_000.0
ADD_JOB = (
    "INSERT INTO job (id, run_id, source_id, stage, unit, key, state, rank, at) "
    "VALUES (?, ?, ?, 'extract', 'candidate', ?, 'queued', ?, ?) "
    "ON CONFLICT (run_id, stage, key) DO NOTHING"
)
ADD_ITEM = "INSERT INTO job_item (job_id, parent_id, item) VALUES (?, NULL, ?)"
# As one value: a thousand rows handed to Python one by one cost more than all the updates.
READ = (
    "SELECT json_group_array(json_array(job.id, run_id, source_id, job.key, attempt, item)) "
    "FROM json_each(?) AS wanted CROSS JOIN job ON job.id = wanted.value "
    "JOIN job_item ON job_id = job.id"
)
CLAIM = (
    "UPDATE job SET state = 'running', attempt = attempt + 1, worker = 'bare', at = ? "
    "WHERE id = ? AND state = 'queued'"
)
SETTLE = (
    "UPDATE job SET state = 'succeeded', worker = NULL, at = ? WHERE id = ? AND state = 'running'"
)
ADD_EVENT = (
    "INSERT INTO event (at, kind, source_id, run_id, job_id, attempt, actor) "
    "VALUES (?, ?, ?, ?, ?, 1, 'bare')"
)
COUNT_QUEUED = "UPDATE run_stage SET queued = queued + ? WHERE run_id = ? AND stage = 'extract'"
COUNT_MOVED = (
    "UPDATE run_stage SET queued = queued - ?, running = running + ? - ?, "
    "succeeded = succeeded + ? WHERE run_id = ? AND stage = 'extract'"
)


def noop(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Insert every job, then claim and settle them a batch a transaction."""
    db = _open(folder, size["sources"])
    began = time.perf_counter()
    _enqueue(db, size)
    enqueued = time.perf_counter()
    _drain(db, size)
    ended = time.perf_counter()
    [(done,)] = db.execute("SELECT count(*) FROM job WHERE state = 'succeeded'")
    return {
        "seconds": ended - began,
        "done": done,
        "enqueue_seconds": enqueued - began,
        "drain_seconds": ended - enqueued,
        "rows": rows_per_job(db, size["jobs"]),
    }


def enqueue(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Insert every job with its unique key, and nothing more."""
    db = _open(folder, size["sources"])
    began = time.perf_counter()
    _enqueue(db, size)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "done": size["jobs"], "rows": rows_per_job(db, size["jobs"])}


def _open(folder: Path, sources: int) -> apsw.Connection:
    db = Database(folder / "bare.db").connection
    db.executemany(
        "INSERT INTO source (id, key, created_at) VALUES (?, ?, ?)",
        [(source, f"source-{source}", NOW) for source in range(1, sources + 1)],
    )
    db.executemany(
        "INSERT INTO run_stage (run_id, stage, unit, priority) VALUES (?, 'extract', 'candidate', 5)",
        [(source,) for source in range(1, sources + 1)],
    )
    return db


def _enqueue(db: apsw.Connection, size: dict[str, Any]) -> None:
    """Source by source, as a run enqueues its own jobs."""
    job_id = 0
    per_source = size["jobs"] // size["sources"]
    for source in range(1, size["sources"] + 1):
        for first in range(0, per_source, size["chunk"]):
            numbers = range(first, min(first + size["chunk"], per_source))
            jobs = [
                (
                    job_id + place,
                    source,
                    source,
                    f"https://example.test/{source}/{number}",
                    NOW,
                    NOW,
                )
                for place, number in enumerate(numbers, 1)
            ]
            db.execute("BEGIN IMMEDIATE")
            db.executemany(ADD_JOB, jobs)
            db.executemany(ADD_ITEM, [(job[0], f'{{"url":"{job[3]}"}}') for job in jobs])
            db.execute(COUNT_QUEUED, (len(jobs), source))
            db.execute(ADD_EVENT, (NOW, "run.enqueued", source, source, None))
            db.execute("COMMIT")
            job_id += len(jobs)


def _drain(db: apsw.Connection, size: dict[str, Any]) -> None:
    running: list[Job] = []
    for claimed in [*_batches(size), []]:
        db.execute("BEGIN IMMEDIATE")
        db.executemany(SETTLE, [(NOW, job) for job, _ in running])
        db.executemany(ADD_EVENT, _lines("job.succeeded", running))
        db.executemany(CLAIM, [(NOW, job) for job, _ in claimed])
        db.executemany(ADD_EVENT, _lines("job.started", claimed))
        db.execute(READ, (str([job for job, _ in claimed]),)).fetchall()
        db.executemany(COUNT_MOVED, _moves(claimed, running))
        db.execute("COMMIT")
        running = claimed


def _batches(size: dict[str, Any]) -> Iterator[list[Job]]:
    """All jobs, one of each source after another, as a fair claim takes them."""
    per_source = size["jobs"] // size["sources"]
    jobs = (
        (1 + source * per_source + place, source + 1)
        for place in range(per_source)
        for source in range(size["sources"])
    )
    while batch := list(islice(jobs, size["batch"])):
        yield batch


def _lines(kind: str, jobs: list[Job]) -> list[tuple[Any, ...]]:
    return [(NOW, kind, source, source, job) for job, source in jobs]


def _moves(claimed: list[Job], settled: list[Job]) -> list[tuple[int, ...]]:
    new = Counter(source for _, source in claimed)
    old = Counter(source for _, source in settled)
    return [(new[s], new[s], old[s], old[s], s) for s in sorted(new.keys() | old.keys())]


def rows_per_job(db: apsw.Connection, jobs: int) -> dict[str, float]:
    """To one decimal, so that the few rows of a run as a whole don't count."""
    counts = {
        table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("job", "job_item", "event")
    }
    return {table: round(count / jobs, 1) for table, count in counts.items()}
