"""Enqueue: idempotent, all or nothing, and whatever is in an item stays the item's own trouble."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

import msgspec
import pytest

from penstock.errors import Refused, UsageError
from penstock.jobs.job import Claimed, JobState, NewJob
from tests.contract.scenes import Ends, World, a_job, done, enqueue_elsewhere, quarantined, retried

KEYS = [f"key-{number}" for number in range(1000)]


def test_known_key_answers_with_the_known_job(world: World) -> None:
    run_id = world.start()

    [first] = world.enqueue(run_id, "a")
    again, other = world.enqueue(run_id, "a", "b")

    assert (first.is_new, again.is_new, other.is_new) == (True, False, True)
    assert again.job_id == first.job_id
    assert other.job_id != first.job_id


def test_key_given_twice_in_one_batch_is_one_job(world: World) -> None:
    run_id = world.start()

    first, twin = world.enqueue(run_id, "a", "a")

    assert first.job_id == twin.job_id
    assert len(world.jobs(run_id, stage="extract")) == 1


@pytest.mark.parametrize("end", [done, quarantined, lambda job: retried(job, 60.0)])
def test_known_key_never_resets_its_job(world: World, end: Callable[[Claimed], Ends]) -> None:
    run_id = world.start_with_pages(1)
    job = world.one()
    world.turn("w", end(job))
    before = world.dump()["job"]

    world.clock.advance(5)
    if world.run(run_id).is_ended:
        with pytest.raises(Refused):
            world.enqueue(run_id, job.key)
    else:
        [answer] = world.enqueue(run_id, job.key)
        assert (answer.job_id, answer.is_new) == (job.id, False)

    assert world.dump()["job"] == before


def test_equal_keys_of_other_stages_and_runs_are_other_jobs(world: World) -> None:
    one, two = world.start(key="one"), world.start(key="two")

    found = [
        *world.enqueue(one, "a"),
        *world.enqueue(one, "a", stage="persist"),
        *world.enqueue(two, "a"),
    ]

    assert len({answer.job_id for answer in found}) == 3


@pytest.mark.parametrize("is_process", [False, True], ids=["threads", "processes"])
def test_racing_callers_agree_on_one_job_for_each_key(world: World, is_process: bool) -> None:
    run_id = world.start()
    callers = 4 if is_process else 8
    pool: Executor
    if is_process:
        pool = ProcessPoolExecutor(callers, multiprocessing.get_context("spawn"))
    else:
        pool = ThreadPoolExecutor(callers)

    with pool:
        calls = [
            pool.submit(enqueue_elsewhere, world.kind.name, str(world.path), run_id, KEYS)
            for _ in range(callers)
        ]
        answers = [call.result() for call in calls]

    assert len(world.jobs(run_id, stage="extract")) == len(KEYS)
    assert all(answer == answers[0] for answer in answers)


def test_batch_is_all_or_nothing(world: World) -> None:
    run_id = world.start()
    before = world.dump()

    with pytest.raises(UsageError, match="no stage extrakt"):
        world.store.jobs.enqueue(run_id, [a_job("a"), a_job("b", stage="extrakt")])

    assert world.dump() == before


def test_ended_run_takes_no_more_jobs(world: World) -> None:
    run_id = world.start()
    world.turn("w", done(world.one()))

    with pytest.raises(Refused, match="completed"):
        world.enqueue(run_id, "late")


def test_run_that_is_not_there_is_named(world: World) -> None:
    with pytest.raises(UsageError, match="no run 99"):
        world.enqueue(99, "a")


def test_starting_a_run_again_under_its_key_answers_with_that_run(world: World) -> None:
    first = world.start(key="tick:1")
    before = world.dump()

    assert world.start(key="tick:1") == first
    assert world.dump() == before
    assert world.start(key="tick:2") != first


@pytest.mark.parametrize(
    "item",
    [b"null", b'{"a": "\\u0000"}', b'"\\ud800"', b"{", b"", msgspec.json.encode("x" * 1_000_000)],
    ids=["null", "nul", "lone surrogate", "cut off", "empty", "1 MB"],
)
def test_item_comes_back_as_it_was_whatever_it_holds(world: World, item: bytes) -> None:
    run_id = world.start()
    world.turn("w", done(world.one(), children=[NewJob("extract", "odd", item)]))

    job = world.one()

    assert job.item == item.decode()
    world.turn("w", quarantined(job, "could not be decoded"))
    assert world.run(run_id).state == "failed"


@pytest.mark.parametrize("key", ["", "a\x00b", "a\ud800b", "k" * 5000, "ключ", "a'b\"c\\"])
def test_any_key_is_idempotent_and_unlike_its_neighbour(world: World, key: str) -> None:
    run_id = world.start()

    first, again, other = world.enqueue(run_id, key, key, key + "!")

    assert first.job_id == again.job_id != other.job_id


@pytest.mark.parametrize("damage", ["DELETE FROM job_item", "UPDATE job_item SET item = '{'"])
def test_damaged_item_reaches_the_attempt_and_fails_there(world: World, damage: str) -> None:
    world.start_with_pages(1)
    world.tamper(f"{damage} WHERE job_id = (SELECT max(id) FROM job)")

    job = world.one()

    assert job.item in ("", "{")
    world.turn("w", quarantined(job, "could not be decoded"))
    world.tamper(
        "INSERT INTO job_item SELECT id, NULL, 'null', NULL FROM job WHERE true ON CONFLICT DO NOTHING"
    )


def test_text_with_lone_surrogates_or_nul_is_stored_without_a_fuss(world: World) -> None:
    run_id = world.start_with_pages(1)
    job = world.one()

    turn = world.turn("w", quarantined(job, "bad \ud800 and \x00 bytes"))

    assert turn.settled == [job.id]
    assert world.job(job.id).state is JobState.QUARANTINED
    assert "bytes" in (world.job(job.id).error or "")
    assert world.run(run_id).is_ended
