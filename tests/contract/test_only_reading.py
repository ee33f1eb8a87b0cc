"""Where only reads are allowed, nothing is written, and a read that takes too long ends."""

from __future__ import annotations

import pytest

from penstock.errors import StoreError, StoreTooSlow
from tests.contract.scenes import World

# Counts to a number that takes hours.
ENDLESS = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000000) SELECT max(i) FROM n
"""


def endless(world: World) -> None:
    db = world.store._db
    db._queries = {**db._queries, "endless": ENDLESS}  # type: ignore[attr-defined]


def test_nothing_is_written_while_only_reads_are_allowed(world: World) -> None:
    store = world.store
    with store.only_reading(60.0):
        assert store.tokens.newest(9) == []
        with pytest.raises(RuntimeError, match="only reads"):
            store.tokens.create("ci", "admin", None, "ann", "")
    # Also what does not begin a transaction first.
    with pytest.raises(StoreError), store.only_reading(60.0):
        store._db.do("revoke_token", id=1, now=0.0)

    made = store.tokens.create("ci", "admin", None, "ann", "")
    assert made is not None
    with store.only_reading(60.0):
        assert [row.id for row in store.tokens.newest(9)] == [made[1].id]


def test_a_read_that_takes_too_long_is_given_up_and_the_next_one_works(world: World) -> None:
    endless(world)
    with pytest.raises(StoreTooSlow), world.store.only_reading(0.05):
        world.store._db.value("endless")
    with world.store.only_reading(60.0):
        assert world.store.tokens.newest(9) == []
