"""Explaining: it says "would start" exactly when the next turn starts it, and names what holds it back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from penstock.errors import UsageError
from penstock.gates.capacity import Capacity
from penstock.gates.lane import LaneLimits
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import Plan, PlannedStage, RunKind, RunState
from penstock.outlook.outlook import Outlook
from penstock.outlook.seen_gates import GateSeen
from penstock.settings.opening_hours import OpeningHours, WeeklyWindow
from penstock.store.schedule_rows import Planned
from tests.contract.scenes import (
    SITE,
    WIDE,
    World,
    a_job,
    done,
    quarantined,
    retried,
    throttled,
)

ROOM = Capacity(1000)
HEAVY = Plan(
    (
        PlannedStage("discover", "run"),
        PlannedStage("extract", "page", ("discover",), cpu=2.0, memory_mb=100.0),
        PlannedStage("persist", "candidate", ("extract",)),
    )
)


def explained(world: World, room: Capacity = ROOM, **of: Any) -> Outlook:
    return world.store.explanation.explain(world.limits, room, **of)


def closed(outlook: Outlook) -> dict[str, GateSeen]:
    return {gate.name: gate for gate in outlook.gates if not gate.is_open}


def only(outlook: Outlook) -> GateSeen:
    """The one gate that is closed."""
    found = closed(outlook)
    assert len(found) == 1, found
    return next(iter(found.values()))


def queued(world: World, run_id: int) -> list[int]:
    return [job.id for job in world.jobs(run_id, JobState.QUEUED)]


# Each gate.


def test_job_whose_gates_are_open_would_start(world: World) -> None:
    run_id = world.start_with_pages(2)
    [first, second] = queued(world, run_id)

    for job_id in (first, second):
        outlook = explained(world, job_id=job_id)
        assert (outlook.would_start, outlook.stands, closed(outlook)) == (True, "starts", {})
    assert explained(world, run_id=run_id).job_id == first
    assert explained(world, source="acme.com").would_start


def test_explaining_changes_nothing(world: World) -> None:
    run_id = world.start_with_pages(3)
    job = world.one()
    world.turn("w", retried(job, 10))
    world.clock.advance(10)
    before = world.dump()

    assert explained(world, job_id=job.id).would_start, "it is due, and would be woken"
    explained(world, run_id=run_id)
    explained(world, source="acme.com")

    after = world.dump()
    assert {name: sorted(map(str, rows)) for name, rows in after.items()} == {
        name: sorted(map(str, rows)) for name, rows in before.items()
    }
    assert len(world.claim()) == 3


def test_nobody_works(world: World) -> None:
    run_id = world.start_with_pages(1)
    world.store.workers.sign_off("w")

    outlook = explained(world, job_id=queued(world, run_id)[0])

    assert (outlook.would_start, outlook.stands) == (False, "person")
    assert only(outlook).command == "penstock up"


def test_worker_whose_lease_has_ended_is_not_alive(world: World) -> None:
    run_id = world.start_with_pages(1)
    world.clock.advance(3600)

    outlook = explained(world, run_id=run_id)

    assert (outlook.would_start, only(outlook).name) == (False, "workers")


def test_last_of_several_that_open_by_themselves_decides(world: World) -> None:
    world.start_with_pages(2)
    first, second = world.claim()
    world.turn("w", retried(first, 30))
    world.turn("w", throttled(second, 90))

    outlook = explained(world, job_id=first.id)

    assert set(closed(outlook)) == {"job", "cooldown"}
    assert (outlook.gate, outlook.opens_at) == ("cooldown", world.clock.now() + 90)


def test_gates_stand_in_the_order_in_which_they_are_asked(world: World) -> None:
    run_id = world.start_with_pages(1)

    names = [gate.name for gate in explained(world, run_id=run_id).gates]

    lane = ["held", "paused", "window", "breaker", "cooldown", "slots", "rate"]
    assert names == ["workers", "run", "job", *lane, "resources", "turn"]


def test_held_source_names_who_and_why_and_what_opens_it(world: World) -> None:
    run_id = world.start_with_pages(1)
    world.store.sources.hold("acme.com", "ann", "a quiet night")
    at = world.clock.now()
    world.clock.advance(5)

    gate = only(explained(world, run_id=run_id))

    assert gate.by == "acme.com is held by ann: a quiet night"
    assert (gate.name, gate.since) == ("held", at)
    assert (gate.opens_at, gate.command) == (None, "penstock unhold acme.com")


def test_held_project_is_opened_by_unhold_alone(world: World) -> None:
    run_id = world.start_with_pages(1)
    world.store.sources.hold("", "ann", "")

    gate = only(explained(world, run_id=run_id))

    assert (gate.by, gate.command) == ("everything is held by ann", "penstock unhold")


def test_paused_source(world: World) -> None:
    run_id = world.start_with_pages(1)
    world.store.sources.pause(world.source(), "ann", "they are moving")

    outlook = explained(world, job_id=queued(world, run_id)[0])

    assert only(outlook).by == "paused: they are moving"
    assert (outlook.stands, outlook.command) == ("person", "penstock resume acme.com")


@pytest.mark.parametrize(
    ("state", "command"),
    [("draft", "penstock start {}"), ("paused", "penstock resume {}")],
)
def test_run_that_must_not_start(world: World, state: str, command: str) -> None:
    run_id, _ = world.store.runs.start(
        world.source(), RunKind.FULL, SITE, "v1", key="it", actor="ann", reason="r",
        is_draft=state == "draft",
    )  # fmt: skip
    if state == "paused":
        world.store.runs.pause(run_id, "ann", "r")

    outlook = explained(world, run_id=run_id)

    gate = only(outlook)
    assert (gate.name, gate.by) == ("run", f"{state} by ann: r")
    assert outlook.command == command.format(run_id)
    assert outlook.stands == "person"


def test_job_that_waits_says_until_when_and_why(world: World) -> None:
    world.start_with_pages(1)
    job = world.one()
    world.turn("w", retried(job, 240))

    outlook = explained(world, job_id=job.id)

    gate = only(outlook)
    assert (gate.name, gate.by) == ("job", "waiting: again")
    assert (outlook.stands, outlook.opens_at) == ("time", world.clock.now() + 240)
    assert gate.command == f"penstock retry --job {job.id}"
    world.clock.advance(240)
    world.store.workers.beat("w")
    assert explained(world, job_id=job.id).would_start


def test_held_job_and_quarantined_job(world: World) -> None:
    run_id = world.start_with_pages(2)
    bad = world.one()
    world.turn("w", quarantined(bad, "no price"))
    [held] = queued(world, run_id)
    world.store.jobs.hold(held, "ann", "ask first")

    gate = only(explained(world, job_id=held))
    assert (gate.by, gate.command) == ("held by ann: ask first", f"penstock unhold --job {held}")
    gate = only(explained(world, job_id=bad.id))
    assert (gate.by, gate.command) == (
        "quarantined: no price", f"penstock retry --job {bad.id}",
    )  # fmt: skip


def test_job_that_a_budget_stopped_goes_on_when_it_begins_anew(world: World) -> None:
    run_id = world.start_with_pages(1)
    job = world.one()
    stopped = Settlement(
        job.id, job.attempt, JobState.QUARANTINED, reason="budget", error="requests are used up"
    )
    world.turn("w", stopped)
    now = world.clock.now()
    world.tamper(
        "INSERT INTO budget (scope, measure, period, period_at, resets_at, used, bound, warned)"
        f" VALUES ('source:acme.com', 'requests', 'day', {now}, {now + 3600}, 10, 10, 100)"
    )

    outlook = explained(world, job_id=job.id)

    assert (outlook.stands, outlook.opens_at) == ("time", now + 3600)
    assert closed(outlook)["job"].command == f"penstock retry --job {job.id}"
    of_run = explained(world, run_id=run_id)
    assert world.run(run_id).end_reason == "budget"
    assert (of_run.stands, of_run.gate, of_run.opens_at) == ("ended", "run", now + 3600)
    assert "continues when the budget resets" in closed(of_run)["run"].by
    assert of_run.command == "penstock budget"


def test_cooldown_says_when_it_is_over(world: World) -> None:
    run_id = world.start_with_pages(3)
    world.turn("w", throttled(world.one(), 90))

    outlook = explained(world, job_id=queued(world, run_id)[0])

    assert only(outlook).name == "cooldown"
    assert (outlook.stands, outlook.opens_at) == ("time", world.clock.now() + 90)


def test_full_lane_waits_for_its_own(world: World) -> None:
    run_id = world.start_with_pages(3)
    world.source("acme.com", LaneLimits(concurrency=2))
    world.claim()

    outlook = explained(world, job_id=queued(world, run_id)[0])

    assert only(outlook).by == "2 running of 2 at once"
    assert (outlook.stands, outlook.gate) == ("others", "slots")


def test_rate_says_when_it_has_room(world: World) -> None:
    run_id = world.start_with_pages(2)
    world.source("acme.com", LaneLimits(concurrency=10, rate_per_s=1 / 60))
    at = world.clock.now() + 60
    world.tamper(f"INSERT INTO pace (key, next_at) VALUES ('acme.com', {at})")

    outlook = explained(world, job_id=queued(world, run_id)[0])

    assert only(outlook).name == "rate"
    assert outlook.stands == "time"
    assert outlook.opens_at is not None
    assert outlook.opens_at <= at
    world.clock.advance(outlook.opens_at - world.clock.now())
    world.store.workers.beat("w")
    assert explained(world, job_id=queued(world, run_id)[0]).would_start


def test_open_breaker(world: World) -> None:
    run_id = world.start_with_pages(1)
    world.store.breakers.open("source:acme.com", 120, "ann", "it is down")

    outlook = explained(world, run_id=run_id)

    gate = only(outlook)
    assert (gate.name, gate.since) == ("breaker", world.clock.now())
    assert "it is down" in gate.by
    assert outlook.opens_at == world.clock.now() + 120


def test_job_that_no_worker_has_room_for(world: World) -> None:
    run_id = world.start(HEAVY)
    world.turn("w", done(world.one(), children=[a_job("a")]))

    outlook = explained(world, Capacity(10, 1.0, 500.0), run_id=run_id)

    gate = only(outlook)
    assert gate.by == "it needs cpu 2 and 100 MB; the workers have 1 and 500 left"
    assert (gate.name, outlook.stands) == ("resources", "others")
    assert explained(world, Capacity(10, 2.0, 500.0), run_id=run_id).would_start


def test_what_runs_in_a_worker_is_not_free(world: World) -> None:
    run_id = world.start(HEAVY)
    world.turn("w", done(world.one(), children=[a_job("a"), a_job("b")]))
    world.turn("w", capacity=Capacity(1))

    assert not explained(world, Capacity(10, 3.0, 500.0), run_id=run_id).would_start
    assert explained(world, Capacity(10, 4.0, 500.0), run_id=run_id).would_start
    assert only(explained(world, Capacity(1), run_id=run_id)).by == ("all worker slots are taken")


def test_job_that_is_behind_others_says_behind_how_many(world: World) -> None:
    run_id = world.start_with_pages(5)
    jobs = queued(world, run_id)

    outlook = explained(world, Capacity(2), job_id=jobs[3])

    assert only(outlook).by == "3 of its stage come before it"
    assert (outlook.stands, outlook.gate) == ("others", "turn")
    assert explained(world, Capacity(2), job_id=jobs[1]).would_start


def test_source_whose_pages_wait_but_whose_candidates_do_not_would_start(world: World) -> None:
    world.start_with_pages(2)
    world.source("acme.com", LaneLimits(concurrency=1))
    world.turn("w", done(world.one(), children=[a_job("c", stage="persist")]))
    world.turn("w", capacity=Capacity(1))
    world.start(key="more")

    outlook = explained(world, source="acme.com")

    assert outlook.would_start
    assert outlook.job_id is not None
    assert world.job(outlook.job_id).stage == "persist"


def test_running_job(world: World) -> None:
    world.start_with_pages(1)
    job = world.one()

    outlook = explained(world, job_id=job.id)

    assert (outlook.stands, outlook.would_start) == ("running", False)
    assert closed(outlook)["job"].by == "running in w"


def test_ended_run_says_what_takes_it_up(world: World) -> None:
    run_id = world.start_with_pages(1)
    world.turn("w", quarantined(world.one()))

    outlook = explained(world, run_id=run_id)

    assert (outlook.stands, outlook.gate) == ("ended", "run")
    assert outlook.command == f"penstock resume {run_id} --from-checkpoint"


def test_source_without_work_says_when_it_has_some(world: World) -> None:
    source_id = world.source()
    due_at = world.clock.now() + 600
    world.store.schedules.plan([Planned(source_id, "main", "{}", "every hour", "every", due_at)])

    outlook = explained(world, source="acme.com")
    assert (outlook.stands, outlook.opens_at) == ("idle", world.clock.now() + 600)

    world.store.sources.pause(source_id, "ann", "")
    outlook = explained(world, source="acme.com")
    assert set(closed(outlook)) == {"work", "paused"}
    assert (outlook.stands, outlook.command) == ("person", "penstock resume acme.com")


@pytest.mark.parametrize("of", [{"source": "x.org"}, {"run_id": 77}, {"job_id": 77}])
def test_what_is_not_there_is_told(world: World, of: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="there is no"):
        explained(world, **of)


# The story.


def test_story_of_a_job_has_every_attempt_with_its_end(world: World) -> None:
    run_id = world.start_with_pages(1)
    job = world.one()
    began = world.clock.now()
    world.clock.advance(2)
    world.turn("w", retried(job, 10))
    world.clock.advance(10)
    again = world.one()
    world.turn("w", done(again, children=[a_job("c", stage="persist")]))

    story = world.store.jobs.story(job.id)

    assert [(t.attempt, t.worker, t.outcome) for t in story.attempts] == [
        (1, "w", "retried"), (2, "w", "succeeded"),
    ]  # fmt: skip
    assert (story.attempts[0].started_at, story.attempts[0].ended_at) == (began, began + 2)
    assert "again" in story.attempts[0].detail
    assert story.children == [("persist", "queued", 1)]
    [root] = [each.id for each in world.jobs(run_id) if each.key == "root"]
    assert story.parent_id == root
    assert world.store.jobs.parents([root, job.id]) == {job.id: root}


# The predicate is the claim's.


@dataclass
class Scene:
    """A state of a store, in numbers that can be drawn."""

    pages: list[int]
    running: int
    concurrency: int
    candidates: int
    weights: list[float]
    rates: list[float | None]
    is_paused: list[bool]
    held: list[str]
    cooldowns: list[float]
    next_places: list[float]
    breakers: list[tuple[str, float, int] | None]
    run_states: list[str]
    kinds: list[RunKind]
    windows: list[OpeningHours | None]
    levels: list[float | None]
    onboardings: list[str]
    waits: list[float]
    deaths: int
    slots: int
    cpu: float
    admits: Any
    extra: list[str] = field(default_factory=list)


# The world begins on a Friday at 08:00.
SHUT = OpeningHours((WeeklyWindow(tuple(range(7)), 0, 60),))


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[list[Any]]:
    """One for each of the two sources; the usual one often enough that not everything is closed."""
    return st.lists(
        st.sampled_from([usual] * 4 * len(others) + list(others)), min_size=2, max_size=2
    )


SCENES = st.builds(
    Scene,
    pages=st.lists(st.integers(0, 5), min_size=2, max_size=2),
    running=st.integers(0, 3),
    concurrency=st.integers(1, 4),
    candidates=st.integers(1, 3),
    weights=mostly(1.0, 0.5, 3.0),
    rates=mostly(None, 0.1, 2.0),
    is_paused=mostly(False, True),
    held=st.sampled_from([[]] * 8 + [[""], ["acme.com"], ["other.org"]]),
    cooldowns=mostly(0.0, -5.0, 5.0),
    next_places=mostly(0.0, -1.0, 4.5, 8.0),
    breakers=mostly(
        None, ("open", 30.0, 0), ("open", -1.0, 0), ("half-open", 0.0, 1), ("closed", 0.0, 0)
    ),
    run_states=mostly("running", "paused", "draft", "cancelled"),
    kinds=mostly(RunKind.FULL, RunKind.BACKFILL, RunKind.REPLAY),
    windows=mostly(None, SHUT),
    levels=mostly(None, 1.0, 2.5),
    onboardings=mostly("", "trial", "checked", "stale", "unowned", "legal", "retired"),
    waits=st.lists(st.sampled_from([0.5, 20.0]), max_size=2),
    deaths=st.integers(0, 2),
    slots=st.integers(0, 6),
    cpu=st.sampled_from([1.0, 2.0, 5.0, 100.0, 100.0]),
    admits=st.sampled_from([None, None, "all", "sound", "suspect"]),
    extra=st.lists(st.sampled_from(["hold", "second run", "candidates"]), max_size=3, unique=True),
)


def build(world: World, scene: Scene, tag: str) -> list[int]:
    sources = [f"{tag}.acme.com", f"{tag}.other.org"]
    runs = [
        world.store.runs.start(
            world.source(key), kind, HEAVY, "v1", key=tag, actor="ann", reason=""
        )[0]
        for key, kind in zip(sources, scene.kinds, strict=True)
    ]
    for root in world.claim():
        pages = [a_job(f"p{n}") for n in range(scene.pages[runs.index(root.run_id)])]
        if "candidates" in scene.extra:
            pages += [a_job(f"c{n}", stage="persist") for n in range(2)]
        world.turn("w", done(root, children=[*pages, a_job("last", priority=9)]))
    if "second run" in scene.extra:
        runs.append(world.start(HEAVY, sources[0], key=f"{tag}-more"))
    _work(world, scene, runs)
    _close(world, scene, sources, runs)
    return [job.id for run_id in runs for job in world.jobs(run_id)]


def _work(world: World, scene: Scene, runs: list[int]) -> None:
    for _ in range(scene.deaths):
        world.register("doomed")
        world.turn("doomed", capacity=Capacity(1))
        world.store.workers.bury("doomed", "killed")
    begun = world.turn("w", capacity=Capacity(scene.running + len(scene.waits))).claimed
    world.turn("w", *(retried(j, s) for j, s in zip(begun, scene.waits, strict=False)))
    if "hold" in scene.extra:
        left = queued(world, runs[0])
        if left:
            world.store.jobs.hold(left[0], "ann", "")


def _close(world: World, scene: Scene, sources: list[str], runs: list[int]) -> None:
    now = world.clock.now()
    for number, key in enumerate(sources):
        limits = LaneLimits(
            scene.concurrency,
            scene.candidates,
            scene.weights[number],
            scene.rates[number],
            windows=scene.windows[number],
        )
        source_id = world.source(key, limits)
        level = scene.levels[number]
        if level is not None:
            world.tamper(f"UPDATE source SET level = {level} WHERE id = {source_id}")
        if scene.is_paused[number]:
            world.store.sources.pause(source_id, "ann", "")
        until = now + scene.cooldowns[number]
        world.tamper(f"UPDATE source SET cooldown_until = {until} WHERE id = {source_id}")
        world.tamper(
            f"INSERT INTO pace (key, next_at) VALUES ('{key}', {now + scene.next_places[number]})"
        )
        breaker = scene.breakers[number]
        if breaker is not None:
            state, opens_in, ramp = breaker
            world.tamper(
                "INSERT INTO breaker (key, state, since, opens_at, ramp)"
                f" VALUES ('source:{key}', '{state}', {now}, {now + opens_in}, {ramp})"
            )
        onboard(world, source_id, scene.onboardings[number])
        steer(world, runs[number], scene.run_states[number])
    tag = sources[0].partition(".")[0]
    for scope in scene.held:
        world.store.sources.hold(f"{tag}.{scope}" if scope else "", "ann", "")


def onboard(world: World, source_id: int, stands: str) -> None:
    """Leave a source where its onboarding may have led; '' for one that was never proposed."""
    if not stands:
        return
    now = world.clock.now()
    state = {"trial": "trial", "retired": "retired"}.get(stands, "active")
    checked_at = now - 8 * 86_400 if stands == "stale" else now
    owner, legal_hold_at, by = ("", "NULL", "")
    if stands != "unowned":
        owner = "team"
    if stands == "legal":
        legal_hold_at, by = str(now), "ann"
    world.tamper(
        "INSERT INTO onboarding (source_id, state, changed_at, changed_by, owner, proposed_at, approved_at,"
        " activated_at, robots_verdict, robots_at, terms_verdict, terms_at, legal_hold_at, legal_hold_by)"
        f" VALUES ({source_id}, '{state}', {now}, 'ann', '{owner}', {now}, {now}, {now}, 'allowed',"
        f" {checked_at}, 'accepted', {now}, {legal_hold_at}, '{by}')"
    )


def steer(world: World, run_id: int, state: str) -> None:
    if state == "paused":
        world.store.runs.pause(run_id, "ann", "")
    elif state == "cancelled":
        world.store.runs.cancel(run_id, "ann", "")
    elif state == "draft":
        # No verb leads back to a draft: one that was never started, for all that matters here.
        world.tamper(f"UPDATE run SET state = 'draft' WHERE id = {run_id} AND state = 'queued'")


QUICK = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@QUICK
@given(scene=SCENES)
def test_explain_says_would_start_exactly_when_the_next_turn_starts_it(
    world: World, scene: Scene
) -> None:
    explains_what_the_next_turn_starts(world, scene)


@pytest.mark.torture
@pytest.mark.timeout(1800)
@settings(QUICK, max_examples=600)
@given(scene=SCENES)
def test_explain_agrees_with_the_next_turn_in_very_many_scenes(world: World, scene: Scene) -> None:
    explains_what_the_next_turn_starts(world, scene)


def explains_what_the_next_turn_starts(world: World, scene: Scene) -> None:
    cleared(world)
    world.clock.advance(1)
    job_ids = build(world, scene, f"t{len(world.limits)}")
    assume(job_ids)
    world.clock.advance(1)
    worker, whole, free = the_only_worker(world, scene)

    says = {job_id: explained(world, whole, job_id=job_id) for job_id in job_ids}
    runs = {world.job(job_id).run_id for job_id in job_ids}
    run_says = {run_id: explained(world, whole, run_id=run_id) for run_id in runs}
    started = {job.id: job for job in world.turn(worker, capacity=free).claimed}

    for job_id, outlook in says.items():
        assert outlook.would_start == (job_id in started), outlook
        assert outlook.would_start == (closed(outlook) == {}), outlook
    for run_id, outlook in run_says.items():
        has_started = any(job.run_id == run_id for job in started.values())
        assert outlook.would_start == has_started, outlook


def the_only_worker(world: World, scene: Scene) -> tuple[str, Capacity, Capacity]:
    """Its name, what it can take on when nothing runs in it, and what it has left."""
    if scene.admits is not None:
        whole = Capacity(scene.slots, scene.cpu, 1000.0, scene.admits)
        world.store.workers.register("new", "here", 1, "test", scene.slots, scene.admits)
        world.store.workers.sign_off("w")  # what it ran is queued again
        return "new", whole, whole
    own = [world.job(job_id) for job_id, _ in world.store.workers.jobs_of("w")]
    heavy = sum(job.stage == "extract" for job in own)
    left = Capacity(scene.slots, scene.cpu, 1000.0)
    whole = Capacity(scene.slots + len(own), scene.cpu + 2.0 * heavy, 1000.0 + 100.0 * heavy)
    return "w", whole, left


def cleared(world: World) -> None:
    """End all of it, so that the next example has the workers to itself."""
    for row in world.store.sources.holds():
        world.store.sources.unhold(row.scope, "ann", "")
    for run in world.store.runs.newest(limit=1000):
        if run.state not in (RunState.CANCELLED, RunState.COMPLETED):
            world.store.runs.cancel(run.id, "ann", "")
    while world.store.runs.sweep_cancelled():
        pass
    for worker in world.store.workers.all():
        world.store.workers.sign_off(worker.id)
    world.register("w")
    world.limits = dict.fromkeys(world.limits, WIDE)
