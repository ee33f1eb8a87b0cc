"""Leading: one holder at a time, and each term once."""

from __future__ import annotations

from penstock.store.leaders import Term
from penstock.store.rows import LeaderRow
from tests.contract.scenes import World

TTL_S = 10.0


def lead(world: World, holder: str, term: int = 0) -> int | None:
    found = world.store.leaders.lead("scheduler", holder, TTL_S, term)
    assert found is None or found == Term(found.number, TTL_S)
    return found.number if found else None


def leader(world: World) -> tuple[str, int]:
    [row] = world.store.leaders.all()
    return row.holder, row.term


def test_first_to_ask_leads_and_others_wait(world: World) -> None:
    assert lead(world, "a") == 1
    assert lead(world, "b") is None
    assert world.store.leaders.all() == [
        LeaderRow("scheduler", "a", 1, world.clock.now() + TTL_S),
    ]


def test_leader_stays_for_as_long_as_it_renews(world: World) -> None:
    lead(world, "a")
    for _ in range(10):
        world.clock.advance(TTL_S - 1)
        assert lead(world, "a", 1) == 1
        assert lead(world, "b") is None


def test_term_that_ran_out_is_followed_by_the_next(world: World) -> None:
    lead(world, "a")
    world.clock.advance(TTL_S)
    assert lead(world, "b") == 2
    assert leader(world) == ("b", 2)


def test_former_leader_does_not_renew_a_newer_term(world: World) -> None:
    lead(world, "a")
    world.clock.advance(TTL_S)
    lead(world, "b")
    before = world.store.leaders.all()
    world.clock.advance(1)
    assert lead(world, "a", 1) is None
    assert world.store.leaders.all() == before


def test_former_leader_does_not_resign_for_a_newer_one(world: World) -> None:
    lead(world, "a")
    world.clock.advance(TTL_S)
    lead(world, "b")
    assert not world.store.leaders.resign("scheduler", "a", 1)
    assert not world.store.leaders.resign("scheduler", "b", 1)
    assert leader(world) == ("b", 2)
    assert lead(world, "c") is None


def test_holder_that_never_heard_of_its_term_begins_another(world: World) -> None:
    lead(world, "a")
    assert lead(world, "a") == 2
    assert lead(world, "a", 1) == 3, "nor does it go on with the first"


def test_resigning_leaves_the_place_to_others_at_once_and_terms_go_on(world: World) -> None:
    lead(world, "a")
    assert world.store.leaders.resign("scheduler", "a", 1)
    assert not world.store.leaders.resign("scheduler", "a", 1)
    assert lead(world, "b") == 2
    kinds = [
        (e.kind, e.actor, e.detail) for e in world.store.journal.events() if "leader" in e.kind
    ]
    assert kinds == [
        ("leader.elected", "a", "scheduler, term 1"),
        ("leader.resigned", "a", "scheduler, term 1"),
        ("leader.elected", "b", "scheduler, term 2"),
    ]


def test_who_leads_in_one_matter_does_not_lead_in_another(world: World) -> None:
    lead(world, "a")
    assert world.store.leaders.lead("upkeep", "b", TTL_S) == Term(1, TTL_S)
    assert [row.holder for row in world.store.leaders.all()] == ["a", "b"]
