"""What SQL clients ask for leaves the store as the verb of the command line does, or is refused at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import dict_row

from penstock import Project
from penstock.jobs.effects import Effects, Save
from penstock.project.sql_requests import perform_requests
from tests.contract.scenes import Place, StoreKind
from tests.contract.sql_clients import (
    ERRORS,
    Client,
    a_failed_run,
    client_of,
    make,
    settle,
    write_site_agents,
)

STATUSES = ("queued", "running", "succeeded", "failed", "blocked", "cancelled")
# What a client may ask for, and the verb that does it. Everything else is refused.
MOVES: dict[tuple[str, str], Callable[[Project, int], Any]] = {
    ("queued", "blocked"): lambda project, run: project.runs.pause(run, reason="why"),
    ("running", "blocked"): lambda project, run: project.runs.pause(run, reason="why"),
    ("paused", "queued"): lambda project, run: project.runs.resume(run, reason="why"),
    ("paused", "running"): lambda project, run: project.runs.resume(run, reason="why"),
    ("draft", "queued"): lambda project, run: project.runs.begin(run, reason="why"),
    ("failed", "queued"): lambda project, run: project.runs.retry(run, reason="why"),
    ("queued", "cancelled"): lambda project, run: list(project.runs.cancel(run, reason="why")),
    ("running", "cancelled"): lambda project, run: list(project.runs.cancel(run, reason="why")),
    ("paused", "cancelled"): lambda project, run: list(project.runs.cancel(run, reason="why")),
    ("draft", "cancelled"): lambda project, run: list(project.runs.cancel(run, reason="why")),
}
# Columns that differ between two runs that are alike.
OWN = {
    "id",
    "run_id",
    "job_id",
    "source_id",
    "key",
    "at",
    "actor",
    "origin",
    "created_at",
    "started_at",
}
OWN |= {
    "finished_at",
    "queued_at",
    "swept_at",
    "first_event_id",
    "tx",
    "due_at",
    "worker",
    "floor",
    "pipeline_version",
    "rank",
}


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


# Runs in every state, by the name that MOVES has for it.


def _queued(project: Project, source: str) -> int:
    return project.run(source)


def _running(project: Project, source: str) -> int:
    return make(project, source, "https://a.com/1", "https://a.com/2")


def _paused(project: Project, source: str) -> int:
    run_id = _running(project, source)
    project.runs.pause(run_id)
    return run_id


def _draft(project: Project, source: str) -> int:
    started = project.runs.start(source, draft=True).run
    assert started is not None
    return started.id


def _succeeded(project: Project, source: str) -> int:
    run_id = project.run(source)
    settle(project)
    return run_id


def _cancelled(project: Project, source: str) -> int:
    run_id = project.run(source)
    list(project.runs.cancel(run_id))
    return run_id


RUNS: dict[str, Callable[[Project, str], int]] = {
    "queued": _queued,
    "running": _running,
    "paused": _paused,
    "draft": _draft,
    "failed": a_failed_run,
    "succeeded": _succeeded,
    "cancelled": _cancelled,
}


def alike(project: Project, make_one: Callable[[Project, str], int]) -> tuple[int, int]:
    """Two such runs, of two sources. While the second is made, nothing of the first starts."""
    first = make_one(project, "acme.com")
    project.sources.hold("acme.com")
    second = make_one(project, "beta.com")
    project.sources.unhold("acme.com")
    return first, second


def sweep(project: Project) -> None:
    """Upkeep cancels the jobs of a cancelled run in batches; a person's command does so at once."""
    while project.connection.runs.sweep_cancelled():
        pass


def shown(client: Client, run_id: int) -> str:
    [(status,)] = client.rows(f"SELECT status FROM ingestion_jobs WHERE id = {run_id}")
    return str(status)


