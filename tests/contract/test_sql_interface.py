"""The SQL interface for programs that read: the monitoring statements, installing, checking."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock import Project
from penstock.errors import Refused, UsageError
from penstock.jobs.effects import Effects, Save
from tests.contract.scenes import Place, StoreKind
from tests.contract.sql_clients import (
    ERRORS,
    Client,
    a_failed_run,
    client_of,
    fail,
    look,
    settle,
    write_site_agents,
)

BACKLOG = """
SELECT job_type, COUNT(*) AS queued_jobs
FROM ingestion_jobs
WHERE status = 'queued'
GROUP BY job_type
ORDER BY job_type;
"""
FAILURES = """
SELECT job_type, organization_id, site_url, error_message, updated_at
FROM ingestion_jobs
WHERE status = 'failed'
ORDER BY updated_at DESC
LIMIT 50;
"""
FRESHNESS = """
SELECT domain, site_type, last_verified_at
FROM source_site_schemas
WHERE last_verified_at IS NULL OR last_verified_at < NOW() - INTERVAL '30 days'
ORDER BY last_verified_at NULLS FIRST;
"""
POLLUTION = """
SELECT
  domain,
  jsonb_array_length(pollution_notes) AS pollution_events
FROM source_site_schemas
WHERE pollution_notes IS NOT NULL
  AND jsonb_array_length(pollution_notes) > 0
ORDER BY pollution_events DESC;
"""
AGING = """
SELECT status, COUNT(*) AS refs
FROM supplier_references
GROUP BY status;
"""
# SQLite has no intervals, and another name for the length of an array.
ON_SQLITE = {
    FRESHNESS: FRESHNESS.replace(
        "NOW() - INTERVAL '30 days'", "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-30 days')"
    ),
    POLLUTION: POLLUTION.replace("jsonb_array_length", "json_array_length"),
}
NOW = "2126-01-01T00:00:00Z"


@pytest.fixture
def project(tmp_path: Path, place: Place) -> Iterator[Project]:
    with Project.load(write_site_agents(tmp_path, place)) as made:
        made.connection.workers.register("w", "here", 1, "1")
        made.sql.install()
        yield made
        assert made.connection.upkeep.check() == []


@pytest.fixture
def client(project: Project, place: Place) -> Iterator[Client]:
    with client_of(place) as found:
        yield found


def ask(client: Client, kind: StoreKind, statement: str) -> list[tuple[Any, ...]]:
    return client.rows(statement if kind.is_shared else ON_SQLITE.get(statement, statement))


def save(project: Project, source: str, *records: tuple[str, str, dict[str, Any]]) -> int:
    """A run of this source saves these (collection, key, data), as a step's `ctx.save` does."""
    project.run(source)
    saves = [
        Save(collection, key, msgspec.json.encode(data, order="deterministic"), None, "replace")
        for collection, key, data in records
    ]
    return settle(project, effects=Effects(saves=saves))


def schema(
    domain: str, verified: str | None, notes: list[str] | None
) -> tuple[str, str, dict[str, Any]]:
    data = {"domain": domain, "site_type": "builder", "pollution_notes": notes}
    return "site_schemas", domain, {**data, "last_verified_at": verified}


def test_backlog_counts_what_is_queued_by_the_name_of_the_pipeline(
    project: Project, client: Client, kind: StoreKind
) -> None:
    for source in ("acme.com", "beta.com", "acme.com/check"):
        project.run(source)
    project.connection.turn("w", [], _room(), project.limits())

    assert ask(client, kind, BACKLOG) == [("mapper", 1), ("validator", 1)]


def test_failure_feed_names_whose_job_failed_and_why_newest_first(
    project: Project, client: Client, kind: StoreKind
) -> None:
    a_failed_run(project, "acme.com")
    a_failed_run(project, "beta.com")

    told = [row[:4] for row in ask(client, kind, FAILURES)]
    error = "TimeoutError: no answer in 30 s"
    assert told == [
        ("mapper", "org-2", "beta.com", error),
        ("mapper", "org-1", "https://www.acme.com/", error),
    ]


