"""Rollups: folding the journal in any batches, with failures in between, equals folding it at once."""

from __future__ import annotations

from contextlib import closing, suppress

import psycopg
import pytest

from penstock.jobs.effects import Effects, Rejection
from penstock.jobs.run import RunKind
from penstock.metrics.measures import STORED
from penstock.store import rollups
from penstock.store.journal_position import read_position
from penstock.store.store import Store
from penstock.store.upkeep import Keep
from tests.contract.scenes import (
    POSTGRES,
    SITE,
    World,
    a_save,
    done,
    quarantined,
    released,
    retried,
    skipped,
    throttled,
)

HOUR_S, DAY_S = 3600, 86_400
Sums = dict[tuple[str | None, str, str], float]


def totals(store: Store) -> Sums:
    found = store.rollups.totals(STORED)
    return {(source, measure, label): value for source, measure, label, value in found}


def fold_all(store: Store) -> None:
    while store.rollups.fold():
        pass


def work(world: World) -> int:
    """A run of six pages that end in every way, over three hours."""
    run_id = world.start_with_pages(6)
    jobs = world.claim()
    world.clock.advance(0.5)
    saves = [a_save("a", {"n": 1}, score=0.95), a_save("b", {"n": 2}, score=0.35)]
    effects = Effects(
        saves=saves,
        spent={"requests": 2, "bytes": 1000},
        latencies={"0.25": 1, "1": 1, "": 0.75},
        rejections=[Rejection("no_price", "no price")],
    )
    world.turn("w", done(jobs[0], effects=effects), retried(jobs[1], 60.0), skipped(jobs[2]))
    world.clock.advance(HOUR_S)
    world.turn("w", quarantined(jobs[3]), throttled(jobs[4], 30.0), released(jobs[5]))
    world.clock.advance(HOUR_S)
    again = world.claim()
    world.clock.advance(7)
    world.turn("w", *(done(job, saves=[a_save("a", {"n": 1}, score=0.95)]) for job in again))
    return run_id


EXPECTED = {
    "jobs": {"discover:succeeded": 1, "extract:succeeded": 4, "extract:skipped": 1, "extract:quarantined": 1},
    "attempts": {"succeeded": 5, "retried": 1, "skipped": 1, "quarantined": 1, "throttled": 1, "released": 1},
    "retries": {"": 1},
    "throttles": {"": 1},
    "quarantines": {"data": 1},
    "records": {"new": 2, "unchanged": 3},
    "rejected": {"": 1},
    "fetches": {"": 2},
    "bytes": {"": 1000},
    "fetch_seconds": {"0.25": 1, "1": 1},
    "quality": {"1": 4, "0.4": 1},
    "runs": {"partial": 1},
}  # fmt: skip


def test_sums_say_what_became_of_every_job_attempt_fetch_and_record(world: World) -> None:
    run_id = work(world)
    fold_all(world.store)
    found = totals(world.store)
    for measure, labels in EXPECTED.items():
        for source in (None, "acme.com"):
            summed = {
                label: value
                for (s, m, label), value in found.items()
                if (s, m) == (source, measure)
            }
            assert summed == labels, (source, measure)
    of_run = world.store.rollups.of_runs([run_id])[run_id]
    assert sum(of_run["attempt_seconds"].values()) == 10
    assert of_run["attempt_seconds_sum"][""] == pytest.approx(3 * 0.5 + 3 * 3600.5 + 3 * 7, abs=0.1)
    assert of_run["fetch_seconds_sum"] == {"": 0.75}


def test_series_have_the_hour_and_the_day_of_what_happened(world: World) -> None:
    work(world)
    fold_all(world.store)
    now = world.store.now()
    source_id = world.source()
    ask = world.store.rollups.series
    hours = ask("jobs", source_id, now - DAY_S, now + 1)
    assert [value for _, value in hours] == [3, 1, 3]
    assert all(at % HOUR_S == 0 for at, _ in hours)
    assert ask("jobs", None, now - DAY_S, now + 1, label="extract:quarantined") == [
        (hours[1][0], 1.0)
    ]
    days = ask("jobs", None, now - 2 * DAY_S, now + 1, "day")
    assert sum(value for _, value in days) == 7
    assert sum(v for _, v in ask("accepted", source_id, now - DAY_S, now + 1)) == 2
    assert sum(v for _, v in ask("duplicates", source_id, now - DAY_S, now + 1)) == 3
    assert world.store.rollups.by_source("jobs", now - DAY_S, now + 1, "hour") == {"acme.com": 7}


@pytest.mark.parametrize("lines", [1, 2, 3, 7])
def test_folding_in_small_batches_while_it_goes_on_equals_folding_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    work(world)
    monkeypatch.setattr(rollups, "LINES", lines)
    monkeypatch.setattr(rollups, "READS", 1 + lines % 2)
    other = world.kind.open(world.path, world.clock)  # somebody else folds, too
    with closing(other):
        while world.store.rollups.fold() or other.rollups.fold():
            pass
    in_batches = totals(world.store)
    world.tamper("DELETE FROM rollup")
    world.tamper("DELETE FROM rollup_position")
    monkeypatch.setattr(rollups, "LINES", 100_000)
    kept = {key: value for key, value in in_batches.items() if key[1] not in MEASURED}
    fold_all(world.store)
    assert totals(world.store) == pytest.approx(kept)


