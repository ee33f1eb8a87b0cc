"""Records: one per (collection, key), every change a version, equal content nothing at all."""

from __future__ import annotations

import random

import pytest

from penstock.gates.capacity import Capacity
from penstock.jobs.effects import Effects, Mark, Merge, Save
from penstock.jobs.job import NewJob
from penstock.jobs.run import RunKind
from penstock.store.rows import RecordRow
from penstock.store.snapshots import Kept
from tests.contract.scenes import SITE, World, a_save, done


def save(world: World, *saves: Save, run_id: int | None = None) -> int:
    """Save in an attempt of its own; answers with the run."""
    run_id = run_id or world.start(key=f"run at {world.clock.now()}")
    world.clock.advance(1)
    world.enqueue(run_id, f"page at {world.clock.now()}")
    [job, *_] = [job for job in world.claim() if job.stage == "extract"]
    world.turn("w", done(job, saves=saves))
    return run_id


def only(world: World) -> RecordRow:
    [row] = world.store.records.of("product")
    return row


def counts(world: World, run_id: int) -> tuple[int, int, int]:
    run = world.run(run_id)
    return run.inserted, run.updated, run.unchanged


@pytest.mark.parametrize(
    ("merge", "kept"),
    [
        ("replace", {"b": 2}),
        ("keep", {"a": 1}),
        ("merge", {"a": 1, "b": 2}),
    ],
)
def test_saving_a_known_key_does_what_its_merge_says(
    world: World, merge: Merge, kept: dict[str, int]
) -> None:
    save(world, a_save("k", {"a": 1}))

    save(world, a_save("k", {"b": 2}, merge))

    assert only(world).data == kept


def test_new_fields_win_over_old_ones_in_a_merge(world: World) -> None:
    save(world, a_save("k", {"a": 1, "b": 1}, score=0.7))

    save(world, a_save("k", {"b": 2}, "merge"))

    assert only(world).data == {"a": 1, "b": 2}
    assert only(world).score == 0.7


@pytest.mark.parametrize("other", [[1, 2], "text", 3, None])
def test_merge_of_what_is_no_object_replaces(world: World, other: object) -> None:
    save(world, a_save("k", {"a": 1}))

    save(world, a_save("k", other, "merge"))

    assert only(world).data == other


@pytest.mark.parametrize("merge", ["replace", "keep", "merge"])
@pytest.mark.parametrize("score", [None, 0.1 + 0.2, 1 / 3, 1.0])
def test_equal_content_writes_no_version(world: World, merge: Merge, score: float | None) -> None:
    first = save(world, a_save("k", {"b": 1.5, "a": "ü"}, merge, score))
    before = world.dump()["record"]

    again = save(world, a_save("k", {"b": 1.5, "a": "ü"}, merge, score))

    assert counts(world, first) == (1, 0, 0)
    assert counts(world, again) == (0, 0, 1)
    assert world.dump()["record"] == before
    assert world.dump()["record_version"] == []


def test_changed_score_alone_is_a_version(world: World) -> None:
    save(world, a_save("k", {"a": 1}, score=0.5))

    run_id = save(world, a_save("k", {"a": 1}, score=0.6))

    assert counts(world, run_id) == (0, 1, 0)
    assert [row.score for row in world.store.records.versions("product", "k")] == [0.5, 0.6]


def test_version_tells_its_run_snapshot_and_pipeline_version(world: World) -> None:
    source_id = world.source()
    runs = [
        world.store.runs.start(source_id, RunKind.FULL, SITE, f"code-{n}", key=str(n), actor="t")[0]
        for n in (1, 2)
    ]
    for number, run_id in enumerate(runs, 1):
        world.clock.advance(10)
        save(world, a_save("k", {"n": number}, snapshot=70 + number), run_id=run_id)

    old, new = world.store.records.versions("product", "k")

    assert (old.version, old.run, old.snapshot_id, old.pipeline_version) == (
        1,
        runs[0],
        71,
        "code-1",
    )
    assert (new.version, new.run, new.snapshot_id, new.pipeline_version) == (
        2,
        runs[1],
        72,
        "code-2",
    )
    assert old.updated_at < new.updated_at == world.clock.now()
    assert only(world) == new


