"""Quarantine: one entry for each job, and acts on many that touch what was asked for and nothing else."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from penstock.clock import SystemClock
from penstock.errors import Refused, UsageError
from penstock.gates.capacity import Capacity
from penstock.jobs.job import Claimed, JobState, NewJob
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import NO_OPTIONS, RunKind, RunOptions, RunState
from penstock.journal.run_events import RunCommitted
from penstock.store.entries import EntryFilter, EntryRow
from penstock.store.snapshots import Kept
from penstock.store.upkeep import Keep
from tests.contract.scenes import SITE, World, a_job, done, pages

ALL = EntryFilter()
NO_ROOM = Capacity(0)


def failed(job: Claimed, cause: str = "", kind: str = "data") -> Settlement:
    return Settlement(
        job.id, job.attempt, JobState.QUARANTINED, spends_try=True, reason=kind, cause=cause,
        error=f"broken {job.key}", traceback="  File steps.py, line 3", unit="page",
    )  # fmt: skip


def a_page(job: Claimed, snapshot_id: int) -> Kept:
    url = f"https://acme.com/{job.key}"
    return Kept(snapshot_id, job.id, job.run_id, url, 200, {}, 1.0, "h", "s-1", 0, 10)


def entries(world: World, wanted: EntryFilter = ALL) -> list[EntryRow]:
    return list(world.store.quarantine.each(wanted))


def released(world: World, wanted: EntryFilter = ALL) -> int:
    return sum(world.store.quarantine.release(wanted, "ana", "mended"))


def discarded(world: World, wanted: EntryFilter = ALL) -> int:
    return sum(world.store.quarantine.discard(wanted, "ana", "not wanted"))


def in_quarantine(world: World, count: int, source: str = "acme.com", key: str = "first") -> int:
    """A run all of whose pages but one are in quarantine."""
    [run_id] = world.start_all({source: count + 1}, key)
    *broken, well = [job for job in world.claim(slots=5000) if job.run_id == run_id]
    world.turn("w", done(well), *(failed(job) for job in broken))
    return run_id


# Entries.


def test_entry_has_all_that_is_known_of_a_failure(world: World) -> None:
    world.start_with_pages(2)
    page, other = world.claim()
    world.store.turn(
        "w", [failed(page, "selector .price")], NO_ROOM, world.limits, [a_page(page, 7)]
    )

    [found] = entries(world)

    assert (found.id, found.source, found.stage, found.unit) == (
        page.id, "acme.com", "extract", "page",
    )  # fmt: skip
    assert (found.kind, found.error, found.cause) == (
        "data", f"broken {page.key}", "selector .price",
    )  # fmt: skip
    assert (found.traceback, found.attempt, found.quarantines) == ("  File steps.py, line 3", 1, 1)
    assert found.item == '{"n":0}'
    assert found.snapshot is not None
    assert (found.snapshot.id, found.snapshot.url) == (7, f"https://acme.com/{page.key}")
    assert found == world.store.quarantine.get(page.id)
    assert world.store.quarantine.get(other.id) is None


def test_entry_of_a_candidate_names_the_page_that_it_came_from(world: World) -> None:
    world.start_with_pages(1)
    page = world.one()
    child = NewJob("persist", "c", b"{}", snapshot=7)
    world.store.turn("w", [done(page, children=[child])], NO_ROOM, world.limits, [a_page(page, 7)])
    candidate = world.one()

    world.turn("w", failed(candidate))

    [found] = entries(world)
    assert found.snapshot is not None
    assert (found.unit, found.snapshot.id) == ("candidate", 7)


def test_second_failure_keeps_one_entry_and_counts(world: World) -> None:
    world.start_with_pages(1)
    page = world.one()
    world.turn("w", failed(page, "first cause"))
    world.store.quarantine.note(page.id, "ask the shop", "ana")
    [before] = entries(world)
    world.clock.advance(60.0)
    assert released(world) == 1

    again = world.one()
    assert (again.tries, again.attempt) == (0, 2)
    world.turn("w", failed(again, "second cause"))

    [after] = entries(world)
    assert (after.quarantines, after.cause, after.attempt) == (2, "second cause", 2)
    assert after.first_at == before.first_at < after.since
    assert [(note.actor, note.text) for note in after.notes] == [("ana", "ask the shop")]


def test_notes_are_kept_in_order_and_journalled(world: World) -> None:
    run_id = in_quarantine(world, 1)
    [found] = entries(world)

    world.store.quarantine.note(found.id, "first", "ana")
    world.store.quarantine.note(found.id, "then 'this' \x00 \ud800", "bo")

    [found] = entries(world)
    assert [note.actor for note in found.notes] == ["ana", "bo"]
    assert found.notes[0].text == "first"
    assert world.kinds(run_id=run_id).count("quarantine.noted") == 2


def test_only_what_is_in_quarantine_can_be_noted(world: World) -> None:
    world.start_with_pages(1)
    page = world.one()
    with pytest.raises(Refused, match="is not in quarantine"):
        world.store.quarantine.note(page.id, "x", "ana")


# Filters.


@dataclass
class Shelf:
    """Two sources with something of every sort in quarantine."""

    world: World
    runs: list[int]
    late: float


@pytest.fixture
def shelf(world: World) -> Shelf:
    runs = world.start_all({"acme.com": 3, "other.com": 2})
    jobs = sorted(world.claim(), key=lambda job: job.id)
    acme = [job for job in jobs if job.run_id == runs[0]]
    other = [job for job in jobs if job.run_id == runs[1]]
    world.turn("w", failed(acme[0], "a", "data"), failed(acme[1], "b", "auth"))
    world.turn("w", done(other[0], children=[a_job("c", stage="persist")]))
    world.clock.advance(100.0)
    late = world.store.now()
    world.turn("w", failed(acme[2], "a", "data"), failed(other[1], "a", "unknown"))
    candidate = world.one()
    world.turn("w", failed(candidate, "a", "data"))
    return Shelf(world, runs, late)


FILTERS: list[tuple[str, Callable[[Shelf], EntryFilter], int]] = [
    ("all", lambda s: ALL, 5),
    ("source", lambda s: EntryFilter(source="acme.com"), 3),
    ("run", lambda s: EntryFilter(run_id=s.runs[1]), 2),
    ("stage", lambda s: EntryFilter(stage="persist"), 1),
    ("kind", lambda s: EntryFilter(kind="data"), 3),
    ("cause", lambda s: EntryFilter(cause="a"), 4),
    ("since", lambda s: EntryFilter(since=s.late), 3),
    ("together", lambda s: EntryFilter(source="acme.com", kind="data", since=s.late), 1),
    ("nothing", lambda s: EntryFilter(cause="a%"), 0),
    ("escalated", lambda s: EntryFilter(is_escalated=True), 0),
]


@pytest.mark.parametrize(("wanted", "count"), [f[1:] for f in FILTERS], ids=[f[0] for f in FILTERS])
def test_act_touches_what_its_filter_counts_and_nothing_else(
    shelf: Shelf, wanted: Callable[[Shelf], EntryFilter], count: int
) -> None:
    chosen = wanted(shelf)
    ids = {row.id for row in entries(shelf.world, chosen)}
    everything = {row.id for row in entries(shelf.world)}
    assert shelf.world.store.quarantine.count(chosen) == len(ids) == count

    assert discarded(shelf.world, chosen) == count

    assert {row.id for row in entries(shelf.world)} == everything - ids
    assert all(shelf.world.job(job_id).state is JobState.CANCELLED for job_id in ids)


def test_one_job_is_chosen_by_its_number(shelf: Shelf) -> None:
    first = entries(shelf.world)[0]

    assert released(shelf.world, EntryFilter(job_id=first.id)) == 1

    assert shelf.world.job(first.id).state is JobState.QUEUED
    assert shelf.world.store.quarantine.count(ALL) == 4


def test_unknown_source_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match=r"there is no source 'acme\.con'"):
        world.store.quarantine.count(EntryFilter(source="acme.con"))


# Acts on many.


def test_release_opens_the_run_and_discard_leaves_it_as_it_ended(world: World) -> None:
    first = in_quarantine(world, 2)
    second = in_quarantine(world, 2, "other.com", key="second")
    assert world.run(first).state is RunState.PARTIAL

    assert released(world, EntryFilter(run_id=first)) == 2
    assert discarded(world, EntryFilter(run_id=second)) == 2

    assert world.run(first).state is RunState.RUNNING
    assert world.run(second).state is RunState.PARTIAL
    assert world.run(second).cancelled == 2
    kinds = [
        e for e in world.store.journal.events(run_id=first, limit=1000) if "quarantine." in e.kind
    ]
    assert {(e.kind, e.actor, e.detail) for e in kinds} == {
        ("quarantine.released", "ana", "mended"),
    }


def test_discard_of_the_last_open_thing_lets_an_active_run_end(world: World) -> None:
    [run_id] = world.start_all({"acme.com": 2})
    broken, well = world.claim()
    world.turn("w", failed(broken))
    assert discarded(world) == 1
    assert world.run(run_id).state is RunState.RUNNING

    world.turn("w", done(well))

    assert world.run(run_id).state is RunState.COMPLETED


def test_nothing_of_a_cancelled_run_is_released(world: World) -> None:
    run_id = world.start_with_pages(2)
    broken, _ = world.claim()
    world.turn("w", failed(broken))
    world.store.runs.cancel(run_id, "ana", "")
    while world.store.runs.sweep_cancelled():
        pass

    assert released(world) == 0

    assert world.job(broken.id).state is JobState.QUARANTINED
    assert discarded(world) == 1


def test_many_are_released_in_batches_each_once(world: World) -> None:
    count = 1203
    run_id = in_quarantine(world, count)

    batches = list(world.store.quarantine.release(ALL, "ana", ""))

    assert (sum(batches), len(batches)) == (count, 3)
    assert world.kinds(run_id=run_id).count("quarantine.released") == count
    assert world.run(run_id).queued == count


def test_release_and_discard_at_the_same_time_share_what_there_is(world: World) -> None:
    count = 400
    in_quarantine(world, count)
    answers: list[int] = []

    def act(verb: str) -> None:
        store = world.kind.open(world.path, SystemClock())
        answers.append(sum(getattr(store.quarantine, verb)(ALL, verb, "")))
        store.close()

    threads = [threading.Thread(target=act, args=(verb,)) for verb in ("release", "discard") * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert world.store.quarantine.count(ALL) == count - sum(answers)
    moved = [e.job_id for e in world.store.journal.events(limit=100_000) if "quarantine." in e.kind]
    assert len(moved) == len(set(moved)) == sum(answers)


# Time to live.


def test_what_nobody_cared_for_is_discarded_and_the_journal_says_so(world: World) -> None:
    in_quarantine(world, 3)
    world.clock.advance(50.0)
    in_quarantine(world, 2, "other.com", key="second")
    world.clock.advance(60.0)

    assert world.store.quarantine.expire(100.0) == 3
    assert world.store.quarantine.expire(100.0) == 0

    assert world.store.quarantine.count(ALL) == 2
    expired = [e for e in world.store.journal.events(limit=1000) if e.kind == "quarantine.expired"]
    assert len(expired) == 3
    assert {e.actor for e in expired} == {"upkeep"}


def test_expiry_takes_a_batch_at_a_time(world: World) -> None:
    in_quarantine(world, 5)
    world.clock.advance(101.0)

    assert [world.store.quarantine.expire(100.0, 2) for _ in range(4)] == [2, 2, 1, 0]


def test_page_of_a_quarantined_candidate_is_kept_as_evidence(world: World) -> None:
    world.start_with_pages(2)
    page, other = world.claim()
    child = NewJob("persist", "c", b"{}", snapshot=7)
    kept = [a_page(page, 7), a_page(other, 8)]
    world.store.turn("w", [done(page, children=[child]), done(other)], NO_ROOM, world.limits, kept)
    world.turn("w", failed(world.one()))
    world.clock.advance(1000.0)

    world.store.upkeep.prune(Keep(None, None, None, 500.0))
    [found] = entries(world)
    assert found.snapshot is not None
    assert world.store.snapshots.last(f"https://acme.com/{other.key}") is None

    discarded(world)
    world.store.upkeep.prune(Keep(None, None, None, 500.0))
    assert world.store.snapshots.last(f"https://acme.com/{page.key}") is None


# Closing.


def page_run(world: World, kind: RunKind = RunKind.FULL) -> Claimed:
    """The one page of a new run: the same page in each."""
    options = RunOptions(is_staged=True) if kind is RunKind.REPLAY else NO_OPTIONS
    run_id, _ = world.store.runs.start(
        world.source(), kind, SITE, "v1", key=uuid.uuid4().hex, actor="test", options=options
    )
    [root] = [job for job in world.claim() if job.run_id == run_id]
    world.turn("w", done(root, children=pages(1)))
    [page] = [job for job in world.claim() if job.run_id == run_id]
    world.clock.advance(60.0)
    return page


def test_later_success_of_a_page_closes_its_entry_which_stays_findable(world: World) -> None:
    first = page_run(world)
    world.turn("w", failed(first, "selector .price"))
    second = page_run(world)

    world.turn("w", done(second))

    assert entries(world) == []
    assert world.store.overview().quarantined == 0
    [closed] = entries(world, EntryFilter(is_closed=True))
    assert (closed.id, closed.state, closed.closed_by_job_id) == (
        first.id, JobState.CANCELLED, second.id,
    )  # fmt: skip
    assert closed == world.store.quarantine.get(first.id)
    [told] = [e for e in world.store.journal.events(limit=100) if e.kind == "quarantine.closed"]
    assert (told.job_id, told.detail) == (
        first.id, f"job {second.id} of run {second.run_id} succeeded",
    )  # fmt: skip
    assert world.store.quarantine.count(EntryFilter(is_closed=True)) == 1
    assert world.store.upkeep.check() == []


def test_page_that_fails_in_run_after_run_is_one_entry_with_a_count(world: World) -> None:
    first = page_run(world)
    world.turn("w", failed(first))
    [before] = entries(world)
    world.store.quarantine.note(first.id, "ask the shop", "ana")
    for _ in range(2):
        world.turn("w", failed(page_run(world)))

    [found] = entries(world)

    assert (found.quarantines, found.first_at) == (3, before.first_at)
    assert found.last_at > before.last_at
    assert [note.text for note in found.notes] == ["ask the shop"]
    assert world.store.upkeep.check() == []


def test_skipped_page_closes_its_entry_and_a_missing_one_is_counted(world: World) -> None:
    world.turn("w", failed(page_run(world)))
    again = page_run(world)

    gone = Settlement(again.id, again.attempt, JobState.SKIPPED, skip="missing", reason="404")
    world.turn("w", gone)

    assert entries(world) == []
    run = world.run(again.run_id)
    assert (run.pages_missing, run.disallowed, run.skipped) == (1, 0, 1)
    assert run.state is RunState.COMPLETED


def test_candidate_is_closed_when_its_page_is_extracted_again(world: World) -> None:
    page = page_run(world)
    world.turn("w", done(page, children=[NewJob("persist", "wrong price", b"{}")]))
    world.turn("w", failed(world.one()))
    again = page_run(world)

    world.turn("w", done(again, children=[NewJob("persist", "right price", b"{}")]))
    world.turn("w", done(world.one()))

    assert entries(world) == []
    [closed] = entries(world, EntryFilter(is_closed=True))
    assert closed.closed_why == f"job {again.id} of run {again.run_id} extracted its page again"


def test_entries_of_other_pages_and_newer_ones_stay(world: World) -> None:
    run_id = in_quarantine(world, 2)
    world.turn("w", done(page_run(world)))

    [left] = entries(world)
    assert (left.run_id, left.key) == (run_id, "page-000001")


def test_long_run_closes_entries_before_it_ends(world: World) -> None:
    world.turn("w", failed(page_run(world)))
    run_id, _ = world.store.runs.start(
        world.source(), RunKind.FULL, SITE, "v1", key="long", actor="test"
    )
    [root] = [job for job in world.claim() if job.run_id == run_id]
    world.turn("w", done(root, children=pages(2)))
    page, _ = sorted(world.claim(), key=lambda job: job.key)
    world.clock.advance(60.0)
    world.turn("w", done(page))
    assert len(entries(world)) == 1

    assert world.store.quarantine.close_answered() == 1
    assert entries(world) == []


def test_replay_fails_apart_escalates_nothing_and_answers_nothing_until_it_is_committed(
    world: World,
) -> None:
    live = page_run(world)
    world.turn("w", failed(live, "selector .price"))
    for _ in range(3):
        world.turn("w", failed(page_run(world, RunKind.REPLAY), "selector .price"))
    good = page_run(world, RunKind.REPLAY)
    world.turn("w", done(good))

    assert [row.id for row in entries(world)] == [live.id]
    assert len(entries(world, EntryFilter(is_apart=True))) == 3
    assert world.store.overview().quarantined == 1
    assert [(cause.failures, cause.escalated_at) for cause in world.store.quarantine.causes()] == [
        (1, None)
    ]

    world.store.replays.begin_commit(good.run_id, "ana", "")
    world.store.replays.end_commit(good.run_id, "ana", RunCommitted())
    assert entries(world) == []


def test_dropped_replay_leaves_nothing_in_quarantine(world: World) -> None:
    page = page_run(world, RunKind.REPLAY)
    world.turn("w", failed(page))

    world.store.replays.drop(page.run_id, "ana", "no use")

    assert entries(world, EntryFilter(is_apart=True)) == []
    assert world.store.upkeep.check() == []


def test_discarded_entries_can_be_found_as_closed(world: World) -> None:
    in_quarantine(world, 1)
    discarded(world)
    [closed] = entries(world, EntryFilter(is_closed=True))
    assert closed.closed_why == "discarded by ana: not wanted"
