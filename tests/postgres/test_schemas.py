"""Several projects in one database, each in a schema of its own: none notices the others."""

from __future__ import annotations

import re
from contextlib import closing

import pytest

from penstock.app.store_copy import copy_project, digests
from penstock.clock import SystemClock
from penstock.jobs.run import RunKind
from penstock.settings.address import SCHEMA
from penstock.store.postgres.copy_end import PostgresEnd
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.postgres.migrate import PACKAGE
from penstock.store.postgres.schema_names import in_schema
from penstock.store.postgres.store import PostgresStore
from penstock.store.queries import queries
from penstock.store.schema import migrations
from tests.contract.scenes import POSTGRES, SITE, World
from tests.contract.test_copying import live_a_little, quietly, stop
from tests.postgres.crowd import ask
from tests.postgres.workspace import until

CLOCK = SystemClock()
COMMENT = re.compile(r"--[^\n]*")


def own(url: str, schema: str) -> str:
    return f"{url}?schema={schema}"


def tables_of(url: str, schema: str) -> int:
    [(count,)] = ask(url, f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'")
    return int(count)


def test_no_statement_names_the_usual_schema_when_it_is_another() -> None:
    texts = {**queries(PACKAGE), **{each.name: each.text for each in migrations(PACKAGE)}}

    left = [name for name, text in texts.items() if SCHEMA in COMMENT.sub("", in_schema(text, "x"))]

    assert left == []


@pytest.mark.parametrize("schema", ["shop", "user", "_1"])
def test_project_lives_wholly_in_its_own_schema(database: str, schema: str) -> None:
    world = World(POSTGRES, own(database, schema))
    live_a_little(world)
    assert world.store.upkeep.check() == []
    world.close()

    assert tables_of(database, "penstock") == 0
    assert tables_of(database, schema) > 40


def test_what_one_project_does_the_other_never_sees(database: str) -> None:
    with (
        closing(PostgresStore(own(database, "shop"), CLOCK)) as shop,
        closing(PostgresStore(own(database, "shop"), CLOCK)) as same,
        closing(PostgresStore(own(database, "blog"), CLOCK)) as blog,
    ):
        for waiter in (same, blog):
            until("listening has begun", waiter.has_changed)
        [source_id] = shop.sources.ensure(["acme.com"]).values()
        shop.runs.start(source_id, RunKind.FULL, SITE, "v", key="one", actor="ops")
        until("those of the same project hear of it", same.has_changed)

        assert not blog.has_changed()
        assert blog.sources.all() == []
        assert shop.leaders.lead("scheduler", "here", 60.0) is not None
        assert blog.leaders.lead("scheduler", "there", 60.0) is not None


def test_projects_can_be_copied_between_schemas_of_one_database(database: str) -> None:
    world = World(POSTGRES, own(database, "shop"))
    live_a_little(world)
    stop(world)
    world.store.close()

    def end(schema: str) -> PostgresEnd:
        url = own(database, schema)
        return PostgresEnd(PostgresDatabase(url, CLOCK, time=world.clock, purpose="copy"))

    with closing(end("shop")) as origin, closing(end("blog")) as target:
        wanted = {each.table: each for each in copy_project(origin, target, "ops", quietly).tables}
        found = {each.table: each for each in digests(target, "", quietly)}
    assert [name for name in ("record", "run", "signal") if found[name] != wanted[name]] == []
