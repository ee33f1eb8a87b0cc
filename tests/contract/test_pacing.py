"""Places in time: however many connections reserve them, each is given once, and none too soon."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Lock

import pytest

from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.gates.rates import LONGEST_WAIT_S, RateDecision, RateRequest
from penstock.store.postgres.store import PostgresStore
from penstock.testing import EPOCH, VirtualClock
from tests.contract.scenes import World

SHOP = "acme.com"


def waits(verdicts: list[RateDecision]) -> list[tuple[float, str]]:
    return [(round(verdict.wait_s, 5), verdict.gate) for verdict in verdicts]


def reserve(world: World, *wants: RateRequest) -> list[tuple[float, str]]:
    return waits(world.store.hosts.reserve(wants))


def test_places_of_one_source_follow_each_other_by_its_rate(world: World) -> None:
    want = RateRequest(SHOP, 2.0)
    assert reserve(world, want) == [(0, "")]
    assert reserve(world, want, want) == [(0.5, ""), (1, "")]
    world.clock.advance(0.25)
    assert reserve(world, want) == [(1.25, "")]
    world.clock.advance(100)
    assert reserve(world, want, want) == [(0, ""), (0.5, "")]


def test_one_call_answers_for_many_sources_in_the_order_asked(world: World) -> None:
    first, second = RateRequest("zoo.org", 1.0), RateRequest("acme.com", 10.0)
    assert reserve(world, first, second, first, second) == [(0, ""), (0, ""), (1, ""), (0.1, "")]
    assert reserve(world, second, RateRequest("новости.рф", 5.0), first) == [
        (0.2, ""),
        (0, ""),
        (2, ""),
    ]
    assert reserve(world) == []


def test_what_would_wait_too_long_takes_no_place(world: World) -> None:
    want = RateRequest(SHOP, 0.5)
    assert reserve(world, *[want] * 4) == [(0, ""), (2, ""), (4, ""), (6, "rate")]
    before = world.dump()["pace"]
    assert reserve(world, want, want) == [(6, "rate"), (6, "rate")]
    assert world.dump()["pace"] == before
    world.clock.advance(6)
    assert reserve(world, want, want) == [(0, ""), (2, "")]


def test_a_changed_rate_holds_from_the_next_reservation_on(world: World) -> None:
    assert reserve(world, RateRequest(SHOP, 1 / 3600)) == [(0, "")]
    assert reserve(world, RateRequest(SHOP, 10.0)) == [(LONGEST_WAIT_S + 0.1, "rate")]
    world.clock.advance(LONGEST_WAIT_S + 0.1)
    assert reserve(world, RateRequest(SHOP, 10.0), RateRequest(SHOP, 10.0)) == [(0, ""), (0.1, "")]


@pytest.mark.parametrize("step_s", [-86_400.0, -3.0, 86_400.0])
def test_a_clock_that_was_set_costs_seconds_and_not_hours(world: World, step_s: float) -> None:
    want = RateRequest(SHOP, 1.0)
    reserve(world, want, want)
    world.clock.advance(step_s)
    [verdict] = world.store.hosts.reserve([want])
    assert verdict.wait_s <= LONGEST_WAIT_S + 1.0 + 1e-5
    world.clock.advance(verdict.wait_s)
    [verdict] = world.store.hosts.reserve([want])
    assert not verdict.gate


class Late(VirtualClock):
    """The clock of somebody who is held up right after it looked at the time."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._clock = world.clock
        self.meanwhile: Callable[[], None] = lambda: None

    def now(self) -> float:
        now = self._clock.now()
        happens, self.meanwhile = self.meanwhile, lambda: None
        happens()
        return now


def test_a_place_counts_from_when_it_is_given_not_from_when_it_was_asked_for(world: World) -> None:
    """A time read before waiting for others would be handed out again to the next who asks."""
    want, clock = RateRequest(SHOP, 1.0), Late(world)
    reserve(world, want)

    def others_go_first() -> None:
        world.clock.advance(10)
        assert reserve(world, want) == [(0, "")]
        world.clock.advance(10)

    with closing(world.kind.open(world.path, clock)) as held_up:
        clock.meanwhile = others_go_first
        assert waits(held_up.hosts.reserve([want])) == [(0, "")]

    assert reserve(world, want) == [(1, "")]


