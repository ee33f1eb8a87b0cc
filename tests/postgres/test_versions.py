"""The same small world on every major version of Postgres that this machine has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.gates.capacity import Capacity
from penstock.jobs.job import JobState
from penstock.store.postgres.store import PostgresStore
from penstock.store.upkeep import Keep
from tests.postgres.crowd import CLOCK, ask, finish, let_loose, watch
from tests.postgres.fixtures import a_name
from tests.postgres.server import Server
from tests.postgres.working import Working, until_ended


@pytest.fixture
def url(each_postgres: Server) -> Iterator[str]:
    name = a_name()
    yield each_postgres.create_database(name)
    each_postgres.drop_database(name)


def test_worker_does_everything_once(tmp_path: Path, url: str) -> None:
    with Working(tmp_path, url, pages=20) as working:
        run_id = working.start_run()
        with working.at_work(url):
            until_ended(working, run_id)
        working.assert_everything_once(run_id)


def test_operators_verbs_do_what_they_say(tmp_path: Path, url: str) -> None:
    with Working(tmp_path, url, pages=1) as working, closing(PostgresStore(url, CLOCK)) as store:
        run_id = working.start_run()
        store.workers.register("w", "here", 1, "test")
        assert store.runs.pause(run_id, "test", "")
        assert store.turn("w", [], Capacity(1), {}).claimed == []
        assert store.runs.resume(run_id, "test", "")
        [job] = store.turn("w", [], Capacity(1), {}).claimed
        assert store.workers.bury("w", "it died") == [job.id]
        assert store.runs.cancel(run_id, "test", "")
        assert store.runs.sweep_cancelled() == 1
        assert [row.state for row in working.jobs()] == [JobState.CANCELLED]
        assert store.upkeep.prune(Keep(0.0, 0.0, 0.0, 0.0)) > 0
        assert working.jobs() == []
        assert store.upkeep.check() == []


def test_crowd_leaves_a_sound_store(url: str) -> None:
    PostgresStore(url, CLOCK).close()
    watch(url)

    seen = let_loose(url, clients=4, acts=60, seed=1)
    finish(url)

    assert seen.errors == []
    assert ask(url, "SELECT * FROM penstock.excess") == []
    with closing(PostgresStore(url, CLOCK)) as store:
        assert store.upkeep.check() == []
