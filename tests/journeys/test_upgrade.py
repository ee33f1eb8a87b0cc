"""A new version comes while the old one works: both work at once, and the old one leaves when it likes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.cli import main
from penstock.project import default_actor
from tests.clocked import in_time
from tests.journeys.rig import ENVIRONMENT, PENSTOCK, Rig, counting_site, kill, source_of, until
from tests.journeys.test_many_hosts import stop
from tests.journeys.versions import later_version, newest, previous_version
from tests.postgres.server import Server

NEWEST = newest()
EXPANDS = """-- expands
-- locks: job, for a moment
ALTER TABLE {0}job ADD COLUMN colour text;
CREATE TABLE {0}paint (colour text PRIMARY KEY);
CREATE INDEX paint_colour ON {0}paint (colour);
"""
CONTRACTS = f"""-- contracts: {NEWEST + 1}
-- locks: paint, for a moment
DROP TABLE {{0}}paint;
"""
PAGES = 240


def command(rig: Rig, version: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PENSTOCK, *words],
        cwd=rig.folder,
        env={**ENVIRONMENT, "PYTHONPATH": str(version)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def workers_by_schema(url: str) -> dict[int, int]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT schema, count(*) FROM penstock.worker GROUP BY schema")
        return dict(rows.fetchall())


def migrations_in(url: str) -> dict[int, float]:
    """Each migration with how long it held what it had locked."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT number, took_s FROM penstock.migration")
        return dict(rows.fetchall())


def plan(rig: Rig, version: Path) -> dict[str, Any]:
    shown = command(rig, version, "db", "migrate", "--plan", "--json")
    assert shown.returncode == 0, shown.stderr
    found: dict[str, Any] = json.loads(shown.stdout)
    return found


def test_both_versions_work_at_once_and_the_schema_shrinks_when_the_old_one_is_gone(
    tmp_path: Path, database: str
) -> None:
    old = previous_version(tmp_path / "old")
    new = later_version(tmp_path / "new", EXPANDS)
    newer = later_version(tmp_path / "newer", EXPANDS, CONTRACTS)
    project = tmp_path / "project"
    project.mkdir()
    with counting_site() as site:
        sources = {
            name: source_of(site, PAGES, page_ms=60, host=number, limits={"concurrency": 4})
            for number, name in enumerate(("shop", "late"), 1)
        }
        with Rig(project, sources, store=database) as rig:
            before = rig.start("up", PYTHONPATH=str(old))
            [run_id] = rig.enqueue("shop")
            rig.wait_for_pages(run_id, 20, before)

            # The new version expands by itself, under load.
            after = rig.start("up", PYTHONPATH=str(new))
            until(lambda: NEWEST + 1 in workers_by_schema(database), "the new one works")
            assert set(workers_by_schema(database)) == {NEWEST, NEWEST + 1}
            rig.wait_for_pages(run_id, min(PAGES, rig.run(run_id).pages_done + 30), before)

            # The newer one would take something away: it asks, and waits for the old one to leave.
            refused = command(rig, newer, "status")
            assert refused.returncode == 5
            assert "penstock db migrate" in refused.stderr
            [pending] = plan(rig, newer)["pending"]
            assert (pending["effect"], pending["locks"]) == ("contracts", "paint, for a moment")
            assert {each["schema"] for each in pending["in_the_way"]} == {NEWEST}
            refused = command(rig, newer, "db", "migrate", "--yes")
            assert refused.returncode == 7
            assert "takes away what a worker on" in refused.stderr

            stop(before)
            [late] = rig.enqueue("late")
            rig.wait_for_pages(late, 10, after)
            told = command(
                rig, newer, "db", "migrate", "--yes", "--reason", "all are new", "--json"
            )
            assert told.returncode == 0, told.stderr
            assert [each["number"] for each in json.loads(told.stdout)["applied"]] == [NEWEST + 2]

            refused = command(rig, old, "status")
            assert refused.returncode == 5
            assert f"has schema {NEWEST + 2}, this Penstock knows up to" in refused.stderr
            assert command(rig, newer, "status").returncode == 0

            until(
                lambda: all(run.is_ended for run in rig.store.runs.newest()), "both runs have ended"
            )
            stop(after)
            assert_nobody_noticed(rig, run_id, late)
            times = migrations_in(database)
            in_time(max(times[NEWEST + 1], times[NEWEST + 2]), 0.2)
            [told_by] = [e for e in rig.events("db.migrated") if e.detail.endswith("all are new")]
            assert told_by.detail == f"{NEWEST + 2:04}_later: all are new"


