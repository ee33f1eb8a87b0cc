"""Replays: staged beside the records, applied whole or not at all, and never against what is known better."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.app.diffs import read_diff
from penstock.app.replay_service import seal
from penstock.errors import Refused
from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Extracted, Rejection
from penstock.jobs.job import Claimed, NewJob
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import RunKind
from penstock.store import replays, staged_records
from penstock.store.entries import EntryFilter
from penstock.store.record_rows import read_present, write_records
from penstock.store.reject_rows import RejectFilter
from penstock.store.upkeep import Keep
from tests.contract.replaying import Shop, a_staged, url_of
from tests.contract.scenes import SITE, World, a_job, a_save, done, quarantined

DAY_S = 86_400.0
PAGES: dict[str, Any] = {"p1": {"n": 1}, "p2": {"n": 2}, "p3": {"n": 3}}


@pytest.fixture
def shop(world: World) -> Shop:
    return Shop(world)


# What is replayed.


def test_pages_come_in_the_order_of_their_keys_with_the_page_they_fetched(shop: Shop) -> None:
    run_id = shop.run(PAGES)

    first = shop.store.replays.jobs(run_id, "extract", None, limit=2)
    rest = shop.store.replays.jobs(run_id, "extract", first[-1].key, limit=2)

    assert [job.key for job in first + rest] == ["p1", "p2", "p3"]
    assert [job.item for job in first] == ['{"page":"p1"}', '{"page":"p2"}']
    snapshots = [shop.store.snapshots.last(url_of(job.key)) for job in first]
    assert [job.snapshot for job in first] == [found.id for found in snapshots if found]


def test_job_whose_key_is_empty_is_replayed_once(shop: Shop) -> None:
    run_id = shop.run({"": {"n": 0}, "p1": {"n": 1}})

    pages = shop.store.replays.jobs(run_id, "extract", None, limit=1)
    pages += shop.store.replays.jobs(run_id, "extract", "", limit=5)

    assert [job.key for job in pages] == ["", "p1"]


def snapshot_for(shop: Shop, run_id: int | None, page: str, **about: Any) -> int | None:
    where: dict[str, Any] = {
        "of_run_id": run_id, "since_at": None, "source_id": shop.world.source(),
        "stage": "extract", "key": page, "snapshot_id": None, **about,
    }  # fmt: skip
    found = shop.store.replays.snapshot(url_of(page), **where)
    return None if found is None else found.id


def test_a_page_is_served_as_its_own_run_has_seen_it(shop: Shop) -> None:
    first = shop.run(PAGES)
    second = shop.run({"p1": {"n": 10}})

    assert snapshot_for(shop, first, "p1") == 1001
    assert snapshot_for(shop, second, "p1") == 1004
    assert snapshot_for(shop, second, "p2") is None
    assert snapshot_for(shop, first, "p9") is None


def test_since_then_a_page_is_served_as_it_was_last(shop: Shop) -> None:
    shop.run(PAGES)
    since = shop.world.clock.now() + 1
    shop.run({"p1": {"n": 10}})
    shop.run({"p1": {"n": 11}})

    assert snapshot_for(shop, None, "p1", since_at=since) == 1005
    assert snapshot_for(shop, None, "p1", since_at=since, snapshot_id=1004) == 1004
    assert snapshot_for(shop, None, "p2", since_at=since) is None
    assert snapshot_for(shop, None, "p1", since_at=since, source_id=999) is None


@pytest.mark.parametrize(("end", "served"), [(done, 1001), (quarantined, None)])
def test_a_page_that_a_run_did_not_fetch_anew_is_served_from_the_run_before(
    shop: Shop, world: World, end: Callable[[Claimed], Settlement], served: int | None
) -> None:
    """Where it was unchanged; where it could not be fetched, the run knows nothing of it."""
    shop.run(PAGES)
    world.clock.advance(1)
    second = world.start(key="second")
    world.turn("w", done(world.one(), children=[a_job("p1")]))
    world.turn("w", end(world.one()))
    shop.run({"p1": {"n": 10}})

    assert snapshot_for(shop, second, "p1") == served


def test_runs_since_then_are_the_ended_ones_of_the_source_and_no_replays(shop: Shop) -> None:
    first = shop.run(PAGES)
    second = shop.run(PAGES)
    shop.replay(second, PAGES)
    active = shop.world.start(key="active")
    source_id = shop.world.source()

    assert shop.store.runs.since(source_id, 0.0) == [second, first]
    assert shop.store.runs.since(source_id, shop.world.clock.now() + 1) == []
    shop.store.runs.cancel(active, "ops", "")
    while shop.store.runs.sweep_cancelled():
        pass


# What is staged.


def test_nothing_happens_to_the_records_before_the_commit(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    before = shop.world.dump()

    replay = shop.replay(run_id, {"p1": {"n": 10}}, p1="q1")

    after = shop.world.dump()
    for table in ("record", "record_version", "collection"):
        assert after[table] == before[table]
    assert shop.kinds(replay) == {
        "q1": ("added", ""), "p1": ("removed", ""), "p2": ("removed", ""), "p3": ("removed", ""),
    }  # fmt: skip


def test_unchanged_records_are_staged_without_their_data(shop: Shop) -> None:
    run_id = shop.run(PAGES)

    replay = shop.replay(run_id, PAGES)

    assert shop.kinds(replay) == {}
    assert shop.store.replays.staged_same(replay) == 3
    assert shop.world.run(replay).unchanged == 3


def test_saves_of_one_record_are_staged_in_their_order(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    for page, data in (("p1", {"a": 1}), ("p2", {"b": 2})):
        job = jobs[page]
        shop.world.turn("w", done(job, saves=[a_staged("p1", data, job.snapshot, merge="merge")]))
    shop.world.turn("w", done(jobs["p3"]))

    [change] = [each for each in shop.changes(replay) if each.key == "p1"]

    assert change.data == '{"a":1,"b":2,"n":1}'
    assert change.base_version == 1


@pytest.mark.parametrize("order", [("p1", "p2"), ("p2", "p1")])
def test_the_later_page_has_the_last_word_in_any_order(shop: Shop, order: tuple[str, str]) -> None:
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    for page in order:
        job = jobs[page]
        save = a_staged("both", {"from": page, page: True}, job.snapshot, merge="merge")
        shop.world.turn("w", done(job, saves=[save, a_staged("one", page, job.snapshot)]))
    shop.world.turn("w", done(jobs["p3"]))

    staged = {change.key: change.data for change in shop.changes(replay)}

    assert staged["both"] == '{"from":"p2","p1":true,"p2":true}'
    assert staged["one"] == '"p2"'


def test_keep_leaves_the_record_and_counts_as_made_again(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    for page, job in jobs.items():
        save = a_staged(page, {"other": 1}, job.snapshot, merge="keep")
        shop.world.turn("w", done(job, saves=[save]))

    assert shop.kinds(replay) == {}


# What is removed.


def test_a_page_that_failed_takes_nothing_away(shop: Shop) -> None:
    run_id = shop.run(PAGES)

    replay = shop.replay(run_id, {"p2": {"n": 2}}, failing=("p1",))

    assert shop.kinds(replay) == {"p3": ("removed", "")}


def test_a_page_that_was_cancelled_takes_nothing_away(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    shop.store.jobs.cancel(jobs["p1"].id, "ops", "not this one")
    shop.world.turn("w", done(jobs["p2"]), done(jobs["p3"]))

    assert set(shop.kinds(replay)) == {"p2", "p3"}


def test_a_candidate_that_failed_keeps_what_its_page_gave(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    with_page = NewJob("persist", "c", b"null", 5, jobs["p1"].snapshot)
    shop.world.turn(
        "w",
        *(done(job, children=[with_page] if page == "p1" else []) for page, job in jobs.items()),
    )
    shop.world.turn("w", quarantined(shop.world.one()))

    assert set(shop.kinds(replay)) == {"p2", "p3"}


def test_records_of_other_sources_and_of_later_pages_are_not_removed(shop: Shop) -> None:
    first = shop.run(PAGES)
    shop.run({"p2": {"n": 20}})
    shop.world.tamper("UPDATE record SET source_id = 99 WHERE key = 'p3'")

    assert shop.kinds(shop.replay(first, {})) == {"p1": ("removed", "")}
    shop.world.tamper("UPDATE record SET source_id = 1 WHERE key = 'p3'")


def test_what_the_page_gave_in_an_earlier_run_is_removed_too(shop: Shop) -> None:
    shop.run(PAGES)
    second = shop.run(PAGES)

    assert set(shop.kinds(shop.replay(second, {"p1": {"n": 1}}))) == {"p2", "p3"}


def test_sealing_goes_on_where_it_was(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {})

    rounds = 1
    while shop.store.replays.seal(replay, limit=1):
        rounds += 1

    assert rounds == 4
    assert set(shop.kinds(replay)) == {"p1", "p2", "p3"}


def test_replay_that_was_retried_is_sealed_again(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {"p2": {"n": 2}}, failing=("p1",))
    assert set(shop.kinds(replay)) == {"p3"}
    shop.world.clock.advance(1)
    shop.store.runs.retry_failed(replay, "ops", "")
    job = shop.world.one()
    shop.world.turn("w", done(job, saves=[a_staged("p3", {"n": 3}, job.snapshot)]))

    assert shop.kinds(replay) == {"p1": ("removed", "")}


def test_cancelled_replay_removes_nothing(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    shop.world.turn("w", done(jobs["p1"]))
    shop.store.runs.cancel(replay, "ops", "")
    while shop.store.runs.sweep_cancelled():
        pass

    assert shop.kinds(replay) == {}


# What becomes of it.


def test_commit_makes_new_versions_by_the_replay(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {"p1": {"n": 10}, "p2": {"n": 2}}, p1="p1")

    done_ = shop.commit(replay)

    assert (done_.added, done_.changed, done_.removed) == (0, 1, 1)
    assert shop.records() == {"p1": {"n": 10}, "p2": {"n": 2}}
    assert shop.history("p1") == [(1, run_id, {"n": 1}, False), (2, replay, {"n": 10}, False)]
    assert shop.history("p3") == [(1, run_id, {"n": 3}, False), (2, replay, {"n": 3}, True)]
    assert shop.store.records.collections() == [("product", 2)]
    assert shop.store.replays.state(replay).state == "committed"
    assert shop.world.dump()["staged"] == []
    [row] = [row for row in shop.store.records.versions("product", "p1") if row.version == 2]
    assert row.pipeline_version == "v2"


def test_removed_record_comes_back_as_new_when_it_is_saved_again(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    shop.commit(shop.replay(run_id, {}))
    assert shop.records() == {}
    assert shop.store.records.collections() == [("product", 0)]
    assert shop.store.overview().records == 0

    again = shop.run({"p1": {"n": 1}})

    assert shop.records() == {"p1": {"n": 1}}
    assert shop.world.run(again).inserted == 1
    assert shop.store.records.collections() == [("product", 1)]
    assert [entry[0] for entry in shop.history("p1")] == [1, 2, 3]


def test_merge_does_not_bring_back_the_fields_of_a_removed_record(shop: Shop, world: World) -> None:
    shop.commit(shop.replay(shop.run(PAGES), {}))
    world.start_with_pages(1, key="again")
    world.turn("w", done(world.one(), saves=[a_save("p1", {"x": 1}, "merge")]))

    assert shop.records() == {"p1": {"x": 1}}


@contextmanager
def stopped_after(shop: Shop, batches: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process that commits dies after so many batches."""
    made = shop.store.replays.commit_batch
    left = [batches]

    def commit_batch(*args: Any, **options: Any) -> Any:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        return made(*args, **{**options, "limit": 2})

    monkeypatch.setattr(shop.store.replays, "commit_batch", commit_batch)
    with pytest.raises(KeyboardInterrupt):
        yield
    monkeypatch.undo()