def test_counts_are_those_of_the_run_that_saved(world: World) -> None:
    first = save(world, *(a_save(f"k{n}", {"n": n}) for n in range(5)))

    second = save(
        world,
        a_save("k0", {"n": 0}),
        a_save("k1", {"n": -1}),
        a_save("k9", 9),
        a_save("k2", 0, "keep"),
    )

    assert counts(world, first) == (5, 0, 0)
    assert counts(world, second) == (1, 1, 2)
    assert world.store.records.collections() == [("product", 6)]


def test_saves_of_one_transaction_leave_one_version(world: World) -> None:
    run_id = save(world, a_save("k", {"n": 1}), a_save("k", {"n": 2}), a_save("k", {"n": 3}))

    assert only(world).data == {"n": 3}
    assert only(world).version == 1
    assert len(world.store.records.versions("product", "k")) == 1
    assert counts(world, run_id) == (1, 2, 0)


def test_attempts_of_one_turn_save_in_their_order(world: World) -> None:
    world.start_with_pages(2)
    one, two = world.claim()

    world.turn("w", done(one, saves=[a_save("k", 1)]), done(two, saves=[a_save("k", 2)]))

    assert only(world).data == 2


def test_equal_keys_of_other_collections_are_other_records(world: World) -> None:
    save(world, Save("a", "k", b"1", None, "replace"), Save("b", "k", b"2", None, "replace"))

    assert world.store.records.collections() == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("key", ["", "a\x00b", "a\ud800b", "k" * 5000, "ключ", "'\"\\"])
def test_any_record_key_is_found_again(world: World, key: str) -> None:
    save(world, a_save(key, {"n": 1}), a_save(key + "!", {"n": 2}))
    run_id = save(world, a_save(key, {"n": 1}))

    assert counts(world, run_id) == (0, 0, 1)
    assert world.store.records.collections() == [("product", 2)]


def test_records_come_in_pages_in_the_order_of_their_keys(world: World) -> None:
    save(world, *(a_save(f"k{n}", n) for n in (3, 1, 2, 0)))

    first = world.store.records.of("product", limit=3)
    rest = world.store.records.of("product", after_key=first[-1].key, limit=3)

    assert [row.key for row in first + rest] == ["k0", "k1", "k2", "k3"]


def test_checkpoint_moves_with_the_attempt_and_belongs_to_its_source(world: World) -> None:
    world.start_with_pages(2)
    one, two = world.claim()
    one_end, two_end = done(one), done(two)
    one_end.effects.marks.append(Mark("inbox", b'{"uid": 7}'))
    two_end.effects.marks.append(Mark("inbox", b'{"uid": 8}'))

    world.turn("w", one_end)
    assert world.store.checkpoints.cursors(world.source()) == {"inbox": {"uid": 7}}
    world.turn("w", two_end)

    assert world.store.checkpoints.cursors(world.source()) == {"inbox": {"uid": 8}}
    assert world.store.checkpoints.cursors(world.source("other.org")) == {}


def test_latest_snapshot_of_an_address_is_the_one_shown(world: World) -> None:
    world.start_with_pages(2)
    for number, job in enumerate(world.claim()):
        where = (f"h{number}", "s", number, 1)
        kept = Kept(number + 1, job.id, job.run_id, "https://a/", 200, {}, 5.0, *where)
        world.store.turn("w", [done(job)], Capacity(0), {}, [kept])

    latest = world.store.snapshots.last("https://a/")

    assert latest is not None
    assert latest.hash == "h1"
    assert world.store.snapshots.last("https://b/") is None