def assert_nobody_noticed(rig: Rig, *run_ids: int) -> None:
    runs = [rig.run(run_id) for run_id in run_ids]
    assert {run.state for run in runs} == {"completed"}
    assert {(run.pages_done, run.retried, run.rejected) for run in runs} == {(PAGES, 0, 0)}
    assert sum(run.inserted for run in runs) == sum(run.unchanged for run in runs) == PAGES
    assert {(job.tries, job.deaths) for job in rig.jobs()} == {(0, 0)}
    assert rig.events("worker.reaped") == []
    rig.assert_fenced()
    rig.assert_records({f"/page/{number}" for number in range(PAGES)})


def test_new_version_expands_a_file_and_refuses_to_shrink_it_unasked(tmp_path: Path) -> None:
    new = later_version(tmp_path / "new", EXPANDS)
    newer = later_version(tmp_path / "newer", EXPANDS, CONTRACTS)
    project = tmp_path / "project"
    project.mkdir()
    with Rig(project, {}) as rig:
        assert rig.penstock("status").returncode == 0
        assert command(rig, new, "status").returncode == 0
        assert rig.penstock("status").returncode == 0, "what it knows is still there"

        refused = command(rig, newer, "status")
        assert (refused.returncode, "penstock db migrate" in refused.stderr) == (5, True)
        shown = command(rig, newer, "db", "migrate", "--plan").stdout
        assert f"{NEWEST + 2:04}_later  contracts" in shown
        asked = command(rig, newer, "db", "migrate")
        assert (asked.returncode, "say --yes" in asked.stderr) == (7, True)
        assert command(rig, newer, "db", "migrate", "--yes").returncode == 0
        refused = rig.penstock("status")
        assert refused.returncode == 5
        assert f"has schema {NEWEST + 2}, this Penstock knows up to {NEWEST}" in refused.stderr
        told = json.loads(command(rig, newer, "events", "--json").stdout)
        migrated = [each for each in told if each["kind"] == "db.migrated"]
        assert [each["detail"] for each in migrated] == [
            f"{NEWEST + 1:04}_later", f"{NEWEST + 2:04}_later",
        ]  # fmt: skip
        assert migrated[0]["actor"].startswith("penstock ")
        assert migrated[1]["actor"] == default_actor()


def test_supervisor_whose_schema_is_gone_ends_and_says_why(tmp_path: Path, database: str) -> None:
    """Its worker had just died, so no lease was in the way when the schema shrank."""
    with Rig(tmp_path, {}, store=database) as rig:
        up = rig.start("up")
        pid: int = until(lambda: rig.worker_pid(up), "it works")
        with psycopg.connect(database) as connection:
            connection.execute(
                "INSERT INTO penstock.migration (number, name, contracts, took_s)"
                " VALUES (99, '0099_gone', 99, 0)"
            )
        kill(pid)
        assert up.wait(timeout=120) == 7
        assert "schema is newer" in rig.output(up)
        assert rig.store.workers.all() == []


def test_index_that_was_left_half_made_is_shown_and_dropped(
    tmp_path: Path, postgres: Server, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "penstock.yaml").write_text(f"project: x\nstore: {database}\n")
    here = ["--project", str(tmp_path)]
    assert main(["db", "check", *here]) == 0
    with psycopg.connect(database) as connection:
        connection.execute("CREATE INDEX event_kind_ccnew ON penstock.event (kind)")
    spoil = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'penstock.event_kind_ccnew'::regclass"
    postgres.admin(spoil, database.rpartition("/")[2])

    assert main(["db", "check", *here]) == 5
    assert "index event_kind_ccnew is incomplete: penstock db migrate" in capsys.readouterr().out
    assert main(["db", "migrate", "--plan", *here]) == 0
    assert "index event_kind_ccnew is incomplete, and will be" in capsys.readouterr().out
    assert main(["db", "migrate", "--yes", *here]) == 0
    assert "index event_kind_ccnew was incomplete, and is dropped" in capsys.readouterr().out
    assert main(["db", "check", *here]) == 0


def test_empty_database_is_planned_for_and_not_made_by_looking(
    tmp_path: Path, database: str
) -> None:
    with Rig(tmp_path, {}, store=database) as rig:
        shown = rig.penstock("db", "migrate", "--plan")
        assert shown.returncode == 0, shown.stderr
        assert "has no schema yet" in shown.stdout
        with psycopg.connect(database) as connection:
            [(found,)] = connection.execute("SELECT to_regnamespace('penstock')").fetchall()
        assert found is None
        assert rig.penstock("db", "migrate", "--yes").returncode == 0
        assert "nothing to do" in rig.penstock("db", "migrate", "--yes").stdout
