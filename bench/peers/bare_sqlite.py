"""Bare apsw: the rows that Penstock writes, in its tables, with no engine around them.

The schema, pragmas and indexes are Penstock's own; every job costs the same inserts, updates and
journal lines, in transactions of the same size. What is missing is all that decides: no gates, no
fairness, no fences, no retries. Batches travel as JSON, which was the faster way here too.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import msgspec

from penstock.clock import SystemClock
from penstock.store.sqlite.database import SqliteDatabase

Job = tuple[int, int]  # its id and its source

NOW = 1_700_000_000.0
ADD_JOBS = """
INSERT INTO job (id, run_id, source_id, stage, unit, key, state, rank, at)
SELECT value ->> 0, value ->> 1, value ->> 1, 'extract', 'candidate', value ->> 2, 'queued', ?2, ?2
FROM jsonb_each(?1) WHERE true
ON CONFLICT (run_id, stage, key) DO NOTHING
"""
ADD_ITEMS = """
INSERT INTO job_item (job_id, parent_id, item)
SELECT value ->> 0, NULL, value ->> 3 FROM jsonb_each(?)
"""
CLAIM = """
UPDATE job SET state = 'running', attempt = attempt + 1, worker = 'bare', at = ?2
WHERE id IN (SELECT value ->> 0 FROM jsonb_each(?1)) AND state = 'queued'
"""
SETTLE = """
UPDATE job SET state = 'succeeded', worker = NULL, at = ?2
WHERE id IN (SELECT value ->> 0 FROM jsonb_each(?1)) AND state = 'running'
"""
READ = """
SELECT json_group_array(json_array(job.id, run_id, source_id, job.key, attempt, item))
FROM jsonb_each(?) AS wanted CROSS JOIN job ON job.id = wanted.value ->> 0
JOIN job_item ON job_id = job.id
"""
ADD_EVENTS = """
INSERT INTO event (at, kind, source_id, run_id, job_id, attempt, actor)
SELECT ?2, ?3, value ->> 1, value ->> 1, value ->> 0, 1, 'bare' FROM jsonb_each(?1)
"""
COUNT = """
UPDATE run_stage
SET queued = queued + (d.value ->> 1), running = running + (d.value ->> 2),
  succeeded = succeeded + (d.value ->> 3)
FROM jsonb_each(?) AS d WHERE run_stage.run_id = d.value ->> 0 AND stage = 'extract'
"""


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
    db = SqliteDatabase(folder / "bare.db", SystemClock()).connection
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
    last_id = 0
    per_source = size["jobs"] // size["sources"]
    for source in range(1, size["sources"] + 1):
        for first in range(0, per_source, size["chunk"]):
            numbers = range(first, min(first + size["chunk"], per_source))
            urls = [f"https://example.test/{source}/{number}" for number in numbers]
            jobs = [
                (job_id, source, url, f'{{"url":"{url}"}}')
                for job_id, url in enumerate(urls, last_id + 1)
            ]
            last_id += len(jobs)
            chosen = _json(jobs)
            db.execute("BEGIN IMMEDIATE")
            db.execute(ADD_JOBS, (chosen, NOW))
            db.execute(ADD_ITEMS, (chosen,))
            db.execute(COUNT, (_json([(source, len(jobs), 0, 0)]),))
            db.execute(ADD_EVENTS, (_json([(None, source)]), NOW, "run.jobs_added"))
            db.execute("COMMIT")


def _drain(db: apsw.Connection, size: dict[str, Any]) -> None:
    running: list[Job] = []
    for claimed in [*_batches(size), []]:
        old, new = _json(running), _json(claimed)
        db.execute("BEGIN IMMEDIATE")
        db.execute(SETTLE, (old, NOW))
        db.execute(ADD_EVENTS, (old, NOW, "job.succeeded"))
        db.execute(CLAIM, (new, NOW))
        db.execute(ADD_EVENTS, (new, NOW, "job.started"))
        msgspec.json.decode(db.execute(READ, (new,)).fetchall()[0][0])
        db.execute(COUNT, (_json(_moves(claimed, running)),))
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


def _moves(claimed: list[Job], settled: list[Job]) -> list[tuple[int, ...]]:
    new = Counter(source for _, source in claimed)
    old = Counter(source for _, source in settled)
    return [(s, -new[s], new[s] - old[s], old[s]) for s in sorted(new.keys() | old.keys())]


def _json(rows: list[Any]) -> str:
    return msgspec.json.encode(rows).decode()


def rows_per_job(db: apsw.Connection, jobs: int) -> dict[str, float]:
    """To one decimal, so that the few rows of a run as a whole don't count."""
    counts = {
        table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("job", "job_item", "event")
    }
    return {table: round(count / jobs, 1) for table, count in counts.items()}
