"""What steps said is kept with its attempt, read in its order, and dropped when it is old."""

from __future__ import annotations

from penstock.store.logs import LogLine
from penstock.store.upkeep import Keep
from tests.contract.scenes import World


def line(at: float, text: str, *, source: int = 1, run: int = 1, job: int = 7) -> LogLine:
    return LogLine(at, source, run, job, 1, "stdout", text)


def test_lines_are_read_in_their_order_by_run_and_by_job(world: World) -> None:
    store = world.store
    [source_id] = store.sources.ensure(["shop"]).values()
    said = ["first", "tab\tand more", "ünï", 'quote " and \\']
    store.logs.add([line(5.0, text, source=source_id) for text in said])
    store.logs.add(
        [line(6.0, "other job", source=source_id, job=8), line(6.0, "other run", run=2, job=9)]
    )
    store.logs.add([])
    rows = store.logs.of_run(1)
    assert [row.text for row in rows][:4] == said
    assert [row.text for row in rows][4:] == ["other job"]
    assert {(row.source, row.run_id, row.attempt, row.level) for row in rows} == {
        ("shop", 1, 1, "stdout")
    }
    assert [row.text for row in store.logs.of_job(8)] == ["other job"]
    newest = store.logs.of_run(1, limit=2)
    assert [row.text for row in newest] == [said[3], "other job"]
    assert store.logs.of_run(1, after_id=newest[0].id) == newest[1:]


def test_old_lines_are_dropped_in_batches_and_others_stay(world: World) -> None:
    store = world.store
    now = store.now()
    store.sources.ensure(["shop"])
    store.logs.add([line(now - 100, "old") for _ in range(5)])
    store.logs.add([line(now, "new")])
    keep = Keep(None, None, None, None, logs_s=50.0)
    batches = 0
    while store.upkeep.prune(keep, limit=2):
        batches += 1
    assert [row.text for row in store.logs.of_run(1)] == ["new"]
    assert batches >= 3
