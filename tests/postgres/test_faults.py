"""Postgres, and the way to it, fail: nothing is lost, nothing is doubled, and work goes on by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from penstock.engine import trouble, worker
from tests.postgres.fixtures import a_name
from tests.postgres.proxy import Fault, Proxy
from tests.postgres.server import Server
from tests.postgres.working import Working

COMMIT = "^COMMIT$"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again at once: how long is waited has tests of its own."""
    monkeypatch.setattr(trouble, "FIRST_S", 0.001)
    monkeypatch.setattr(trouble, "LONGEST_S", 0.01)
    monkeypatch.setattr(trouble, "RETRY_S", 0.01)
    monkeypatch.setattr(worker, "REVIEW_S", 0.01)


@pytest.fixture
def working(tmp_path: Path, database: str) -> Iterator[Working]:
    with Working(tmp_path, database, pages=40) as made:
        yield made


# A connection that is cut.


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("every", [3, 4, 7])
def test_commit_whose_answer_is_lost_each_so_often_is_written_once(
    working: Working, proxy: Proxy, every: int
) -> None:
    run_id = working.start_run()

    lost = working.work_until_done(
        proxy.through(working.url),
        lambda: proxy.fail_when(Fault.CUT_AFTER, lambda number: number % every == 0, at=COMMIT),
    )

    assert lost.happened > 3
    working.assert_everything_once(run_id)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("pages", "probability"),
    [
        pytest.param(60, 0.15, id="short"),
        pytest.param(3000, 0.15, marks=[pytest.mark.timeout(3600), pytest.mark.torture], id="long"),
    ],
)
def test_commits_whose_answers_are_lost_at_random_are_written_once(
    tmp_path: Path, database: str, proxy: Proxy, pages: int, probability: float
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with Working(tmp_path, database, pages=pages) as working:
        run_id = working.start_run()
        lost = working.work_until_done(
            proxy.through(database),
            lambda: proxy.fail_at_random(Fault.CUT_AFTER, probability, seed, at=COMMIT),
        )
        print(f"{lost.happened} of {lost.seen} answers to COMMIT were lost")
        assert lost.happened >= 5
        working.assert_everything_once(run_id)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("fault", [Fault.CUT_BEFORE, Fault.CUT_AFTER], ids=["before", "after"])
def test_connection_cut_at_any_statement_changes_nothing_of_the_outcome(
    working: Working, proxy: Proxy, fault: Fault
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    run_id = working.start_run()

    cut = working.work_until_done(
        proxy.through(working.url), lambda: proxy.fail_at_random(fault, 0.03, seed)
    )

    assert cut.happened > 5
    working.assert_everything_once(run_id)


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("fault", [Fault.CUT_BEFORE, Fault.CUT_AFTER], ids=["before", "after"])
def test_connection_cut_at_every_statement_one_after_another(
    tmp_path: Path, postgres: Server, proxy: Proxy, fault: Fault
) -> None:
    """The n-th statement of a small run, then the n+1-st, until a run ends without a fault."""
    struck, number = True, 0
    while struck:
        number += 1
        name = f"{a_name()}_{fault.name.lower()}"
        url, folder = postgres.create_database(name), tmp_path / str(number)
        folder.mkdir()
        with Working(folder, url, pages=3) as working:
            run_id = working.start_run()
            proxy.heal()
            cut = working.work_until_done(
                proxy.through(url), partial(proxy.fail, fault, nth=number)
            )
            struck = cut.happened > 0
            working.assert_everything_once(run_id)
        postgres.drop_database(name)
    print(f"cut at {number - 1} statements, one after another")
    assert number > 50


@pytest.mark.usefixtures("hasty")
def test_end_of_a_job_that_fails_to_be_written_a_hundred_times_is_written(
    working: Working, proxy: Proxy
) -> None:
    run_id = working.start_run()
    times = 100
    ends = "state = 'succeeded'"

    lost = working.work_until_done(
        proxy.through(working.url),
        lambda: proxy.fail_when(Fault.CUT_BEFORE, lambda number: number <= times, at=ends),
    )

    assert lost.happened == times
    working.assert_everything_once(run_id)
    assert len([line for line in working.told if "can't reach" in line]) == 1, "once a minute"
