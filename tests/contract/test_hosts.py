"""Hosts' hours, limits and breakers: one answer for all sources and workers, by the store's clock."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from penstock.gates.admission import Report
from penstock.gates.capacity import Capacity
from penstock.gates.project_terms import HostLimit, Terms, outside
from penstock.gates.rates import RateDecision, RateRequest
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.outlook.outlook import Outlook
from penstock.outlook.seen_gates import GateSeen
from penstock.settings import BreakerSettings
from penstock.settings.opening_hours import OpeningHours, parse_window
from penstock.store import hosts as hosts_of_store
from penstock.store.hosts import HostTold
from penstock.store.upkeep import Keep
from penstock.testing import EPOCH
from tests.contract.scenes import World

API = "api.example"
# Time begins at 08:00 UTC, which is 17:00 in Tokyo.
EVENING = OpeningHours((parse_window("17:30-18:00"),), "Asia/Tokyo")
OPENS_S = 30 * 60.0


def a_want(source: str = "acme.com", **limits: Any) -> RateRequest:
    return RateRequest(source, None, API, terms=Terms(host=HostLimit(API, **limits)))


def verdicts(world: World, *wants: RateRequest, worker: str = "w") -> list[RateDecision]:
    return world.store.hosts.reserve(wants, Report(worker))


# Hours.


def test_request_outside_of_its_hosts_hours_is_told_which_when_and_why(world: World) -> None:
    want = a_want(windows=EVENING, concurrency=1, rate_per_s=1.0)
    elsewhere = RateRequest("acme.com", None, "b.example")
    shut, free = verdicts(world, want, elsewhere)
    assert (shut.gate, shut.reason) == ("window", outside(API))
    assert shut.wait_s == pytest.approx(OPENS_S)
    assert free.gate == ""

    world.clock.advance(OPENS_S)
    first, second = verdicts(world, want, want)
    assert (first.gate, second.gate) == ("", "slots"), "the wait has taken no place"
    world.clock.advance(30 * 60.0)
    [late] = verdicts(world, want)
    assert late.gate == "window"
    assert late.wait_s == pytest.approx(23.5 * 3600)


def test_hours_hold_for_every_source_and_connection(world: World) -> None:
    world.register("other")
    with closing(world.kind.open(world.path, world.clock)) as elsewhere:
        for store, worker in ((world.store, "w"), (elsewhere, "other")):
            wants = [a_want(key, windows=EVENING) for key in ("acme.com", "zoo.org")]
            found = store.hosts.reserve(wants, Report(worker))
            assert [verdict.gate for verdict in found] == ["window", "window"]


# Limits of all sources together.


def test_rate_and_places_of_a_host_are_one_for_all_sources_and_workers(world: World) -> None:
    world.register("other")
    with closing(world.kind.open(world.path, world.clock)) as elsewhere:
        limits = {"rate_per_s": 2.0, "concurrency": 3}
        found = [
            store.hosts.reserve([a_want(source, **limits)], Report(worker, {f"host:{API}": held}))
            for store, worker, source, held in (
                (world.store, "w", "acme.com", 0.0),
                (elsewhere, "other", "zoo.org", 0.0),
                (world.store, "w", "zoo.org", 1.0),
                (elsewhere, "other", "acme.com", 1.0),
            )
        ]
    given = [(round(each.wait_s, 5), each.gate) for [each] in found]
    assert given == [(0.0, ""), (0.5, ""), (1.0, ""), (0.25, "slots")]


# A breaker with numbers of its own.


def state(world: World) -> tuple[str, float]:
    [row] = world.store.breakers.all()
    return row.state, row.opens_at - world.clock.now()


def test_breaker_of_a_host_opens_and_stays_open_by_its_own_numbers(world: World) -> None:
    rule = BreakerSettings(at_least=3, open_for_s=600.0, longest_s=600.0)
    world.store.hosts.note({API: HostTold(failed=2, rule=rule)})
    assert state(world)[0] == "closed"
    world.store.hosts.note({API: HostTold(failed=1, rule=rule)})
    kind, opens_in_s = state(world)
    assert kind == "open"
    assert 600 <= opens_in_s <= 720
    world.clock.advance(opens_in_s)
    assert [each.gate for each in world.store.hosts.admit([API, API])] == ["", "breaker"]
    world.store.hosts.note({API: HostTold(failed=1, back=1, rule=rule)})
    assert state(world)[1] <= 720, "not for twice as long: that is its longest"


@pytest.mark.parametrize(("window_s", "found"), [(60.0, "closed"), (3600.0, "open")])
def test_what_a_host_is_counted_over_is_its_own_window(
    world: World, window_s: float, found: str
) -> None:
    """Every other request fails, one in five minutes."""
    rule = BreakerSettings(window_s=window_s, at_least=7)
    for _ in range(3):
        world.store.hosts.note({API: HostTold(failed=1, rule=rule)})
        world.clock.advance(300)
        world.store.hosts.note({API: HostTold([(0.0, 1)], rule=rule)})
        assert (API in world.store.hosts.watched()) is (window_s > 300)
        world.clock.advance(300)
    assert state(world)[0] == "closed"
    world.store.hosts.note({API: HostTold(failed=1, rule=rule)})
    assert state(world)[0] == found


@pytest.mark.parametrize("name", [f"host:{API}", f"host:{API}:443", API, f"{API}:443"])
def test_operator_names_a_host_as_people_do_and_means_what_requests_ask(
    world: World, name: str
) -> None:
    world.store.hosts.note({API: HostTold(failed=1)})
    key = world.store.breakers.key(name, name)
    world.store.breakers.open(key, 60.0, "ann", "")
    assert [each.gate for each in world.store.hosts.admit([API])] == ["breaker"]
    assert world.store.breakers.key("host:127.0.0.1:8443", "") == "host:127.0.0.1:8443"


# Explained.


def put_off(world: World) -> int:
    """A job that has met its host's hours."""
    world.start_with_pages(1)
    job = world.one()
    end = Settlement(
        job.id,
        job.attempt,
        JobState.WAITING,
        delay_s=OPENS_S + 0.4,
        reason=outside(API),
        host=API,
        gate="window",
    )
    world.turn("w", end)
    return job.id


