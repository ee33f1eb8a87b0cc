"""Keys stand in a table of their own: they come with their jobs, and go with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from penstock.clock import SystemClock
from penstock.store.postgres import migrate
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.schema import migrations
from penstock.store.upkeep import Keep
from tests.contract.scenes import POSTGRES, World, done

BEFORE = 5
A_RUN = """
INSERT INTO penstock.source (key, created_at) VALUES ('acme.com', 1);
INSERT INTO penstock.run (source_id, kind, state, key, plan, pipeline_version, actor, created_at)
SELECT id, 'full', 'queued', 'first', '{}', 'v', 'test', 1 FROM penstock.source;
INSERT INTO penstock.run_stage (run_id, stage, unit, priority, queued)
SELECT id, 'extract', 'page', 5, 2 FROM penstock.run;
INSERT INTO penstock.job (run_id, source_id, stage, unit, key, state, rank, at)
SELECT id, source_id, 'extract', 'page', k, 'queued', 1, 1 FROM penstock.run, unnest(ARRAY['/a', '/b']) AS k;
INSERT INTO penstock.job_item (job_id, item) SELECT id, 'null' FROM penstock.job;
"""
WITHOUT_KEY = """
SELECT count(*) FROM penstock.job AS j FULL JOIN penstock.job_key AS k
ON k.job_id = j.id AND k.run_id = j.run_id AND k.stage = j.stage AND k.key = j.key
WHERE j.id IS NULL OR k.job_id IS NULL
"""


@pytest.fixture
def world(database: str) -> Iterator[World]:
    made = World(POSTGRES, database)
    yield made
    made.close()


def count(url: str, statement: str) -> int:
    with psycopg.connect(url) as connection:
        [(found,)] = connection.execute(statement.encode()).fetchall()
        return int(found)


def test_each_job_has_its_key_and_a_known_one_adds_none(world: World, database: str) -> None:
    run_id = world.start_with_pages(3)
    before = count(database, "SELECT count(*) FROM penstock.job_key")

    [known, new] = world.enqueue(run_id, "page-000001", "new")

    assert (known.is_new, new.is_new) == (False, True)
    assert count(database, "SELECT count(*) FROM penstock.job_key") == before + 1
    assert count(database, WITHOUT_KEY) == 0


def test_keys_go_with_the_jobs_that_are_dropped(world: World, database: str) -> None:
    world.start_with_pages(3)
    while claimed := world.claim():
        world.turn("w", *(done(job) for job in claimed))
    world.clock.advance(100)

    while world.store.upkeep.prune(Keep(10.0, None, None, None)):
        pass

    assert count(database, "SELECT count(*) FROM penstock.job_key") == 0


def test_migration_gives_every_job_of_before_its_key(database: str) -> None:
    known = migrations(migrate.PACKAGE)
    former = [each for each in known if each.number <= BEFORE]
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(migrate, "migrations", lambda _: former)
        PostgresDatabase(database, SystemClock()).close()
    with psycopg.connect(database) as connection:
        connection.execute(A_RUN)

    with closing(PostgresDatabase(database, SystemClock(), purpose="schema")) as schema:
        applied = [each.migration.number for each in schema.migrate("ops", "")]
    assert applied == [each.number for each in known if each.number > BEFORE]

    assert count(database, "SELECT count(*) FROM penstock.job_key") == 2
    assert count(database, WITHOUT_KEY) == 0
    with closing(World(POSTGRES, database)) as after:
        [known_key, new_key] = after.enqueue(1, "/b", "/c")
        assert (known_key.is_new, new_key.is_new) == (False, True)
