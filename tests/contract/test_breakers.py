"""Breakers in the store: shared by all workers, durable, and no try is lost at an open one."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Lock

import pytest

from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Settlement
from penstock.settings.values import BreakerSettings
from penstock.store.breaker_rows import BreakerRow
from penstock.store.hosts import HostTold
from penstock.store.upkeep import Keep
from tests.contract.scenes import World, throttled

SHOP = "acme.com"
KEY = f"source:{SHOP}"
LIMITS = LaneLimits(concurrency=10, adaptive=False)
RULE = BreakerSettings()


def ok(job: Claimed) -> Settlement:
    return Settlement(job.id, job.attempt, JobState.SUCCEEDED, unit="page", took_s=0.1)


def failed(job: Claimed, kind: str = "transient", is_last: bool = False) -> Settlement:
    state = JobState.QUARANTINED if is_last else JobState.WAITING
    return Settlement(
        job.id,
        job.attempt,
        state,
        0.5,
        spends_try=True,
        reason=kind,
        error="status 500",
        unit="page",
    )


def away(job: Claimed, delay_s: float) -> Settlement:
    return Settlement(
        job.id, job.attempt, JobState.WAITING, delay_s, reason="cdn is closed", unit="page",
        gate="breaker", closes_for_s=delay_s,
    )  # fmt: skip


def a_shop(world: World, pages: int = 100, limits: LaneLimits = LIMITS) -> int:
    run_id = world.start_with_pages(pages)
    world.source(SHOP, limits)
    return run_id


def breaker(world: World, key: str = KEY) -> BreakerRow | None:
    return next((row for row in world.store.breakers.all() if row.key == key), None)


def state(world: World, key: str = KEY) -> str:
    found = breaker(world, key)
    return found.state if found else "none"


def soon(world: World) -> bool:
    """Fails instead of waiting for what never comes."""
    assert world.clock.monotonic() < 1000
    world.clock.advance(0.1)
    return True


def break_it(world: World) -> float:
    """Fail until it opens; answers with when it may be tried."""
    jobs = world.claim()
    world.turn("w", *(failed(job) for job in jobs))
    found = breaker(world)
    assert found is not None
    assert found.state == "open"
    return found.opens_at


def events(world: World, *kinds: str) -> list[str]:
    return [each.kind for each in world.store.journal.events(limit=100_000) if each.kind in kinds]


def details(world: World, *kinds: str) -> list[str]:
    return [each.detail for each in world.store.journal.events(limit=100_000) if each.kind in kinds]


BREAKER_EVENTS = ("breaker.opened", "breaker.half-open", "breaker.closed")


def test_source_that_fails_is_left_alone_until_its_time(world: World) -> None:
    a_shop(world)
    opens_at = break_it(world)

    turn = world.turn(capacity=Capacity(100))
    assert turn.claimed == []
    assert turn.next_due_at is not None
    assert turn.next_due_at <= opens_at
    assert not world.store.jobs.has_startable(0)
    assert world.store.jobs.has_startable(opens_at - world.clock.now() + 1)
    world.clock.advance(opens_at - world.clock.now() - 0.5)
    assert world.claim() == []


def test_one_job_tries_it_whoever_asks_then_two_then_four(world: World) -> None:
    a_shop(world)
    opens_at = break_it(world)
    world.register("w2")
    world.clock.advance(opens_at - world.clock.now())

    ramps = []
    while state(world) != "closed" and soon(world):
        trying = world.claim("w") + world.claim("w2") + world.claim("w")
        ramps.append(len(trying))
        world.clock.advance(1)
        mine = world.store.workers.jobs_of("w")
        world.turn("w", *(ok(job) for job in trying if (job.id, job.attempt) in mine))
        world.turn("w2", *(ok(job) for job in trying if (job.id, job.attempt) not in mine))

    assert ramps == [1, 2, 4, 8]
    assert len(world.claim()) == LIMITS.concurrency
    assert events(world, *BREAKER_EVENTS) == list(BREAKER_EVENTS)


def test_failed_try_opens_it_again_for_longer(world: World) -> None:
    a_shop(world)
    first = break_it(world)
    opened_at = world.clock.now()
    world.clock.advance(first - world.clock.now())
    [probe] = world.claim()
    world.turn("w", failed(probe))

    found = breaker(world)
    assert found is not None
    assert (found.state, found.trips, found.opened_at) == ("open", 2, opened_at)
    assert found.opens_at - world.clock.now() >= 2 * RULE.open_for_s
    assert world.claim() == []


def test_no_try_is_lost_at_a_source_that_is_away(world: World) -> None:
    """Not by those that failed when it opened, nor by those that try it, even with their last one."""
    run_id = a_shop(world, 20)
    jobs = world.claim()
    world.turn("w", *(failed(job, is_last=True) for job in jobs))
    assert state(world) == "open"
    for _ in range(10):
        found = breaker(world)
        assert found is not None
        world.clock.advance(max(0.0, found.opens_at - world.clock.now()))
        for job in world.claim():
            world.turn("w", failed(job, is_last=True))

    rows = world.jobs(run_id, stage="extract")
    assert {row.state for row in rows} <= {JobState.QUEUED, JobState.WAITING}
    assert {row.tries for row in rows} == {0}


def test_job_that_failed_is_not_the_next_to_try(world: World) -> None:
    """Else one that fails by its own fault would keep its source closed for ever."""
    a_shop(world, 12)
    jobs = world.claim()
    world.turn("w", *(failed(job) for job in jobs))
    seen = set()
    for _ in range(3):
        found = breaker(world)
        assert found is not None
        world.clock.advance(found.opens_at - world.clock.now())
        [probe] = world.claim()
        assert probe.id not in seen
        seen.add(probe.id)
        world.turn("w", failed(probe))


@pytest.mark.parametrize("reason", ["permanent", "data", "auth"])
def test_source_that_answers_is_there_whatever_it_answers(world: World, reason: str) -> None:
    a_shop(world)
    world.turn("w", *(failed(job, reason, is_last=True) for job in world.claim()))
    world.turn("w", *(failed(job, reason, is_last=True) for job in world.claim()))
    assert breaker(world) is None


def test_what_says_nothing_about_the_source_is_not_counted(world: World) -> None:
    a_shop(world)
    jobs = world.claim()
    plain = [
        Settlement(j.id, j.attempt, JobState.WAITING, 1.0, reason="later", unit="page")
        for j in jobs[:3]
    ]
    unknown = [failed(job, "unknown") for job in jobs[3:]]
    world.turn("w", *plain, *unknown)
    assert breaker(world) is None


def test_healthy_source_costs_no_row(world: World) -> None:
    a_shop(world)
    world.turn("w", *(ok(job) for job in world.claim()))
    assert world.dump()["breaker"] == []


def test_successes_of_other_workers_are_counted_once_something_failed(world: World) -> None:
    """A host that has lost its own network must not close a source that others can reach."""
    a_shop(world, 400)
    world.register("w2")
    with closing(world.kind.open(world.path, world.clock)) as elsewhere:
        for _ in range(12):
            [mine] = world.claim("w", 1)
            theirs = elsewhere.turn("w2", [], Capacity(4), world.limits).claimed
            elsewhere.turn("w2", [ok(job) for job in theirs], Capacity(0), world.limits)
            world.turn("w", failed(mine))
            world.clock.advance(0.5)
    found = breaker(world)
    assert found is not None
    assert found.state == "closed"
    assert sum(well for _, well, _ in found.buckets) > 40


def test_breaker_holds_over_a_restart(world: World) -> None:
    a_shop(world)
    opens_at = break_it(world)
    world.store.close()
    world.store = world.kind.open(world.path, world.clock)

    assert world.claim() == []
    world.clock.advance(opens_at - world.clock.now())
    assert len(world.claim()) == 1
    assert world.claim() == []


def test_probe_whose_worker_died_is_followed_by_another(world: World) -> None:
    a_shop(world)
    opens_at = break_it(world)
    world.register("w2")
    world.clock.advance(opens_at - world.clock.now())
    assert len(world.claim("w2")) == 1
    assert world.claim() == []
    world.store.workers.bury("w2", "killed")
    assert len(world.claim()) == 1


def test_one_source_that_is_closed_does_not_hold_another(world: World) -> None:
    world.start_all({SHOP: 20, "other.org": 20})
    world.source(SHOP, LIMITS)
    mine = [job for job in world.claim() if job.source_id == world.source(SHOP, LIMITS)]
    world.turn("w", *(failed(job) for job in mine))
    assert state(world) == "open"
    assert breaker(world, "source:other.org") is None
    other = world.source("other.org")
    world.enqueue(world.start(source="other.org", key="second"), *"abc")
    assert {job.source_id for job in world.claim()} == {other}


def test_signal_names_the_window_that_was_missed(world: World) -> None:
    a_shop(world)
    opened_at = world.clock.now()
    opens_at = break_it(world)
    world.clock.advance(opens_at - world.clock.now())
    while state(world) != "closed" and soon(world):
        world.turn("w", *(ok(job) for job in world.claim()))
    [signal] = [row for row in world.dump()["signal"] if row[1] == "breaker.closed"]
    assert json.loads(signal[2]) == {
        "source": SHOP, "start_at": opened_at, "end_at": world.clock.now(),
    }  # fmt: skip


def test_breaker_that_is_off_never_opens(world: World) -> None:
    a_shop(world, limits=LaneLimits(concurrency=8, breaker=None))
    for _ in range(5):
        world.turn("w", *(failed(job) for job in world.claim()))
        world.clock.advance(1)
    assert breaker(world) is None


def test_rule_of_the_source_is_its_own(world: World) -> None:
    rule = BreakerSettings(ratio=1.0, at_least=2, open_for_s=5.0)
    a_shop(world, limits=LaneLimits(concurrency=8, breaker=rule))
    first, second, *_ = world.claim()
    world.turn("w", failed(first), failed(second))
    found = breaker(world)
    assert found is not None
    assert 5.0 <= found.opens_at - world.clock.now() <= 6.0


def test_replays_neither_wait_for_it_nor_tell_of_it(world: World) -> None:
    from penstock.jobs.run import RunKind
    from tests.contract.scenes import SITE, done, pages

    a_shop(world)
    break_it(world)
    run_id, _ = world.store.runs.start(
        world.source(SHOP, LIMITS), RunKind.REPLAY, SITE, "v1", key="again", actor="test"
    )
    [root] = world.claim()
    assert root.run_id == run_id
    world.turn("w", done(root, children=pages(20)))
    jobs = world.claim()
    assert len(jobs) == 20
    world.clock.advance(100)
    world.turn("w", *(ok(job) for job in jobs))
    assert state(world) == "half-open", "its time has come, but nothing has tried it"


def test_jobs_turned_away_at_a_host_close_the_source_for_as_long(world: World) -> None:
    run_id = a_shop(world)
    world.turn("w", *(away(job, 100.0) for job in world.claim()))
    found = breaker(world)
    assert found is not None
    assert (found.state, found.opens_at) == ("open", world.clock.now() + 100.0)
    assert world.claim() == []
    assert {row.tries for row in world.jobs(run_id)} == {0}


def test_source_outside_its_hours_has_nothing_to_start(world: World) -> None:
    a_shop(world)
    shop = world.source(SHOP, LIMITS)
    assert world.store.jobs.has_startable(0)
    assert not world.store.jobs.has_startable(0, [shop])
    assert world.store.jobs.has_startable(0, [shop + 1])


def test_workers_that_fail_at_the_same_time_wait_for_each_other_in_one_direction(
    world: World,
) -> None:
    """Many turns that touch many breakers, hosts, levels and cooldowns; none is a deadlock's victim."""
    shops = [f"shop{number}.org" for number in range(5)]
    runs = world.start_all(dict.fromkeys(shops, 200))
    rule = BreakerSettings(open_for_s=1.0, longest_s=1.0)
    for shop in shops:
        world.source(shop, LaneLimits(concurrency=6, breaker=rule))
    hands, clock_hand = 4, Lock()
    world.register(*(f"hand{number}" for number in range(hands)))

    def work(number: int) -> None:
        chance = random.Random(number)
        with closing(world.kind.open(world.path, world.clock)) as store:
            ends: list[Settlement] = []
            for _ in range(40):
                claimed = store.turn(f"hand{number}", ends, Capacity(8), world.limits).claimed
                ends = [_some_end(job, chance) for job in claimed]
                chance.shuffle(ends)
                hosts = chance.sample(shops, 3)
                store.hosts.note(
                    {host: HostTold([(0.0, 1)], chance.randint(0, 3)) for host in hosts}
                )
                store.hosts.admit(hosts)
                with clock_hand:
                    world.clock.advance(chance.uniform(0.0, 0.5))
            store.turn(f"hand{number}", ends, Capacity(0), world.limits)

    with ThreadPoolExecutor(hands) as threads:
        list(threads.map(work, range(hands)))

    assert {row.kind for row in world.store.breakers.all()} == {"source", "host"}
    assert sum(world.run(run_id).succeeded for run_id in runs) > 20


