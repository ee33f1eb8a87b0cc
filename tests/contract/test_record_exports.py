"""Exports: every version once, whoever writes meanwhile."""

from __future__ import annotations

import random
from typing import Any

import psycopg

from penstock.store.record_exports import EXPORT_PAGE, ExportCursor
from tests.contract.scenes import POSTGRES, World, a_save
from tests.contract.test_records import save

Found = dict[str, tuple[int, bool, Any]]


def exported(world: World, upto: ExportCursor, **chosen: Any) -> Found:
    pages = world.store.record_exports.pages("product", upto, **chosen)
    return {
        each.key: (each.version, each.is_removed, each.data)
        for page in pages
        for each in page.records
    }


def test_cursor_divides_what_was_written_before_it_from_what_comes_after(world: World) -> None:
    save(world, a_save("a", {"n": 1}), a_save("b", {"n": 1}))
    first = world.store.record_exports.begin()
    save(world, a_save("b", {"n": 2}), a_save("c", {"n": 1}))
    second = world.store.record_exports.begin()
    save(world, a_save("b", {"n": 3}), a_save("c", {"n": 2}), a_save("d", {"n": 1}))

    assert exported(world, first) == {"a": (1, False, {"n": 1}), "b": (1, False, {"n": 1})}
    assert exported(world, second, since=first) == {
        "b": (2, False, {"n": 2}),
        "c": (1, False, {"n": 1}),
    }
    third = world.store.record_exports.begin()
    assert exported(world, third, since=second) == {
        "b": (3, False, {"n": 3}),
        "c": (2, False, {"n": 2}),
        "d": (1, False, {"n": 1}),
    }
    assert exported(world, world.store.record_exports.begin(), since=third) == {}


def test_clock_that_steps_back_hides_nothing_from_an_export(world: World) -> None:
    save(world, a_save("a", {"n": 1}))
    first = world.store.record_exports.begin()
    world.clock.advance(-3600)
    save(world, a_save("b", {"n": 1}))

    assert set(exported(world, world.store.record_exports.begin(), since=first)) == {"b"}


def test_versions_of_a_run_are_those_it_wrote_whatever_came_later(world: World) -> None:
    first = save(world, a_save("a", {"n": 1}), a_save("b", {"n": 1}))
    second = save(world, a_save("a", {"n": 2}))
    save(world, a_save("a", {"n": 3}), a_save("c", {"n": 1}))
    upto = world.store.record_exports.begin()
    save(world, a_save("b", {"n": 9}))

    assert exported(world, upto, run_id=first) == {
        "a": (1, False, {"n": 1}),
        "b": (1, False, {"n": 1}),
    }
    assert exported(world, upto, run_id=second) == {"a": (2, False, {"n": 2})}


def test_exports_by_their_cursors_add_up_to_the_records_however_writes_fall_between(
    world: World,
) -> None:
    chance = random.Random(7)
    copy: Found = {}
    since: ExportCursor | None = None
    written: dict[str, int] = {}
    for _ in range(12):
        for _ in range(chance.randrange(3)):
            keys = chance.sample([f"k{n:02}" for n in range(30)], 5)
            for key in keys:
                written[key] = written.get(key, 0) + 1
            save(world, *(a_save(key, {"n": written[key]}) for key in keys))
        upto = world.store.record_exports.begin()
        found = exported(world, upto, since=since)
        # Nothing comes twice in one version.
        assert all(copy.get(key) != row for key, row in found.items())
        copy |= found
        since = upto
        assert {key: row[2]["n"] for key, row in copy.items()} == written


def test_pages_go_on_behind_keys_that_are_not_in_the_range(world: World) -> None:
    many = [a_save(f"k{n:05}", {"n": 1}) for n in range(EXPORT_PAGE + 5)]
    save(world, *many)
    first = world.store.record_exports.begin()
    save(world, a_save("k00001", {"n": 2}), a_save(f"k{EXPORT_PAGE + 1:05}", {"n": 2}))
    upto = world.store.record_exports.begin()

    assert len(exported(world, first)) == EXPORT_PAGE + 5
    assert set(exported(world, upto, since=first)) == {"k00001", f"k{EXPORT_PAGE + 1:05}"}
    [page] = world.store.record_exports.pages("product", upto, after_key="k00100")
    assert page.last == many[-1].key


def test_write_that_ends_after_a_cursor_was_made_comes_with_the_next_one(world: World) -> None:
    """A transaction takes its time before it ends: neither a time nor a number would divide them."""
    if world.kind is not POSTGRES:
        return
    save(world, a_save("a", {"n": 1}), a_save("b", {"n": 1}))
    first = world.store.record_exports.begin()
    with psycopg.connect(str(world.path), autocommit=False) as slow:
        slow.execute("SELECT pg_current_xact_id()")
        save(world, a_save("b", {"n": 2}))
        slow.execute(
            "UPDATE penstock.record SET version = 2, data = '{\"n\":2}',"
            " tx = pg_current_xact_id()::text::bigint WHERE key = 'a'"
        )
        second = world.store.record_exports.begin()
        assert set(exported(world, second, since=first)) == {"b"}
        slow.commit()
    third = world.store.record_exports.begin()

    assert set(exported(world, third, since=second)) == {"a"}


def test_unknown_cursor_is_not_found(world: World) -> None:
    made = world.store.record_exports.begin()

    assert world.store.record_exports.cursor(made.token) == made
    assert world.store.record_exports.cursor("0" * 24) is None
