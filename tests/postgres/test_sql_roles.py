"""Roles of the SQL interface: who may read, who may ask for something, and whose rows anybody sees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from penstock import Project
from penstock.store.sql_interface import VIEWS
from tests.contract.sql_clients import Client, a_failed_run, write_site_agents
from tests.contract.test_sql_interface import NOW, save, schema
from tests.postgres.server import Server

ROLES = """
DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'sql_bi') THEN
    CREATE ROLE sql_bi NOLOGIN; CREATE ROLE sql_ops NOLOGIN; CREATE ROLE sql_of_beta NOLOGIN;
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'penstock_reader') THEN
    CREATE ROLE penstock_reader NOLOGIN; CREATE ROLE penstock_operator NOLOGIN;
  END IF;
  GRANT penstock_reader TO sql_bi; GRANT penstock_operator TO sql_ops, sql_of_beta;
EXCEPTION WHEN duplicate_object OR unique_violation OR internal_error THEN NULL;
END $$
"""


@pytest.fixture
def project(tmp_path: Path, postgres: Server, schema_database: str) -> Iterator[Project]:
    postgres.admin(ROLES)
    with Project.load(write_site_agents(tmp_path, schema_database)) as made:
        assert made.sql.install().notes == []
        yield made


class Clients:
    """Programs that come in as roles with few rights."""

    def __init__(self, server: Server, database: str) -> None:
        self._place = server.admin_url(database.rpartition("/")[2])
        self._open: list[Client] = []

    def of(self, role: str) -> Client:
        client = Client(self._place, role=role)
        self._open.append(client)
        return client

    def close(self) -> None:
        for each in self._open:
            each.close()


@pytest.fixture
def clients(project: Project, postgres: Server, schema_database: str) -> Iterator[Clients]:
    found = Clients(postgres, schema_database)
    yield found
    found.close()


def test_a_reader_reads_and_can_change_nothing(project: Project, clients: Clients) -> None:
    project.run("acme.com")
    client = clients.of("sql_bi")
    assert client.rows("SELECT status FROM ingestion_jobs") == [("queued",)]
    for view in ("source_site_schemas", "supplier_references", "organizations"):
        client.rows(f"SELECT * FROM {view}")

    for statement in (
        "UPDATE ingestion_jobs SET status = 'blocked'",
        "INSERT INTO ingestion_jobs (source) VALUES ('beta.com')",
        "UPDATE organizations SET status = 'blocked'",
        "DELETE FROM ingestion_jobs",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.rows(statement)


def test_an_operator_asks_by_the_views_and_never_reaches_a_table(
    project: Project, clients: Clients
) -> None:
    client = clients.of("sql_ops")
    client.do("INSERT INTO ingestion_jobs (source) VALUES ('beta.com')")
    [request] = project.sql.list().items
    assert request.actor == "sql:sql_ops"
    project.sql.perform()
    client.do("UPDATE ingestion_jobs SET status = 'blocked', reason = 'maintenance'")
    project.sql.perform()
    [event] = project.journal.list(kind="run.paused").items
    assert (event.actor, event.data["reason"]) == ("sql:sql_ops", "maintenance")

    for table in ("run", "record", "inbox", "token", "sql_source", "sql_access"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.rows(f"SELECT * FROM penstock.{table}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        client.rows("SELECT penstock_ask('runs.cancel', 1, 1, '{}', '')")


def test_a_role_with_an_organization_sees_and_changes_its_rows_alone(
    project: Project, clients: Clients, schema_database: str
) -> None:
    with psycopg.connect(schema_database, autocommit=True) as owner:
        owner.execute("INSERT INTO penstock.sql_access VALUES ('sql_of_beta', 'org-2')")
    acme = project.run("acme.com")
    project.run("beta.com")
    client = clients.of("sql_of_beta")

    assert client.rows("SELECT DISTINCT organization_id FROM ingestion_jobs") == [("org-2",)]
    assert client.rows("SELECT id FROM organizations") == [("org-2",)]
    client.do("UPDATE ingestion_jobs SET status = 'blocked'")
    with pytest.raises(psycopg.errors.CheckViolation, match="no source"):
        client.do("INSERT INTO ingestion_jobs (source) VALUES ('acme.com')")
    project.sql.perform()
    assert [run.source for run in project.runs.list().items if run.state == "paused"] == [
        "beta.com"
    ]
    assert project.runs.get(acme).state == "queued"
    # A function that tells what it is given learns nothing of the rows that are kept back.
    client.do("CREATE TEMP TABLE IF NOT EXISTS seen (text text)")
    client.do(
        "CREATE FUNCTION pg_temp.tell(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS"
        " $$ BEGIN INSERT INTO pg_temp.seen VALUES ($1); RETURN true; END $$"
    )
    client.rows("SELECT id FROM ingestion_jobs WHERE pg_temp.tell(site_url)")
    assert client.rows("SELECT DISTINCT text FROM pg_temp.seen") == [("beta.com",)]


def test_rows_are_secured_for_whoever_is_given_the_table_itself(
    project: Project, clients: Clients, schema_database: str
) -> None:
    with psycopg.connect(schema_database, autocommit=True) as owner:
        owner.execute("INSERT INTO penstock.sql_access VALUES ('sql_of_beta', 'org-2')")
        owner.execute("GRANT USAGE ON SCHEMA penstock TO sql_of_beta")
        owner.execute("GRANT SELECT ON penstock.sql_source TO sql_of_beta")

    found = clients.of("sql_of_beta").rows("SELECT organization_id FROM penstock.sql_source")
    assert found == [("org-2",)]


def test_a_claim_of_a_token_is_told_and_not_believed(project: Project, clients: Clients) -> None:
    client = clients.of("sql_ops")
    client.do("""SET request.jwt.claims = '{"sub": "ann", "role": "postgres"}'""")
    client.do("INSERT INTO ingestion_jobs (source) VALUES ('beta.com')")
    [request] = project.sql.list().items
    assert request.actor == "sql:sql_ops (says ann)"


def test_unqualified_names_work_in_the_schema_that_was_named(
    tmp_path: Path, postgres: Server, schema_database: str
) -> None:
    postgres.admin("GRANT CREATE ON SCHEMA public TO penstock", schema_database.rpartition("/")[2])
    with Project.load(write_site_agents(tmp_path, schema_database)) as project:
        project.sql.install("public")
        project.run("acme.com")
        with psycopg.connect(schema_database) as client:
            assert client.execute("SELECT status FROM ingestion_jobs").fetchall() == [("queued",)]
        with pytest.raises(Exception, match="in public already"):
            project.sql.install()
        project.sql.remove()
        project.sql.install()


def test_a_view_of_somebody_on_ours_stands_in_the_way_of_removing(
    project: Project, schema_database: str
) -> None:
    with psycopg.connect(schema_database, autocommit=True) as owner:
        owner.execute("CREATE VIEW public.mine AS SELECT id FROM penstock_sql.ingestion_jobs")
    with pytest.raises(Exception, match="depend"):
        project.sql.remove()
    assert project.sql.check().problems == []


# All that a role may do with anything of ours: tables, views, sequences, columns and functions.
GRANTED = """
WITH ours AS (SELECT oid, nspname FROM pg_namespace WHERE nspname IN ('penstock', 'penstock_sql'))
SELECT c.relname || ' ' || p.word FROM pg_class AS c JOIN ours ON ours.oid = c.relnamespace,
  unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS p (word)
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND CASE
  WHEN p.word IN ('DELETE', 'TRUNCATE', 'TRIGGER') THEN has_table_privilege(%(role)s, c.oid, p.word)
  ELSE has_any_column_privilege(%(role)s, c.oid, p.word) END