def explained(world: World, **of: Any) -> Outlook:
    return world.store.explanation.explain(world.limits, Capacity(1000), **of)


def closed(outlook: Outlook) -> dict[str, GateSeen]:
    return {gate.name: gate for gate in outlook.gates if not gate.is_open}


@pytest.mark.parametrize("by_source", [True, False])
def test_job_that_waits_for_its_hosts_hours_names_them_and_the_setting(
    world: World, by_source: bool
) -> None:
    job_id = put_off(world)
    of: dict[str, Any] = {"source": "acme.com"} if by_source else {"job_id": job_id}

    outlook = explained(world, hours={API: EVENING, "b.example": EVENING}, **of)

    assert closed(outlook).keys() == {"job", "host"}
    gate = closed(outlook)["host"]
    assert (gate.by, gate.opens_at) == (outside(API), EPOCH + OPENS_S)
    assert gate.command == "hosts.api.example.windows"
    assert closed(outlook)["job"].by == f"waiting: {outside(API)}"
    assert (outlook.stands, outlook.gate, outlook.command) == ("time", "host", gate.command)
    assert outlook.opens_at == pytest.approx(EPOCH + OPENS_S, abs=1)
    row = world.store.jobs.get(job_id)
    assert row is not None
    assert (row.tries, row.throttles) == (0, 0)


def test_when_its_hosts_hours_are_others_now_a_retry_is_what_helps(world: World) -> None:
    job_id = put_off(world)
    for hours in ({}, {API: OpeningHours((parse_window("00:00-24:00"),))}, {"b.example": EVENING}):
        outlook = explained(world, job_id=job_id, hours=hours)
        assert closed(outlook).keys() == {"job"}
        assert (outlook.gate, outlook.command) == ("job", f"penstock retry --job {job_id}")
    sooner = {API: OpeningHours((parse_window("08:10-09:00"),))}
    outlook = explained(world, job_id=job_id, hours=sooner)
    assert closed(outlook)["host"].opens_at == EPOCH + 600
    assert (outlook.gate, outlook.command) == ("job", f"penstock retry --job {job_id}")