def test_schema_freshness_lists_what_nobody_verified_for_a_month(
    project: Project, client: Client, kind: StoreKind
) -> None:
    old = "2026-01-01T00:00:00+02:00"
    save(project, "acme.com", schema("acme.com", old, None), schema("new.com", NOW, None))
    save(project, "beta.com", schema("beta.com", None, None))

    told = [row[:2] for row in ask(client, kind, FRESHNESS)]
    assert told == [("beta.com", "builder"), ("acme.com", "builder")]


def test_pollution_watch_lists_what_has_notes_the_most_first(
    project: Project, client: Client, kind: StoreKind
) -> None:
    records = [schema("a.com", NOW, ["x"]), schema("b.com", NOW, ["x", "y"])]
    save(project, "acme.com", *records, schema("c.com", NOW, []), schema("d.com", NOW, None))

    assert ask(client, kind, POLLUTION) == [("b.com", 2), ("a.com", 1)]


def test_supplier_references_are_counted_by_status_and_are_new_without_one(
    project: Project, client: Client, kind: StoreKind
) -> None:
    rows = [("supplier_references", str(n), {"supplier_name": f"s{n}"}) for n in range(2)]
    linked = ("supplier_references", "9", {"status": "linked", "linked_organization_id": "org-2"})
    save(project, "acme.com", *rows, linked)

    assert sorted(ask(client, kind, AGING)) == [("linked", 1), ("new", 2)]


@pytest.mark.parametrize("statement", [BACKLOG, FAILURES, FRESHNESS, POLLUTION, AGING])
def test_our_own_command_runs_each_statement_as_it_stands_on_both_databases(
    project: Project, client: Client, kind: StoreKind, statement: str
) -> None:
    a_failed_run(project, "beta.com")
    project.run("gamma.com")
    save(
        project,
        "acme.com",
        schema("old.com", "2020-01-01T00:00:00Z", ["logo"]),
        schema("never.com", None, []),
        schema("new.com", NOW, ["logo", "icon"]),
        ("supplier_references", "1", {"supplier_name": "Bolts"}),
    )
    found = project.sql.query(statement)
    rows = ask(client, kind, statement)
    # The last column may be a time, which the client shows in its own time zone.
    shown = len(found.columns) - found.columns[-1].endswith("_at")
    assert [tuple(row[:shown]) for row in found.rows] == [tuple(row[:shown]) for row in rows]
    assert rows or statement is BACKLOG
    assert not found.has_more


@pytest.mark.parametrize(
    "statement",
    [
        *("DELETE FROM ingestion_jobs", "INSERT INTO ingestion_jobs (source) VALUES ('acme.com')"),
        *(
            "SELECT 1; DROP VIEW organizations",
            "CREATE TABLE t (a int)",
            "ATTACH 'x' AS y",
        ),
        *("COMMIT; DELETE FROM organizations", " ; ", "SELECT 1 FROM nowhere"),
    ],
)
def test_a_statement_that_does_more_than_read_is_refused(project: Project, statement: str) -> None:
    with pytest.raises(UsageError):
        project.sql.query(statement)
    assert project.sql.list().items == []
    assert project.sql.check().is_sound


def test_what_is_set_by_habit_beside_the_status_is_no_mistake(
    project: Project, client: Client
) -> None:
    client.do(
        "INSERT INTO ingestion_jobs (source, status, attempt) VALUES ('acme.com', 'queued', 0)"
    )
    client.do("UPDATE ingestion_jobs SET status = 'blocked', updated_at = '2026-01-01T00:00:00Z'")
    assert client.rows("SELECT status FROM ingestion_jobs") == [("blocked",)]


def test_rows_beyond_the_limit_are_said_to_be_there(project: Project) -> None:
    found = project.sql.query("SELECT id FROM organizations ORDER BY id", limit=1)
    assert (found.columns, len(found.rows), found.has_more) == (["id"], 1, True)
    assert project.sql.query("SELECT id FROM organizations WHERE id = 'x'").columns == ["id"]


def test_each_status_says_what_became_of_the_run(project: Project, client: Client) -> None:
    ended, failed = project.run("acme.com"), 0
    settle(project)
    failed = a_failed_run(project, "beta.com")
    draft = project.runs.start("gamma.com", draft=True).run
    assert draft is not None
    held = project.run("acme.com/check")
    project.sources.hold("acme.com/check")

    told = {
        row[0]: row[1:] for row in client.rows("SELECT id, status, blocked_by FROM ingestion_jobs")
    }
    assert told == {
        ended: ("succeeded", None),
        failed: ("failed", None),
        draft.id: ("blocked", "draft"),
        held: ("blocked", "hold of the source"),
    }