def ask(client: Client, run_id: int, status: str) -> bool:
    """Whether the client was allowed to ask for it."""
    try:
        client.do(
            f"UPDATE ingestion_jobs SET status = '{status}', reason = 'why' WHERE id = {run_id}"
        )
    except ERRORS as error:
        return not str(error).strip()  # a refusal says why
    return True


def left_by(kind: StoreKind, place: Place, run_id: int) -> dict[str, list[Any]]:
    """Everything that the store has of a run, without what two runs that are alike differ in."""
    found = {}
    for table in ("run", "run_stage", "job", "event", *(["tally"] if kind.is_shared else [])):
        found[table] = _rows(place, table, run_id)
    return found


def _rows(place: Place, table: str, run_id: int) -> list[Any]:
    which = "id" if table == "run" else "run_id"
    if isinstance(place, Path):
        connection: Any = apsw.Connection(str(place))
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        found = connection.execute(f"SELECT * FROM {table} WHERE {which} = {run_id}").fetchall()
        rows = [dict(zip(names, row, strict=True)) for row in found]
    else:
        connection = psycopg.connect(place, row_factory=dict_row)
        rows = connection.execute(
            f"SELECT * FROM penstock.{table} WHERE {which} = {run_id}"
        ).fetchall()
    connection.close()
    told = [
        json.dumps({name: row[name] for name in row if name not in OWN}, sort_keys=True)
        for row in rows
    ]
    return sorted(
        each.replace(f'"with_run\\": {run_id}', "").replace(f'with_run\\":{run_id}', "")
        for each in told
    )


@pytest.mark.parametrize("state", RUNS)
@pytest.mark.parametrize("status", STATUSES)
def test_every_move_is_the_verb_of_the_command_line_or_refused_with_nothing_done(
    project: Project, client: Client, kind: StoreKind, place: Place, state: str, status: str
) -> None:
    asked, twin = alike(project, RUNS[state])
    before = left_by(kind, place, asked)
    is_same = shown(client, asked) == status

    is_allowed = ask(client, asked, status)
    if not is_same:
        assert is_allowed == ((state, status) in MOVES)
    if is_allowed and not is_same:
        MOVES[state, status](project, twin)
        assert before == left_by(kind, place, asked), "nothing moves before the leader does it"
        assert perform_requests(project) == 1
        sweep(project)
        assert left_by(kind, place, asked) == left_by(kind, place, twin)
        assert [each.state for each in project.sql.list().items] == ["done"]
    else:
        assert perform_requests(project) == 0
        assert left_by(kind, place, asked) == before


def test_a_request_is_shown_until_it_is_performed(project: Project, client: Client) -> None:
    run_id = _running(project, "acme.com")
    for status, state in (("blocked", "running"), ("running", "running"), ("cancelled", "running")):
        assert ask(client, run_id, status)
        assert shown(client, run_id) == status
        assert project.runs.get(run_id).state == state
    perform_requests(project)
    assert project.runs.get(run_id).state == "cancelled"


@pytest.mark.parametrize("state", ["queued", "running"])
def test_blocking_and_setting_back_restores_exactly_what_was(
    project: Project, client: Client, kind: StoreKind, place: Place, state: str
) -> None:
    """Also under verbs of the command line between the two, and for as many jobs as there are."""
    run_id = RUNS[state](project, "acme.com")
    before = [left_by(kind, place, run_id)[table] for table in ("run", "run_stage", "job")]

    client.do(f"UPDATE ingestion_jobs SET status = 'blocked' WHERE status = '{state}'")
    perform_requests(project)
    assert project.connection.turn("w", [], _room(), project.limits()).claimed == []
    assert shown(client, run_id) == "blocked"
    client.do(f"UPDATE ingestion_jobs SET status = '{state}' WHERE status = 'blocked'")
    perform_requests(project)

    assert [left_by(kind, place, run_id)[table] for table in ("run", "run_stage", "job")] == before
    assert shown(client, run_id) == state


