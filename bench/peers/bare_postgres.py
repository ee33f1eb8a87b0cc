"""Bare batched SQL on Postgres: one table, an index of what is ready, one process, and nothing that decides.

As fast as such SQL reasonably is: arrays through unnest, prepared statements, answers in binary, one
transaction for settling a batch and claiming the next, a pipeline that waits once for both, and claims
that begin behind the last id taken. No gates, no fairness, no fences, no counters, no retries.

With a journal, every job also has a key that makes it idempotent, and every transition a row.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg

Job = tuple[int, int, str, str, int]  # id, source, key, item, attempt
Connection = psycopg.Connection[tuple[Any, ...]]

NOW = 1_700_000_000.0
QUEUED, RUNNING, SUCCEEDED = 0, 1, 2
TABLES = """
CREATE TABLE job (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  source int NOT NULL,
  key text COLLATE "C" NOT NULL,
  item text NOT NULL,
  state smallint NOT NULL DEFAULT 0,
  attempt int NOT NULL DEFAULT 0,
  worker text,
  at double precision NOT NULL
);
CREATE INDEX job_ready ON job (id) WHERE state = 0;
"""
JOURNAL = """
ALTER TABLE job ADD UNIQUE (source, key);
CREATE TABLE event (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at double precision NOT NULL,
  state smallint NOT NULL,
  source int NOT NULL,
  job_id bigint NOT NULL,
  attempt int NOT NULL
);
"""
ADD_JOBS = """
INSERT INTO job (source, key, item, at)
SELECT %s::int, key, item, %s::float8 FROM unnest(%s::text[], %s::text[]) AS new (key, item)
"""
ADD_UNKNOWN_JOBS = ADD_JOBS + "ON CONFLICT (source, key) DO NOTHING"
# A list of ids and not a join: the planner can't take it for a reason to read the whole table.
CLAIM = """
WITH ready AS MATERIALIZED (
  SELECT id FROM job WHERE state = 0 AND id > %s::bigint
  ORDER BY id LIMIT %s::int FOR UPDATE SKIP LOCKED
)
UPDATE job SET state = 1, attempt = attempt + 1, worker = 'bare', at = %s::float8
WHERE id = ANY (ARRAY(SELECT id FROM ready))
RETURNING id, source, key, item, attempt
"""
SETTLE = """
UPDATE job SET state = 2, worker = NULL, at = %s::float8
WHERE id = ANY (%s::bigint[]) AND state = 1
"""
ADD_EVENTS = """
INSERT INTO event (at, state, source, job_id, attempt)
SELECT %s::float8, %s::smallint, * FROM unnest(%s::int[], %s::bigint[], %s::int[])
"""


def noop(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Insert every job, then settle a batch and claim the next in each transaction."""
    has_journal = size["has_journal"]
    with psycopg.connect(size["store"], autocommit=True, prepare_threshold=0) as db:
        db.execute(TABLES + (JOURNAL if has_journal else ""), prepare=False)
        began = time.perf_counter()
        _enqueue(db, size, ADD_UNKNOWN_JOBS if has_journal else ADD_JOBS)
        enqueued = time.perf_counter()
        _drain(db, size["batch"], has_journal)
        ended = time.perf_counter()
        done = _count(db, "job WHERE state = 2")
        if done != size["jobs"] or (has_journal and _count(db, "event") != 2 * done):
            raise ValueError(
                f"{done} of {size['jobs']} jobs ended, or a line of the journal is missing"
            )
    return {
        "seconds": ended - began,
        "done": done,
        "enqueue_seconds": enqueued - began,
        "drain_seconds": ended - enqueued,
    }


def _enqueue(db: Connection, size: dict[str, Any], statement: str) -> None:
    for source, urls in _chunks(size):
        items = [f'{{"url":"{url}"}}' for url in urls]
        db.execute(statement, (source, NOW, urls, items))


def _chunks(size: dict[str, Any]) -> Iterator[tuple[int, list[str]]]:
    """Source by source, as a run enqueues its own jobs."""
    per_source = size["jobs"] // size["sources"]
    for source in range(1, size["sources"] + 1):
        for first in range(0, per_source, size["chunk"]):
            numbers = range(first, min(first + size["chunk"], per_source))
            yield source, [f"https://example.test/{source}/{number}" for number in numbers]


def _drain(db: Connection, batch: int, has_journal: bool) -> None:
    running: list[Job] = []
    last_id = 0
    while True:
        with db.pipeline(), db.transaction():
            if running:
                db.execute(SETTLE, (NOW, _array(job[0] for job in running)))
                if has_journal:
                    _add_events(db, SUCCEEDED, running)
            claimed: list[Job] = db.execute(CLAIM, (last_id, batch, NOW), binary=True).fetchall()
            if has_journal:
                _add_events(db, RUNNING, claimed)
        running = claimed
        if not running:
            return
        last_id = max(job[0] for job in running)


def _add_events(db: Connection, state: int, jobs: list[Job]) -> None:
    columns = [_array(job[place] for job in jobs) for place in (1, 0, 4)]
    db.execute(ADD_EVENTS, (NOW, state, *columns))


def _array(numbers: Iterable[int]) -> str:
    """As the server writes arrays: the driver would look at each number, as it would for Penstock."""
    return f"{{{','.join(map(str, numbers))}}}"


def _count(db: Connection, what: str) -> int:
    row = db.execute(f"SELECT count(*) FROM {what}", prepare=False).fetchone()
    return int(row[0]) if row else 0
