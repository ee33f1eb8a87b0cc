"""Lanes: which gate holds a source back, and how free slots are shared among those that may start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.gates.decide import decide
from penstock.gates.fair_shares import FairShares, Room, Stretch
from penstock.gates.lane import Allowance, Closed, Head, Lane, LaneLimits, limits_for
from penstock.gates.rates import LONGEST_WAIT_S
from penstock.jobs.job import Unit

NOW = 1000.0
PLENTY = float("inf")


def a_head(
    depth: int = 1000, unit: Unit = "page", rank: float = 0.0, cpu: float = 0.0, memory_mb: float = 0.0,
    run_id: int = 1, stage: str = "extract",
) -> Head:  # fmt: skip
    return Head(run_id, stage, unit, depth, rank, cpu, memory_mb)


def a_lane(source_id: int, *heads: Head, weight: float = 1.0, concurrency: int = 10_000) -> Lane:
    own = tuple(heads) or (a_head(run_id=source_id),)
    return Lane(source_id, own, LaneLimits(concurrency, 10_000, weight))


def shares(sharing: FairShares, lanes: Iterable[Lane], slots: int) -> Counter[int]:
    """How many slots each run got; in these tests a run's number is its source's."""
    taken: Counter[int] = Counter()
    for grant in sharing.share(lanes, Room(slots, PLENTY, PLENTY), NOW):
        taken[grant.run_id] += grant.count
    return taken


# Gates.


def a_paced_lane(ahead_s: float, *units: Unit) -> Lane:
    """Four jobs at once and a request every two seconds; the next one may go out in `ahead_s`."""
    heads = tuple(a_head(unit=unit) for unit in units)
    return Lane(1, heads, LaneLimits(4, 64, rate_per_s=0.5), next_place_at=NOW + ahead_s)


@pytest.mark.parametrize(
    ("ahead_s", "pages"), [(-100.0, 3), (0.0, 3), (0.9, 3), (1.1, 2), (3.1, 1), (5.0, 1)]
)
def test_no_more_pages_start_than_will_find_a_place_soon(ahead_s: float, pages: int) -> None:
    assert decide(a_paced_lane(ahead_s, "page"), NOW) == Allowance(pages, 64)


def test_rate_is_a_gate_that_opens_shortly_before_the_next_place() -> None:
    assert decide(a_paced_lane(6.5, "page"), NOW) == Closed("rate", NOW + 6.5 - LONGEST_WAIT_S)


def test_rate_does_not_hold_back_what_was_fetched_already() -> None:
    assert decide(a_paced_lane(6.5, "page", "candidate"), NOW) == Allowance(0, 64)


def test_next_place_that_can_not_be_true_lets_one_job_through_to_set_it_right() -> None:
    """After a clock was set back, or a rate was raised: nobody else would ever ask for a place."""
    assert decide(a_paced_lane(3600.0, "page"), NOW) == Allowance(1, 64)


PAGES = (Head(1, "extract", "page", 9),)


def test_lane_with_room_is_told_how_much() -> None:
    lane = Lane(1, (), LaneLimits(4, 64), running=1, running_candidates=60)

    assert decide(lane, NOW) == Allowance(3, 4)


def test_gates_are_named_with_the_time_they_open() -> None:
    assert decide(Lane(1, PAGES, is_paused=True), NOW) == Closed("paused")
    assert decide(Lane(1, PAGES, cooldown_until=NOW + 5), NOW) == Closed("cooldown", NOW + 5)
    assert decide(Lane(1, PAGES, LaneLimits(2, 2), running=2, running_candidates=2), NOW) == Closed(
        "slots"
    )


def test_cooldown_ends_at_its_time() -> None:
    assert isinstance(decide(Lane(1, (), cooldown_until=NOW), NOW), Allowance)


def test_lane_over_its_limits_is_owed_nothing() -> None:
    lane = Lane(1, (), LaneLimits(2, 2), running=9, running_candidates=1)

    assert decide(lane, NOW) == Allowance(0, 1)


def test_closed_lanes_get_nothing() -> None:
    lanes = [Lane(1, (a_head(run_id=1),), is_paused=True), a_lane(2)]

    assert shares(FairShares(), lanes, 10) == {2: 10}


def test_source_that_is_no_longer_configured_has_the_default_limits() -> None:
    assert limits_for(7, {}) == LaneLimits()


# Sharing.


def test_slots_are_split_evenly_whatever_the_depth() -> None:
    lanes = [a_lane(1, a_head(1_000_000, run_id=1)), a_lane(2), a_lane(3, a_head(2, run_id=3))]

    assert shares(FairShares(), lanes, 32) == {1: 15, 2: 15, 3: 2}


def test_nothing_is_left_free_while_a_lane_wants_it() -> None:
    lanes = [a_lane(1, a_head(3, run_id=1)), a_lane(2, a_head(100, run_id=2), concurrency=5)]

    assert shares(FairShares(), lanes, 50) == {1: 3, 2: 5}


def test_lane_that_was_last_comes_first_when_slots_are_few() -> None:
    sharing, lanes = FairShares(), [a_lane(n) for n in range(1, 6)]

    order = [next(iter(shares(sharing, lanes, 1))) for _ in range(10)]

    assert order == [1, 2, 3, 4, 5] * 2


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 16, 100])
@pytest.mark.parametrize("weights", [(1, 3), (3, 1), (1, 1, 1), (0.5, 1, 2.5), (0.1, 1), (10, 1)])
def test_lanes_get_their_weight_in_the_long_run(slots: int, weights: tuple[float, ...]) -> None:
    sharing = FairShares()
    lanes = [a_lane(n, a_head(10**9, run_id=n), weight=w) for n, w in enumerate(weights, 1)]
    taken: Counter[int] = Counter()
    while taken.total() < 4000:
        taken.update(shares(sharing, lanes, slots))

    for source_id, weight in enumerate(weights, 1):
        fair = taken.total() * weight / sum(weights)
        assert taken[source_id] == pytest.approx(fair, rel=0.05, abs=2 * slots)


def test_newcomer_beside_a_flood_is_served_in_the_next_turn() -> None:
    sharing, flood = FairShares(), a_lane(1, a_head(100_000, run_id=1))
    for _ in range(50):
        shares(sharing, [flood], 1)

    served = [shares(sharing, [flood, a_lane(2, a_head(1, run_id=2))], 1) for _ in range(2)]

    assert Counter({2: 1}) in served


def test_idle_lane_saves_up_nothing() -> None:
    sharing = FairShares()
    for _ in range(100):
        shares(sharing, [a_lane(1), a_lane(2, a_head(0, run_id=2))], 4)

    taken = shares(sharing, [a_lane(1), a_lane(2)], 8)

    assert taken == {1: 4, 2: 4}


def test_lane_that_left_while_it_was_served_is_not_waited_for() -> None:
    sharing = FairShares()
    shares(sharing, [a_lane(1, weight=5.0), a_lane(2)], 2)

    assert shares(sharing, [a_lane(2), a_lane(3)], 2).total() == 2


def test_first_in_rank_is_served_first_within_a_lane() -> None:
    late, early = a_head(5, rank=9.0, stage="late"), a_head(5, rank=1.0, stage="early")

    grants = FairShares().share([a_lane(1, late, early)], Room(7, PLENTY, PLENTY), NOW)

    assert {(grant.stage, grant.count) for grant in grants} == {("early", 5), ("late", 2)}


def test_pages_and_candidates_have_limits_of_their_own() -> None:
    heads = (
        a_head(9, "page", stage="p"),
        a_head(9, "candidate", stage="c"),
        a_head(1, "run", stage="r"),
    )
    lane = Lane(1, heads, LaneLimits(concurrency=3, candidates=2))

    grants = FairShares().share([lane], Room(100, PLENTY, PLENTY), NOW)

    assert sum(grant.count for grant in grants if grant.stage in "pr") == 3
    assert sum(grant.count for grant in grants if grant.stage == "c") == 2


def test_stage_that_does_not_fit_leaves_room_for_others() -> None:
    heavy = a_lane(1, a_head(5, run_id=1, cpu=4.0))
    light = a_lane(2, a_head(5, run_id=2, cpu=1.0))

    grants = FairShares().share([heavy, light], Room(10, 3.0, PLENTY), NOW)

    assert [(grant.run_id, grant.count) for grant in grants] == [(2, 3)]


@pytest.mark.parametrize(
    ("cpu", "memory_mb", "fits"),
    [
        (0.3, 0.0, 10),
        (1.0, 0.0, 3),
        (0.0, 400.0, 2),
        (1.0, 2000.0, 0),
        (0.1, 0.0, 30),
        (0.0, 0.0, 50),
    ],
)
def test_budget_says_how_many_fit(cpu: float, memory_mb: float, fits: int) -> None:
    assert Room(50, 3.0, 1000.0).fits(a_head(cpu=cpu, memory_mb=memory_mb)) == fits


def test_endless_budget_is_bounded_by_its_slots() -> None:
    assert Room(7, PLENTY, PLENTY).fits(a_head(cpu=1.0, memory_mb=5.0)) == 7


lanes_of_any_kind = st.lists(
    st.builds(
        lambda depth, unit, weight, running, cpu, memory_mb, limit: (
            depth, unit, weight, running, cpu, memory_mb, limit,
        ),
        st.integers(0, 50), st.sampled_from(["run", "page", "candidate"]), st.floats(0.01, 1000),
        st.integers(0, 5), st.sampled_from([0.0, 0.3, 1.0, 5.0]), st.sampled_from([0.0, 128.0]),
        st.integers(1, 20),
    ),
    max_size=8,
)  # fmt: skip


@given(lanes_of_any_kind, st.integers(0, 64), st.floats(0, 16), st.floats(0, 1024))
def test_sharing_never_gives_more_than_there_is_and_leaves_nothing_that_fits(
    kinds: list[tuple[int, Unit, float, int, float, float, int]],
    slots: int,
    cpu: float,
    memory_mb: float,
) -> None:
    lanes = []
    for number, (depth, unit, weight, running, head_cpu, head_mb, limit) in enumerate(kinds, 1):
        head = a_head(depth, unit, cpu=head_cpu, memory_mb=head_mb, run_id=number)
        limits = LaneLimits(limit, limit, weight)
        lanes.append(Lane(number, (head,), limits, running=running, running_candidates=running))
    sharing, budget = FairShares(), Room(slots, cpu, memory_mb)

    grants = sharing.share(lanes, budget, NOW)

    given_to = {grant.run_id: grant.count for grant in grants}
    assert len(given_to) == len(grants)
    assert sum(given_to.values()) == slots - budget.slots
    assert budget.cpu >= -1e-6
    assert budget.memory_mb >= -1e-6
    for lane in lanes:
        [head], count = lane.heads, given_to.get(lane.source_id, 0)
        room = max(0, lane.limits.concurrency - lane.running)
        assert count <= min(head.depth, room)
        assert count == min(head.depth, room) or budget.fits(head) == 0


class Stretches:
    """Lanes that are read a few at a time, as a database has them."""

    def __init__(self, lanes: Iterable[Lane], most: int) -> None:
        self._lanes = sorted(lanes, key=lambda lane: lane.source_id)
        self._most = most
        self.seen: list[int] = []

    def read(self, stretch: Stretch) -> tuple[list[Lane], int]:
        after, until, _ = stretch
        found = [lane for lane in self._lanes if after < lane.source_id <= until][: self._most]
        self.seen += [lane.source_id for lane in found]
        return found, found[-1].source_id if len(found) == self._most else until


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 9)),
        max_size=8,
    ),
    st.lists(st.sampled_from([0.3, 0.5, 1.0, 2.5]), min_size=12, max_size=12),
    st.integers(1, 5),
)
def test_lanes_that_are_read_in_stretches_are_shared_as_if_all_were_known(
    turns: list[tuple[list[int], int]], weights: list[float], most: int
) -> None:
    whole, parts = FairShares(), FairShares()
    for depths, slots in turns:
        lanes = [
            a_lane(number, a_head(depth, run_id=number), weight=weights[number - 1], concurrency=6)
            for number, depth in enumerate(depths, 1)
            if depth
        ]
        expected = whole.share(lanes, Room(slots, PLENTY, PLENTY), NOW)

        stretches = Stretches(lanes, most)
        assert parts.share_read(stretches, Room(slots, PLENTY, PLENTY), NOW) == expected


def test_no_more_lanes_are_read_than_fill_the_slots() -> None:
    sharing, lanes = FairShares(), [a_lane(number) for number in range(1, 1001)]
    started: list[int] = []
    for _ in range(100):
        stretches = Stretches(lanes, 20)
        grants = sharing.share_read(stretches, Room(10, PLENTY, PLENTY), NOW)
        started += [grant.run_id for grant in grants]
        assert len(stretches.seen) <= 20

    assert started == list(range(1, 1001))
