"""Two versions at once: the schema grows beside those who work, and shrinks when nobody is left who minds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from penstock.errors import Refused, StoreError
from penstock.store.postgres import migrate as on_postgres
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.schema import Applied, Migration, Schema, parse
from penstock.store.schema import migrations as in_the_package
from penstock.store.sqlite import migrate as on_sqlite
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.workers import LEASE_S
from tests.contract.scenes import World, done

NEWEST = on_sqlite.newest()
EXPANDS = """-- expands
-- locks: job, for a moment
ALTER TABLE {0}job ADD COLUMN colour text;
CREATE TABLE {0}paint (colour text PRIMARY KEY);
CREATE INDEX paint_colour ON {0}paint (colour);
"""
CONTRACTS = f"""-- contracts: {NEWEST + 1}
-- locks: signal, for a moment
DROP TABLE {{0}}signal;
"""
SLOW = """-- expands
-- outside a transaction
-- locks: nothing; whoever writes to event goes on
CREATE INDEX CONCURRENTLY IF NOT EXISTS event_kind ON {0}event (kind);
"""


def more(world: World, *texts: str) -> tuple[Migration, ...]:
    """The migrations of a later version: ours and these."""
    ours = in_the_package(on_postgres.PACKAGE if world.kind.is_shared else on_sqlite.PACKAGE)
    prefix = "penstock." if world.kind.is_shared else ""
    added = (
        parse(f"{NEWEST + number:04}_later", text.format(prefix))
        for number, text in enumerate(texts, 1)
    )
    return (*ours, *added)


@contextmanager
def later(world: World, *texts: str) -> Iterator[None]:
    """While this lasts, the code is that of a later version."""
    known = more(world, *texts)
    with pytest.MonkeyPatch.context() as patch:
        for module in (on_postgres, on_sqlite):
            patch.setattr(module, "migrations", lambda _: known)
        yield


def schema_of(world: World) -> Schema:
    if world.kind.is_shared:
        return PostgresDatabase(str(world.path), world.clock, time=world.clock, purpose="schema")
    return SqliteDatabase(Path(world.path), world.clock, purpose="schema")


def migrate(world: World, reason: str = "") -> list[Applied]:
    with closing(schema_of(world)) as schema:
        return list(schema.migrate("ops", reason))


def open_again(world: World) -> None:
    world.kind.open(world.path, world.clock).close()


def number_of(world: World) -> int:
    with closing(schema_of(world)) as schema:
        return schema.plan().state.number


def test_later_version_expands_by_itself_and_the_former_goes_on(world: World) -> None:
    run_id = world.start_with_pages(3)
    first = world.one()

    with later(world, EXPANDS):
        open_again(world)

    assert number_of(world) == NEWEST + 1
    second = world.one()
    world.turn("w", done(first), done(second))
    open_again(world)
    world.turn("w", done(world.one()))
    assert world.run(run_id).state == "completed"
    assert [
        (e.kind, e.detail) for e in world.store.journal.events() if e.kind == "db.migrated"
    ] == [("db.migrated", f"{NEWEST + 1:04}_later")]


def test_nothing_is_taken_away_by_opening(world: World) -> None:
    before = world.dump()

    with later(world, EXPANDS, CONTRACTS), pytest.raises(StoreError) as refusal:
        open_again(world)

    assert "penstock db migrate" in refusal.value.hint
    assert number_of(world) == NEWEST
    assert world.dump() == before


def test_contract_waits_until_older_workers_are_gone(world: World) -> None:
    world.start_with_pages(1)
    with later(world, EXPANDS, CONTRACTS):
        with pytest.raises(Refused, match="a worker on here"):
            migrate(world)
        assert number_of(world) == NEWEST + 1, "what came before it is done"

    world.store.workers.sign_off("w")
    with later(world, EXPANDS, CONTRACTS):
        [applied] = migrate(world, "the last old host is gone")
        assert applied.migration.number == NEWEST + 2
        assert migrate(world) == []
    told = [e for e in world.store.journal.events() if e.kind == "db.migrated"]
    assert (told[-1].actor, told[-1].origin, told[-1].detail) == (
        "ops",
        "python",
        f"{NEWEST + 2:04}_later: the last old host is gone",
    )


def test_former_version_is_refused_once_what_it_knows_is_gone(world: World) -> None:
    world.store.workers.sign_off("w")
    with later(world, EXPANDS, CONTRACTS):
        migrate(world)

    with pytest.raises(StoreError, match=f"has schema {NEWEST + 2}, .* knows up to {NEWEST}"):
        open_again(world)
    with pytest.raises(Refused, match="schema is newer"):
        world.register("too-late")
    assert world.store.workers.all() == []


def test_worker_whose_lease_has_run_out_is_in_nobodys_way(world: World) -> None:
    world.clock.advance(LEASE_S + 1)
    with later(world, EXPANDS, CONTRACTS):
        migrate(world)
        assert number_of(world) == NEWEST + 2


def test_worker_of_the_later_version_is_in_nobodys_way(world: World) -> None:
    world.store.workers.sign_off("w")
    with later(world, EXPANDS):
        store = world.kind.open(world.path, world.clock)
        store.workers.register("new", "there", 1, "later")

    with later(world, EXPANDS, CONTRACTS), closing(schema_of(world)) as schema:
        assert [worker.id for worker in schema.plan().old_workers] == ["new"]
        assert len(list(schema.migrate("ops", ""))) == 1
    store.close()


def test_plan_changes_nothing_and_names_who_is_in_the_way(world: World) -> None:
    before = world.dump()

    with later(world, EXPANDS, CONTRACTS), closing(schema_of(world)) as schema:
        plan = schema.plan()

    assert [each.effect for each in plan.pending] == ["expands", "contracts"]
    assert [len(plan.in_the_way(each)) for each in plan.pending] == [0, 1]
    assert [(w.id, w.host, w.version, w.schema) for w in plan.old_workers] == [
        ("w", "here", "test", NEWEST)
    ]
    assert world.dump() == before


def test_migration_that_fails_leaves_the_schema_it_found(world: World) -> None:
    before = world.dump()
    broken = EXPANDS + "CREATE TABLE {0}paint (colour text);"

    with later(world, broken), pytest.raises(StoreError, match="already exists"):
        open_again(world)

    assert world.dump() == before
    open_again(world)


@pytest.mark.parametrize("texts", [(EXPANDS, CONTRACTS), (SLOW, EXPANDS)])
def test_new_database_is_made_whole(
    world: World, texts: tuple[str, ...], fresh: Callable[[], World]
) -> None:
    """Whatever the migrations are, and also by way of a pooler."""
    if SLOW in texts and not world.kind.is_shared:
        texts = (EXPANDS,)
    with later(world, *texts):
        made = fresh()
        assert number_of(made) == NEWEST + len(texts)
        made.close()


@pytest.fixture
def fresh(world: World, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], World]:
    """A world in a database that is still empty."""

    def make() -> World:
        if not world.kind.is_shared:
            return World(world.kind, tmp_path / "fresh.db")
        wanted = "pooled_database" if world.kind.name == "pgbouncer" else "database"
        return World(world.kind, request.getfixturevalue(wanted))

    return make