def test_job_starts_when_the_hours_of_its_host_have_begun(world: World) -> None:
    job_id = put_off(world)
    world.clock.advance(OPENS_S + 1)
    world.store.workers.beat("w")
    assert explained(world, job_id=job_id, hours={API: EVENING}).would_start
    assert world.one().id == job_id


def test_what_a_job_waits_for_is_its_last_wait(world: World) -> None:
    """It met the hours first, and failed after that."""
    job_id = put_off(world)
    world.clock.advance(OPENS_S + 1)
    job = world.one()
    world.turn(
        "w",
        Settlement(
            job.id,
            job.attempt,
            JobState.WAITING,
            delay_s=86_400.0,
            spends_try=True,
            reason="transient",
            error="refused",
        ),
    )
    world.clock.advance(7200)
    world.store.workers.beat("w")
    outlook = explained(world, job_id=job_id, hours={API: EVENING})
    assert closed(outlook)["job"].by == "waiting: refused"
    assert "host" not in closed(outlook)


# Changed while jobs wait for them.


def test_jobs_that_wait_for_hours_are_looked_at_again_when_those_change(world: World) -> None:
    job_id = put_off(world)
    assert world.store.hosts.plan_hours({API: "evening"}, "scheduler") == 1, "nobody had led before"
    [event] = [
        e for e in world.store.journal.events(job_id=job_id, limit=99) if e.kind == "job.due"
    ]
    assert (event.actor, event.detail) == ("scheduler", f"the hours of {API} have changed")
    assert world.job(job_id).state is JobState.QUEUED
    assert world.store.upkeep.check() == []
    assert world.one().id == job_id


def test_hours_that_are_the_same_or_of_another_host_wake_nobody(world: World) -> None:
    world.store.hosts.plan_hours({API: "evening", "b.example": "night"}, "scheduler")
    job_id = put_off(world)
    for definitions in (
        {API: "evening", "b.example": "night"},
        {API: "evening", "b.example": "day"},
        {API: "evening"},
    ):
        assert world.store.hosts.plan_hours(definitions, "scheduler") == 0
    assert world.job(job_id).state is JobState.WAITING
    assert world.store.hosts.plan_hours({}, "scheduler") == 1, "it has no hours any more"


def test_job_that_waits_for_something_else_by_now_is_left_alone(world: World) -> None:
    job_id = put_off(world)
    world.clock.advance(OPENS_S + 1)
    job = world.one()
    assert job.id == job_id
    world.turn(
        "w", Settlement(job.id, job.attempt, JobState.WAITING, delay_s=600.0, spends_try=True)
    )
    assert world.store.hosts.plan_hours({API: "night"}, "scheduler") == 0
    assert world.job(job_id).state is JobState.WAITING


def test_many_that_wait_are_looked_at_again_in_batches(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts_of_store, "BATCH", 2)
    world.start_with_pages(5)
    about: dict[str, Any] = {"delay_s": 900.0, "reason": outside(API), "host": API}
    world.turn(
        "w",
        *(
            Settlement(job.id, job.attempt, JobState.WAITING, gate="window", **about)
            for job in world.claim()
        ),
    )
    assert world.store.hosts.plan_hours({API: "night"}, "scheduler") == 5
    assert len(world.claim()) == 5


def test_what_jobs_waited_for_is_forgotten_when_its_time_has_come(world: World) -> None:
    put_off(world)
    world.store.upkeep.prune(Keep(None, None, None, None))
    assert len(world.dump()["host_wait"]) == 1
    world.clock.advance(OPENS_S + 1)
    world.store.upkeep.prune(Keep(None, None, None, None))
    assert world.dump()["host_wait"] == []


def test_places_taken_at_hosts_are_told_for_all_workers_together(world: World) -> None:
    for worker, held in (("u", 2.0), ("v", 1.0)):
        world.store.workers.register(worker, "here", 1, "test")
        world.store.hosts.reserve([], Report(worker, {f"host:{API}": held, "budget:a:b:c": 5.0}))
    assert world.store.hosts.held() == {API: 3.0}
