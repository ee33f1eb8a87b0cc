"""The turn: settles and claims in one transaction, and lets nobody write who lost the job."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Mark, Note, Raised, Rejection
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Flush, Settlement
from penstock.jobs.repeats import Sayings
from penstock.store.reject_rows import RejectFilter
from penstock.store.snapshots import Kept
from tests.contract.scenes import (
    Ends,
    World,
    a_job,
    done,
    everything,
    pages,
    quarantined,
    released,
    retried,
    skipped,
    snoozed,
    throttled,
)


def late_ends(job: Claimed) -> list[Ends]:
    """Every way in which an attempt can try to write."""
    return [
        done(job, effects=everything("late")),
        retried(job, 1.0),
        snoozed(job, 1.0),
        throttled(job, 60.0),
        quarantined(job),
        skipped(job),
        released(job),
        Flush(job.id, job.attempt, everything("late")),
    ]


def lost_to_bury(world: World, job: Claimed) -> None:
    world.store.workers.bury("slow", "killed")


def lost_to_another_worker(world: World, job: Claimed) -> None:
    world.store.workers.bury("slow", "killed")
    assert world.one().id == job.id


def lost_to_its_own_next_attempt(world: World, job: Claimed) -> None:
    world.turn("slow", released(job))
    assert world.one("slow").id == job.id


def lost_to_cancel_job(world: World, job: Claimed) -> None:
    world.store.jobs.cancel(job.id, "test", "no")


def lost_to_cancel_run(world: World, job: Claimed) -> None:
    world.store.runs.cancel(job.run_id, "test", "no")


def lost_to_its_own_end(world: World, job: Claimed) -> None:
    world.turn("slow", done(job, children=pages(1)))


LOSSES: list[Callable[[World, Claimed], None]] = [
    lost_to_bury,
    lost_to_another_worker,
    lost_to_its_own_next_attempt,
    lost_to_cancel_job,
    lost_to_cancel_run,
    lost_to_its_own_end,
]


@pytest.mark.parametrize("lose", LOSSES, ids=[loss.__name__ for loss in LOSSES])
def test_attempt_that_lost_its_job_changes_nothing(
    world: World, lose: Callable[[World, Claimed], None]
) -> None:
    world.register("slow")
    world.start()
    job = world.one("slow")
    lose(world, job)
    before = world.dump()

    for late in late_ends(job):
        turn = world.turn("slow", late)

        assert (turn.settled, turn.lost) == ([], [job.id]), late
        assert world.dump() == before, late


def test_worker_that_never_had_the_job_cannot_end_it(world: World) -> None:
    world.register("thief")
    world.start()
    job = world.one()
    before = world.dump()

    assert world.turn("thief", done(job)).lost == [job.id]
    assert world.turn("w", msgspec.structs.replace(done(job), attempt=job.attempt + 1)).lost == [
        job.id
    ]
    assert world.dump() == before


def test_earlier_attempt_is_not_let_in_by_a_later_one_of_the_same_turn(world: World) -> None:
    run_id = world.start_with_pages(1)
    stale = world.one()
    world.turn("w", released(stale))
    fresh = world.one()

    turn = world.turn("w", done(stale, effects=everything("stale")), done(fresh))

    assert (turn.settled, turn.lost) == ([fresh.id], [stale.id])
    assert world.store.records.of("product") == []
    assert world.run(run_id).state == "completed"


def test_page_fetched_by_an_attempt_that_lost_its_job_is_not_kept(world: World) -> None:
    world.register("slow")
    world.start()
    job = world.one("slow")
    page = Kept(1, job.id, job.run_id, "https://acme.com/", 200, {}, 1.0, "h", "s", 0, 9)
    world.store.workers.bury("slow", "killed")
    before = world.dump()

    turn = world.store.turn("slow", [], Capacity(0), {}, [page])

    assert turn.is_buried
    assert turn.snapshot_ids == []
    assert world.dump() == before


def test_one_turn_settles_and_claims(world: World) -> None:
    run_id = world.start()
    root = world.one()

    turn = world.turn("w", done(root, children=pages(3)), capacity=Capacity(2))

    assert turn.settled == [root.id]
    assert [job.key for job in turn.claimed] == ["page-000000", "page-000001"]
    assert world.run(run_id).queued == 1


def test_turn_that_fails_in_its_claim_can_be_taken_again(world: World) -> None:
    world.start_with_pages(2)
    job = world.one()
    before = world.dump()
    end = done(job, effects=everything("a"))

    with world.breaking("UPDATE OF attempt", "job"), pytest.raises(Exception, match="planted"):
        world.turn("w", end, capacity=Capacity(1))

    if not world.kind.is_shared:  # where it is one transaction
        assert world.dump() == before
    again = world.turn("w", end, capacity=Capacity(1))
    assert again.settled + again.lost == [job.id]
    assert world.job(job.id).state is JobState.SUCCEEDED
    assert len(world.dump()["signal"]) == 1
    assert len(again.claimed) == 1


WRITES = [
    ("INSERT", "job"),
    ("INSERT", "job_item"),
    ("UPDATE", "job"),
    ("UPDATE", "run_stage"),
    ("UPDATE", "run"),
    ("INSERT", "record"),
    ("UPDATE", "record"),
    ("INSERT", "record_version"),
    ("UPDATE", "checkpoint"),
    ("INSERT", "checkpoint_move"),
    ("INSERT", "coverage"),
    ("INSERT", "signal"),
    ("INSERT", "event"),
]


@pytest.mark.parametrize("is_flush", [False, True], ids=["end", "flush"])
def test_effects_are_written_all_or_none(world: World, is_flush: bool) -> None:
    world.start_with_pages(2)
    first, second = world.claim()
    world.turn("w", done(first, effects=everything("first")))
    effects = everything("second")
    end = Flush(second.id, second.attempt, effects) if is_flush else done(second, effects=effects)
    before = world.dump()

    for act, table in WRITES:
        if is_flush and (act, table) == ("UPDATE", "job"):
            continue  # a flush leaves its job as it is
        with world.breaking(act, table), pytest.raises(Exception, match="planted"):
            world.turn("w", end)
        assert world.dump() == before, (act, table)

    assert world.turn("w", end).settled == [second.id]
    assert len(world.store.records.of("product")) == 3


def test_every_effect_of_an_accepted_attempt_is_there(world: World) -> None:
    run_id = world.start()
    job = world.one()

    world.turn("w", done(job, effects=everything("a")))

    [child] = world.jobs(run_id, stage="extract")
    assert (child.key, child.state) == ("child-a", JobState.QUEUED)
    assert [row.key for row in world.store.records.of("product")] == ["record-a", "shared"]
    assert world.store.checkpoints.cursors(world.source()) == {"inbox": {"cursor": "a"}}
    assert len(world.dump()["signal"]) == 1
    assert world.kinds(job.id) == ["job.started", "job.succeeded", "job.noted", "schema.verified"]
    assert world.store.promises.verification(world.source()).run_id == run_id
    assert world.run(run_id).rejected == 2


def test_flush_writes_while_the_attempt_goes_on(world: World) -> None:
    run_id = world.start()
    job = world.one()

    turn = world.turn("w", Flush(job.id, job.attempt, everything("a")), capacity=Capacity(5))

    assert [child.key for child in turn.claimed] == ["child-a"]
    assert world.job(job.id).state is JobState.RUNNING
    assert world.turn("w", done(job, effects=everything("a"))).settled == [job.id]
    assert len(world.jobs(run_id, stage="extract")) == 1
    assert world.run(run_id).rejected == 4


def test_flush_and_end_may_share_a_turn(world: World) -> None:
    run_id = world.start()
    job = world.one()
    part = Flush(job.id, job.attempt, Effects(children=[a_job("a")]))

    turn = world.turn("w", part, done(job, children=[a_job("a"), a_job("b")]))

    assert turn.settled == [job.id, job.id]
    assert [row.key for row in world.jobs(run_id, stage="extract")] == ["a", "b"]


def test_attempt_ends_once_however_often_its_end_is_sent(world: World) -> None:
    world.start_with_pages(1)
    job = world.one()
    late = Flush(job.id, job.attempt, everything("late"))

    turn = world.turn("w", done(job), quarantined(job), done(job, effects=everything("b")), late)

    assert turn.settled == [job.id]
    assert turn.lost == [job.id] * 3
    assert world.kinds(job.id) == ["job.started", "job.succeeded"]
    assert world.store.records.of("product") == []


@pytest.mark.parametrize("is_flush", [False, True], ids=["end", "flush"])
def test_child_of_a_stage_the_run_does_not_have_fails_its_parent_only(
    world: World, is_flush: bool
) -> None:
    """The pipeline was changed after the run had started; the other attempts must not suffer."""
    world.start_with_pages(2)
    good, odd = world.claim()
    effects = Effects(children=[a_job("x", stage="enrich")], saves=[])
    end = Flush(odd.id, odd.attempt, effects) if is_flush else done(odd, effects=effects)

    turn = world.turn("w", end, done(good))

    assert good.id in turn.settled
    assert world.job(good.id).state is JobState.SUCCEEDED
    assert world.job(odd.id).state is JobState.QUARANTINED
    assert "enrich" in (world.job(odd.id).error or "")


def test_turn_of_an_unknown_worker_claims_nothing(world: World) -> None:
    world.start()

    turn = world.turn("nobody", capacity=Capacity(5))

    assert turn.is_buried
    assert turn.claimed == []


def test_claimed_job_carries_all_that_its_attempt_needs(world: World) -> None:
    run_id = world.start()

    job = world.one()

    assert (job.run_id, job.source_id, job.stage) == (run_id, world.source(), "discover")
    assert (job.attempt, job.tries, job.throttles, job.deaths) == (1, 0, 0, 0)
    assert (job.is_resumed, job.item) == (False, "null")


def test_snapshots_are_referred_to_in_the_turn_and_equal_content_lies_once(world: World) -> None:
    world.start_with_pages(2)
    one, two = world.claim()
    kept = [
        Kept(
            number,
            job.id,
            job.run_id,
            f"https://acme.com/{job.id}",
            200,
            {"etag": "x"},
            1.0,
            "h",
            seg,
            0,
            9,
        )
        for number, job, seg in ((11, one, "s1"), (12, two, "s2"))
    ]

    turn = world.store.turn("w", [done(one), done(two)], Capacity(0), {}, kept)

    assert turn.snapshot_ids == [11, 12]
    assert world.store.snapshots.places(["h", "unknown"]) == {"h": ("s1", 0, 9)}
    found = world.store.snapshots.of(two.id, f"https://acme.com/{two.id}")
    assert found is not None
    assert (found.segment, found.headers) == ("s1", {"etag": "x"})


@pytest.mark.parametrize(
    "again", [done, quarantined, released], ids=["done", "quarantined", "released"]
)
@pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])
def test_first_of_two_ends_in_one_turn_counts(
    world: World, again: Callable[[Claimed], Settlement], is_first: bool
) -> None:
    run_id = world.start_with_pages(2)
    job, _ = world.claim()
    ends = [done(job), again(job)] if is_first else [again(job), done(job)]

    turn = world.turn("w", *ends)

    assert (turn.settled, turn.lost) == ([job.id], [job.id])
    assert world.job(job.id).state is ends[0].state
    assert world.run(run_id).running == 1


def test_what_an_attempt_spent_is_counted_in_its_run(world: World) -> None:
    """Also where it was added up as fractions: a server's columns are whole numbers."""
    run_id = world.start()
    spent = {"requests": 2.0, "bytes": 10.0, "seconds": 0.5}

    world.turn("w", done(world.one(), effects=Effects(spent=spent)))

    run = world.run(run_id)
    assert (run.requests, run.bytes, run.seconds) == (2, 10, 0.5)