@pytest.mark.parametrize("length", [2000, 2001, 9000], ids=str)
def test_key_of_any_length_is_one_record(world: World, length: int) -> None:
    """Random letters: what can be compressed fits into an index although it is long."""
    letters = random.Random(length)
    key = "".join(letters.choices("abcdefghijklmnopqrstuvwxyzäöü", k=length))
    save(world, a_save(key, 1), a_save(key + "!", 2))
    run_id = save(world, a_save(key, 1))

    assert counts(world, run_id) == (0, 0, 1)
    assert world.store.records.collections() == [("product", 2)]


def test_name_of_any_length_is_one_partition(world: World) -> None:
    letters = random.Random(1)
    name = "".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=9000))
    world.start()
    job = world.one()

    world.turn("w", done(job, effects=Effects(marks=[Mark(name, b"1"), Mark(name, b"2")])))

    assert list(world.store.checkpoints.cursors(world.source()).values()) == [2]


def test_records_come_in_pages_without_an_end_that_nobody_asked_for(world: World) -> None:
    count = 1203
    world.start_with_pages(1)
    world.turn("w", done(world.one(), saves=[a_save(f"{n:06}", {"n": n}) for n in range(count)]))

    assert len(world.store.records.of("product")) == count
    each = world.store.records.each("product")
    assert [row.data["n"] for row in each] == list(range(count))


def test_records_are_chosen_by_source_run_and_time(world: World) -> None:
    runs = world.start_all({"acme.com": 1, "other.com": 1})
    for job in world.claim():
        world.turn("w", done(job, saves=[a_save(f"of run {job.run_id}", {})]))
        world.clock.advance(60.0)

    def keys(**where: float | int) -> list[str]:
        return [row.key for row in world.store.records.each("product", **where)]  # type: ignore[arg-type]

    assert keys(source_id=world.source("acme.com")) == [f"of run {runs[0]}"]
    assert keys(run_id=runs[1]) == [f"of run {runs[1]}"]
    assert len(keys(since=world.clock.now() - 90.0)) == 1
    assert keys(since=world.clock.now()) == []


def test_pages_are_found_by_their_job_their_address_and_their_candidate(world: World) -> None:
    world.start_with_pages(1)
    page = world.one()
    kept = Kept(7, page.id, page.run_id, "https://acme.com/a", 200, {"x": "y"}, 1.0, "h", "s", 0, 1)
    child = NewJob("persist", "c", b"{}", snapshot=7)
    world.store.turn("w", [done(page, children=[child])], Capacity(0), world.limits, [kept])
    candidate = world.one()

    [found] = world.store.snapshots.of_job(page.id)
    assert (found.id, found.url, found.headers, found.job_id) == (
        7, "https://acme.com/a", {"x": "y"}, page.id,
    )  # fmt: skip
    assert world.store.snapshots.of_job(candidate.id) == [found]
    assert world.store.snapshots.at("https://acme.com/a") == [found]
    assert world.store.snapshots.at("https://acme.com/b") == []
    assert world.store.jobs.last_of(world.source(), "extract", page.key) == page.id
    assert world.store.jobs.last_of(world.source(), "extract", "other") is None


def test_records_that_another_source_wrote_are_counted_when_they_are_replaced(
    world: World,
) -> None:
    save(world, a_save("a", {"n": 1}), a_save("b", {"n": 1}), a_save("c", {"n": 1}))
    other = world.start(source="other.org", key="other")
    again = [a_save("a", {"n": 2}), a_save("b", {"n": 2}), a_save("c", {"m": 2}, "merge")]
    save(world, *again, run_id=other)

    [event] = world.store.journal.events(kind="record.overwritten")
    assert (event.source, event.run_id) == ("other.org", other)
    assert event.detail == "2 of product were last written by acme.com"
    save(world, a_save("a", {"n": 3}), run_id=other)
    assert len(world.store.journal.events(kind="record.overwritten")) == 1, "it is its own by now"