def test_hosts_whose_clocks_are_hours_apart_share_one_rate(schema_database: str) -> None:
    """Only the database's own clock counts, and nobody learns what it shows."""
    want = RateRequest(SHOP, 1 / 3600)
    for hours, gate in ((0, ""), (5, "rate"), (-5, "rate")):
        skewed = VirtualClock(EPOCH + hours * 3600)
        with closing(PostgresStore(schema_database, skewed)) as store:
            [verdict] = store.hosts.reserve([want])
        assert verdict.gate == gate
        assert not gate or 3000 < verdict.wait_s <= 3600


def test_pages_of_a_source_without_a_place_soon_are_not_claimed(world: World) -> None:
    """They would only be sent back: all of a long queue, again and again, at the speed of the store."""
    world.start_with_pages(10)
    world.source(SHOP, LaneLimits(concurrency=4, rate_per_s=0.1))
    want = RateRequest(SHOP, 0.1)

    assert len(world.claim()) == 1
    assert reserve(world, want) == [(0, "")]
    turn = world.turn(capacity=Capacity(10))
    assert turn.claimed == []
    assert turn.next_due_at == pytest.approx(world.clock.now() + 10 - LONGEST_WAIT_S)

    world.clock.advance(10 - LONGEST_WAIT_S)
    assert len(world.claim()) == 1
    assert reserve(world, want) == [(LONGEST_WAIT_S, "")]
    assert world.claim() == []


def test_closed_hosts_are_known_to_all_and_never_opened_early(world: World) -> None:
    now = world.clock.now()
    world.store.hosts.close({"b.org": 10.0, "a.org": 60.0})
    world.store.hosts.close({"a.org": 5.0})
    with closing(world.kind.open(world.path, world.clock)) as another:
        assert another.hosts.closed() == {"a.org": now + 60, "b.org": now + 10}
    world.clock.advance(10)
    assert world.store.hosts.closed() == {"a.org": now + 60}


def shuffled(seed: int, keys: list[str], rate: float) -> list[RateRequest]:
    found = [RateRequest(key, rate) for key in keys]
    random.Random(seed).shuffle(found)
    return found


@pytest.mark.parametrize("connections", [2, 8])
def test_connections_that_reserve_at_the_same_time_never_share_a_place(
    world: World, connections: int
) -> None:
    """Time stands still, so every place given must be another one, in a row without gaps."""
    keys, rate, rounds = ["a.org", "b.org", "c.org"], 100.0, 400 // connections

    def ask(number: int) -> list[tuple[str, float]]:
        given: list[tuple[str, float]] = []
        with closing(world.kind.open(world.path, world.clock)) as store:
            for turn in range(rounds):
                wants = shuffled(number * 1000 + turn, keys[: 1 + turn % 3], rate)
                verdicts = store.hosts.reserve(wants)
                assert not any(verdict.gate for verdict in verdicts)
                given += [(w.key, v.wait_s) for w, v in zip(wants, verdicts, strict=True)]
        return given

    with ThreadPoolExecutor(connections) as threads:
        given = [place for places in threads.map(ask, range(connections)) for place in places]

    for key in keys:
        mine = sorted(wait_s for asked, wait_s in given if asked == key)
        assert mine == pytest.approx([n / rate for n in range(len(mine))], abs=1e-4)


@pytest.mark.parametrize("connections", [2, 8])
def test_rate_holds_over_all_connections_while_time_passes(world: World, connections: int) -> None:
    """Whenever it is, no more have gone out since the beginning than the rate allows."""
    want, began, clock_hand = RateRequest(SHOP, 20.0), world.clock.now(), Lock()

    def ask(number: int) -> list[float]:
        chance, sent_at = random.Random(number), []
        with closing(world.kind.open(world.path, world.clock)) as store:
            for _ in range(240 // connections):
                [verdict] = store.hosts.reserve([want])
                if not verdict.gate:
                    sent_at.append(world.clock.now() + verdict.wait_s)
                with clock_hand:
                    world.clock.advance(chance.uniform(0.0, 0.05))
        return sent_at

    with ThreadPoolExecutor(connections) as threads:
        sent_at = sorted(at for times in threads.map(ask, range(connections)) for at in times)

    assert len(sent_at) > 50
    for count, at in enumerate(sent_at):
        assert count <= (at - began) * (want.rate_per_s or 0.0) + 1e-3