def _some_end(job: Claimed, chance: random.Random) -> Settlement:
    match chance.randrange(4):
        case 0:
            return failed(job)
        case 1:
            return away(job, 1.0)
        case 2:
            return throttled(job, 0.5, f"shop{chance.randrange(5)}.org")
    return ok(job)


# An operator's hand.


def test_operator_opens_and_closes_a_breaker(world: World) -> None:
    a_shop(world)
    assert world.store.breakers.open(KEY, 3600.0, "ann", "they asked")
    assert not world.store.breakers.open(KEY, 3600.0, "ann", "again")
    assert world.claim() == []
    assert world.store.breakers.close(KEY, "ann", "they are done")
    assert not world.store.breakers.close(KEY, "ann", "twice")
    assert len(world.claim()) == LIMITS.concurrency
    told = [each for each in world.store.journal.events(limit=1000) if each.kind in BREAKER_EVENTS]
    assert {(each.actor, each.source) for each in told} == {("ann", SHOP)}
    assert "they are done" in told[-1].detail
    assert [row for row in world.dump()["signal"] if row[1] == "breaker.closed"]


# Hosts.


def test_host_that_fails_is_known_to_all_and_tried_by_one_over_all_workers(world: World) -> None:
    host, now = "cdn.example", world.clock.now()
    watched = world.store.hosts.note({host: HostTold(failed=10, reason="connection refused")})
    kind, opens_at = watched[host]
    assert kind == "open"
    with closing(world.kind.open(world.path, world.clock)) as elsewhere:
        assert elsewhere.hosts.watched() == watched
        [verdict, free] = elsewhere.hosts.admit([host, "other.example"])
        assert verdict.gate == "breaker"
        assert verdict.wait_s == pytest.approx(opens_at - now)
        assert free.gate == ""
        world.clock.advance(opens_at - now)
        first = world.store.hosts.admit([host, host])
        second = elsewhere.hosts.admit([host])
        assert [each.gate for each in (*first, *second)] == ["", "breaker", "breaker"]
        elsewhere.hosts.note({host: HostTold([(0.0, 1)], back=1)})
        assert [each.gate for each in world.store.hosts.admit([host] * 3)] == ["", "", "breaker"]