def test_what_is_enqueued_while_its_site_is_blocked_does_not_start(
    project: Project, client: Client
) -> None:
    project.run("acme.com")
    client.do("UPDATE ingestion_jobs SET status = 'blocked' WHERE status = 'queued'")
    client.do("UPDATE organizations SET status = 'blocked' WHERE id = 'org-2'")
    perform_requests(project)
    client.do("INSERT INTO ingestion_jobs (site_url, job_type) VALUES ('acme.com', 'mapper')")
    client.do("INSERT INTO ingestion_jobs (organization_id) VALUES ('org-2')")
    assert {row[0] for row in client.rows("SELECT status FROM ingestion_jobs")} == {
        "queued",
        "blocked",
    }
    perform_requests(project)

    assert project.connection.turn("w", [], _room(), project.limits()).claimed == []
    assert client.rows("SELECT DISTINCT status FROM ingestion_jobs") == [("blocked",)]
    client.do("UPDATE organizations SET status = 'active' WHERE id = 'org-2'")
    perform_requests(project)
    [job] = project.connection.turn("w", [], _room(), project.limits()).claimed
    assert project.runs.get(job.run_id).source == "beta.com"


@pytest.mark.parametrize(
    "address",
    [
        *("https://www.acme.com/", "http://ACME.com", "HTTPS://WWW.Acme.com:443/", "acme.com"),
        *("www.acme.com", "https://acme.com/contact?x=1#top", "http://acme.com:80", "acme.com."),
    ],
)
def test_every_spelling_of_a_site_finds_its_one_source(
    project: Project, client: Client, address: str
) -> None:
    for _ in range(2):
        client.do(f"INSERT INTO ingestion_jobs (site_url, job_type) VALUES ('{address}', 'mapper')")
    assert perform_requests(project) == 1
    assert [run.source for run in project.runs.list().items] == ["acme.com"]


def test_inserting_again_joins_the_run_that_has_not_ended(project: Project, client: Client) -> None:
    insert = "INSERT INTO ingestion_jobs (source) VALUES ('gamma.com')"
    client.do(insert)
    perform_requests(project)
    client.do(insert)
    perform_requests(project)
    assert len(project.runs.list().items) == 1

    settle(project)
    client.do(insert)
    perform_requests(project)
    assert len(project.runs.list().items) == 2


def test_an_idempotency_key_is_one_run_for_good(project: Project, client: Client) -> None:
    insert = (
        "INSERT INTO ingestion_jobs (source, idempotency_key) VALUES ('gamma.com', '2026-11-19')"
    )
    client.do(insert)
    perform_requests(project)
    settle(project)
    client.do(insert)
    assert perform_requests(project) == 0
    assert len(project.runs.list().items) == 1
    assert client.rows("SELECT idempotency_key FROM ingestion_jobs") == [("2026-11-19",)]


def test_payload_priority_and_reason_reach_the_run(project: Project, client: Client) -> None:
    client.do(
        "INSERT INTO ingestion_jobs (source, payload, priority, reason)"
        " VALUES ('gamma.com', '{\"force_image_refresh\": true}', 2, 'polluted')"
    )
    perform_requests(project)
    [run] = project.runs.list().items
    row = project.connection.runs.get(run.id)
    assert row is not None
    assert row.options.params == {"force_image_refresh": True}
    assert (run.actor.partition(":")[0], run.reason) == ("sql", "polluted")
    assert client.rows("SELECT priority, payload FROM ingestion_jobs")[0][0] == 2
    [event] = project.journal.list(run=run.id, kind="run.queued").items
    assert event.origin == "sql"


def test_another_payload_is_not_dropped_quietly(project: Project, client: Client) -> None:
    project.run("gamma.com")
    client.do("INSERT INTO ingestion_jobs (source, payload) VALUES ('gamma.com', '{\"a\": 1}')")
    perform_requests(project)

    [(status, error)] = client.rows("SELECT status, error_message FROM ingestion_jobs WHERE id < 0")
    assert status == "failed"
    assert "other params" in error