def said(*words: str) -> Effects:
    return Effects(
        signals=[Raised("batch.done", msgspec.json.encode(word)) for word in words],
        notes=[Note(word) for word in words],
        rejections=[Rejection("no_price", word) for word in words],
    )


def keyed(sayings: Sayings, effects: Effects) -> Effects:
    sayings.key(effects)
    return effects


def heard(world: World) -> tuple[list[str], list[str], list[str]]:
    raised = world.store.signals.after(limit=100)
    signals = [signal.data for signal in raised if signal.name == "batch.done"]
    notes = [event.detail for event in world.store.journal.events(kind="job.noted", limit=100)]
    rejects = [row.reason for row in world.store.rejects.newest(RejectFilter(), 100)]
    return sorted(map(str, signals)), sorted(notes), sorted(rejects)


def test_what_a_second_attempt_says_again_is_written_once(world: World) -> None:
    run_id = world.start()
    first, sayings = world.one(), Sayings()
    words = ["one", "two", "two"]
    world.turn("w", Flush(first.id, first.attempt, keyed(sayings, said(*words)), 1))
    world.store.workers.bury("w", "killed")
    world.register("w")

    second, sayings = world.one(), Sayings()
    assert (second.id, second.attempt) == (first.id, 2)
    world.turn("w", Flush(second.id, 2, keyed(sayings, said("one", "two")), 1))
    world.turn("w", done(second, effects=keyed(sayings, said("two", "two", "three"))))

    every = ["one", "three", "two", "two", "two"]
    assert heard(world) == (every, every, every)
    assert world.run(run_id).rejected == len(every)
    assert world.dump()["sent"] == []


def test_what_is_said_after_a_checkpoint_or_a_snooze_is_new(world: World) -> None:
    world.start()
    first, sayings = world.one(), Sayings()
    past = said("one")
    past.marks = [Mark("inbox", b"1")]
    world.turn("w", Flush(first.id, first.attempt, keyed(sayings, past), 1))
    world.turn("w", released(first))

    second, sayings = world.one(), Sayings()
    asked = said("one")
    asked.forgets = True
    world.turn("w", Flush(second.id, 2, keyed(sayings, asked), 1))
    world.turn("w", released(second))

    third, sayings = world.one(), Sayings()
    world.turn("w", done(third, effects=keyed(sayings, said("one"))))

    assert heard(world)[1] == ["one", "one", "one"]
