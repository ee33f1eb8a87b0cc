"""However many runs have ended, looking costs what is active, and retention goes in even pieces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.clock import SystemClock
from penstock.jobs.effects import Effects, Rejection
from penstock.store.jobs import JobFilter
from penstock.store.postgres.migrate import PACKAGE
from penstock.store.postgres.session import BEGIN
from penstock.store.queries import queries
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.sqlite.store import SqliteStore
from penstock.store.upkeep import Keep
from tests.contract.scenes import World, a_save, done
from tests.contract.test_postgres_plans import VALUES, values_for
from tests.contract.test_retention import DAY_S, ended_run, prune_all
from tests.contract.test_sqlite_plans import steps_of

RUNS = Keep(DAY_S, None, None, DAY_S, runs_s=30 * DAY_S)
# What grows with the runs that were ever made.
HISTORY = {"run", "run_stage", "tally", "tick", "replay", "job", "job_key"}
# What looks at history because somebody asked for that: checks, reports over a time, erasing a key.
ASKED = {
    "ended_runs_with_open_jobs", "miscounted_stages", "unaccounted_runs", "late_fires", "jobs_without_item",
    "active_runs_without_open_jobs", "jobs_to_forget", "failures_to_erase", "runs_to_erase",
}  # fmt: skip
ENDED = 5000
# What the checks of the tables ask for, beside the values that fit everywhere.
REJECTS = {"code": "no_price", "since": 0.0, "ids": None, "open_only": True}
OWN: dict[str, dict[str, Any]] = {
    "add_jobs": {"jobs": '[[900000, 1, 1, "extract", "page", "new", 1.0]]'},
    "add_run": {"kind": "full", "state": "queued", "key": "new", "of_run_id": None, "options": "{}"},
    "add_ticks": {"version": 1, "outcome": "fired", "due": "[7.0]", "was_missed": False},
    "backlog": {"planner": "plan"},
    "count_rejects": REJECTS,
    # The one run that has no stages: a run goes after they have.
    "drop_runs": {"ids": "[4999]"},
    "latest_events": {"seen": None},
    "outbox": {"undelivered_only": False},
    "pretend_run": {"kind": "full"},
    "pretend_stage": {"unit": "page"},
    "rejects": REJECTS,
    "rejects_to_redrive": {**REJECTS, "stages": '["extract"]'},
    "restamp_if_known": {"known": "v"},
    "sources_with_ends": {"since": ENDED - 100.0},
    "set_replay_state": {"state": "staged"},
    "stages_of_rejects": REJECTS,
    "ticks": {"with_missed": False},
    "windows_since": {"partition": "p"},
}  # fmt: skip
# What has to be written first, in the same transaction.
FIRST = {"pretend_stage": "pretend_run"}
MANY_ENDED = """
INSERT INTO source (key, created_at) SELECT 's' || i, 1 FROM n WHERE i <= 20;
INSERT INTO run (
  source_id, kind, state, key, plan, pipeline_version, actor, created_at, queued_at, started_at, finished_at
)
SELECT 1 + i % 20, 'full', CASE i % 3 WHEN 0 THEN 'partial' WHEN 1 THEN 'failed' ELSE 'completed' END,
  'k' || i, '{}', 'v', 'a', i, i, i, i FROM n WHERE i <= COUNT;
