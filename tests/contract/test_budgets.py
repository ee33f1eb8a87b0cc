"""Budgets and hosts' limits: kept by all workers together, whoever dies, whatever answer is lost."""

from __future__ import annotations

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from threading import Lock
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from penstock.gates.admission import Report
from penstock.gates.capacity import Capacity
from penstock.gates.project_terms import HostLimit, Terms
from penstock.gates.rates import RateDecision, RateRequest
from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import RunKind, RunOptions, RunState
from penstock.settings.budget import Bound
from penstock.store.rows import BudgetRow
from penstock.store.store import Store
from tests.contract.scenes import SITE, World, a_job, done, pages, quarantined, retried, throttled

SHOP = "acme.com"
REQUESTS = Bound(f"source:{SHOP}", "requests", "day", 10, "Europe/Paris")
BYTES = Bound("project", "bytes", "day", 10_000)
MOST = 3000
HOST = HostLimit("api.example", 2)


def a_want(*bounds: Bound, host: HostLimit | None = None, cost: float = 0.0) -> RateRequest:
    return RateRequest(SHOP, None, "api.example", 7, MOST, 20.0, Terms(bounds, cost, host))


def ask(world: World, *wants: RateRequest, worker: str = "w", **report: Any) -> list[str]:
    return gates(world.store.hosts.reserve(wants, Report(worker, **report)))


def gates(verdicts: list[RateDecision]) -> list[str]:
    return [verdict.gate for verdict in verdicts]


def row(world: World, bound: Bound) -> BudgetRow:
    [found] = [r for r in world.store.budgets.all() if (r.scope, r.measure, r.period) == bound.key]
    return found


def stopped(job: Claimed) -> Settlement:
    return Settlement(
        job.id, job.attempt, JobState.QUARANTINED, reason="budget", error="it is exhausted"
    )


# At the door.


def test_requests_are_counted_when_they_are_let_through_and_stop_at_the_bound(world: World) -> None:
    want = a_want(REQUESTS)
    assert ask(world, *[want] * 8) == [""] * 8
    assert ask(world, *[want] * 4) == ["", "", "budget", "budget"]
    assert row(world, REQUESTS).used == 10
    [verdict] = world.store.hosts.reserve([want], Report("w"))
    assert verdict.reason == "the budget of 10 requests a day of acme.com is exhausted"
    midnight = datetime.fromtimestamp(world.clock.now() + verdict.wait_s, ZoneInfo("Europe/Paris"))
    assert (midnight.hour, midnight.minute) == (0, 0)


def test_several_budgets_are_taken_together_or_not_at_all(world: World) -> None:
    of_run = Bound("run:7", "requests", "run", 2)
    money = Bound("project", "money", "month", 1.0)
    want = a_want(REQUESTS, of_run, money, cost=0.3)
    assert ask(world, *[want] * 3) == ["", "", "budget"]
    assert [row(world, bound).used for bound in (REQUESTS, of_run)] == [2, 2]
    other = a_want(REQUESTS, Bound("run:8", "requests", "run", 9), money, cost=0.3)
    assert ask(world, *[other] * 2) == ["", "budget"]
    assert [row(world, bound).used for bound in (REQUESTS, money)] == [3, pytest.approx(0.9)]


def test_budget_with_less_left_than_a_request_costs_is_used_up(world: World) -> None:
    money = Bound(f"source:{SHOP}", "money", "day", 1.0)
    want = a_want(money, cost=0.4)
    assert ask(world, want, want) == ["", ""]
    assert world.store.budgets.exhausted() == []
    assert ask(world, want) == ["budget"]
    [found] = world.store.budgets.exhausted()
    assert (found.used, found.warned) == (0.8, 100)
    assert world.kinds().count("budget.exhausted") == 1
    assert ask(world, want, want) == ["budget", "budget"]
    assert world.kinds().count("budget.exhausted") == 1


