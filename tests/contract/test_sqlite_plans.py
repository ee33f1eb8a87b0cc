"""Plans of the hot queries: by the index that was made for them, never a scan or a sort of the jobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import apsw
import pytest

from penstock.clock import SystemClock
from penstock.store.journal import Journal
from penstock.store.queries import queries
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.sqlite.migrate import PACKAGE

BY_ID = "SEARCH job USING INTEGER PRIMARY KEY"
READY = "job_ready (run_id=? AND stage=?)"
UNIQUE = "sqlite_autoindex_job_1 (run_id=? AND stage=? AND key=?)"

# What each query must do with the job table; the loop's own queries first.
HOT = {
    "fence": BY_ID,
    "succeed_if_running": BY_ID,
    "settle_if_running": BY_ID,
    "owned_jobs": BY_ID,
    "next_due": "COVERING INDEX job_waiting",
    "due": "INDEX job_waiting (due_at<?)",
    "wake_if_waiting": BY_ID,
    "ready_heads": f"COVERING INDEX {READY}",
    "running_counts": "COVERING INDEX job_running",
    "ward_count": "INDEX job_running",
    "pick": f"SEARCH job USING INDEX {READY}",
    "pick_suspects": "INDEX job_suspect (run_id=? AND stage=?)",
    "suspect": "INDEX job_suspect",
    "claim_if_queued": BY_ID,
    "claimed": BY_ID,
    "present_jobs": BY_ID,
    "jobs_by_key": UNIQUE,
    "add_job_events": BY_ID,
    "bury_jobs": "INDEX job_running",
    "release_jobs": "INDEX job_running",
    "jobs_of": "INDEX job_running",
    "cancel_running_of_run": "INDEX job_running",
    "open_of_run": "COVERING INDEX job_ready (run_id=?)",
    "cancel_jobs_if_open": BY_ID,
    "retry_quarantined_of_run": "INDEX job_quarantined (run_id=?)",
    "done_before": UNIQUE,
    "undone_jobs": "sqlite_autoindex_job_1 (run_id=? AND (stage,key)>(?,?))",
    "skip_if_queued": BY_ID,
    "outlook_queues": f"SEARCH job USING INDEX {READY}",
    "outlook_due": "INDEX job_waiting (due_at<?)",
    "outlook_jobs": "SEARCH j USING INTEGER PRIMARY KEY",
    "old_jobs": "SEARCH job USING INDEX sqlite_autoindex_job_1 (run_id=? AND (stage,key)>(?,?))",
}
# These partial indexes hold only what is open or waits for a person, so walking one is no scan of the queue.
SMALL = ("job_running", "job_waiting", "job_quarantined", "job_suspect")


# Twenty thousand jobs of one run, and two of another one, which has ended; one of these was tried twice.
A_LONG_JOURNAL = """
INSERT INTO source (id, key, created_at) VALUES (1, 'acme.com', 0);
INSERT INTO run (
  id, source_id, kind, state, key, plan, pipeline_version, actor, created_at, finished_at, first_event_id
) VALUES
  (1, 1, 'full', 'partial', 'a', '{}', 'v', 'ann', 0, 10000, 1),
  (2, 1, 'full', 'running', 'b', '{}', 'v', 'ann', 0, NULL, 1);
INSERT INTO job (id, run_id, source_id, stage, unit, key, state, rank, at, attempt)
VALUES (6000, 1, 1, 'extract', 'page', 'x', 'quarantined', 1, 6100, 2),
  (6001, 1, 1, 'extract', 'page', 'y', 'succeeded', 1, 9000, 1);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
INSERT INTO event (id, at, kind, source_id, run_id, job_id, attempt)
SELECT i * 10, i, CASE i % 2 WHEN 0 THEN 'job.started' ELSE 'job.succeeded' END, 1, 2, 100000 + i / 2, 1
FROM n;
INSERT INTO event (id, at, kind, source_id, run_id, job_id, attempt) VALUES
  (60001, 6000, 'job.started', 1, 1, 6000, 1), (60011, 6001, 'job.retry_scheduled', 1, 1, 6000, 1),
  (60991, 6099, 'job.started', 1, 1, 6000, 2), (61001, 6100, 'job.quarantined', 1, 1, 6000, 2),
  (89991, 8999, 'job.started', 1, 1, 6001, 1), (90001, 9000, 'job.succeeded', 1, 1, 6001, 1);
