"""The chain of seals over the journal: what was done to a row behind Penstock's back is found and named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from penstock.audit.chain import Head, head_of, next_seal
from penstock.audit.verification import Finding, Verification
from penstock.store.audit import SEAL_AFTER_S, add_seal
from penstock.store.tables import TABLES
from penstock.store.upkeep import Keep
from tests.contract.scenes import World, done

DAY_S = 86_400.0
# Every column of a row of the journal, with a value that no row has. `tx` of a server is not what a row says.
CHANGES = {
    "at": "at + 0.000001",
    "kind": "'no.kind'",
    "source_id": "77",
    "run_id": "4711",
    "job_id": "4712",
    "attempt": "9",
    "actor": "'nobody'",
    "detail": "'it was me'",
    "data": """'{"reason":"another"}'""",
    "worker": "'w-2'",
    "origin": "'dashboard'",
}
COLUMNS_OF_SEALS = {
    "number": "number + 100",
    "last_id": "last_id + 1",
    "events": "events + 1",
    "gone_through": "gone_through + 1",
    "newest_at": "newest_at + 1",
    "at": "at + 1",
    "digest": "hash",
    "hash": "digest",
    "fingerprints": "''",
    "pruned_at": "1",
}


def verified(world: World, *anchors: Head) -> list[Finding]:
    found = Verification(world.store.audit.tombstones())
    for seal, lines in world.store.audit.walk():
        found.seal(seal, lines)
    found.finish(world.store.audit.acts())
    found.anchors(anchors)
    return found.findings


def filled(world: World, runs: int = 3) -> list[int]:
    """Seals over the events of some runs, one seal each; the ids of all events."""
    for number in range(runs):
        world.start(key=f"run-{number}")
        world.turn("w", done(world.one()))
        world.clock.advance(1.0)
        assert world.store.audit.seal_all() > 0
    return [event.id for event in world.store.journal.events(after_id=0, limit=1000)]


@contextmanager
def tampered(world: World, table: str, *changes: str) -> Iterator[list[Finding]]:
    """What is found after these changes; they are taken back afterwards."""
    world.tamper(f"CREATE TABLE saved AS SELECT * FROM {table}")
    try:
        for sql in changes:
            world.tamper(sql)
        yield verified(world)
    finally:
        world.tamper(f"DELETE FROM {table}")
        world.tamper(f"INSERT INTO {table} SELECT * FROM saved")
        world.tamper("DROP TABLE saved")


def places(found: list[Finding]) -> set[tuple[str, int | None]]:
    return {(each.what, each.event) for each in found}


def test_sealed_journal_is_sound_and_goes_on_from_its_last_seal(world: World) -> None:
    filled(world)
    assert verified(world) == []
    last = world.store.audit.last()
    assert last is not None

    assert world.store.audit.seal_if_due() == 0
    world.start(key="later")
    assert world.store.audit.seal_if_due() == 0, "a few rows wait for more"
    world.clock.advance(SEAL_AFTER_S)
    assert world.store.audit.seal_if_due() > 0
    following = world.store.audit.last()

    assert following is not None
    assert following.number == last.number + 1
    assert world.store.audit.unsealed() == 0
    assert verified(world, head_of(last), head_of(following)) == []


def test_every_changed_column_of_every_row_is_found_and_names_the_row(world: World) -> None:
    ids = filled(world)
    [event] = [table for table in TABLES if table.name == "event"]
    assert {column.name for column in event.columns} == {*CHANGES, "id"}

    for event_id in (ids[0], ids[len(ids) // 2], ids[-1]):
        for column, value in CHANGES.items():
            sql = f"UPDATE event SET {column} = {value} WHERE id = {event_id}"
            with tampered(world, "event", sql) as found:
                assert places(found) == {("event_changed", event_id)}, column
    assert verified(world) == []


def test_removed_added_and_reordered_rows_are_found_and_named(world: World) -> None:
    first, second, third, *_ = filled(world)
    swap = [
        f"UPDATE event SET id = -1 WHERE id = {first}",
        f"UPDATE event SET id = {first} WHERE id = {second}",
        f"UPDATE event SET id = {second} WHERE id = -1",
    ]
    with tampered(world, "event", *swap) as found:
        assert places(found) == {("event_changed", first), ("event_changed", second)}
    with tampered(world, "event", f"DELETE FROM event WHERE id = {third}") as found:
        assert places(found) == {("event_removed", third)}
    add = "INSERT INTO event (id, at, kind) VALUES (-5, 1, 'job.noted')"
    with tampered(world, "event", add) as found:
        assert places(found) == {("event_added", -5)}


def test_renamed_source_is_found_in_every_event_of_it(world: World) -> None:
    filled(world, 1)
    world.tamper("UPDATE source SET key = 'other.com'")
    found = verified(world)
    assert found
    assert {each.what for each in found} == {"event_changed"}


def test_every_changed_column_of_a_seal_is_found(world: World) -> None:
    filled(world)
    for column, value in COLUMNS_OF_SEALS.items():
        sql = f"UPDATE seal SET {column} = {value} WHERE number = 2"
        with tampered(world, "seal", sql) as found:
            assert any(each.seal is not None for each in found), column
    world.tamper("DELETE FROM seal WHERE number = 2")
    assert ("seal_removed", 2) in {(each.what, each.seal) for each in verified(world)}


def test_chain_that_was_cut_off_or_made_anew_is_found_with_an_anchor(world: World) -> None:
    filled(world)
    anchor = world.store.audit.last()
    assert anchor is not None
    world.tamper("DELETE FROM event WHERE id > (SELECT last_id FROM seal WHERE number = 2)")
    world.tamper("DELETE FROM seal WHERE number = 3")
    assert verified(world) == []
    assert [each.what for each in verified(world, head_of(anchor))] == ["anchor_missing"]

    world.tamper("UPDATE event SET actor = 'nobody' WHERE id = (SELECT max(id) FROM event)")
    world.tamper("DELETE FROM seal WHERE number = 2")
    world.store.audit.seal_all()
    world.start(key="more")
    world.store.audit.seal_all()
    assert verified(world) == []
    assert [each.what for each in verified(world, head_of(anchor))] == ["anchor_differs"]


def test_seals_stay_when_retention_drops_their_rows_and_say_so(world: World) -> None:
    filled(world)
    world.clock.advance(10 * DAY_S)
    world.start(key="young")
    keep = Keep(None, 5 * DAY_S, None, None)
    while world.store.upkeep.prune(keep):
        pass

    seals = list(world.store.audit.walk())
    assert [seal.number for seal, _ in seals] == list(range(1, len(seals) + 1))
    assert [lines for seal, lines in seals if seal.number <= 3] == [[], [], []]
    assert seals[-1][0].gone_through == 3
    assert verified(world) == []
    # Whoever drops rows without retention is found, whatever the seal is made to say.
    world.store.audit.seal_all()
    last = world.store.audit.last()
    assert last is not None
    assert last.events
    world.tamper(f"DELETE FROM event WHERE id <= {last.last_id}")
    world.tamper(f"UPDATE seal SET pruned_at = 1 WHERE number = {last.number}")
    assert {(each.what, each.seal) for each in verified(world)} == {
        ("pruned_without_retention", last.number)
    }


def test_little_of_the_journal_is_left_until_it_is_overdue(world: World) -> None:
    filled(world)
    world.clock.advance(5 * DAY_S + 10.0)
    keep = Keep(None, 5 * DAY_S, None, None, events_overdue_s=3600.0)
    world.store.upkeep.prune(keep)
    assert world.kinds() != []
    world.clock.advance(3600.0)
    world.store.upkeep.prune(keep)
    assert world.kinds() == []
    assert verified(world) == []


def test_row_whose_transaction_ends_late_is_never_passed_by_a_seal(world: World) -> None:
    if not world.kind.is_shared:
        pytest.skip("one writer at a time: ids become visible in order")
    filled(world, 1)
    with psycopg.connect(str(world.path)) as slow:
        slow.execute("INSERT INTO penstock.event (at, kind) VALUES (1, 'job.noted')")
        world.start(key="passes")
        assert world.store.audit.seal_all(wait_s=0.0) == 0
        slow.commit()
    assert world.store.audit.seal_all() > 1
    assert world.store.audit.unsealed() == 0
    assert verified(world) == []


def test_seal_that_another_has_made_meanwhile_is_not_made_twice(world: World) -> None:
    filled(world, 1)
    world.start(key="next")
    audit: Any = world.store.audit
    head = audit.last()
    lines = audit.tail()
    rival = next_seal(head, lines, lines[-1].id, world.clock.now())

    assert audit.seal_all() > 0
    with audit._db.writing():
        assert not add_seal(audit._db, rival, 0)
    assert verified(world) == []


def test_head_is_put_into_the_outbox_once_in_a_day_for_each_hook(world: World) -> None:
    audit = world.store.audit
    assert [audit.send_head_if_due("notary", "{}", DAY_S) for _ in range(2)] == [True, False]
    assert audit.send_head_if_due("other", "{}", DAY_S)
    world.clock.advance(DAY_S)
    assert audit.send_head_if_due("notary", "{}", DAY_S)
    assert [row.hook for row in world.store.hooks.outbox()] == ["notary", "other", "notary"]