def test_host_closes_again_after_its_ramp(world: World) -> None:
    host = "cdn.example"
    _, opens_at = world.store.hosts.note({host: HostTold(failed=10)})[host]
    world.clock.advance(opens_at - world.clock.now())
    ramps = []
    while state(world, f"host:{host}") != "closed" and soon(world):
        let = sum(not each.gate for each in world.store.hosts.admit([host] * 20))
        ramps.append(let)
        world.store.hosts.note({host: HostTold([(0.0, let)], back=let)})
    assert ramps == [1, 2, 4]
    assert not any(each.gate for each in world.store.hosts.admit([host] * 20))


def test_try_that_came_to_nothing_gives_its_place_back(world: World) -> None:
    host = "cdn.example"
    _, opens_at = world.store.hosts.note({host: HostTold(failed=10)})[host]
    world.clock.advance(opens_at - world.clock.now())
    assert [each.gate for each in world.store.hosts.admit([host] * 2)] == ["", "breaker"]
    world.store.hosts.note({host: HostTold(back=1)})
    assert [each.gate for each in world.store.hosts.admit([host] * 2)] == ["", "breaker"]
    world.clock.advance(300)
    assert [each.gate for each in world.store.hosts.admit([host] * 2)] == ["", "breaker"], (
        "who had it may have died"
    )


