"""Plans of the queries on Postgres: by the index that was made for them, whatever the planner believes.

It may believe what it was told when the tables were empty: a statement that is prepared keeps its plan
while they grow. So the plans must be right before the first ANALYZE, after one that saw nothing, and after
one that saw a few thousand rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from penstock.clock import SystemClock
from penstock.store.postgres.migrate import PACKAGE
from penstock.store.postgres.session import BEGIN
from penstock.store.postgres.store import PostgresStore
from penstock.store.queries import queries
from tests.postgres.fixtures import a_name
from tests.postgres.server import Server

BY_ID, BY_KEY = "job_pkey", "job_key_pkey"
# By which index each query finds its jobs; the loop's own queries first.
HOT = {
    "fence": BY_ID,
    "note_flushes": BY_ID,
    "succeed_if_running": BY_ID,
    "settle_if_running": BY_ID,
    "owned_jobs": BY_ID,
    "next_due": "job_waiting",
    "due": "job_waiting",
    "wake_if_waiting": BY_ID,
    "ready_lanes": "job_ready",
    "ward_count": "job_ward",
    "pick": "job_ready",
    "suspect": "job_suspect",
    "claim_if_queued": BY_ID,
    "present_jobs": BY_KEY,
    "jobs_by_key": BY_KEY,
    "add_job_events": BY_ID,
    "bury_jobs": "job_running",
    "release_jobs": "job_running",
    "jobs_of": "job_running",
    "open_of_run": BY_KEY,
    "cancel_jobs_if_open": BY_ID,
    "retry_quarantined_of_run": "job_quarantined",
    "done_before": BY_KEY,
    "undone_jobs": BY_KEY,
    "skip_if_queued": BY_ID,
    "first_queued": "job_ready",
    "jobs_before": "job_ready",
    "old_jobs": BY_KEY,
    "drop_jobs": BY_ID,
    "jobs": BY_ID,
}
# What grows with the work that was ever done; and the indexes that hold only what is open.
GROWING = {
    "job", "job_key", "job_item", "job_failure", "event", "record", "record_version", "snapshot", "payload",
    "page", "rollup", "run_rollup",
}  # fmt: skip
SMALL = {"job_running", "job_waiting", "job_suspect", "job_ward", "job_quarantined", "job_held"}
# Who may walk: checks by a person, copies, and what ends at a limit from the beginning of an index.
WALKERS = {
    "miscounted_stages", "jobs_without_item", "snapshots_without_payload", "miscounted_collections",
    "old_snapshots", "next_segments", "segments_in_use", "drop_unused_payloads", "segment_ends",
    "events", "latest_events", "follow_events", "kinds_behind", "find_jobs", "find_quarantined", "find_live",
    "journal_ids", "line_until", "rare_kinds", "hot_event_of_job",
    # An undo, by a person: it pays for having no index that every save would have to keep.
    "undoable", "last_written_by", "changed_since",
    # A person's look at quarantine, along the index that holds nothing else.
    "count_entries", "find_entries", "count_closed_entries", "find_closed_entries",
    # Erasing a key, by a person: it looks inside of every text of the source, and into the acts of erasing.
    "records_to_forget", "jobs_to_forget", "events_to_forget", "failures_to_erase", "acts_of_erasure",
}  # fmt: skip
VALUES: dict[str, Any] = {
    "ids": "[1, 2]", "fences": "[[1, 1]]", "flushes": "[[1, 1]]", "touched": '[[1, "extract"]]',
    "ends": '[[1, 1, "waiting", 1.0, 1, 0]]', "keys": '[["a", "b"]]', "hashes": '["a"]',
    "grants": '[[1, "extract", 10, 0, 0]]', "floors": '[[1, "extract", 0, 0]]', "sources": "[1]",
    "updates": '[[1, 2, "{}", null, 1, 1, null, "v"]]', "states": '["queued"]', "worker": "w",
    "jobs": '[[1, 1, 1, "extract", "page", "k", 1.0]]', "items": '[[1, null, "{}"]]',
    "cause": "c", "is_escalated": False,
    "kind": "a", "actor": "a", "url": "u", "key": "k", "collection": "c", "after_key": "",
    "state": "completed", "leaves": "queued", "reason": "r", "host": "h", "schedule": "s",
    "plan": "{}", "pipeline_version": "v", "matter": "m", "holder": "h", "version": "v",
    "admits": "all", "segments": '["a"]', "ward_is_free": True, "active_only": False,
    "undos": "[1]", "run_ids": "[1]", "stage": "extract", "snapshots": "[1, 2]", "after_collection": "",
    "left": "[[1, 1]]", "brought_back": "[1]", "for_drains": False,
    "these": "[1]", "those": "[2]", "is_first": False, "quarantined_only": False, "same_only": False,
    "measure": "jobs", "measures": '["jobs"]', "labels": '["new"]', "source_ids": "[1]",
    "is_sole": False, "is_apart": False, "is_committed": False, "segment": "s", "hash": "h",
    "spelling": "k", "runbook": "b", "target": "t", "token": "t", "seen_upto": "10:20:", "seen_since": "5:5:",
}  # fmt: skip
TEXT_IDS = {
    "bury_jobs", "release_jobs", "jobs_of", "register", "beat_if_registered", "is_registered",
    "unregister", "unregister_if_expired",
}  # fmt: skip
QUERIES = queries(PACKAGE)
WITH_JOBS = """
INSERT INTO penstock.job (run_id, source_id, stage, unit, key, state, rank, at)
SELECT 1, 1, 'extract', 'page', i, 'queued', i, i FROM generate_series(1, 3000) AS i;
INSERT INTO penstock.job_key (run_id, stage, key, job_id) SELECT run_id, stage, key, id FROM penstock.job;
INSERT INTO penstock.record (collection, key, version, data, source_id, run_id, pipeline_version, updated_at)
SELECT 'c', i, 1, '{}', 1, 1, 'v', 1 FROM generate_series(1, 3000) AS i;
"""
Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module", params=["not analysed", "analysed empty", "analysed full"])
def connection(request: pytest.FixtureRequest, postgres: Server) -> Iterator[Connection]:
    name = a_name()
    url = postgres.create_database(name)
    PostgresStore(url, SystemClock()).close()
    factory = psycopg.ClientCursor[tuple[Any, ...]]
    with psycopg.connect(url, autocommit=True, cursor_factory=factory) as made:
        if request.param == "analysed full":
            made.execute(WITH_JOBS)
        if request.param != "not analysed":
            made.execute("ANALYZE")
        yield made
    postgres.drop_database(name)


def plan(connection: Connection, name: str) -> list[str]:
    """As a transaction of the store would have it."""
    sql = QUERIES[name]
    begin, *settings, _ = BEGIN.split(";")
    connection.execute(begin.encode())
    try:
        for setting in settings:
            connection.execute(setting.encode())
        cursor = connection.execute(f"EXPLAIN (COSTS OFF) {sql}".encode(), values_for(name, sql))
        return [line for (line,) in cursor]
    finally:
        connection.execute("ROLLBACK")


def values_for(name: str, sql: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, kind in re.findall(r"%\((\w+)\)s(?:::(\w+))?", sql):
        values[key] = VALUES.get(key, "[]" if kind == "jsonb" else 1)
    for key in ("ids", "runs"):
        if f"%({key})s::bigint[]" in sql:
            values[key] = [1, 2]
    if "id" in values:
        values["id"] = "w" if name in TEXT_IDS else 1
    return values


def walks(lines: list[str]) -> list[str]:
    """The steps that read a whole table that grows, or all of an index of it."""
    found = []
    for number, line in enumerate(lines):
        scan = re.search(r"(?:Scan using (\w+) on|(?:Seq|Heap) Scan on) (\w+)", line)
        if scan is None or scan[2] not in GROWING:
            continue
        below = "\n".join(part_of(lines, number))
        index = scan[1] or next(iter(re.findall(r"Bitmap Index Scan on (\w+)", below)), "")
        if "Index Cond" not in below and index not in SMALL:
            found.append(line.strip())
    return found


def part_of(lines: list[str], number: int) -> Iterator[str]:
    """What stands below a line and is set in further than it."""
    depth = len(lines[number]) - len(lines[number].lstrip())
    for line in lines[number + 1 :]:
        if len(line) - len(line.lstrip()) <= depth:
            return
        yield line


@pytest.mark.parametrize("name", HOT)
def test_hot_query_goes_by_its_index(connection: Connection, name: str) -> None:
    lines = plan(connection, name)

    on_jobs = [line for line in lines if re.search(r"Scan (using \w+ )?on job(_key)?\b", line)]
    indexes = re.findall(r"(?:Bitmap Index Scan on|Scan using) (job_\w+)", "\n".join(lines))
    assert on_jobs, lines
    assert HOT[name] in indexes, lines


READING = re.compile(rf"(?:FROM|JOIN|UPDATE) penstock\.(?:{'|'.join(GROWING)})\b")


def test_no_verb_walks_through_what_grows(connection: Connection) -> None:
    names = [name for name in QUERIES if READING.search(QUERIES[name]) and name not in WALKERS]
    found = {name: walks(plan(connection, name)) for name in names}

    assert names
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("state", ["queued", "running", "waiting", "held"])
def test_what_is_not_done_is_found_along_the_index_that_holds_nothing_else(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setitem(VALUES, "states", f'["{state}"]')
    lines = "\n".join(plan(connection, "find_live"))
    [index] = re.findall(r"(?:Bitmap Index Scan on|Scan using) (\w+)", lines)
    assert index == ("job_ready" if state == "queued" else f"job_{state}"), lines
    assert "Seq Scan on job" not in lines


def test_what_is_rare_in_the_journal_is_found_by_its_own_index(connection: Connection) -> None:
    by_index = {
        "rare_events_of_job": "event_of_job", "rare_events_of_run": "event_of_job",
        "events_of_kinds": "event_of_kind", "rare_kinds": "event_of_kind",
    }  # fmt: skip
    for name, index in by_index.items():
        lines = "\n".join(plan(connection, name))
        assert index in lines, lines
        assert "Seq Scan on event" not in lines, lines
