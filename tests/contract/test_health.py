"""A source's health is judged in the transaction that ends its run, on every store."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import NO_OPTIONS, RunKind, RunOptions, RunState
from tests.contract.scenes import SITE, World, a_job, done, quarantined, skipped


def start(
    world: World,
    key: str,
    kind: RunKind = RunKind.FULL,
    options: RunOptions = NO_OPTIONS,
    source: str = "acme.com",
) -> int:
    run_id, _ = world.store.runs.start(
        world.source(source), kind, SITE, "v1", key=key, actor="test", options=options
    )
    return run_id


def fail(world: World, key: str, **about: Any) -> int:
    run_id = start(world, key, **about)
    world.turn("w", quarantined(world.one(), error="no such host\nat line 1"))
    return run_id


def complete(world: World, key: str, **about: Any) -> int:
    run_id = start(world, key, **about)
    world.turn("w", done(world.one()))
    return run_id


def probe(world: World, key: str, **seen: int) -> int:
    run_id = start(world, key, RunKind.PROBE)
    world.turn("w", done(world.one(), effects=Effects(probed=dict(seen))))
    return run_id


def kinds(world: World) -> list[str]:
    events = world.store.journal.events(limit=100_000)
    return [event.kind for event in events if event.kind.startswith("source.")]


def test_source_is_degraded_in_the_transaction_that_ends_the_run(world: World) -> None:
    for number in range(2):
        fail(world, f"run {number}")
    start(world, "last")
    job = world.one()
    with world.breaking("UPDATE", "health"), pytest.raises(Exception, match="planted"):
        world.turn("w", quarantined(job))
    assert world.store.sources.health(world.source()).bad_runs == 2
    assert world.job(job.id).state is JobState.RUNNING

    world.turn("w", quarantined(job))
    health = world.store.sources.health(world.source())
    assert (health.bad_runs, health.degraded_at) == (3, world.clock.now())
    assert kinds(world) == ["source.degraded"]
    [row] = world.store.sources.all()
    assert (row.degraded_at, row.bad_runs, row.degraded_reason) == (
        health.degraded_at,
        3,
        health.degraded_reason,
    )
    signals = [row[1] for row in world.dump()["signal"] if row[1].startswith("source.")]
    assert signals == ["source.degraded"]


def test_source_that_never_failed_has_no_row_to_write(world: World) -> None:
    for number in range(3):
        complete(world, f"run {number}")
        probe(world, f"probe {number}", would_save=1)
    assert world.dump()["health"] == []


def test_one_completed_run_forgives_all(world: World) -> None:
    fail(world, "one")
    fail(world, "two")
    complete(world, "three")
    fail(world, "four")
    assert world.store.sources.health(world.source()).bad_runs == 1
    assert kinds(world) == []


@pytest.mark.parametrize("other", [RunKind.BACKFILL, RunKind.REPLAY, RunKind.STREAM])
def test_runs_of_other_kinds_say_nothing_of_a_source(world: World, other: RunKind) -> None:
    for number in range(4):
        fail(world, f"run {number}", kind=other)
    assert world.store.sources.health(world.source()).bad_runs == 0


def test_cancelled_run_says_nothing(world: World) -> None:
    fail(world, "one")
    run_id = start(world, "two")
    world.store.runs.cancel(run_id, "test", "")
    assert world.store.sources.health(world.source()).bad_runs == 1


def test_run_that_fails_with_the_rest_of_another_says_nothing(world: World) -> None:
    """What was left is what had failed: three broken pages of a hundred thousand do not make it ill."""
    run_id = fail(world, "one")
    for _ in range(3):
        run_id, is_new = world.store.runs.continue_(run_id, SITE, "v1", "test", "")
        world.turn("w", quarantined(world.one()))
        assert is_new
        assert world.run(run_id).state == RunState.FAILED
    assert world.store.sources.health(world.source()).bad_runs == 1

    world.store.runs.continue_(run_id, SITE, "v1", "test", "")
    world.turn("w", done(world.one()))
    assert world.store.sources.health(world.source()).bad_runs == 0, "that it went well does"


def test_options_of_the_run_say_how_many(world: World) -> None:
    fail(world, "one", options=RunOptions(degrade_after=1))
    assert world.store.sources.health(world.source()).degraded_at is not None
    fail(world, "other", options=RunOptions(degrade_after=0), source="other.com")
    assert world.store.sources.health(world.source("other.com")).degraded_at is None


def test_probes_lead_back_and_only_good_ones(world: World) -> None:
    fail(world, "bad", options=RunOptions(degrade_after=1))
    probe(world, "p1", would_save=1)
    probe(world, "p2", would_save=1, throttled=1)
    assert world.store.sources.health(world.source()).good_probes == 0
    probe(world, "p3", would_save=1)
    assert world.store.sources.health(world.source()).good_probes == 1
    probe(world, "p4")
    assert world.store.sources.health(world.source()).degraded_at is None
    assert kinds(world) == ["source.degraded", "source.recovered"]


def test_verdict_of_a_probe_is_how_its_run_ends(world: World) -> None:
    ends = {
        "ok": probe(world, "ok", would_save=2),
        "degraded: it was slow": probe(world, "slow", would_save=1, slow=1),
        "degraded: it was asked to wait": probe(world, "wait", throttled=1),
        "degraded: what it found was rejected": probe(world, "rejected", rejected=1),
        "degraded: nothing came out": probe(world, "nothing"),
        "failed: no such host": fail(world, "failed", kind=RunKind.PROBE),
    }
    states = {words: world.run(run_id).state.value for words, run_id in ends.items()}
    assert {world.run(run_id).end_reason for run_id in ends.values()} == set(ends)
    assert states.pop("ok") == "completed"
    assert states.pop("failed: no such host") == "failed"
    assert set(states.values()) == {"partial"}


def test_what_a_probe_saw_adds_up_over_its_attempts(world: World) -> None:
    run_id = start(world, "probe", RunKind.PROBE)
    root = world.one()
    world.turn("w", done(root, children=[a_job("a"), a_job("b")]))
    first, second = world.claim()
    world.turn("w", done(first, effects=Effects(probed={"would_save": 1})))
    world.turn(
        "w",
        Settlement(
            second.id,
            second.attempt,
            JobState.SKIPPED,
            is_throttle=True,
            reason="slow down",
            effects=Effects(probed={"throttled": 1}),
        ),
    )
    assert world.run(run_id).end_reason == "degraded: it was asked to wait"
    probes = world.dump()["probe"]
    assert [list(row) for row in probes] == [[run_id, 1, 0, 1, 0]]


def test_operator_takes_a_source_for_healthy_once(world: World) -> None:
    assert world.store.sources.recover(world.source(), "ana", "") is False
    fail(world, "bad", options=RunOptions(degrade_after=1))
    assert world.store.sources.recover(world.source(), "ana", "mended") is True
    assert world.store.sources.recover(world.source(), "ana", "mended") is False
    events = [e for e in world.store.journal.events(limit=100) if e.kind == "source.recovered"]
    assert [(event.actor, event.detail) for event in events] == [("ana", "mended")]


def test_skips_are_counted_by_their_reason(world: World) -> None:
    run_id = world.start_with_pages(4)
    jobs = world.claim()

    def skip(job: Claimed, why: Any) -> Settlement:
        return Settlement(job.id, job.attempt, JobState.SKIPPED, reason="so", skip=why)

    world.turn(
        "w",
        skip(jobs[0], "unchanged"),
        skip(jobs[1], "unchanged"),
        skip(jobs[2], "disallowed"),
        skipped(jobs[3]),
    )
    run = world.run(run_id)
    assert (run.state, run.pages_unchanged, run.disallowed, run.skipped) == ("completed", 2, 1, 4)


def test_runs_that_end_at_the_same_time_are_all_counted(world: World) -> None:
    """Each host counts on what the other has counted, and none waits for another in a circle."""
    names = [f"host{number}" for number in range(4)]
    world.register(*names)
    options = RunOptions(degrade_after=100)
    sources = ["acme.com", "other.com"]
    for source in sources:
        for number in range(16):
            start(world, f"run {number}", options=options, source=source)
    jobs = world.claim(slots=1000)
    assert len(jobs) == 32
    world.turn("w", *[Settlement(j.id, j.attempt, JobState.QUEUED, reason="x") for j in jobs])
    mine = {name: world.claim(name, slots=8) for name in names}
    assert sum(map(len, mine.values())) == 32

    def settle(name: str) -> None:
        store = world.kind.open(world.path, world.clock)
        for half in (mine[name][:4], mine[name][4:]):
            store.turn(name, [quarantined(job) for job in half], _none(), {}, ())
        store.close()

    threads = [threading.Thread(target=settle, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for source in sources:
        assert world.store.sources.health(world.source(source)).bad_runs == 16


def _none() -> Any:
    from penstock.gates.capacity import Capacity

    return Capacity(0)


def test_what_waits_for_a_recovery_begins_when_its_source_is_not_degraded_any_more(
    world: World,
) -> None:
    fail(world, "bad", options=RunOptions(degrade_after=1))
    other = world.source("other.com")
    waiting = RunOptions(waits_for_recovery=True)
    about: dict[str, Any] = {"actor": "test", "options": waiting, "is_draft": True}
    put_off, _ = world.store.runs.start(
        world.source(), RunKind.BACKFILL, SITE, "v1", key="gap", **about
    )
    healthy, _ = world.store.runs.start(other, RunKind.BACKFILL, SITE, "v1", key="gap", **about)
    draft, _ = world.store.runs.start(
        other, RunKind.FULL, SITE, "v1", key="draft", actor="test", is_draft=True
    )

    assert world.store.runs.start_recovered("penstock") == [healthy]
    assert world.store.runs.start_recovered("penstock") == []
    assert (world.run(put_off).state, world.run(draft).state) == ("draft", "draft")

    for number in range(2):
        probe_id = start(world, f"probe {number}", RunKind.PROBE)
        [job] = [job for job in world.claim() if job.run_id == probe_id]
        world.turn("w", done(job, effects=Effects(probed={"would_save": 1})))
    assert world.store.runs.start_recovered("penstock") == [put_off]
    assert (world.run(put_off).state, world.run(draft).state) == ("queued", "draft")
    [event] = [
        e for e in world.store.journal.events(run_id=put_off, limit=9) if e.kind == "run.queued"
    ]
    assert (event.actor, event.detail) == ("penstock", "its source has recovered")


def test_run_that_continues_one_that_waited_for_a_recovery_waits_for_nothing(world: World) -> None:
    options = RunOptions(waits_for_recovery=True)
    run_id = start(world, "gap", RunKind.BACKFILL, options)
    world.store.runs.cancel(run_id, "test", "")

    again, _ = world.store.runs.continue_(run_id, SITE, "v1", "test", "")

    assert not world.run(again).options.waits_for_recovery


def test_new_version_of_the_pipeline_is_counted_from_its_own_first_failure(world: World) -> None:
    fail(world, "one")
    fail(world, "two")
    run_id = start(world, "three")
    world.store.runs.restamp(run_id, "v1", "v2", "w")
    world.turn("w", quarantined(world.one()))
    health = world.store.sources.health(world.source())
    assert (health.bad_runs, health.bad_run_id, health.degraded_at) == (1, run_id, None)


def test_runs_that_are_not_to_degrade_their_source_are_not_counted(world: World) -> None:
    for number in range(4):
        fail(world, f"tried {number}", options=RunOptions(is_tried=True))
    assert world.store.sources.health(world.source()).bad_runs == 0
    fail(world, "in earnest")
    assert world.store.sources.health(world.source()).bad_runs == 1