def test_a_job_for_later_waits_for_its_time(project: Project, client: Client) -> None:
    client.do(
        "INSERT INTO ingestion_jobs (source, scheduled_for) VALUES ('gamma.com', '2126-01-01T00:00:00Z')"
    )
    assert perform_requests(project) == 0
    assert client.rows("SELECT status FROM ingestion_jobs") == [("queued",)]

    client.do("UPDATE ingestion_jobs SET status = 'blocked' WHERE id < 0")
    client.do("UPDATE ingestion_jobs SET status = 'queued' WHERE id < 0")
    client.do("UPDATE ingestion_jobs SET status = 'cancelled' WHERE id < 0")
    assert client.rows("SELECT status FROM ingestion_jobs") == [("cancelled",)]
    with pytest.raises(ERRORS):
        client.do("UPDATE ingestion_jobs SET status = 'queued' WHERE id < 0")


def test_a_job_that_is_inserted_blocked_starts_when_it_is_queued(
    project: Project, client: Client
) -> None:
    client.do("INSERT INTO ingestion_jobs (source, status) VALUES ('gamma.com', 'blocked')")
    assert perform_requests(project) == 0
    client.do("UPDATE ingestion_jobs SET status = 'queued' WHERE id < 0")
    assert perform_requests(project) == 1


def test_a_leader_that_dies_in_the_middle_starts_no_second_run(
    project: Project, client: Client
) -> None:
    client.do("INSERT INTO ingestion_jobs (source) VALUES ('gamma.com')")
    [request] = project.connection.inbox.due()
    assert project.connection.inbox.take(request.id)
    started = project.start_requested("gamma.com", None, f"sql:{request.id}", "sql", "", _asked())
    settle(project)  # its run ends before the next leader looks

    assert perform_requests(project) == 1
    assert [run.id for run in project.runs.list().items] == [started[0].id]


def test_a_client_can_take_back_what_nobody_has_begun(project: Project, client: Client) -> None:
    client.do("INSERT INTO ingestion_jobs (source) VALUES ('gamma.com')")
    [request] = project.connection.inbox.due()
    client.do("UPDATE ingestion_jobs SET status = 'cancelled' WHERE id < 0")
    assert not project.connection.inbox.take(request.id)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO ingestion_jobs (source) VALUES ('nobody.com')",
        "INSERT INTO ingestion_jobs (job_type) VALUES ('mapper')",
        "INSERT INTO ingestion_jobs (organization_id) VALUES ('org-1')",
        "INSERT INTO ingestion_jobs (source, status) VALUES ('acme.com', 'running')",
        "INSERT INTO ingestion_jobs (source, payload) VALUES ('acme.com', '[]')",
        "INSERT INTO ingestion_jobs (source, attempt) VALUES ('acme.com', 3)",
        "UPDATE ingestion_jobs SET attempt = 9",
        "UPDATE ingestion_jobs SET status = 'no_such'",
        "DELETE FROM ingestion_jobs",
        "INSERT INTO organizations (id) VALUES ('x')",
        "UPDATE organizations SET name = 'x'",
        "UPDATE organizations SET status = 'gone'",
        "DELETE FROM organizations",
        "INSERT INTO supplier_references (supplier_name) VALUES ('x')",
        "UPDATE supplier_references SET status = 'gone'",
        "UPDATE supplier_references SET status = 'linked'",
        "UPDATE supplier_references SET supplier_name = 'x'",
        "DELETE FROM source_site_schemas",
        "UPDATE source_site_schemas SET domain = 'x'",
        "UPDATE source_site_schemas SET last_verified_at = 'yesterday or so'",
    ],
)
def test_what_can_not_be_is_refused_at_once(
    project: Project, client: Client, statement: str
) -> None:
    _save(project)
    project.run("beta.com")
    with pytest.raises(ERRORS):
        client.do(statement)
    assert project.sql.list().items == []