@pytest.mark.parametrize("batches", [0, 1, 2, 3])
def test_commit_that_was_cut_short_goes_on_where_it_was(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    pages = {f"p{n}": {"n": n} for n in range(7)}
    run_id = shop.run(pages)
    replay = shop.replay(run_id, {page: {"n": -1} for page in pages if page != "p6"})
    with stopped_after(shop, batches, monkeypatch):
        shop.commit(replay)
    assert sum(data == {"n": -1} for data in shop.records().values()) == min(2 * batches, 6)
    assert shop.store.replays.state(replay).state == "committing"

    again = shop.commit(replay)

    assert (again.added, again.changed, again.removed) == (0, 6, 1)
    assert {len(shop.history(page)) for page in pages} == {2}
    kinds = [event.kind for event in shop.store.journal.events(run_id=replay, limit=1000)]
    assert kinds.count("run.commit_started") == kinds.count("run.committed") == 1


@pytest.mark.parametrize(
    ("act", "table"), [("INSERT", "record_version"), ("UPDATE", "record"), ("DELETE", "staged")]
)
def test_batch_that_fails_changes_nothing(shop: Shop, act: str, table: str) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {"p1": {"n": 10}, "p2": {"n": 20}})
    seal(shop.store, replay)
    shop.store.replays.begin_commit(replay, "ops", "")
    before = shop.world.dump()

    with shop.world.breaking(act, table), pytest.raises(Exception, match="planted"):
        shop.store.replays.commit_batch(replay)

    assert shop.world.dump() == before
    shop.commit(replay)
    assert shop.records() == {"p1": {"n": 10}, "p2": {"n": 20}}


