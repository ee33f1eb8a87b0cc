"""Undo: records are what they were before a run, and every version is still there."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.app.undo import UndoReport, preview_undo, undo
from penstock.store.upkeep import Keep
from tests.contract.replaying import Shop
from tests.contract.scenes import World

DAY_S = 86_400.0
PAGES: dict[str, Any] = {"p1": {"n": 1}, "p2": {"n": 2}, "p3": {"n": 3}}


@pytest.fixture
def shop(world: World) -> Shop:
    return Shop(world)


def undone(shop: Shop, run_id: int) -> UndoReport:
    shop.world.clock.advance(1)
    return undo(shop.store, run_id, 20, actor="ops", reason="wrong")


def counts(report: UndoReport) -> tuple[int, int, int]:
    return report.totals.changed, report.totals.added, report.totals.removed


def test_changed_records_go_back_and_new_ones_are_removed(shop: Shop) -> None:
    first = shop.run(PAGES)
    second = shop.run({"p1": {"n": 10}, "p2": {"n": 2}, "p9": {"n": 9}})

    report = undone(shop, second)

    assert counts(report) == (1, 0, 1)
    assert shop.records() == PAGES
    assert shop.store.records.collections() == [("product", 3)]
    assert shop.history("p1") == [
        (1, first, {"n": 1}, False),
        (2, second, {"n": 10}, False),
        (3, report.undo_run_id, {"n": 1}, False),
    ]
    assert shop.history("p9")[-1] == (2, report.undo_run_id, {"n": 9}, True)
    row = shop.store.records.versions("product", "p1")
    assert (row[0].snapshot_id, row[0].source) == (row[2].snapshot_id, row[2].source)
    removed = shop.store.records.versions("product", "p9")
    assert (removed[1].snapshot_id, removed[1].source) == (removed[0].snapshot_id, "acme.com")


def test_what_it_would_do_is_told_and_not_done(shop: Shop) -> None:
    shop.run(PAGES)
    second = shop.run({"p1": {"n": 10}, "p9": {"n": 9}})
    before = shop.world.dump()

    report = preview_undo(shop.store, second, 2)

    assert counts(report) == (1, 0, 1)
    removed, changed = report.first
    assert (removed.key, removed.kind) == ("p9", "removed")
    assert (changed.key, changed.kind) == ("p1", "changed")
    assert [(f.path, f.before, f.after) for f in changed.fields] == [(("n",), 10, 1)]
    assert shop.world.dump() == before


def test_records_that_later_runs_changed_are_reported_and_left_alone(shop: Shop) -> None:
    shop.run(PAGES)
    second = shop.run({"p1": {"n": 10}, "p2": {"n": 20}})
    third = shop.run({"p1": {"n": 100}})

    report = undone(shop, second)

    assert counts(report) == (1, 0, 0)
    assert (report.later.count, report.later.first) == (1, [("product", "p1", third)])
    assert shop.records() == {"p1": {"n": 100}, "p2": {"n": 2}, "p3": {"n": 3}}


def test_an_undo_is_undone(shop: Shop) -> None:
    shop.run(PAGES)
    second = shop.run({"p1": {"n": 10}, "p9": {"n": 9}})
    after = shop.records()
    report = undone(shop, second)
    assert report.undo_run_id is not None

    again = undone(shop, report.undo_run_id)

    assert counts(again) == (1, 1, 0)
    assert shop.records() == after
    assert [entry[0] for entry in shop.history("p1")] == [1, 2, 3, 4]
    assert again.undo_run_id is not None
    undone(shop, again.undo_run_id)
    assert shop.records() == PAGES


def test_runs_are_undone_one_after_the_other_from_the_last_to_the_first(shop: Shop) -> None:
    first = shop.run(PAGES)
    second = shop.run({"p1": {"n": 10}, "p9": {"n": 9}})
    after_second = shop.records()
    third = shop.run({"p1": {"n": 100}, "p9": {"n": 99}})
    undone(shop, third)
    assert shop.records() == after_second

    report = undone(shop, second)

    assert (counts(report), report.later.count) == ((1, 0, 1), 0)
    assert shop.records() == PAGES
    # Both are undone now, so there is nothing left to undo of either.
    assert [counts(undone(shop, run)) for run in (second, third)] == [(0, 0, 0), (0, 0, 0)]
    assert counts(undone(shop, first)) == (0, 0, 3)
    assert shop.records() == {}


def test_an_undo_that_was_undone_leaves_the_record_to_the_run_that_changed_it(shop: Shop) -> None:
    shop.run(PAGES)
    second = shop.run({"p1": {"n": 10}})
    third = shop.run({"p1": {"n": 100}})
    undo_run = undone(shop, third).undo_run_id
    assert undo_run is not None
    undone(shop, undo_run)
    assert shop.records()["p1"] == {"n": 100}

    report = undone(shop, second)

    assert (counts(report), report.later.count) == ((0, 0, 0), 1)
    assert counts(undone(shop, third)) == (1, 0, 0)
    assert shop.records()["p1"] == {"n": 10}


def test_undone_twice_is_undone_once(shop: Shop) -> None:
    shop.run(PAGES)
    second = shop.run({"p1": {"n": 10}})
    undone(shop, second)
    before = shop.world.dump()

    report = undone(shop, second)

    assert (counts(report), report.later.count, report.undo_run_id) == ((0, 0, 0), 0, None)
    assert shop.world.dump() == before


def test_several_versions_of_one_run_are_all_undone(shop: Shop, world: World) -> None:
    from tests.contract.scenes import a_save, done, pages

    shop.run(PAGES)
    run_id = world.start(key="twice")
    world.turn("w", done(world.one(), children=pages(2)))
    for number, job in enumerate(world.claim()):
        world.turn("w", done(job, saves=[a_save("p1", {"n": 50 + number})]))

    undone(shop, run_id)

    assert shop.records() == PAGES
    assert len(shop.history("p1")) == 4


def test_committed_replay_is_undone_with_its_removals(shop: Shop) -> None:
    run_id = shop.run(PAGES)
    replay = shop.replay(run_id, {"p1": {"n": 10}, "p2": {"n": 2}}, p2="q2")
    shop.commit(replay)
    assert shop.records() == {"p1": {"n": 10}, "q2": {"n": 2}}

    report = undone(shop, replay)

    assert counts(report) == (1, 2, 1)
    assert shop.records() == PAGES
    assert shop.store.records.collections() == [("product", 3)]


def test_version_that_is_no_longer_kept_is_told_and_the_record_left_alone(shop: Shop) -> None:
    shop.run(PAGES)
    second = shop.run({"p1": {"n": 10}, "p2": {"n": 20}})
    shop.world.clock.advance(10 * DAY_S)
    while shop.store.upkeep.prune(Keep(None, None, DAY_S, None)):
        pass

    report = undone(shop, second)

    assert (counts(report), report.totals.lost) == ((0, 0, 0), 2)
    assert shop.records()["p1"] == {"n": 10}


@pytest.mark.parametrize("batches", [0, 1, 2, 3])
def test_undo_that_was_cut_short_goes_on_where_it_was(shop: Shop, batches: int) -> None:
    pages = {f"p{n}": {"n": n} for n in range(6)}
    shop.run(pages)
    second = shop.run({page: {"n": -1} for page in pages})
    begun = shop.store.undos.begin(second, "ops", "")
    after_id: int | None = 0
    for _ in range(batches):
        after_id = shop.store.undos.undo(second, begun, after_id or 0, limit=2).last_id
    assert sum(data == {"n": -1} for data in shop.records().values()) == 6 - 2 * batches

    [waiting] = shop.store.replays.undecided()
    assert (waiting.run_id, waiting.of_run_id) == (begun, second)
    assert (waiting.is_undo, waiting.is_cut_short) == (True, True)

    report = undone(shop, second)

    assert shop.store.replays.undecided() == []
    assert report.undo_run_id == begun
    assert counts(report) == (6, 0, 0)
    assert shop.records() == pages
    assert {len(shop.history(page)) for page in pages} == {3}


def test_record_that_changes_meanwhile_is_left_alone(shop: Shop) -> None:
    shop.run(PAGES)
    second = shop.run({"p1": {"n": 10}, "p2": {"n": 20}})
    begun = shop.store.undos.begin(second, "ops", "")
    seen = shop.store.undos.changes

    def seen_before_the_other_wrote(*args: Any, **options: Any) -> Any:
        found = seen(*args, **options)
        shop.run({"p1": {"n": 100}})
        return found

    shop.store.undos.changes = seen_before_the_other_wrote  # type: ignore[method-assign]
    batch = shop.store.undos.undo(second, begun)

    assert batch.changed == 1
    assert shop.records()["p1"] == {"n": 100}


def test_undo_is_a_run_that_the_journal_and_the_list_show(shop: Shop) -> None:
    shop.run(PAGES)
    second = shop.run({"p1": {"n": 10}})

    report = undone(shop, second)

    assert report.undo_run_id is not None
    row = shop.world.run(report.undo_run_id)
    assert (row.kind, row.state, row.of_run_id, row.options.is_undo) == (
        "replay", "completed", second, True,
    )  # fmt: skip
    [event] = [
        e for e in shop.store.journal.events(run_id=second, limit=100) if e.kind == "run.undone"
    ]
    assert event.actor == "ops"
    assert event.detail.startswith("1 brought back, 0 returned, 0 removed")
    assert event.detail.endswith("wrong")
    own = [
        e for e in shop.store.journal.events(run_id=row.id, limit=100) if e.kind == "run.completed"
    ]
    assert [(e.actor, e.detail) for e in own] == [("ops", f"the undo of run {second} is done")]
