"""Checkpoints move forwards with the attempts that mark them, and back only by a person's hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import msgspec
import psycopg
import pytest

from penstock.errors import Refused, UsageError
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Covered, Effects, Mark
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Flush
from penstock.jobs.run import RunKind
from penstock.jobs.run_policy import policy_of
from penstock.store import checkpoints
from penstock.store.checkpoints import CheckpointMove, as_it_was, last_upto
from penstock.store.upkeep import Keep
from tests.contract.scenes import World, done
from tests.journeys.rig import until

DAY = 86_400.0
OWN_CURSOR_KINDS = [kind for kind in RunKind if not policy_of(kind).moves_checkpoints]


def mark(cursor: Any, partition: str = "eur", offset: Any = None, ordered: bool = True) -> Mark:
    encode = msgspec.json.encode
    return Mark(partition, encode(cursor), encode(offset), ordered)


def marked(
    world: World, *cursors: Any, kind: RunKind = RunKind.FULL, partition: str = "eur"
) -> int:
    """A run whose first job has marked these, each in a turn of its own."""
    run_id = world.start(key=f"run-{world.store.now()}-{kind}", kind=kind)
    job = world.one()
    for cursor in cursors:
        world.clock.advance(1)
        world.turn("w", Flush(job.id, job.attempt, Effects(marks=[mark(cursor, partition)])))
    world.turn("w", done(job))
    return run_id


def test_checkpoint_knows_its_offset_run_time_and_how_it_came_there(world: World) -> None:
    run_id = world.start()
    job = world.one()
    world.turn("w", Flush(job.id, job.attempt, Effects(marks=[mark(1, offset=10)])))
    world.clock.advance(5)
    world.turn("w", done(job, effects=Effects(marks=[mark(2, offset=20), mark(3, offset=30)])))

    [row] = world.store.checkpoints.all(world.source())
    newest, oldest = world.store.checkpoints.history(world.source(), "eur")

    assert (row.partition, row.cursor, row.last_offset) == ("eur", 3, 30)
    assert (row.run_id, row.at, row.moves) == (run_id, world.clock.now(), 2)
    assert (newest.number, newest.cursor, newest.last_offset, newest.act) == (2, 3, 30, "moved")
    assert (oldest.number, oldest.cursor, oldest.run_id, oldest.actor) == (1, 1, run_id, "w")


def test_newest_cursor_of_each_run_is_its_own_or_the_one_it_left_at_its_source(
    world: World,
) -> None:
    overtaken = marked(world, 1)
    newest = marked(world, 2, 3)
    own = marked(world, "a", "b", kind=RunKind.BACKFILL)
    silent = world.start(key="silent")

    found = world.store.checkpoints.newest_of_runs([overtaken, newest, own, silent])

    assert found == {newest: "3", own: '"b"'}


@pytest.mark.parametrize(
    ("old", "new"),
    [(7, 6), (7, None), ("b", ""), ([2, 1], [2, 0]), ([1], []), ({"n": 2}, {"n": 1}), ({"n": 1}, {}),
     (7, "8"), ("2026-01-02", "2026-01-01"), ("10", "9")],
)  # fmt: skip
def test_cursor_never_goes_back_or_empty(world: World, old: Any, new: Any) -> None:
    run_id = marked(world, old, new)

    assert world.store.checkpoints.cursors(world.source()) == {"eur": old}
    assert "checkpoint.refused" in world.kinds(run_id=run_id)
    refused, moved = world.store.checkpoints.history(world.source(), "eur")
    assert (refused.act, refused.cursor, moved.act) == ("refused", new, "moved")
    assert world.run(run_id).state == "completed"


@pytest.mark.parametrize(
    ("old", "new"),
    [(7, 8), (7, 7), ("9", "10"), ([1, 9], [2, 0]), ([1], [1, 0]), ({"n": 1}, {"n": 2, "m": 0}),
     ("2026-01-02", "2026-01-02T00:00:01+00:00"), (None, 1)],
)  # fmt: skip
def test_cursor_that_goes_on_is_moved_to(world: World, old: Any, new: Any) -> None:
    run_id = marked(world, old, new)

    assert world.store.checkpoints.cursors(world.source()) == {"eur": new}
    assert "checkpoint.refused" not in world.kinds(run_id=run_id)


def test_mark_after_a_refused_one_counts(world: World) -> None:
    marked(world, 5)
    world.start(key="second")
    job = world.one()

    world.turn("w", done(job, effects=Effects(marks=[mark(6), mark(3), mark(4), mark(7)])))

    assert world.store.checkpoints.cursors(world.source()) == {"eur": 7}
    acts = [move.act for move in world.store.checkpoints.history(world.source(), "eur")]
    assert acts == ["refused", "moved", "moved"], "one line for a turn that refused several"


def test_run_that_begins_again_from_the_beginning_is_refused_once(world: World) -> None:
    """Or its refusals would take the place of all that the history knows."""
    marked(world, 5)
    run_id = marked(world, 1, 2, 3, 4, 5, 6, 2, 3, 7)

    history = world.store.checkpoints.history(world.source(), "eur")

    assert [(move.act, move.cursor) for move in reversed(history)] == [
        ("moved", 5), ("refused", 1), ("moved", 6), ("refused", 2), ("moved", 7),
    ]  # fmt: skip
    assert world.kinds(run_id=run_id).count("checkpoint.refused") == 2
    marked(world, 6)
    assert world.store.checkpoints.history(world.source(), "eur")[0].act == "refused"


def test_tokens_without_an_order_may_go_anywhere_but_to_nothing(world: World) -> None:
    world.start()
    job = world.one()
    for token in ("zz", "aa", ""):
        marks = [mark(token, ordered=False)]
        world.turn("w", Flush(job.id, job.attempt, Effects(marks=marks)))

    assert world.store.checkpoints.cursors(world.source()) == {"eur": "aa"}


def test_same_cursor_again_is_no_move(world: World) -> None:
    world.start()
    world.turn("w", done(world.one(), effects=Effects(marks=[mark(1, offset=10)])))
    again = marked(world, 1)

    [row] = world.store.checkpoints.all(world.source())
    assert (row.moves, row.run_id, row.last_offset) == (1, again, 10)


@pytest.mark.parametrize("kind_of_run", OWN_CURSOR_KINDS)
def test_run_that_looks_again_never_moves_the_live_checkpoints(
    world: World, kind_of_run: RunKind
) -> None:
    marked(world, 5)
    run_id = marked(world, 9, 2, kind=kind_of_run)

    assert world.store.checkpoints.cursors(world.source()) == {"eur": 5}
    assert world.store.checkpoints.of_run(run_id) == {"eur": 2}


def test_lost_attempt_moves_nothing(world: World) -> None:
    world.start()
    job = world.one()
    world.store.workers.bury("w", "gone")
    world.register("fresh")
    fresh = world.one("fresh")
    world.turn("fresh", Flush(fresh.id, fresh.attempt, Effects(marks=[mark(1)])))

    late = world.turn("w", done(job, effects=Effects(marks=[mark(99)])))

    assert late.lost == [job.id]
    assert world.store.checkpoints.cursors(world.source()) == {"eur": 1}


def test_history_keeps_the_newest_moves_of_each_partition(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "KEPT_MOVES", 50)
    world.start()
    job = world.one()
    for number in range(70):
        marks = [mark(number), *([mark(number, "usd")] if number < 3 else [])]
        world.turn("w", Flush(job.id, job.attempt, Effects(marks=marks)))

    history = world.store.checkpoints.history(world.source(), "eur", limit=5000)

    assert len(history) == 50
    assert (history[0].cursor, history[-1].cursor) == (69, 20)
    assert len(world.store.checkpoints.history(world.source(), "usd")) == 3
    assert len(world.dump()["checkpoint_move"]) == 53


def test_history_is_pruned_with_the_journal_and_the_checkpoint_stays(world: World) -> None:
    marked(world, 1, 2)
    world.clock.advance(10)
    marked(world, 3)

    while world.store.upkeep.prune(Keep(None, 10.0, None, None)):
        pass

    assert [m.cursor for m in world.store.checkpoints.history(world.source(), "eur")] == [3]
    assert world.store.checkpoints.cursors(world.source()) == {"eur": 3}


def test_cursors_of_a_run_go_with_its_jobs(world: World) -> None:
    run_id = marked(world, 1, kind=RunKind.BACKFILL)
    world.clock.advance(20)

    while world.store.upkeep.prune(Keep(10.0, None, None, None)):
        pass

    assert world.store.checkpoints.of_run(run_id) == {}


def test_two_workers_that_mark_at_once_leave_the_further_one(world: World) -> None:
    """Each compares with what the other has written, also where the partition is new to both."""
    if not world.kind.is_shared:
        pytest.skip("a file has one writer")
    world.register("a", "b")

    def settle(name: str, job: Claimed, marks: list[Mark]) -> None:
        with closing(world.kind.open(world.path, world.clock)) as store:
            end = done(job, effects=Effects(marks=marks))
            store.turn(name, [end], Capacity(0), world.limits)

    for number in range(15):
        world.start(key=f"a{number}"), world.start(key=f"b{number}", source="acme.com")
        jobs = [world.one("a"), world.one("b")]
        marks = [
            [mark(2, f"p{number}"), mark(1, f"q{number}")],
            [mark(1, f"p{number}"), mark(2, f"q{number}")],
        ]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(settle, ("a", "b"), jobs, marks))
        found = world.store.checkpoints.cursors(world.source())
        assert (found[f"p{number}"], found[f"q{number}"]) == (2, 2)


def test_mark_waits_for_one_that_is_being_written_and_is_compared_with_it(world: World) -> None:
    if not world.kind.is_shared:
        pytest.skip("a file has one writer")
    marked(world, 1)
    world.start(key="second")
    job = world.one()
    store = world.kind.open(world.path, world.clock)
    with psycopg.connect(str(world.path)) as other, ThreadPoolExecutor(1) as pool:
        other.execute("UPDATE penstock.checkpoint SET cursor = '9'")
        end = done(job, effects=Effects(marks=[mark(5)]))
        settling = pool.submit(store.turn, "w", [end], Capacity(0), world.limits)
        until(lambda: is_waited_for(other), "somebody waits for the checkpoint")
        other.commit()
        settling.result(timeout=20)
    store.close()

    assert world.store.checkpoints.cursors(world.source()) == {"eur": 9}
    assert "checkpoint.refused" in world.kinds()


def is_waited_for(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    return row is not None and row[0] > 0


# Rewinding.


def test_rewind_moves_back_and_says_who_did_it_and_why(world: World) -> None:
    marked(world, 1, 2, 3)
    target = as_it_was(
        world.store.checkpoints.history(world.source(), "eur"), at=world.clock.now() - 2
    )
    assert target is not None

    world.store.checkpoints.rewind(world.source(), "eur", target, actor="ann", reason="bad prices")

    newest = world.store.checkpoints.history(world.source(), "eur")[0]
    assert (newest.act, newest.cursor, newest.actor, newest.reason) == (
        "rewound", 1, "ann", "bad prices",
    )  # fmt: skip
    assert world.store.checkpoints.cursors(world.source()) == {"eur": 1}
    [event] = [e for e in world.store.journal.events(limit=1000) if e.kind == "checkpoint.rewound"]
    assert (event.actor, event.detail) == ("ann", "eur: 3 → 1 (bad prices)")
    marked(world, 2)
    assert world.store.checkpoints.cursors(world.source()) == {"eur": 2}


def test_rewind_is_refused_while_a_run_may_move_the_checkpoint(world: World) -> None:
    marked(world, 1, 2)
    target = world.store.checkpoints.history(world.source(), "eur")[-1]
    world.start(key="going on")
    rewind = world.store.checkpoints.rewind

    with pytest.raises(Refused, match="has not ended"):
        rewind(world.source(), "eur", target, actor="ann", reason="")
    assert world.store.checkpoints.cursors(world.source()) == {"eur": 2}

    rewind(world.source(), "eur", target, actor="ann", reason="", is_forced=True)
    assert world.store.checkpoints.cursors(world.source()) == {"eur": 1}


def test_backfill_that_runs_does_not_stand_in_the_way_of_a_rewind(world: World) -> None:
    marked(world, 1, 2)
    target = world.store.checkpoints.history(world.source(), "eur")[-1]
    world.start(key="behind", kind=RunKind.BACKFILL)

    world.store.checkpoints.rewind(world.source(), "eur", target, actor="ann", reason="")

    assert world.store.checkpoints.cursors(world.source()) == {"eur": 1}


def test_checkpoint_that_is_not_there_can_not_be_rewound(world: World) -> None:
    nowhere = CheckpointMove(1, 1, None, 1, 0.0, "ann", "moved")
    with pytest.raises(UsageError, match="no checkpoint 'eur'"):
        world.store.checkpoints.rewind(world.source(), "eur", nowhere, actor="ann", reason="")


def test_where_a_checkpoint_stood_is_known_by_run_time_and_cursor(world: World) -> None:
    first = marked(world, 1, 2)
    between = world.clock.now()
    second = marked(world, 3, 1, 4)
    history = world.store.checkpoints.history(world.source(), "eur")

    assert [found.cursor for found in (as_it_was(history, run_id=first),) if found] == [2]
    assert [found.cursor for found in (as_it_was(history, run_id=second),) if found] == [4]
    assert [found.cursor for found in (as_it_was(history, at=between),) if found] == [2]
    assert as_it_was(history, at=5.0) is None
    assert as_it_was(history, run_id=99) is None
    assert [found.at for found in (last_upto(history, 2.5),) if found] == [between]
    assert last_upto(history, 0) is None


def test_rewind_does_not_change_where_a_run_had_left_a_checkpoint(world: World) -> None:
    run = marked(world, 1, 2)
    back = CheckpointMove(0, 1, None, run, 0.0, "", "rewound")
    world.store.checkpoints.rewind(world.source(), "eur", back, actor="ann", reason="")

    found = as_it_was(world.store.checkpoints.history(world.source(), "eur"), run_id=run)

    assert found is not None
    assert (found.cursor, found.act) == (2, "moved")


def test_units_since_are_windows_where_there_are_any_and_pages_otherwise(world: World) -> None:
    run_id = world.start_with_pages(5)
    pages = world.claim()
    world.turn("w", *(done(page) for page in pages[:2]))
    then = world.clock.now()
    world.clock.advance(1)
    world.turn("w", *(done(page) for page in pages[2:4]))
    assert world.store.checkpoints.units_since(world.source(), "eur", then) == 2

    world.clock.advance(1)
    covered = [Covered("eur", day * DAY, (day + 1) * DAY) for day in range(3)]
    world.turn("w", done(pages[4], effects=Effects(covered=covered)))

    assert world.store.checkpoints.units_since(world.source(), "eur", then) == 3
    assert world.store.checkpoints.units_since(world.source(), "usd", then) == 3
    assert world.run(run_id).is_ended