def test_what_is_known_afterwards_is_reserved_and_then_used(world: World) -> None:
    want = a_want(BYTES)
    assert ask(world, *[want] * 4) == ["", "", "", "turn"]
    assert (row(world, BYTES).used, row(world, BYTES).held) == (0, 3 * MOST)
    # One has ended, and was small.
    held = {BYTES.holding: 2.0 * MOST}
    assert ask(world, want, held=held, spent=[(BYTES, 100.0)]) == [""]
    assert (row(world, BYTES).used, row(world, BYTES).held) == (100, 3 * MOST)
    # All have ended, and brought all they could: one more is let through, and it is the last.
    spent = [(BYTES, float(MOST))] * 3
    assert ask(world, want, want, held={BYTES.holding: 0.0}, spent=spent) == ["", "turn"]
    spent = [(BYTES, float(MOST))]
    assert ask(world, want, held={BYTES.holding: 0.0}, spent=spent) == ["budget"]
    assert (row(world, BYTES).used, row(world, BYTES).held) == (100 + 4 * MOST, 0)


def test_what_another_worker_holds_counts_and_is_told_apart_from_ones_own(world: World) -> None:
    world.register("other")
    want = a_want(BYTES, host=HOST)
    assert ask(world, want) == [""]
    assert ask(world, want, want, worker="other") == ["", "slots"]
    nothing = {BYTES.holding: 0.0, HOST.key: 0.0}
    assert ask(world, want, want, held=nothing) == ["", "slots"]
    assert row(world, BYTES).held == 2 * MOST


def test_an_answer_that_was_lost_leaves_nothing_reserved(world: World) -> None:
    """The worker says again what it holds, which is nothing, and asks again."""
    want = a_want(BYTES, host=HOST)
    for _ in range(5):
        assert ask(world, want) == [""]
    assert row(world, BYTES).held == MOST


@pytest.mark.parametrize("ends", ["bury", "sign_off"])
def test_what_a_worker_had_reserved_that_goes_counts_as_used(world: World, ends: str) -> None:
    world.register("doomed")
    want = a_want(REQUESTS, BYTES, host=HOST)
    assert ask(world, want, want, worker="doomed") == ["", ""]
    assert ask(world, want) == ["slots"]
    getattr(world.store.workers, ends)("doomed", "gone")
    assert (row(world, BYTES).used, row(world, BYTES).held) == (2 * MOST, 0)
    assert row(world, REQUESTS).used == 2
    assert ask(world, want) == [""]
    # What it would say now was counted already, and what it would take nobody would give back.
    late = {"held": {BYTES.holding: 0.0}, "spent": [(BYTES, 5.0)]}
    assert ask(world, want, worker="doomed", **late) == ["store"]
    assert row(world, BYTES).used == 2 * MOST
    assert {holding[0] for holding in world.dump()["holding"]} == {"w"}


def test_warnings_are_journalled_once_each(world: World) -> None:
    world.source(SHOP)
    for _ in range(12):
        ask(world, a_want(REQUESTS))
    told = [
        (e.kind, e.source, e.detail.split(":")[0])
        for e in world.store.journal.events(limit=100)
        if e.kind.startswith("budget.")
    ]
    assert told == [
        ("budget.threshold_reached", SHOP, "80 % of 10 requests a day of acme.com"),
        ("budget.exhausted", SHOP, "the budget of 10 requests a day of acme.com is exhausted"),
    ]


def test_first_request_after_midnight_finds_a_new_budget_and_tells_of_it(world: World) -> None:
    world.source(SHOP)
    ask(world, *[a_want(REQUESTS)] * 11)
    world.clock.advance(86_400)
    assert ask(world, a_want(REQUESTS)) == [""]
    assert (row(world, REQUESTS).used, row(world, REQUESTS).warned) == (1, 0)
    assert world.kinds().count("budget.reset") == 1
    [signal] = [row for row in world.dump()["signal"] if row[1].startswith("budget.")]
    assert signal[1] == "budget.reset"
    assert json.loads(signal[2])["used"] == 10


def test_clock_that_was_a_year_ahead_costs_no_year(world: World) -> None:
    """What is used stays used; the budget begins anew at the next midnight of the clock as it is."""
    world.clock.advance(365 * 86_400)
    assert ask(world, *[a_want(REQUESTS)] * 11)[-1] == "budget"
    world.clock.advance(-365 * 86_400)
    assert ask(world, a_want(REQUESTS)) == ["budget"]
    world.clock.advance(86_400)
    assert ask(world, a_want(REQUESTS)) == [""]