# What comes from attempts and not from the journal: it is gone once it is folded.
MEASURED = {
    "fetches", "bytes", "fetch_seconds", "fetch_seconds_sum", "records", "rejected", "quality", "quality_sum",
}  # fmt: skip


def fold_broken(world: World, table: str) -> None:
    """Try to, while each kind of write to a table fails."""
    for act in ("INSERT", "UPDATE", "DELETE"):
        with world.breaking(act, table), suppress(Exception):
            fold_all(world.store)


@pytest.mark.parametrize(
    "table", ["rollup", "run_rollup", "open_attempt", "rollup_position", "released_attempt"]
)
def test_a_fold_that_is_cut_short_at_any_write_is_done_again_whole(
    world: World, table: str
) -> None:
    run_id = world.start_with_pages(2)
    jobs = world.claim()
    world.turn("w", done(jobs[0], saves=[a_save("a", {}, score=0.5)]))
    fold_broken(world, table)
    fold_all(world.store)
    world.turn("w", done(jobs[1]))
    fold_broken(world, table)
    fold_all(world.store)
    found = totals(world.store)
    assert found["acme.com", "jobs", "extract:succeeded"] == 2
    assert found["acme.com", "records", "new"] == 1
    assert found["acme.com", "attempts", "succeeded"] == 3
    assert sum(world.store.rollups.of_runs([run_id])[run_id]["attempt_seconds"].values()) == 3


def test_retention_drops_no_line_of_the_journal_that_is_not_summed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = world.start_with_pages(3)
    world.turn("w", *(done(job) for job in world.claim()))
    world.clock.advance(100)
    monkeypatch.setattr(rollups.Rollups, "fold", lambda _self: 0)
    keep = Keep(None, 10.0, None, None)
    world.store.upkeep.prune(keep)
    assert "job.started" in world.kinds(run_id=run_id)
    monkeypatch.undo()
    world.store.upkeep.prune(keep)
    assert world.kinds(run_id=run_id) == []
    assert totals(world.store)["acme.com", "jobs", "extract:succeeded"] == 3


def test_lines_that_become_visible_late_are_summed_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    if world.kind is not POSTGRES:
        pytest.skip("a file has one writer at a time")
    world.start_with_pages(4)
    slow = psycopg.connect(str(world.path))
    event = "INSERT INTO penstock.event (at, kind, source_id) VALUES (%s, 'run.completed', 1) RETURNING id"
    given_back = psycopg.connect(str(world.path))
    given_back.execute(event, [world.store.now()])
    slow.execute(event, [world.store.now()])
    world.turn("w", *(done(job) for job in world.claim()))
    fold_all(world.store)
    position = read_position(world.store._db)
    assert position.whole_until < position.line
    slow.commit()
    slow.close()
    given_back.rollback()
    given_back.close()
    fold_all(world.store)
    assert totals(world.store)["acme.com", "runs", "completed"] == 2
    world.clock.advance(60)
    fold_all(world.store)
    position = read_position(world.store._db)
    assert position.holes == []
    assert position.whole_until == position.line
    assert totals(world.store)["acme.com", "runs", "completed"] == 2


def test_scheduled_starts_are_counted_with_how_late_they_were(world: World) -> None:
    source_id = world.source()
    now = world.store.now()
    world.store.runs.start(
        source_id, RunKind.FULL, SITE, "v1", key=f"tick:daily:{now - 12:.3f}", actor="scheduler", reason=""
    )  # fmt: skip
    fold_all(world.store)
    found = totals(world.store)
    assert found["acme.com", "starts", ""] == 1
    assert found["acme.com", "lateness_seconds", ""] == pytest.approx(12, abs=0.01)


def test_the_backlog_of_an_hour_is_the_last_that_was_noted_in_it(world: World) -> None:
    world.start_with_pages(3)
    world.store.rollups.note_backlogs()
    now = world.store.now()
    *two, third = world.claim()
    world.turn("w", *(done(job) for job in two))
    world.store.rollups.note_backlogs()
    ask = world.store.rollups.series
    [(at, jobs)] = ask("backlog", None, now - HOUR_S, now + 1)
    assert (at, jobs) == (now - now % HOUR_S, 1)
    world.turn("w", done(third))
    world.clock.advance(HOUR_S)
    reopened = world.kind.open(world.path, world.clock)
    with closing(reopened):
        reopened.rollups.note_backlogs()
    assert ask("backlog", world.source(), now, now + 2 * HOUR_S)[-1][1] == 0


def test_old_hours_are_dropped_and_days_stay(world: World) -> None:
    work(world)
    fold_all(world.store)
    now = world.store.now()
    world.clock.advance(40 * DAY_S)
    assert world.store.rollups.prune() is None
    assert world.store.rollups.series("jobs", None, 0.0, now + DAY_S) == []
    assert world.store.rollups.series("jobs", world.source(), 0.0, now + DAY_S, "day") != []
    world.clock.advance(3 * 365 * DAY_S)
    assert world.store.rollups.prune() is None
    assert world.store.rollups.series("jobs", None, 0.0, now + DAY_S, "day") == []
    assert totals(world.store)[None, "jobs", "extract:succeeded"] == 4
