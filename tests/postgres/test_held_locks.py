"""A row that somebody's open transaction has locked costs its own source, not the others."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from penstock.errors import StoreLocked
from penstock.gates.capacity import Capacity
from penstock.jobs.job import JobState
from penstock.store.jobs import JobFilter
from penstock.store.postgres import database as database_module
from penstock.store.postgres import session as session_module
from penstock.store.rows import JobRow
from tests.contract.scenes import POSTGRES, World, done
from tests.postgres.working import Working, until_ended
from tests.postgres.workspace import until


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


def test_end_of_a_locked_run_waits_and_the_others_are_settled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = session_module.BEGIN.replace("lock_timeout = 5000", "lock_timeout = 50")
    monkeypatch.setattr(session_module, "BEGIN", begin)
    stuck_run, free_run = world.start(source="stuck.org"), world.start(source="free.org")
    stuck, free = sorted(world.claim(), key=lambda job: job.run_id)
    ends = [done(stuck), done(free)]
    with psycopg.connect(str(world.path)) as somebody:
        somebody.execute(f"SELECT 1 FROM penstock.run WHERE id = {stuck_run} FOR UPDATE".encode())
        with pytest.raises(StoreLocked):
            world.store.turn("w", ends, Capacity(0), {})
        turn = world.store.turn("w", ends, Capacity(0), {})
        assert (turn.settled, turn.lost, set(turn.postponed)) == ([free.id], [], {stuck.id})
        assert world.run(free_run).is_ended
        somebody.rollback()
    turn = world.store.turn("w", ends[:1], Capacity(0), {})
    assert (turn.settled, turn.postponed) == ([stuck.id], frozenset())
    assert world.run(stuck_run).is_ended
    assert world.store.upkeep.check() == []
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
    assert world.store.upkeep.check() == []
    world.close()


def test_worker_keeps_what_ended_until_the_run_is_free_again(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = session_module.BEGIN.replace("lock_timeout = 5000", "lock_timeout = 50")
    monkeypatch.setattr(session_module, "BEGIN", begin)
    with Working(tmp_path, database, pages=300) as working:
        run_id = working.start_run()
        with psycopg.connect(database) as somebody, working.at_work(database):
            until("pages are done", lambda: working.run(run_id).pages_done > 0)
            somebody.execute("SELECT 1 FROM penstock.run FOR UPDATE")
            until("nothing of it moves", lambda: told_of_lock(working) or not running(working))
            somebody.rollback()
            until_ended(working, run_id)
        working.assert_everything_once(run_id)


def told_of_lock(working: Working) -> bool:
    return any("for a lock" in line for line in working.told)


def running(working: Working) -> list[JobRow]:
    return working.store.jobs.find(JobFilter(states=(JobState.RUNNING,)))