INSERT INTO run (source_id, kind, state, key, plan, pipeline_version, actor, created_at, queued_at)
SELECT i, 'full', 'queued', 'a' || i, '{}', 'v', 'a', 90000 + i, 90000 + i FROM n WHERE i <= 20;
INSERT INTO run_stage (run_id, stage, unit, priority, succeeded)
SELECT id, 'extract', 'page', 5, 10 FROM run WHERE state <> 'queued';
INSERT INTO run_stage (run_id, stage, unit, priority, queued)
SELECT id, 'extract', 'page', 5, 1 FROM run WHERE state = 'queued';
INSERT INTO job (run_id, source_id, stage, unit, key, state, rank, at)
SELECT id, source_id, 'extract', 'page', 'k', 'queued', 1, 1 FROM run WHERE state = 'queued';
INSERT INTO replay (run_id, state, at) SELECT id, 'committed', 1 FROM run WHERE id % 5 = 0;
"""
# What the queries about them would find; each is of one of the ended runs.
ASIDE = """
INSERT INTO reject (source_id, run_id, job_id, stage, key, code, reason, item, at)
SELECT 1, i, i, 'extract', 'k', 'no_price', 'none', '{}', i FROM n WHERE i <= 20;
INSERT INTO tick (source_id, schedule, due_at, version, outcome, run_id, at)
SELECT 1, 's', i, 1, 'fired', i, i FROM n WHERE i <= 20;
INSERT INTO coverage (source_id, partition, start_at, end_at, run_id, at)
SELECT 1, 'p', i, i + 1, i, i FROM n WHERE i <= 20;
INSERT INTO outbox (hook, run_id, state, body, created_at, due_at)
SELECT 'h', i, 'completed', '{}', i, i FROM n WHERE i <= 20;
DELETE FROM run_stage WHERE run_id = 4999;
"""


# What looking costs.


def sqlite_with(path: Path, ended: int) -> SqliteStore:
    store = SqliteStore(path, SystemClock())
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
    for statement in MANY_ENDED.replace("COUNT", str(ended)).split(";"):
        store._db.connection.execute(
            f"{numbers} {statement}" if "FROM n" in statement else statement
        )
    return store


LOOKS: dict[str, Callable[[SqliteStore], Any]] = {
    "overview": lambda store: store.overview(),
    "sources": lambda store: store.sources.all(),
    "active runs": lambda store: store.runs.newest(active_only=True),
    "runs": lambda store: store.runs.newest(),
    "runs of a source": lambda store: store.runs.newest("s1"),
    "queued jobs": lambda store: store.jobs.find(JobFilter(states=("queued",))),  # type: ignore[arg-type]
    "undecided": lambda store: store.replays.undecided(),
    "startable": lambda store: store.jobs.has_startable(1.0),
    "old replays": lambda store: store.replays.drop_old(DAY_S),
}


@pytest.mark.parametrize("look", LOOKS)
def test_looking_costs_the_same_however_many_runs_have_ended_in_sqlite(
    tmp_path: Path, look: str
) -> None:
    steps = []
    for ended in (ENDED // 10, ENDED):
        with closing(sqlite_with(tmp_path / f"{ended}.db", ended)) as store:
            steps.append(sum(steps_of(store._db, lambda: LOOKS[look](store))))
    assert steps[1] < 2 * steps[0] + 500, steps


@pytest.fixture(scope="module")
def crowded(postgres: Any) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    from penstock.store.postgres.store import PostgresStore
    from tests.postgres.fixtures import a_name

    name = a_name()
    url = postgres.create_database(name)
    PostgresStore(url, SystemClock()).close()
    factory = psycopg.ClientCursor[tuple[Any, ...]]
    with psycopg.connect(url, autocommit=True, cursor_factory=factory) as made:
        made.execute("SET search_path = penstock")
        made.execute("CREATE TEMP VIEW n AS SELECT generate_series(1, 5000) AS i")
        made.execute(MANY_ENDED.replace("COUNT", str(ENDED)).encode())
        made.execute(ASIDE.encode())
        made.execute(
            "INSERT INTO job_key (run_id, stage, key, job_id) SELECT run_id, stage, key, id FROM job"
        )
        made.execute("ANALYZE")
        yield made
    postgres.drop_database(name)


def rows_read(connection: psycopg.Connection[tuple[Any, ...]], name: str) -> dict[str, int]:
    """How many rows of each table a query reads, in a transaction as the store makes them."""
    sql = queries(PACKAGE)[name]
    begin, *settings, _ = BEGIN.split(";")
    connection.execute(begin.encode())
    try:
        for setting in settings:
            connection.execute(setting.encode())
        if name in FIRST:
            connection.execute(queries(PACKAGE)[FIRST[name]].encode(), fitting(FIRST[name]))
        [(plans,)] = connection.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}".encode(), fitting(name)
        ).fetchall()
    finally:
        connection.execute("ROLLBACK")
    found: dict[str, int] = {}
    for node in nodes(plans[0]["Plan"]):
        if table := node.get("Relation Name"):
            passed = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            found[table] = found.get(table, 0) + int(passed * node["Actual Loops"])
    return found


def fitting(name: str) -> dict[str, Any]:
    return {**values_for(name, queries(PACKAGE)[name]), **OWN.get(name, {})}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes(below)


READS = sorted(
    name
    for name, sql in queries(PACKAGE).items()
    if name not in ASKED and any(f"penstock.{table}" in sql for table in (*HISTORY, "stage_count"))
)


@pytest.mark.parametrize("name", READS)
def test_no_query_reads_all_runs_that_have_ended_on_postgres(
    crowded: psycopg.Connection[tuple[Any, ...]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in {"limit": 100, "source_id": 1, "before": 100.0, "outside": "[]"}.items():
        monkeypatch.setitem(VALUES, key, value)
    found = rows_read(crowded, name)
    assert {
        table: rows for table, rows in found.items() if table in HISTORY and rows > ENDED / 4
    } == {}


# Retention of runs.


def test_runs_go_when_they_are_old_and_nothing_needs_them(world: World) -> None:
    old = [ended_run(world, 2, key=str(number)) for number in range(5)]
    world.clock.advance(20 * DAY_S)
    young = ended_run(world, 1, key="young")
    prune_all(world, RUNS)
    assert [world.store.runs.get(run_id) is not None for run_id in old] == [True] * 5

    world.clock.advance(11 * DAY_S)
    prune_all(world, RUNS)

    assert [world.store.runs.get(run_id) for run_id in old] == [None] * 5
    assert world.run(young).succeeded == 2
    left = world.dump()
    assert {row[0] for row in left["run_stage"]} == {young}
    assert world.store.upkeep.check() == []


def test_last_run_and_last_good_run_of_a_source_stay(world: World) -> None:
    good = ended_run(world, 1, key="good")
    world.clock.advance(1.0)
    bad = world.start(key="bad")
    world.store.runs.cancel(bad, "ops", "")
    world.clock.advance(1.0)
    last = world.start(key="last")
    world.store.runs.cancel(last, "ops", "")
    while world.store.runs.sweep_cancelled():
        pass
    world.clock.advance(400 * DAY_S)

    prune_all(world, RUNS)

    assert [world.store.runs.get(each) is not None for each in (good, bad, last)] == [
        True,
        False,
        True,
    ]


def test_runs_with_quarantine_or_rejects_stay(world: World) -> None:
    rejecting = world.start_with_pages(1, key="rejecting")
    world.turn("w", done(world.one(), effects=Effects(rejections=[Rejection("no_price", "none")])))
    failed = ended_run(world, 2, failed=1, key="failed")
    world.clock.advance(1.0)
    gone = ended_run(world, 0, key="later")
    world.clock.advance(400 * DAY_S)
    ended_run(world, 0, key="last")

    prune_all(world, RUNS)

    assert world.store.runs.get(gone) is None
    assert world.run(failed).quarantined == 1
    assert world.run(rejecting).rejected == 1


def test_record_outlives_the_run_that_saved_it(world: World) -> None:
    run_id = world.start_with_pages(1, key="first")
    world.turn("w", done(world.one(), saves=[a_save("k", {"n": 1})]))
    for number in range(2):
        world.clock.advance(1.0)
        ended_run(world, 1, key=str(number))
    world.clock.advance(400 * DAY_S)

    prune_all(world, RUNS)

    assert world.store.runs.get(run_id) is None
    [record] = world.store.records.of("product")
    assert (record.run, record.data) == (run_id, {"n": 1})


def test_run_is_kept_while_its_jobs_and_snapshots_are(world: World) -> None:
    run_id = ended_run(world, 1)
    world.clock.advance(1.0)
    ended_run(world, 1, key="later")
    world.clock.advance(100 * DAY_S)

    prune_all(world, Keep(365 * DAY_S, None, None, DAY_S, runs_s=DAY_S))
    prune_all(world, Keep(DAY_S, None, None, 365 * DAY_S, runs_s=DAY_S))

    assert world.store.runs.get(run_id) is not None


# Retention in pieces.


def test_pieces_of_retention_do_not_grow_with_what_was_dropped_or_stays(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "penstock.db", SystemClock())) as store:
        db: SqliteDatabase = store._db
        db.connection.execute(
            """
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
            INSERT INTO event (at, kind) SELECT i, 'x' FROM n;
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
            INSERT INTO job (run_id, source_id, stage, unit, key, state, rank, at)
            SELECT 1 + i / 3001, 1, 'extract', 'page', i, iif(i <= 3000, 'quarantined', 'succeeded'), i, i
            FROM n;
            INSERT INTO run (
              source_id, kind, state, key, plan, pipeline_version, actor, created_at, finished_at
            )
            VALUES (1, 'full', 'partial', 'a', '{}', 'v', 'a', 1, 2),
              (1, 'full', 'completed', 'b', '{}', 'v', 'a', 1, 3);
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
            INSERT INTO snapshot (id, job_id, run_id, url, hash, status, headers, fetched_at)
            SELECT i, i, 1, 'u', 'h', 200, '{}', i FROM n;
            """
        )
        keep = Keep(1.0, 1.0, None, 1.0)
        pieces = []
        while True:
            left: list[int] = []
            taken = [sum(steps_of(db, lambda: left.append(store.upkeep.prune(keep, 200))))]  # noqa: B023
            pieces += taken
            if not left[0]:
                break
    whole = sorted(pieces)
    assert len(pieces) > 20
    assert whole[-1] < 4 * whole[len(whole) // 2], json.dumps(pieces)
