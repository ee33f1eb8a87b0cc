"""A row that somebody's open transaction has locked costs its own source, not the others."""

from __future__ import annotations

import psycopg
import pytest

from penstock.store.postgres import database as database_module
from tests.contract.scenes import POSTGRES, World


@pytest.fixture
def world(schema_database: str, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(database_module, "SOON_S", 0.05)
    return World(POSTGRES, schema_database)


@pytest.mark.parametrize("table", ["source", "run"])
def test_locked_source_or_run_holds_up_no_other(world: World, table: str) -> None:
    stuck, free = world.start(source="stuck.org"), world.start(source="free.org")
    row = stuck if table == "run" else world.source("stuck.org")
    with psycopg.connect(str(world.path)) as somebody:
        somebody.execute(f"SELECT 1 FROM penstock.{table} WHERE id = {row} FOR UPDATE".encode())
        assert [job.run_id for job in world.claim()] == [free]
        assert world.claim() == [], "and whoever has nothing else to do waits for a moment only"
        somebody.rollback()
    assert [job.run_id for job in world.claim()] == [stuck]
    world.close()


def test_lane_that_another_worker_is_in_is_left_to_it(world: World) -> None:
    """It is looked at again in the next turn; nothing is claimed twice."""
    first, second = world.start(source="one.org"), world.start(source="two.org")
    lane = world.source("one.org")
    with psycopg.connect(str(world.path)) as other:
        other.execute(f"SELECT 1 FROM penstock.source WHERE id = {lane} FOR NO KEY UPDATE".encode())
        assert [job.run_id for job in world.claim()] == [second]
        other.commit()
    assert [job.run_id for job in world.claim()] == [first]
    assert world.store.check() == []
    world.close()