def test_well_host_that_is_told_of_leaves_one_row_and_no_event(world: World) -> None:
    assert world.store.hosts.note({"a.example": HostTold([(0.0, 5)])}) == {}
    assert world.store.hosts.note({"a.example": HostTold(failed=1)}).keys() == {"a.example"}
    world.clock.advance(100)
    assert world.store.hosts.watched() == {}
    assert events(world, *BREAKER_EVENTS) == []


def test_breaker_that_has_been_closed_for_long_is_forgotten(world: World) -> None:
    world.store.hosts.note({"a.example": HostTold(failed=1), "b.example": HostTold(failed=50)})
    world.clock.advance(90_000)
    world.store.hosts.note({"c.example": HostTold(failed=1)})
    world.store.upkeep.prune(Keep(None, None, None, None))
    assert {row.name for row in world.store.breakers.all()} == {"b.example", "c.example"}


# Adaptive concurrency.


def level(world: World) -> int:
    """How many jobs of the shop may start, with none running."""
    jobs = world.claim()
    world.turn("w", *(Settlement(j.id, j.attempt, JobState.QUEUED) for j in jobs))
    return len(jobs)


def test_concurrency_falls_with_errors_and_comes_back_for_all_workers(world: World) -> None:
    limits = LaneLimits(concurrency=10, breaker=None)
    a_shop(world, 1000, limits)
    jobs = world.claim()
    world.turn("w", *(failed(job) for job in jobs[:2]), *(ok(job) for job in jobs[2:]))
    assert level(world) == 7
    world.store.close()
    world.store = world.kind.open(world.path, world.clock)
    assert level(world) == 7
    for _ in range(12):
        world.turn("w", *(ok(job) for job in world.claim()))
    assert level(world) == 10
    assert details(world, "source.concurrency_lowered", "source.concurrency_restored") == [
        "7 jobs at once instead of 10: 2 of 10 failed",
        "10 jobs at once",
    ]


def test_concurrency_falls_when_pages_become_slow(world: World) -> None:
    a_shop(world, 1000, LaneLimits(concurrency=10))
    for _ in range(3):
        world.turn("w", *(ok(job) for job in world.claim()))
    slow = [
        Settlement(j.id, j.attempt, JobState.SUCCEEDED, unit="page", took_s=9.0)
        for j in world.claim()
    ]
    world.turn("w", *slow)
    assert level(world) == 7
    assert details(world, "source.concurrency_lowered") == [
        "7 jobs at once instead of 10: they take far longer than usual"
    ]


def test_concurrency_stays_where_it_is_not_adaptive(world: World) -> None:
    a_shop(world, 1000, LaneLimits(concurrency=10, breaker=None, adaptive=False))
    world.turn("w", *(failed(job) for job in world.claim()))
    assert level(world) == 10
