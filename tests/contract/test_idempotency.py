"""Idempotency keys: an act is performed once for each, also if the server that performed it is gone."""

from __future__ import annotations

from penstock.store.idempotency import KEPT_S, LEASE_S, KeyRow
from penstock.store.upkeep import Keep
from tests.contract.scenes import World

NOTHING = Keep(None, None, None, None)


def test_key_stands_for_its_first_request_and_its_answer_until_retention_drops_it(
    world: World,
) -> None:
    keys, began = world.store.idempotency, world.store.now()
    assert keys.begin("ann", "k", "hash", "one") is None
    assert keys.begin("bob", "k", "hash", "one") is None
    assert keys.answer("ann", "k", "one", '{"run": 1}')

    known = KeyRow("hash", began + LEASE_S, '{"run": 1}')
    assert keys.begin("ann", "k", "hash", "one") == known
    assert keys.begin("ann", "k", "another", "two") == known
    world.clock.advance(KEPT_S - 1)
    assert world.store.upkeep.prune(NOTHING) == 0
    world.clock.advance(2)
    assert world.store.upkeep.prune(NOTHING) == 2
    assert keys.begin("ann", "k", "another", "two") is None


def test_old_key_that_retention_has_not_dropped_yet_is_free(world: World) -> None:
    keys = world.store.idempotency
    keys.begin("ann", "k", "hash", "one")
    keys.answer("ann", "k", "one", "{}")
    world.clock.advance(KEPT_S + 1)

    assert keys.begin("ann", "k", "another", "two") is None
    assert keys.begin("ann", "k", "another", "three") == KeyRow(
        "another", world.store.now() + LEASE_S, None
    )


def test_only_the_server_that_took_a_key_takes_it_again_answers_it_or_gives_it_back(
    world: World,
) -> None:
    keys = world.store.idempotency
    keys.begin("ann", "k", "hash", "one")

    assert keys.begin("ann", "k", "hash", "two") is not None
    assert not keys.answer("ann", "k", "two", "{}")
    assert not keys.release("ann", "k", "two")
    assert keys.begin("ann", "k", "hash", "one") is None
    assert keys.begin("ann", "k", "another", "one") is not None
    assert keys.release("ann", "k", "one")
    assert keys.begin("ann", "k", "another", "two") is None