@pytest.mark.parametrize("connections", [2, 6])
def test_connections_that_reserve_at_once_never_pass_a_bound(
    world: World, connections: int
) -> None:
    """Each has requests under way that end in any order; at every moment all budgets hold."""
    requests = Bound("project", "requests", "day", 120)
    size = Bound(f"source:{SHOP}", "bytes", "day", 60_000)
    limit = HostLimit("api.example", 5)
    workers = [f"worker-{number}" for number in range(connections)]
    world.register(*workers)
    lock, under_way, let_through, brought, most = Lock(), [0], [0], [0.0], [0]

    def work(number: int) -> None:
        chance, mine, spent = random.Random(number), 0, []
        want = RateRequest(
            SHOP, None, "api.example", 1, MOST, 20.0, Terms((requests, size), 0.0, limit)
        )
        with closing(world.kind.open(world.path, world.clock)) as store:
            for _ in range(400 // connections):
                ending = chance.randrange(mine + 1)
                with lock:
                    under_way[0] -= ending
                for _ in range(ending):
                    amount = float(chance.randrange(MOST + 1))
                    spent.append((size, amount))
                    brought[0] += amount
                mine -= ending
                held = {size.holding: float(mine * MOST), limit.key: float(mine)}
                asks = chance.randrange(4)
                verdicts = store.hosts.reserve([want] * asks, Report(workers[number], held, spent))
                given = gates(verdicts).count("")
                spent = []
                with lock:
                    mine += given
                    under_way[0] += given
                    let_through[0] += given
                    most[0] = max(most[0], under_way[0])
            held = {size.holding: 0.0, limit.key: 0.0}
            brought[0] += sum([0.0] * mine)
            store.hosts.reserve([], Report(workers[number], held, spent))

    with ThreadPoolExecutor(connections) as threads:
        list(threads.map(work, range(connections)))

    assert most[0] <= 5
    assert let_through[0] == row(world, requests).used <= 120
    assert row(world, size).used == pytest.approx(brought[0])
    assert row(world, size).used <= 60_000 + MOST
    assert row(world, size).held == 0
    assert let_through[0] == 120 or row(world, size).used >= 60_000 - 5 * MOST


# What steps spend themselves.


def a_charge(amount: float) -> Effects:
    bound = Bound(f"source:{SHOP}", "money", "month", 1.0)
    return Effects(spent={"money": amount}, charges=[(bound, amount)])


def test_charges_are_written_with_the_attempt_and_only_with_it(world: World) -> None:
    run_id = world.start_with_pages(2)
    first, second = world.claim()
    world.turn("w", done(first, effects=a_charge(0.4)))
    assert world.run(run_id).money == 0.4
    world.store.workers.bury("w", "dead")
    world.register("w")
    late = world.turn("w", done(second, effects=a_charge(5.0)))
    assert late.lost == [second.id]
    [found] = world.store.budgets.all()
    assert (found.used, found.bound, found.warned) == (0.4, 1.0, 0)

    [again] = world.claim()
    world.turn("w", done(again, effects=a_charge(0.7)))
    assert world.run(run_id).money == pytest.approx(1.1)
    [found] = world.store.budgets.exhausted()
    assert found.used == pytest.approx(1.1)
    assert found.warned == 100


def test_charges_of_attempts_that_failed_are_written_too(world: World) -> None:
    run_id = world.start_with_pages(4)
    jobs = world.claim()
    ends = [retried(jobs[0], 60.0), quarantined(jobs[1]), throttled(jobs[2], 60.0)]
    charged = [msgspec.structs.replace(end, effects=a_charge(0.1)) for end in ends]
    # It wants a child of a stage that its run does not have, and is quarantined instead.
    odd = a_charge(0.1)
    odd.children = [a_job("k", stage="unheard-of")]
    world.turn("w", *charged, done(jobs[3], effects=odd))
    assert world.job(jobs[3].id).state is JobState.QUARANTINED
    [found] = world.store.budgets.all()
    assert found.used == pytest.approx(0.4)
    assert world.run(run_id).money == pytest.approx(0.4)


def test_charges_and_reservations_meet_without_waiting_in_a_circle(world: World) -> None:
    """All begin with budgets that nobody knows yet, and name them in another order."""
    bounds = [
        Bound("project", "money", "month", 1e6),
        Bound(f"source:{SHOP}", "money", "day", 1e6),
        Bound(f"source:{SHOP}", "bytes", "day", 1e9),
        Bound("run:7", "requests", "run", 1e6),
    ]
    workers = ("one", "two")
    world.register(*workers)
    world.start_with_pages(60)
    jobs = {worker: world.claim(worker, 30) for worker in workers}

    expected: Counter[tuple[str, str, str]] = Counter()
    lock = Lock()

    def settle(worker: str) -> None:
        chance = random.Random(worker)
        with closing(world.kind.open(world.path, world.clock)) as store:
            for job in jobs[worker]:
                charges = [(bound, 1.0) for bound in chance.sample(bounds, 3)]
                ends = [done(job, effects=Effects(spent={"money": 1.0}, charges=charges))]
                assert store.turn(worker, ends, Capacity(0), world.limits).lost == []
                with lock:
                    expected.update(bound.key for bound, _ in charges)

    def reserve(worker: str) -> None:
        chance = random.Random(worker + "!")
        with closing(world.kind.open(world.path, world.clock)) as store:
            for _ in range(40):
                want = a_want(*chance.sample(bounds, 4), host=HOST, cost=1.0)
                spent = [(bounds[2], 1.0)]
                nothing = {bounds[2].holding: 0.0, HOST.key: 0.0}
                [verdict] = store.hosts.reserve([want], Report(worker, nothing, spent))
                counted = [b.key for b in bounds if b.measure != "bytes" and not verdict.gate]
                with lock:
                    expected.update([bounds[2].key, *counted])

    with ThreadPoolExecutor(4) as threads:
        running = [threads.submit(act, worker) for act in (settle, reserve) for worker in workers]
        for each in running:
            each.result()

    used = {(row.scope, row.measure, row.period): row.used for row in world.store.budgets.all()}
    assert used == expected


def test_what_attempts_used_is_summed_up_by_run(world: World) -> None:
    run_id = world.start_with_pages(3)
    for job in world.claim():
        used = {"requests": 2, "bytes": 500, "seconds": 0.5, "money": 0.01}
        world.turn("w", done(job, effects=Effects(spent=used)))
    run = world.run(run_id)
    assert (run.requests, run.bytes, run.seconds) == (6, 1500, 1.5)
    assert run.money == pytest.approx(0.03)


# Runs that a budget stops.


def test_run_that_a_budget_stopped_is_partial_and_says_so(world: World) -> None:
    run_id = world.start_with_pages(3)
    one, two, three = world.claim()
    world.turn("w", done(one), stopped(two), stopped(three))
    run = world.run(run_id)
    assert (run.state, run.end_reason, run.quarantined) == (RunState.PARTIAL, "budget", 2)
    assert [job.tries for job in world.jobs(run_id, JobState.QUARANTINED)] == [0, 0]


def test_run_of_which_everything_was_stopped_has_not_failed(world: World) -> None:
    run_id = world.start_with_pages(2)
    world.turn("w", *(stopped(job) for job in world.claim()))
    assert (world.run(run_id).state, world.run(run_id).end_reason) == (RunState.PARTIAL, "budget")

    first = world.start(key="second")
    world.turn("w", stopped(world.one()))
    assert (world.run(first).state, world.run(first).end_reason) == (RunState.PARTIAL, "budget")


def test_whole_queue_is_set_aside_in_batches_and_comes_back_whole(world: World) -> None:
    run_id = world.start_with_pages(30)
    first, second = world.claim(slots=2)
    exhaust(world)
    world.turn("w", stopped(first))
    assert world.store.jobs.set_aside(run_id, "extract", "it is exhausted", "w", limit=20) == 20
    assert world.run(run_id).state == RunState.RUNNING
    assert world.store.jobs.set_aside(run_id, "extract", "it is exhausted", "w") == 8
    assert world.store.jobs.set_aside(run_id, "extract", "it is exhausted", "w") == 0
    world.turn("w", done(second))
    run = world.run(run_id)
    assert (run.state, run.end_reason, run.quarantined) == (RunState.PARTIAL, "budget", 29)
    found = world.jobs(run_id, JobState.QUARANTINED)
    assert {(job.kind, job.error, job.tries) for job in found} == {("budget", "it is exhausted", 0)}
    assert world.kinds(run_id=run_id).count("job.quarantined") == 29

    world.clock.advance(86_400)
    assert world.store.budgets.renew([REQUESTS]) == 29
    assert len(world.claim()) == 29


def test_what_a_person_has_paused_or_cancelled_is_not_set_aside(world: World) -> None:
    run_id = world.start_with_pages(3)
    world.store.runs.pause(run_id, "me", "")
    assert world.store.jobs.set_aside(run_id, "extract", "it is exhausted", "w") == 0
    world.store.runs.cancel(run_id, "me", "")
    assert world.store.jobs.set_aside(run_id, "extract", "it is exhausted", "w") == 0
    while world.store.runs.sweep_cancelled():
        pass


def exhaust(world: World, bound: Bound = REQUESTS) -> None:
    ask(world, *[a_want(bound)] * int(bound.amount + 1))


def test_midnight_releases_what_was_set_aside_and_opens_its_run_again(world: World) -> None:
    run_id = world.start_with_pages(3)
    one, two, three = world.claim()
    exhaust(world)
    world.turn("w", done(one), stopped(two), stopped(three))
    assert world.store.budgets.renew([REQUESTS]) == 0

    world.clock.advance(86_400)
    assert world.store.budgets.renew([REQUESTS], limit=1) == 1
    assert world.run(run_id).state == RunState.RUNNING
    assert world.store.budgets.renew([REQUESTS]) == 1
    assert world.store.budgets.renew([REQUESTS]) == 0
    assert sorted(job.id for job in world.claim()) == [two.id, three.id]
    assert world.kinds().count("budget.reset") == 1
    assert [row[1] for row in world.dump()["signal"] if row[1].startswith("budget.")] == [
        "budget.reset"
    ]
    assert world.kinds(run_id=run_id).count("run.reopened") == 1


def test_run_of_a_degraded_source_is_opened_again_when_that_has_recovered(world: World) -> None:
    run_id = world.start_with_pages(2)
    one, two = world.claim()
    exhaust(world)
    world.turn("w", done(one), stopped(two))
    options = RunOptions(degrade_after=1)
    bad, _ = world.store.runs.start(
        world.source(), RunKind.FULL, SITE, "v1", key="bad", actor="test", options=options
    )
    world.turn("w", *(quarantined(job) for job in world.claim() if job.run_id == bad))
    world.clock.advance(86_400)
    assert world.store.budgets.renew([REQUESTS]) == 0
    assert world.run(run_id).state == RunState.PARTIAL

    world.store.sources.recover(world.source(), "test", "")
    assert world.store.budgets.renew([REQUESTS]) == 1
    assert world.run(run_id).state == RunState.RUNNING


def test_release_does_not_depend_on_who_began_the_new_period(world: World) -> None:
    """A worker's request may come a moment before the leader looks."""
    world.start_with_pages(1)
    [job] = world.claim()
    exhaust(world)
    world.turn("w", stopped(job))
    world.clock.advance(86_400)
    ask(world, a_want(REQUESTS))
    assert world.store.budgets.renew([REQUESTS]) == 1


def test_only_what_a_budget_stopped_is_released(world: World) -> None:
    world.start_all({SHOP: 2, "other.com": 1})
    shop = [job for job in world.claim() if job.source_id == world.source(SHOP)]
    other = [job for job in world.jobs(2) if job.stage == "extract"]
    exhaust(world)
    broken = Settlement(
        shop[0].id, shop[0].attempt, JobState.QUARANTINED, spends_try=True, reason="data", error="x"
    )
    world.turn("w", broken, stopped(shop[1]))
    assert world.store.budgets.renew([REQUESTS]) == 0
    world.clock.advance(86_400)
    assert world.store.budgets.renew([REQUESTS]) == 1
    assert world.job(shop[0].id).state == JobState.QUARANTINED
    assert world.job(shop[1].id).state == JobState.QUEUED
    assert [world.job(job.id).state for job in other] == [JobState.RUNNING]


def test_source_waits_for_the_projects_budget_too(world: World) -> None:
    world.start_with_pages(1)
    [job] = world.claim()
    whole = Bound("project", "requests", "month", 3)
    exhaust(world, whole)
    world.turn("w", stopped(job))
    world.clock.advance(2 * 86_400)
    bounds = [REQUESTS, whole]
    assert world.store.budgets.renew(bounds) == 0
    world.clock.advance(31 * 86_400)
    assert world.store.budgets.renew(bounds) == 1


def test_run_that_its_own_budget_stopped_waits_for_a_person(world: World) -> None:
    run_id = world.start_with_pages(1)
    [job] = world.claim()
    exhaust(world, Bound(f"run:{run_id}", "requests", "run", 2))
    world.turn("w", stopped(job))
    world.clock.advance(400 * 86_400)
    assert world.store.budgets.renew([]) == 0
    assert [row.scope for row in world.store.budgets.all(run_id)] == [f"run:{run_id}"]
    assert world.store.runs.retry_failed(run_id, "me", "raised") == 1
    assert [job.id for job in world.claim()] == [job.id]


def test_bound_that_is_gone_or_raised_stops_nobody_any_more(world: World) -> None:
    world.start_with_pages(2)
    one, two = world.claim()
    exhaust(world)
    world.turn("w", stopped(one), stopped(two))
    higher = Bound(REQUESTS.scope, "requests", "day", 11, REQUESTS.timezone)
    assert world.store.budgets.renew([higher], limit=1) == 1
    [job] = world.claim()
    assert ask(world, a_want(higher), a_want(higher)) == ["", "budget"]
    world.turn("w", stopped(job))
    assert world.store.budgets.renew([higher]) == 0
    assert world.store.budgets.renew([]) == 2


def test_cancelled_run_is_not_opened_by_a_new_budget(world: World) -> None:
    run_id = world.start_with_pages(2)
    one, _ = world.claim()
    exhaust(world)
    world.turn("w", stopped(one))
    world.store.runs.cancel(run_id, "me", "enough")
    while world.store.runs.sweep_cancelled():
        pass
    world.clock.advance(86_400)
    assert world.store.budgets.renew([REQUESTS]) == 0
    assert world.run(run_id).state == RunState.CANCELLED


def test_two_leaders_release_each_job_once(world: World) -> None:
    run_id = world.start_with_pages(60)
    jobs = world.claim()
    exhaust(world)
    world.turn("w", *(stopped(job) for job in jobs))
    world.clock.advance(86_400)

    def renew(_: int) -> int:
        with closing(world.kind.open(world.path, world.clock)) as store:
            return renewed(store)

    with ThreadPoolExecutor(3) as threads:
        assert sum(threads.map(renew, range(3))) == 60
    assert world.run(run_id).queued == 60
    assert world.kinds().count("budget.reset") == 1


def renewed(store: Store) -> int:
    total = 0
    while batch := store.budgets.renew([REQUESTS], limit=7):
        total += batch
    return total


def test_children_that_were_found_before_the_stop_are_kept(world: World) -> None:
    run_id = world.start()
    root = world.one()
    world.turn("w", done(root, children=pages(4)))
    jobs = world.claim(slots=2)
    exhaust(world)
    world.turn("w", *(stopped(job) for job in jobs))
    assert world.run(run_id).pages == 4
    assert world.run(run_id).state == RunState.RUNNING


def test_requests_of_a_worker_that_died_are_put_down_with_their_run(world: World) -> None:
    """Those that were put down by the attempts that sent them are not held any more."""
    run_id = world.start()
    world.store.workers.register("dying", "here", 1, "test")
    wants = [RateRequest("acme.com", 1000.0, "acme.com", run_id)] * 5
    world.store.hosts.reserve(wants, Report("dying"))
    world.store.hosts.reserve([], Report("dying", {f"usage:{run_id}": 2.0, "usage:99": 0.0}))
    world.store.workers.bury("dying", "killed")
    assert world.run(run_id).requests == 2