UNION ALL
SELECT c.relname || ' ' || p.word FROM pg_class AS c JOIN ours ON ours.oid = c.relnamespace,
  unnest('{USAGE,SELECT,UPDATE}'::text[]) AS p (word)
WHERE c.relkind = 'S' AND has_sequence_privilege(%(role)s, c.oid, p.word)
UNION ALL
SELECT f.proname || ' EXECUTE' FROM pg_proc AS f JOIN ours ON ours.oid = f.pronamespace
WHERE has_schema_privilege(%(role)s, ours.oid, 'USAGE') AND has_function_privilege(%(role)s, f.oid, 'EXECUTE')
UNION ALL
SELECT nspname || ' ' || p.word FROM ours, unnest('{USAGE,CREATE}'::text[]) AS p (word)
WHERE has_schema_privilege(%(role)s, ours.oid, p.word)
"""


READS = {
    *(f"{view} SELECT" for view in VIEWS),
    "penstock_problems EXECUTE", "penstock_sees EXECUTE", "penstock_sql USAGE",
}  # fmt: skip
ASKS = {
    *(f"{view} UPDATE" for view in VIEWS),
    "ingestion_jobs INSERT", "penstock_retry_failed EXECUTE", "penstock_watchdog EXECUTE",
}  # fmt: skip


def granted(database: str, role: str) -> set[str]:
    with psycopg.connect(database) as owner:
        return {each for (each,) in owner.execute(GRANTED, {"role": role})}


def test_roles_have_these_rights_and_no_others(project: Project, schema_database: str) -> None:
    assert granted(schema_database, "penstock_reader") == READS
    assert granted(schema_database, "penstock_operator") == READS | ASKS


def test_rights_that_a_database_gives_by_default_are_taken_back(
    project: Project, postgres: Server, schema_database: str
) -> None:
    """Supabase lets `anon` have whatever is made in public."""
    project.sql.remove()
    postgres.admin("CREATE ROLE sql_anon NOLOGIN")
    try:
        with psycopg.connect(schema_database, autocommit=True) as owner:
            for kind in ("SCHEMAS", "TABLES", "FUNCTIONS"):
                owner.execute(f"ALTER DEFAULT PRIVILEGES GRANT ALL ON {kind} TO sql_anon".encode())
            project.sql.install()
            assert granted(schema_database, "sql_anon") == set()
            for kind in ("SCHEMAS", "TABLES", "FUNCTIONS"):
                owner.execute(
                    f"ALTER DEFAULT PRIVILEGES REVOKE ALL ON {kind} FROM sql_anon".encode()
                )
    finally:
        postgres.admin("DROP OWNED BY sql_anon", schema_database.rpartition("/")[2])
        postgres.admin("DROP ROLE sql_anon")


FORGED = {
    "penstock_insert_job": ("ingestion_jobs", "INSERT INTO mine (source) VALUES ('acme.com')"),
    "penstock_update_job": ("ingestion_jobs", "UPDATE mine SET status = 'cancelled'"),
    "penstock_update_record('schema_data')": (
        "source_site_schemas",
        """UPDATE mine SET schema_data = '{"page_types": {}}'""",
    ),
    "penstock_update_organization": ("organizations", "UPDATE mine SET status = 'blocked'"),
}


@pytest.mark.parametrize("function", FORGED)
@pytest.mark.parametrize("may_execute", [False, True])
def test_a_trigger_of_ours_does_nothing_on_a_table_of_somebody_else(
    project: Project, clients: Clients, schema_database: str, function: str, may_execute: bool
) -> None:
    view, act = FORGED[function]
    project.connection.workers.register("w", "here", 1, "1")
    save(project, "acme.com", schema("acme.com", NOW, ["logo"]))
    project.run("acme.com")
    if may_execute:  # an administrator was careless
        with psycopg.connect(schema_database, autocommit=True) as owner:
            words = "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA penstock_sql TO sql_bi"
            owner.execute(words)
    client = clients.of("sql_bi")
    client.do(f"CREATE TEMP TABLE mine AS SELECT * FROM {view}")
    event = act.partition(" ")[0]
    call = function if "(" in function else f"{function}()"
    forged = (
        f"CREATE TRIGGER forged BEFORE {event} ON mine FOR EACH ROW "
        f"EXECUTE FUNCTION penstock_sql.{call}; {act}"
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        client.do(forged)
    assert project.sql.list().items == []


def test_nobody_sees_or_touches_what_is_private_or_a_secret(
    tmp_path: Path, postgres: Server, schema_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "canary-of-the-shop")
    postgres.admin(ROLES)
    folder = write_site_agents(tmp_path, schema_database)
    settings = json.loads((folder / "penstock.yaml").read_text())
    settings["sources"]["acme.com"]["private"] = True
    for source in settings["sources"].values():
        source["params"]["token"] = "${SHOP_TOKEN}"
    (folder / "penstock.yaml").write_text(json.dumps(settings))
    found = Clients(postgres, schema_database)
    with Project.load(folder) as project:
        project.connection.workers.register("w", "here", 1, "1")
        project.sql.install()
        save(project, "acme.com", schema("acme.com", NOW, ["canary-of-a-note"]))
        lead = {"status": "new", "supplier_name": "canary"}
        save(project, "acme.com", ("supplier_references", "one", lead))
        a_failed_run(project, "acme.com")
        project.run("beta.com")
        for role in ("sql_bi", "sql_ops"):
            client = found.of(role)
            seen = [client.rows(f"SELECT * FROM {view}") for view in VIEWS]
            assert "canary" not in str(seen)
            assert [bool(rows) for rows in seen] == [True, False, False, True]
        for view, change in {
            "source_site_schemas": "pollution_notes = '[]'",
            "supplier_references": "status = 'dismissed'",
        }.items():
            client.do(f"UPDATE {view} SET {change}")
        assert project.sql.list().items == []
    found.close()