INSERT INTO event (id, at, kind, source_id, run_id)
VALUES (1, 0, 'run.started', 1, 1), (100001, 10000, 'run.partial', 1, 1);
"""


@pytest.fixture(scope="module", params=["not analysed", "analysed empty", "analysed full"])
def connection(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[apsw.Connection]:
    """Plans must not depend on what ANALYZE has seen, or has not."""
    db = SqliteDatabase(tmp_path_factory.mktemp("plans") / "penstock.db", SystemClock())
    if request.param == "analysed empty":
        db.connection.execute("ANALYZE")
    if request.param == "analysed full":
        db.connection.execute(
            """
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            INSERT INTO job (run_id, source_id, stage, unit, key, state, rank, at)
            SELECT 1, 1, 'extract', 'page', i, 'queued', i, i FROM n;
            ANALYZE
            """
        )
    yield db.connection
    db.close()


def plan(connection: apsw.Connection, name: str) -> list[str]:
    sql = queries(PACKAGE)[name]
    values = dict.fromkeys(re.findall(r":([a-z_]+)", sql))
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def test_hot_queries_go_by_their_indexes(connection: apsw.Connection) -> None:
    plans = {name: plan(connection, name) for name in HOT}

    assert {name: p for name, p in plans.items() if not any(HOT[name] in line for line in p)} == {}


def test_what_is_not_done_is_found_along_the_indexes_that_hold_nothing_else(
    connection: apsw.Connection,
) -> None:
    scans = [line for line in plan(connection, "find_live") if line.startswith("SCAN job ")]
    indexes = {line.rpartition(" ")[2] for line in scans}
    assert indexes == {"job_ready", "job_running", "job_waiting", "job_held"}


# What walks through a queue does so where it is known to be short.
def test_no_verb_scans_or_sorts_the_jobs(connection: apsw.Connection) -> None:
    names = set(queries(PACKAGE)) - {"jobs_without_item", "miscounted_stages", "find_live"}
    found = {name: [line for line in plan(connection, name) if walks(name, line)] for name in names}

    assert {name: lines for name, lines in found.items() if lines} == {}


def walks(name: str, line: str) -> bool:
    is_scan = re.match(r"SCAN job\b", line) and not any(small in line for small in SMALL)
    return bool(is_scan) or (name in HOT and "TEMP B-TREE" in line)


@pytest.mark.parametrize(
    "name", ["runs", "startable", "snapshot_of_job", "last_snapshot", "present"]
)
def test_reading_goes_by_keys(connection: apsw.Connection, name: str) -> None:
    tables = r"SCAN (run|run_stage|g|snapshot|s|record|payload|p)\b"
    scans = [line for line in plan(connection, name) if re.match(tables, line)]

    assert [line for line in scans if "run_stage_ready" not in line] == []


def test_figures_go_by_keys(connection: apsw.Connection) -> None:
    tables = r"SCAN (rollup|run_rollup|r|measured|event|e|job|run|g)\b"
    named = [name for name, sql in queries(PACKAGE).items() if re.search(r"\b(run_)?rollup\b", sql)]
    found = [(name, line) for name in named for line in plan(connection, name)]

    assert named
    scans = [each for each in found if re.match(tables, each[1])]
    assert [each for each in scans if "run_active" not in each[1]] == []


def test_lines_of_a_job_are_read_from_the_line_that_is_said_to_be_its_last(tmp_path: Path) -> None:
    """A bound that the plan has no use for is a filter, and everything behind it is read all the same."""
    db = SqliteDatabase(tmp_path / "penstock.db", SystemClock())
    db.connection.execute(
        """
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO event (at, kind, job_id) SELECT i, 'job.started', i FROM n;
        """
    )
    about = dict.fromkeys(
        ("seen", "line", "run_id", "source_id", "kind", "kinds", "where", "floor_id")
    )
    asks = (
        partial(db.json, "latest_events", **about, job_id=40, limit=50, until_id=until_id)
        for until_id in (None, 50)
    )
    without, within = steps_of(db, *asks)
    db.close()
    assert within * 20 < without, (within, without)


def test_few_lines_among_many_are_found_without_reading_the_others(tmp_path: Path) -> None:
    """A job, a kind that is rare, and a run that has ended: what came before and after costs nothing."""
    db = SqliteDatabase(tmp_path / "penstock.db", SystemClock())
    db.connection.execute(A_LONG_JOURNAL)
    journal = Journal(db)
    walked, *asked = (
        sum(steps_of(db, ask))
        for ask in (
            partial(journal.events, limit=100_000),
            partial(journal.events, job_id=6_000),
            partial(journal.events, job_id=6_001, kind="job"),
            partial(journal.events, kind="job.quarantined"),
            partial(journal.events, kind="run", source="acme.com"),
            partial(journal.events, run_id=1, kind="job.quarantined"),
            partial(journal.page, run_id=1, limit=3),
        )
    )
    found = [row.kind for row in journal.events(job_id=6_000)]
    assert found == ["job.started", "job.retry_scheduled", "job.started", "job.quarantined"]
    assert [row.kind for row in journal.events(job_id=6_001)] == ["job.started", "job.succeeded"]
    db.close()
    assert max(asked) * 50 < walked, (asked, walked)


def test_who_asks_for_what_waits_reads_nothing_of_the_queue(tmp_path: Path) -> None:
    db = SqliteDatabase(tmp_path / "penstock.db", SystemClock())
    db.connection.execute(
        """
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO job (run_id, source_id, stage, unit, key, state, rank, at)
        SELECT 1, 1, 'extract', 'page', i, 'queued', i, i FROM n;
        """
    )
    about = dict.fromkeys(("run_id", "source_id", "stage"))
    steps = steps_of(
        db,
        *(
            partial(db.value, "find_live", states=f'["{state}"]', after_id=0, limit=50, **about)
            for state in ("waiting", "queued")
        ),
    )
    db.close()
    assert steps[0] * 20 < steps[1], steps


def steps_of(db: SqliteDatabase, *asks: Callable[[], object]) -> list[int]:
    """How much SQLite has to do for each of these."""
    steps: list[int] = []
    db.connection.trace_v2(
        apsw.SQLITE_TRACE_PROFILE,
        lambda told: steps.append(told["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]),
    )
    for ask in asks:
        ask()
    db.connection.trace_v2(0, None)
    return steps
