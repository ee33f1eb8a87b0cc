"""A claim reads each lane once, and again only if somebody has committed something in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest

from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.store.postgres.database import SUM_AFTER, PostgresDatabase, array_of
from penstock.store.postgres.migrate import PACKAGE
from penstock.store.postgres.schema_names import queries_in
from penstock.store.postgres.session import BEGIN
from penstock.store.postgres.store import PostgresStore
from tests.contract.scenes import POSTGRES, World

SOURCES = 6
ONE_PAGE = LaneLimits(concurrency=1, candidates=1)


@pytest.fixture
def world(schema_database: str) -> Iterator[World]:
    made = World(POSTGRES, schema_database)
    yield made
    made.close()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that are asked for JSON, by name, as they come."""
    asked: list[str] = []
    original = PostgresDatabase.json

    def noted(self: PostgresDatabase, name: str, **values: Any) -> Any:
        asked.append(name)
        return original(self, name, **values)

    monkeypatch.setattr(PostgresDatabase, "json", noted)
    return asked


@pytest.fixture
def only_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody commits while a claim is at it; other tests do, in other databases of the same server."""
    monkeypatch.setattr(PostgresDatabase, "lanes_are_as_read", lambda self: True)


def before_locks(world: World, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have somebody act once, behind the claim's look at the lanes and before it locks them."""
    db = world.store._db
    assert isinstance(db, PostgresDatabase)
    original = db.lock_what_is_free
    left = [act]

    def late(*ids: Any) -> Any:
        if left:
            left.pop()()
        return original(*ids)

    monkeypatch.setattr(db, "lock_what_is_free", late)


@pytest.mark.usefixtures("only_ours")
def test_worker_that_is_alone_reads_the_lanes_once_a_turn(world: World, looks: list[str]) -> None:
    world.start_all({f"source-{number}.org": 5 for number in range(SOURCES)})
    world.claim(slots=2)
    world.claim(slots=SOURCES + 2)
    looks.clear()

    # It goes on in the middle of the ring, which it would read from there to the end and around.
    assert len(world.claim(slots=SOURCES + 1)) == SOURCES + 1

    assert looks.count("ready_lanes") == 1


def test_claim_takes_nothing_of_a_slot_that_somebody_took_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.start_with_pages(5)
    limits = {world.source("acme.com", ONE_PAGE): ONE_PAGE}
    world.register("other")

    def take() -> None:
        other = PostgresStore(str(world.path), world.clock)
        assert len(other.turn("other", [], Capacity(1), limits).claimed) == 1
        other.close()

    before_locks(world, monkeypatch, take)

    assert world.store.turn("w", [], Capacity(10), limits).claimed == []


def test_claim_that_waited_for_another_takes_all_that_it_has_let_go_of(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One lane for each wait would be a turn for a few jobs, with all that a turn costs."""
    world.start_all({f"source-{number}.org": 1 for number in range(SOURCES)})
    db = world.store._db
    assert isinstance(db, PostgresDatabase)
    original = db._lock_soon
    with psycopg.connect(str(world.path)) as other:
        other.execute("SELECT 1 FROM penstock.source FOR NO KEY UPDATE")

        def released(name: str, ids: Sequence[int]) -> list[Any]:
            other.commit()
            return original(name, ids)

        monkeypatch.setattr(db, "_lock_soon", released)

        assert len(world.claim()) == SOURCES


@pytest.mark.usefixtures("only_ours")
def test_worker_that_is_alone_is_given_jobs_ahead(world: World) -> None:
    world.start_with_pages(20)
    limits = {world.source(): LaneLimits(concurrency=4)}

    ahead = Capacity(20, ahead=dict.fromkeys(limits, 10))
    assert len(world.store.turn("w", [], ahead, limits).claimed) == 14


def test_worker_that_was_alone_takes_nothing_ahead_once_somebody_has_joined(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.start_with_pages(20)
    limits = {world.source(): LaneLimits(concurrency=4)}
    taken = []

    def join() -> None:
        other = PostgresStore(str(world.path), world.clock)
        other.workers.register("other", "there", 1, "test")
        taken.extend(other.turn("other", [], Capacity(3), limits).claimed)
        other.close()

    before_locks(world, monkeypatch, join)
    ahead = Capacity(20, ahead=dict.fromkeys(limits, 10))
    claimed = world.store.turn("w", [], ahead, limits).claimed

    assert (len(taken), len(claimed)) == (3, 1)


def test_runs_that_are_summed_up_together_cost_no_more_than_their_lines(world: World) -> None:
    """A join of every line with every run takes seconds with a thousand runs."""
    runs = 20
    found = world.start_all({f"source-{number}.org": SUM_AFTER for number in range(runs)})
    lines = runs * (SUM_AFTER + 1)
    with psycopg.connect(str(world.path)) as db:
        # Each second one takes back what the one before has said.
        for _ in range(SUM_AFTER // 2):
            db.execute(
                "INSERT INTO penstock.tally (run_id, stage, queued, succeeded)"
                " SELECT id, 'extract', n, -n FROM penstock.run, unnest(ARRAY[1, -1]) AS n"
            )
        db.commit()
        text = queries_in(PACKAGE, "penstock")["sum_up"]
        db.execute(BEGIN.encode())
        asked = f"EXPLAIN (ANALYZE, FORMAT JSON) {text.rstrip().removesuffix(';')}"
        [(plan,)] = db.execute(asked.encode(), {"ids": array_of(found)}).fetchall()
        db.commit()
    nodes = list(each_node(plan[0]["Plan"]))
    assert max(map(rows_looked_at, nodes)) < 3 * lines
    assert {(run.queued, run.succeeded) for run in map(world.run, found)} == {(SUM_AFTER, 1)}


def each_node(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", []):
        yield from each_node(inner)


def rows_looked_at(node: dict[str, Any]) -> float:
    rows = node["Actual Rows"] + node.get("Rows Removed by Join Filter", 0)
    return float(rows) * float(node["Actual Loops"])
