"""Roles of the SQL interface: who may read, who may ask for something, and whose rows anybody sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from penstock import Project
from tests.contract.sql_clients import Client, write_site_agents
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