def test_what_was_changed_since_it_was_staged_is_left_alone_unless_forced(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {"p1": {"n": 10}, "p2": {"n": 20}, "p3": {"n": 3}})
    shop.run({"p1": {"n": 100}, "p9": {"n": 9}})

    first = shop.commit(replay)

    assert (first.changed, first.conflicts) == (1, 1)
    assert shop.records()["p1"] == {"n": 100}
    assert shop.kinds(replay) == {"p1": ("changed", "conflict")}
    assert shop.store.replays.state(replay).state == "staged"
    forced = shop.commit(replay, is_forced=True)
    assert (forced.changed, forced.conflicts) == (2, 0)
    assert shop.records()["p1"] == {"n": 10}


def test_record_that_appeared_or_went_meanwhile_is_a_conflict(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    other = shop.replay(run_id, {"p1": {"n": 1}, "p2": {"n": 2}, "p3": {"n": 3}}, p3="q3")
    replay = shop.replay(run_id, {"p1": {"n": 1}, "p2": {"n": 2}, "p3": {"n": 30}}, p3="q3")
    shop.commit(other)

    assert shop.kinds(replay) == {"q3": ("changed", "conflict")}
    assert shop.commit(replay).conflicts == 1
    assert set(shop.records()) == {"p1", "p2", "q3"}


def test_what_somebody_did_in_the_same_way_is_no_conflict(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    data = {"p1": {"n": 10}, "p2": {"n": 2}, "p3": {"n": 3}}
    one, two = shop.replay(run_id, data), shop.replay(run_id, data)
    shop.commit(one)

    again = shop.commit(two)

    assert (again.changed, again.conflicts) == (0, 0)
    assert len(shop.history("p1")) == 2


def test_dropped_replay_is_gone_and_can_not_be_committed(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {"p1": {"n": 10}})
    before = shop.records()

    assert shop.store.replays.drop(replay, "ops", "worse") == 1

    assert shop.records() == before
    assert shop.world.dump()["staged"] == []
    with pytest.raises(Refused):
        shop.store.replays.begin_commit(replay, "ops", "")


BETTER = {page: {"n": 10 * data["n"]} for page, data in PAGES.items()}


def test_pages_are_done_with_the_version_of_a_replay_when_it_is_committed(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, BETTER)
    assert set(shop.versions().values()) == {("v1", run_id)}

    shop.commit(replay)

    assert set(shop.versions().values()) == {("v2", replay)}
    assert shop.world.dump()["staged_page"] == []


def test_dropped_replay_says_nothing_of_its_pages(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, BETTER)

    shop.store.replays.drop(replay, "ops", "")

    assert set(shop.versions().values()) == {("v1", run_id)}
    assert shop.world.dump()["staged_page"] == []


def test_only_pages_of_which_nothing_failed_or_was_cancelled_are_done_with(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    ends = {
        page: done(
            job,
            effects=Effects(
                children=[NewJob("persist", page, b"null", 5, job.snapshot)],
                extracted=[Extracted(url_of(page), f"h{job.snapshot}", is_staged=True)],
            ),
        )
        for page, job in jobs.items()
    }
    shop.world.turn("w", *ends.values())
    candidates = {job.key: job for job in shop.world.claim()}
    shop.store.jobs.cancel(candidates["p2"].id, "ops", "not this one")
    shop.world.turn("w", quarantined(candidates["p1"]), done(candidates["p3"]))

    shop.commit(replay)

    assert shop.versions() == {"p1": ("v1", run_id), "p2": ("v1", run_id), "p3": ("v2", replay)}


def test_page_that_was_read_for_something_that_failed_is_not_done_with(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    read = {"p1": ("p1", "p3"), "p2": ("p2",), "p3": ("p3",)}
    for page, job in jobs.items():
        extracted = [
            Extracted(
                url_of(each), f"h{jobs[each].snapshot}", parts=len(read[page]), is_staged=True
            )
            for each in read[page]
        ]
        children = [NewJob("persist", page, b"null", 5)]
        shop.world.turn("w", done(job, effects=Effects(children=children, extracted=extracted)))
    for job in shop.world.claim():
        shop.world.turn("w", quarantined(job) if job.key == "p1" else done(job))

    shop.commit(replay)

    assert shop.versions() == {"p1": ("v1", run_id), "p2": ("v2", replay), "p3": ("v1", run_id)}


def test_page_that_a_later_run_has_seen_otherwise_is_not_done_with(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    later = shop.run({"p1": {"n": 5}})
    replay = shop.replay(run_id, BETTER)

    assert shop.commit(replay).newer == 1

    assert shop.versions() == {"p1": ("v1", later), "p2": ("v2", replay), "p3": ("v2", replay)}


def test_commit_that_left_a_record_of_several_pages_alone_says_nothing_of_pages(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    for page, job in jobs.items():
        save = a_staged("all", {page: 1}, job.snapshot, merge="merge")
        extracted = Extracted(url_of(page), f"h{job.snapshot}", is_staged=True)
        effects = Effects(saves=[save], extracted=[extracted])
        shop.world.turn("w", done(job, effects=effects))
    shop.run({"px": {"n": 1}}, px="all")

    assert shop.commit(replay).conflicts == 1
    assert set(shop.versions().values()) == {("v1", run_id)}
    shop.commit(replay, is_forced=True)
    assert set(shop.versions().values()) == {("v2", replay)}


def test_cancelled_replay_says_nothing_of_its_pages(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    extracted = Extracted(url_of("p1"), f"h{jobs['p1'].snapshot}", is_staged=True)
    shop.world.turn("w", done(jobs["p1"], effects=Effects(extracted=[extracted])))
    shop.store.runs.cancel(replay, "ops", "")

    shop.commit(replay)

    assert set(shop.versions().values()) == {("v1", run_id)}


def test_pages_of_a_replay_whose_failed_jobs_are_gone_are_not_done_with(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, BETTER, failing=("p1",))
    shop.world.clock.advance(DAY_S)
    for _ in shop.store.quarantine.discard(EntryFilter(run_id=replay), "ops", ""):
        pass
    shop.world.clock.advance(10 * DAY_S)
    while shop.store.upkeep.prune(Keep(DAY_S, None, None, None)):
        pass

    shop.commit(replay)

    assert set(shop.versions().values()) == {("v1", run_id)}


def rejecting(shop: Shop, of_run_id: int, **keys: str) -> int:
    """A replay of which each page gives one candidate with this key, which is rejected."""
    replay, jobs = shop.start(of_run_id)
    children = {
        page: NewJob("persist", keys[page], b"null", 5, job.snapshot) for page, job in jobs.items()
    }
    ends = [done(job, children=[children[page]]) for page, job in jobs.items()]
    shop.world.turn("w", *ends)
    for job in shop.world.claim():
        effects = Effects(rejections=[Rejection("no_price", "no price")])
        shop.world.turn("w", done(job, effects=effects))
    return replay


def digest(letter: str) -> str:
    return "1:" + 32 * letter


def test_items_without_keys_that_are_rejected_as_before_are_no_news(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    before = rejecting(shop, run_id, p1=digest("a"), p2="sku-2", p3=digest("c"))
    now = rejecting(shop, run_id, p1=digest("d"), p2="sku-9", p3=digest("c"))

    news, olds = (
        shop.store.replays.reject_shift(*runs, now)
        for runs in (([now], [before]), ([before], [now]))
    )

    assert (news.count, news.only, olds.count, olds.only) == (3, 1, 3, 1)
    assert [each["key"] for each in (*news.first, *olds.first)] == ["sku-9", "sku-2"]


def test_a_difference_shows_what_is_removed_before_what_is_changed_or_added(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {"p1": {"n": 9}, "p2": {"n": 9}}, p2="new")
    seal(shop.store, replay)
    row = shop.world.run(replay)

    every = [(each.kind, each.key) for each in read_diff(shop.store, row, 20).first]

    assert every == [("removed", "p2"), ("removed", "p3"), ("changed", "p1"), ("added", "new")]
    assert [each.key for each in read_diff(shop.store, row, 3).first] == ["p2", "p3", "p1"]


def test_what_was_rejected_of_a_page_that_is_not_replayed_is_not_missed(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    before = rejecting(shop, run_id, p1="sku-1", p2="sku-2", p3="sku-3")
    now = shop.replay(shop.run({"p2": {"n": 2}}), {"p2": {"n": 3}})

    olds = shop.store.replays.reject_shift([before], [now], now)

    assert (olds.count, olds.only) == (1, 1)
    assert [each["key"] for each in olds.first] == ["sku-2"]


def test_item_that_is_rejected_of_another_page_is_news(shop: Shop) -> None:
    run_id = shop.run({"p1": {"n": 1}})
    other = shop.run({"p1": {"n": 2}})
    before = rejecting(shop, run_id, p1=digest("a"))
    now = rejecting(shop, other, p1=digest("b"))

    assert shop.store.replays.reject_shift([now], [before], now).only == 1


def test_what_a_replay_rejects_is_redriven_only_when_it_is_committed(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    dropped = rejecting(shop, run_id, p1="a", p2="b", p3="c")
    committed = rejecting(shop, run_id, p1="a", p2="b", p3="c")
    wanted = RejectFilter(source_id=shop.world.source(), open_only=True)
    everything = RejectFilter(source_id=shop.world.source())
    assert (shop.store.rejects.count(wanted), shop.store.rejects.count(everything)) == (0, 6)
    about: Any = (shop.world.source(), SITE, "v2", wanted)
    assert shop.store.rejects.redrive(*about, key="early", actor="ops", reason="") is None

    shop.store.replays.drop(dropped, "ops", "")
    shop.commit(committed)

    assert {row.run_id for row in shop.store.rejects.newest(wanted)} == {committed}
    assert shop.store.rejects.stages(wanted) == ["persist"]
    redriven = shop.store.rejects.redrive(*about, key="again", actor="ops", reason="")
    assert redriven is not None
    assert (redriven.rejects, redriven.items) == (3, 3)


def test_replays_that_wait_for_a_decision_are_named_until_it_is_made(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    first, second, third = (shop.replay(run_id, {"p1": {"n": n}}) for n in (10, 11, 12))
    under_way, _ = shop.start(run_id)
    shop.store.replays.begin_commit(third, "ops", "")

    waiting = shop.store.replays.undecided()

    assert [(w.run_id, w.is_cut_short) for w in waiting] == [
        (first, False), (second, False), (third, True),
    ]  # fmt: skip
    assert {(w.source, w.of_run_id, w.is_undo) for w in waiting} == {("acme.com", run_id, False)}
    assert waiting[0].finished_at == shop.world.run(first).finished_at
    shop.store.replays.drop(first, "ops", "")
    shop.commit(third)
    assert [w.run_id for w in shop.store.replays.undecided()] == [second]
    assert under_way not in {w.run_id for w in shop.store.replays.undecided()}


def test_two_who_commit_at_once_apply_each_change_once(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {page: {"n": -1} for page in PAGES})
    seal(shop.store, replay)
    shop.store.replays.begin_commit(replay, "one", "")
    other = shop.world.kind.open(shop.world.path, shop.world.clock)
    other.replays.begin_commit(replay, "two", "")

    counts = [
        store.replays.commit_batch(replay, limit=2).changed for store in (shop.store, other, other)
    ]

    assert counts == [2, 1, 0]
    assert {len(shop.history(page)) for page in PAGES} == {2}
    other.close()


def test_what_is_dropped_while_it_is_committed_is_not_applied(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shop.world.kind.is_shared:
        pytest.skip("a file has one writer at a time")
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {page: {"n": -1} for page in PAGES})
    seal(shop.store, replay)
    shop.store.replays.begin_commit(replay, "one", "")
    other = shop.world.kind.open(shop.world.path, shop.world.clock)

    def while_another_drops(*args: Any) -> Any:
        other.replays._drop_batch(replay, same_only=False)
        return read_present(*args)

    monkeypatch.setattr(replays, "read_present", while_another_drops)
    applied = shop.store.replays.commit_batch(replay)

    assert applied.changed == 0
    assert shop.records() == PAGES
    other.close()


# Retention.


def test_what_a_staged_replay_refers_to_outlives_retention_until_it_is_dropped(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {"p1": {"n": 10}})
    shop.world.clock.advance(400 * DAY_S)
    keep = Keep(None, None, None, DAY_S)

    while shop.store.upkeep.prune(keep):
        pass
    assert snapshot_for(shop, run_id, "p1") == 1001
    assert snapshot_for(shop, run_id, "p2") is None
    shop.store.replays.drop(replay, "ops", "")
    while shop.store.upkeep.prune(keep):
        pass

    assert snapshot_for(shop, run_id, "p1") is None


def test_pages_of_a_replay_under_way_are_kept(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    shop.world.clock.advance(400 * DAY_S)

    while shop.store.upkeep.prune(Keep(None, None, None, DAY_S)):
        pass

    assert snapshot_for(shop, run_id, "p1") == 1001
    shop.world.turn("w", *(done(job) for job in jobs.values()))
    assert shop.world.run(replay).is_ended


def test_what_nobody_commits_is_dropped_after_its_time_with_an_event(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, PAGES)
    young = shop.replay(run_id, PAGES)
    shop.world.tamper(
        f"UPDATE run SET finished_at = finished_at - {31 * DAY_S} WHERE id = {replay}"
    )

    batches = []
    while dropped := shop.store.replays.drop_old(30 * DAY_S, limit=2):
        batches.append(dropped)

    assert batches == [2, 1]
    assert not shop.store.replays.has_staged(replay)
    assert shop.store.replays.has_staged(young)
    assert "run.dropped" in shop.world.kinds(run_id=replay)


def test_two_who_stage_one_record_at_once_are_both_heard(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shop.world.kind.is_shared:
        pytest.skip("a file has one writer at a time")
    run_id = shop.run(PAGES)
    replay, jobs = shop.start(run_id)
    other = shop.world.kind.open(shop.world.path, shop.world.clock)
    write, left = staged_records._write, [1]

    def after_the_other(*args: Any) -> None:
        if left:
            left.pop()
            job = jobs["p2"]
            save = a_staged("both", {"p2": True}, job.snapshot, merge="merge")
            other.turn("w", [done(job, saves=[save])], Capacity(0), {})
        write(*args)

    monkeypatch.setattr(staged_records, "_write", after_the_other)
    job = jobs["p1"]
    save = a_staged("both", {"p1": True}, job.snapshot, merge="merge")
    shop.world.turn("w", done(job, saves=[save]))
    shop.world.turn("w", done(jobs["p3"]))

    [staged] = [change.data for change in shop.changes(replay) if change.key == "both"]

    assert staged == '{"p1":true,"p2":true}'
    other.close()


def test_record_that_another_inserts_during_the_commit_is_a_conflict(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shop.world.kind.is_shared:
        pytest.skip("a file has one writer at a time")
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {**PAGES, "p3": {"n": 30}}, p3="new")
    seal(shop.store, replay)
    shop.store.replays.begin_commit(replay, "ops", "")
    other = Shop(shop.world)
    other.store = shop.world.kind.open(shop.world.path, shop.world.clock)
    left = [1]

    def after_the_other(*args: Any) -> None:
        if left:
            left.pop()
            live = other.store.runs.start(
                shop.world.source(), RunKind.FULL, SITE, "v1", key="live", actor="ops"
            )[0]
            root = other.store.turn("w", [], Capacity(1), shop.world.limits).claimed[0]
            assert root.run_id == live
            other.store.turn("w", [done(root, saves=[a_save("new", {"live": 1})])], Capacity(0), {})
        write_records(*args)

    monkeypatch.setattr(replays, "write_records", after_the_other)
    batch = shop.store.replays.commit_batch(replay)

    assert (batch.added, batch.conflicts, batch.removed) == (0, 1, 1)
    assert shop.records() == {"p1": {"n": 1}, "p2": {"n": 2}, "new": {"live": 1}}
    assert shop.kinds(replay) == {"new": ("changed", "conflict")}
    other.store.close()