def test_a_supplier_reference_is_reviewed_and_the_journal_says_by_whom(
    project: Project, client: Client
) -> None:
    _save(project)
    client.do(
        "UPDATE supplier_references"
        " SET status = 'linked', linked_organization_id = 'org-2', reason = 'same address'"
    )
    assert client.rows("SELECT status FROM supplier_references") == [("linked",)]
    perform_requests(project)

    assert client.rows(
        "SELECT status, linked_organization_id, record_version FROM supplier_references"
    ) == [("linked", "org-2", 2)]
    [event] = project.journal.list(kind="record.edited").items
    assert (event.actor.partition(":")[0], event.origin) == ("sql", "sql")
    assert event.data["fields"] == ["linked_organization_id", "status"]
    assert event.data["reason"] == "same address"
    versions = project.records.versions("supplier_references", "bolt")
    assert [each.data.get("status") for each in versions] == ["new", "linked"]


def test_a_note_on_a_site_schema_becomes_a_new_version(
    project: Project, client: Client, kind: StoreKind
) -> None:
    _save(project)
    added = "pollution_notes || '[\"logo\"]'" if kind.is_shared else "json('[\"logo\"]')"
    valid = "false" if kind.is_shared else "0"
    client.do(f"UPDATE source_site_schemas SET pollution_notes = {added}, is_valid = {valid}")
    perform_requests(project)

    [record] = project.records.list("site_schemas").items
    assert record.data["pollution_notes"] == ["logo"]
    assert record.data["is_valid"] is False
    assert record.data["domain"] == "acme.com"


def test_edits_by_hand_can_be_undone_as_a_run(project: Project, client: Client) -> None:
    saved = _save(project)
    client.do("UPDATE supplier_references SET status = 'dismissed'")
    perform_requests(project)
    [edits] = [run for run in project.runs.list().items if run.id != saved]
    project.runs.undo(edits.id)

    [record] = project.records.list("supplier_references").items
    assert record.data["status"] == "new"
    assert (edits.id,) not in client.rows("SELECT id FROM ingestion_jobs")


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(statuses=st.lists(st.sampled_from(STATUSES), min_size=1, max_size=5), batched=st.booleans())
def test_any_sequence_of_updates_comes_to_the_same_as_the_verbs(
    project: Project,
    client: Client,
    kind: StoreKind,
    place: Place,
    statuses: list[str],
    batched: bool,
) -> None:
    """Whether the leader looks after each of them or after all."""
    for old in project.runs.list(active=True).items:
        list(project.runs.cancel(old.id))
    asked, twin = alike(project, _running)
    state = "running"
    for status in statuses:
        was = shown(client, asked)
        if not ask(client, asked, status) or was == status:
            continue
        MOVES[{"blocked": "paused"}.get(was, was), status](project, twin)
        state = status
        if not batched:
            perform_requests(project)
            sweep(project)
            assert left_by(kind, place, asked) == left_by(kind, place, twin), state
    perform_requests(project)
    sweep(project)
    assert left_by(kind, place, asked) == left_by(kind, place, twin)


def _save(project: Project) -> int:
    run_id = project.run("acme.com")
    records = {
        ("site_schemas", "acme.com"): {
            "domain": "acme.com",
            "is_valid": True,
            "pollution_notes": [],
        },
        ("supplier_references", "bolt"): {"supplier_name": "Bolt", "status": "new"},
    }
    saves = [
        Save(collection, key, msgspec.json.encode(data, order="deterministic"), None, "replace")
        for (collection, key), data in records.items()
    ]
    settle(project, effects=Effects(saves=saves))
    return run_id


def _room(slots: int = 1) -> Any:
    from penstock.gates.capacity import Capacity

    return Capacity(slots)


def _asked() -> Any:
    from penstock.project.run_starter import Asked

    return Asked()