def test_attempts_count_how_often_a_run_was_opened(project: Project, client: Client) -> None:
    run_id = project.run("acme.com")
    assert client.rows("SELECT attempt FROM ingestion_jobs") == [(0,)]
    look(project, "https://acme.com/1")
    fail(project)
    for attempt in (1, 2, 3):
        assert client.rows("SELECT attempt FROM ingestion_jobs") == [(attempt,)]
        project.runs.retry(run_id)
        fail(project)


def test_result_has_the_counts_of_an_ended_run(project: Project, client: Client) -> None:
    save(project, "acme.com", schema("acme.com", NOW, None))

    [(result, completed)] = client.rows("SELECT result, completed_at FROM ingestion_jobs")
    found = json.loads(result) if isinstance(result, str) else result
    assert found["inserted"] == 1
    assert completed is not None


def test_content_of_private_sources_is_not_shown(tmp_path: Path, place: Place) -> None:
    folder = write_site_agents(tmp_path, place)
    settings = json.loads((folder / "penstock.yaml").read_text())
    settings["sources"]["acme.com"]["private"] = True
    (folder / "penstock.yaml").write_text(json.dumps(settings))
    with Project.load(folder) as project, client_of(place) as client:
        project.connection.workers.register("w", "here", 1, "1")
        project.sql.install()
        save(project, "acme.com", schema("acme.com", NOW, ["secret"]))
        a_failed_run(project, "acme.com")

        assert client.rows("SELECT * FROM source_site_schemas") == []
        assert client.rows(FAILURES)[0][3] == "transient"


def test_installing_again_changes_nothing_and_removing_leaves_nothing(
    project: Project, client: Client, kind: StoreKind, place: Place
) -> None:
    run_id = project.run("acme.com")
    assert project.sql.install().problems == []
    assert client.rows("SELECT id FROM ingestion_jobs") == [(run_id,)]

    project.sql.remove()
    assert project.sql.check().schema is None
    with pytest.raises(ERRORS):
        client.rows("SELECT id FROM ingestion_jobs")
    project.sql.install()
    told = [each.kind for each in project.journal.list(kind="db").items]
    assert [kind for kind in told if "sql" in kind].count("db.sql_removed") == 1


def test_check_finds_a_missing_trigger_and_installing_repairs_it(
    project: Project, client: Client, kind: StoreKind
) -> None:
    if kind.is_shared:
        client.do("DROP TRIGGER penstock_update ON organizations")
    else:
        client.do("DROP TRIGGER penstock_update_organization")
    assert project.sql.check().problems

    project.sql.install()
    assert project.sql.check().problems == []


def test_check_says_that_the_configuration_has_changed(
    project: Project, client: Client, tmp_path: Path
) -> None:
    file = tmp_path / "penstock.yaml"
    file.write_text(file.read_text().replace("org-2", "org-3"))
    with Project.load(tmp_path) as changed:
        assert "1 of 4 sources" in changed.sql.check().problems[0]
        changed.sql.install()
        assert changed.sql.check().problems == []
    assert ("org-3",) in client.rows("SELECT id FROM organizations")


def test_a_table_of_somebody_else_is_never_touched(
    tmp_path: Path, place: Place, kind: StoreKind
) -> None:
    with Project.load(write_site_agents(tmp_path, place)) as project, client_of(place) as client:
        _ = project.source_ids
        if kind.is_shared:
            client.do("CREATE SCHEMA penstock_sql")
        client.do("CREATE TABLE ingestion_jobs (id integer)")

        with pytest.raises(Refused, match="not Penstock's"):
            project.sql.install()


def test_a_schema_that_can_not_be_is_refused(project: Project, kind: StoreKind) -> None:
    wrong = "penstock" if kind.is_shared else "public"
    with pytest.raises((UsageError, Refused)):
        project.sql.install(wrong)


def _room() -> Any:
    from penstock.gates.capacity import Capacity

    return Capacity(1)
