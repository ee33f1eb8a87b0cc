"""The lifecycle: drafts, maintenance, runs that continue others; who did it and why, for every move."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from penstock.errors import Refused, UsageError
from penstock.jobs.effects import Effects
from penstock.jobs.job import JobState
from penstock.jobs.outcome import Flush
from penstock.jobs.run import Plan, PlannedStage, RunKind, RunOptions, RunState
from penstock.store import continuation
from penstock.store.new_jobs import add_jobs
from penstock.store.schedule_rows import Passing, Planned, Start
from tests.contract.scenes import SITE, World, a_job, done, quarantined, retried, skipped

GATHERED = Plan(
    (
        PlannedStage("discover", "run", is_required=True),
        PlannedStage("extract", "page", ("discover",)),
        PlannedStage("report", "run", ("extract",), is_gather=True),
        PlannedStage("export", "page", ("report",)),
    )
)


def a_draft(world: World, key: str = "draft") -> int:
    run_id, _ = world.store.runs.start(
        world.source(), RunKind.FULL, SITE, "v1", key=key, actor="ann", reason="r", is_draft=True
    )
    return run_id


def continued(world: World, run_id: int, plan: Plan = SITE) -> int:
    new_id, is_new = world.store.runs.continue_(run_id, plan, "v2", "ann", "the site is back")
    assert is_new
    return new_id


def keys_of(world: World, run_id: int, *states: JobState, stage: str | None = None) -> set[str]:
    return {job.key for job in world.jobs(run_id, *states, stage=stage)}


# Drafts.


def test_draft_starts_nothing_until_it_is_started(world: World) -> None:
    run_id = a_draft(world)

    assert world.claim() == []
    assert not world.store.jobs.has_startable(0)
    assert world.store.overview().queued == 0, "what is a draft does not wait for a worker"
    assert world.run(run_id).state is RunState.DRAFT

    assert world.store.runs.start_draft(run_id, "bob", "go")
    assert not world.store.runs.start_draft(run_id, "bob", "go"), "it is none any more"
    assert [job.run_id for job in world.claim()] == [run_id]
    assert world.kinds(run_id=run_id)[:3] == ["run.draft", "run.queued", "run.started"]


def test_draft_takes_jobs_before_it_is_started(world: World) -> None:
    run_id = a_draft(world)
    world.enqueue(run_id, "a", "b")

    world.store.runs.start_draft(run_id, "bob", "")

    assert {job.key for job in world.claim()} == {"root", "a", "b"}


def test_draft_can_be_cancelled(world: World) -> None:
    run_id = a_draft(world)

    assert world.store.runs.cancel(run_id, "bob", "no")
    while world.store.runs.sweep_cancelled():
        pass

    assert world.run(run_id).state is RunState.CANCELLED
    assert not world.store.runs.start_draft(run_id, "bob", "")
    assert keys_of(world, run_id, JobState.CANCELLED) == {"root"}


def test_draft_whose_jobs_were_cancelled_ends_when_it_is_started(world: World) -> None:
    run_id = a_draft(world)
    [root] = world.jobs(run_id)
    world.store.jobs.cancel(root.id, "bob", "")
    assert world.run(run_id).state is RunState.DRAFT

    world.store.runs.start_draft(run_id, "bob", "")

    assert world.run(run_id).state is RunState.CANCELLED


# Maintenance.


@pytest.mark.parametrize("scope", ["", "acme.com"])
def test_nothing_starts_while_it_is_held_and_all_goes_on_where_it_was(
    world: World, scope: str
) -> None:
    world.start_with_pages(4)
    running, waiting = world.claim(slots=2)
    world.turn("w", retried(waiting, 30))

    assert world.store.sources.hold(scope, "ann", "the disk is being changed")
    assert not world.store.sources.hold(scope, "ann", "again"), "it is held already"
    assert world.claim() == []
    assert world.turn("w", done(running)).settled == [running.id], "what runs goes on"
    new_id = world.start(key="accepted")
    world.clock.advance(31)
    assert world.claim() == []
    assert not world.store.jobs.has_startable(60)

    assert world.store.sources.unhold(scope, "bob", "it has a new disk")
    assert not world.store.sources.unhold(scope, "bob", "")
    claimed = world.claim()
    assert {job.run_id for job in claimed} == {running.run_id, new_id}
    assert waiting.id in {job.id for job in claimed}


@pytest.mark.parametrize("scope", ["", "acme.com"])
def test_hold_and_unhold_change_nothing_but_the_journal(world: World, scope: str) -> None:
    run_id = world.start_with_pages(5)
    jobs = world.claim(slots=4)
    world.turn("w", done(jobs[0]), retried(jobs[1], 60), quarantined(jobs[2]))
    world.store.runs.pause(world.start(key="paused"), "ops", "")
    world.store.sources.pause(world.source("other.org"), "ops", "")
    world.store.jobs.hold(world.jobs(run_id, JobState.QUEUED)[0].id, "ops", "")
    before = world.dump()

    world.store.sources.hold(scope, "ann", "maintenance")
    world.clock.advance(1)
    assert world.claim() == []
    world.store.sources.unhold(scope, "ann", "done")

    after = world.dump()
    changed = {name for name in before if sorted_rows(before[name]) != sorted_rows(after[name])}
    assert changed <= {"event", "sqlite_sequence"}


def sorted_rows(rows: list[Any]) -> list[str]:
    return sorted(map(str, rows))


def test_hold_of_one_source_lets_the_others_work(world: World) -> None:
    world.start_all({"acme.com": 3, "other.org": 3})
    world.store.sources.hold("acme.com", "ann", "")

    assert {job.source_id for job in world.claim()} == {world.source("other.org")}


def test_source_that_is_held_by_itself_stays_held_when_the_project_is_not(world: World) -> None:
    world.start_with_pages(1)
    world.store.sources.hold("acme.com", "ann", "theirs")
    world.clock.advance(1)
    world.store.sources.hold("", "bob", "ours")

    held = [(row.scope, row.actor, row.reason, row.at) for row in world.store.sources.holds()]
    now = world.clock.now()
    assert held == [("", "bob", "ours", now), ("acme.com", "ann", "theirs", now - 1)]
    world.store.sources.unhold("", "bob", "")
    assert world.claim() == []
    world.store.sources.unhold("acme.com", "ann", "")
    assert len(world.claim()) == 1


def test_hold_outlives_a_restart(world: World) -> None:
    world.start_with_pages(1)
    world.store.sources.hold("", "ann", "")

    world.store.close()
    world.store = world.kind.open(world.path, world.clock)

    assert world.claim() == []
    assert [row.scope for row in world.store.sources.holds()] == [""]


def test_schedules_go_on_while_they_are_held(world: World) -> None:
    source_id = world.source()
    now = world.clock.now()
    world.store.schedules.plan([Planned(source_id, "main", "{}", "every hour", "every", now)])
    world.store.sources.hold("", "ann", "")

    [row] = world.store.schedules.due(now)
    start = Start(RunKind.FULL, SITE, "v1")
    done = world.store.schedules.pass_ticks(Passing(row, now + 3600, fires=now, start=start))

    assert done is not None
    run_id = done.run_id
    assert world.claim() == []
    world.store.sources.unhold("", "ann", "")
    assert [job.run_id for job in world.claim()] == [run_id]


def test_hold_of_an_unknown_source_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match=r"no source 'nobody\.org'"):
        world.store.sources.hold("nobody.org", "ann", "")


def test_single_job_that_is_held_returns_exactly_to_where_it_was(world: World) -> None:
    run_id = world.start_with_pages(3)
    waiting = world.one()
    world.turn("w", retried(waiting, 60))
    due_at = world.job(waiting.id).due_at
    queued = world.jobs(run_id, JobState.QUEUED)[0].id

    assert world.store.jobs.hold(queued, "ann", "look at it first")
    assert world.store.jobs.hold(waiting.id, "ann", "")
    assert not world.store.jobs.hold(queued, "ann", ""), "it is held already"
    assert world.job(queued).state is world.job(waiting.id).state is JobState.HELD
    assert world.run(run_id).held == 2
    assert queued not in {job.id for job in world.claim()}

    assert world.store.jobs.unhold(queued, "ann", "")
    assert world.store.jobs.unhold(waiting.id, "ann", "")
    assert not world.store.jobs.unhold(waiting.id, "ann", "")
    assert world.job(waiting.id).state is JobState.WAITING
    assert world.job(waiting.id).due_at == due_at
    assert [job.id for job in world.claim()] == [queued]


def test_job_that_is_overdue_when_it_is_unheld_starts_at_once(world: World) -> None:
    world.start_with_pages(1)
    job = world.one()
    world.turn("w", retried(job, 60))
    world.store.jobs.hold(job.id, "ann", "")
    world.clock.advance(100)
    assert world.claim() == []

    world.store.jobs.unhold(job.id, "ann", "")

    assert [again.id for again in world.claim()] == [job.id]


def test_run_does_not_end_while_a_job_of_it_is_held(world: World) -> None:
    run_id = world.start_with_pages(2)
    held, other = world.jobs(run_id, JobState.QUEUED)
    world.store.jobs.hold(held.id, "ann", "")
    world.turn("w", *(done(job) for job in world.claim()))
    assert world.run(run_id).state is RunState.RUNNING

    world.store.jobs.cancel(held.id, "ann", "")

    assert world.run(run_id).state is RunState.COMPLETED
    assert world.job(other.id).state is JobState.SUCCEEDED


@pytest.mark.parametrize("end", [done, skipped, quarantined])
def test_what_runs_or_has_ended_can_not_be_held(world: World, end: Callable[..., Any]) -> None:
    world.start_with_pages(2)
    job = world.one()
    assert not world.store.jobs.hold(job.id, "ann", "")
    world.turn("w", end(job))

    assert not world.store.jobs.hold(job.id, "ann", "")


# Continuing.


def test_continued_run_does_only_what_was_left(world: World) -> None:
    old = world.start_with_pages(4)
    first, second, bad, worse = world.claim()
    world.turn("w", done(first, children=[a_job("c1", stage="persist")]), done(second))
    world.turn("w", quarantined(bad), quarantined(worse))
    world.turn("w", *(done(job) for job in world.claim()))
    assert world.run(old).state is RunState.PARTIAL

    new = continued(world, old)

    run = world.run(new)
    assert (run.options.continues, run.kind, run.state) == (old, RunKind.FULL, RunState.QUEUED)
    assert keys_of(world, new, JobState.QUEUED) == {bad.key, worse.key}
    [root] = world.jobs(new, JobState.SKIPPED)
    assert (root.stage, root.error) == ("discover", f"done in run {old}")
    claimed = world.claim()
    assert {(job.key, job.item) for job in claimed} == {(j.key, j.item) for j in (bad, worse)}
    world.turn("w", *(done(job) for job in claimed))
    assert world.run(new).state is RunState.COMPLETED


def test_candidate_of_a_page_that_was_done_is_not_lost(world: World) -> None:
    """The page is done and will not be fetched again; what it yielded is not."""
    old = world.start_with_pages(1)
    children = [a_job("kept", {"n": 1}, stage="persist"), a_job("lost", {"n": 2}, stage="persist")]
    world.turn("w", done(world.one(), children=children))
    world.turn("w", *(quarantined(j) if j.key == "lost" else done(j) for j in world.claim()))

    new = continued(world, old)

    assert [(job.key, job.item) for job in world.claim()] == [("lost", '{"n":2}')]
    assert keys_of(world, new, stage="extract") == set()


def test_what_a_repeated_discover_yields_again_is_skipped_where_it_was_done(world: World) -> None:
    old = world.start(key="old")
    root = world.one()
    world.turn("w", Flush(root.id, root.attempt, Effects(children=[a_job("a"), a_job("b")]), 1))
    a, _ = world.claim()
    world.turn("w", done(a))
    world.store.runs.cancel(old, "ann", "stopped in the middle")

    new = continued(world, old)
    jobs = {job.key: job for job in world.claim()}
    assert set(jobs) == {"root", "b"}
    again = done(jobs["root"], children=[a_job("a"), a_job("b"), a_job("c")])
    world.turn("w", again, done(jobs["b"]))

    assert keys_of(world, new, JobState.SKIPPED) == {"a"}
    assert [job.key for job in world.claim()] == ["c"]
    assert [
        e.detail for e in world.store.journal.events(run_id=new) if e.kind == "job.skipped"
    ] == [f"done in run {old}"]


def test_chain_of_continued_runs_does_everything_once(world: World) -> None:
    old = world.start_with_pages(3)
    world.turn("w", *(quarantined(j) if n else done(j) for n, j in enumerate(world.claim())))
    second = continued(world, old)
    world.turn("w", *(quarantined(j) if n else done(j) for n, j in enumerate(world.claim())))
    assert world.run(second).state is RunState.PARTIAL

    third = continued(world, second)
    [job] = world.claim()
    # Whatever yields the pages of all three again.
    world.enqueue(third, "page-000000", "page-000001", "page-000002", "page-000003")

    assert keys_of(world, third, JobState.SKIPPED) == {"root", "page-000000", "page-000001"}
    assert job.key == "page-000002"
    details = {job.key: job.error for job in world.jobs(third, JobState.SKIPPED, stage="extract")}
    assert details == {
        "page-000000": f"done in run {old}", "page-000001": f"done in run {second}",
    }  # fmt: skip


def test_gather_runs_again_and_all_that_comes_after_it(world: World) -> None:
    old = world.start(GATHERED)
    world.turn("w", done(world.one(), children=[a_job("a"), a_job("b")]))
    a, b = world.claim()
    world.turn("w", done(a), quarantined(b))
    world.turn("w", done(world.one(), children=[a_job("report", stage="export")]))
    world.turn("w", done(world.one()))
    assert world.run(old).state is RunState.PARTIAL

    new = continued(world, old, GATHERED)

    [again] = world.claim()
    assert again.key == "b"
    world.turn("w", done(again))
    [report] = world.claim()
    world.turn("w", done(report, children=[a_job("report", stage="export")]))
    assert [(job.stage, job.key) for job in world.claim()] == [("export", "report")]
    assert world.run(new).skipped == 1


def test_job_that_a_person_cancelled_stays_cancelled(world: World) -> None:
    old = world.start_with_pages(3)
    unwanted, bad, good = world.claim()
    world.store.jobs.cancel(unwanted.id, "ann", "not this one")
    world.turn("w", quarantined(bad), done(good))

    new = continued(world, old)

    assert keys_of(world, new, JobState.QUEUED) == {bad.key}


def test_all_that_was_open_when_a_run_was_cancelled_is_carried_on(world: World) -> None:
    old = world.start_with_pages(5)
    ran, waited, good, bad = world.claim(slots=4)
    world.turn("w", retried(waited, 60), done(good), quarantined(bad))
    world.store.runs.cancel(old, "ann", "")

    new = continued(world, old)

    left = {job.key for job in world.jobs(old, stage="extract")} - {good.key}
    assert keys_of(world, new, JobState.QUEUED) == left
    assert {ran.key, waited.key, bad.key} < left


def test_run_is_continued_once(world: World) -> None:
    old = world.start_with_pages(1)
    world.turn("w", quarantined(world.one()))

    new = continued(world, old)

    assert world.store.runs.continue_(old, SITE, "v2", "ann", "") == (new, False)


def test_who_was_stopped_while_carrying_goes_on_with_it(world: World) -> None:
    old = world.start_with_pages(3)
    world.turn("w", *(quarantined(job) for job in world.claim()))
    options = RunOptions(continues=old, continued_stages=("discover", "extract", "persist"))
    half, _ = world.store.runs.start(
        world.source(), RunKind.FULL, SITE, "v2", key=f"continues:{old}", actor="ann",
        options=options, is_draft=True,
    )  # fmt: skip
    world.enqueue(half, "page-000001")
    assert world.claim() == []

    assert continued(world, old) == half

    assert len(world.claim()) == 3


@pytest.mark.parametrize("batches", range(4))
def test_carrying_can_be_cut_off_anywhere_and_gone_on_with(
    world: World, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    old = world.start_with_pages(5)
    world.turn("w", *(quarantined(job) for job in world.claim()))
    monkeypatch.setattr(continuation, "CARRY_LIMIT", 2)
    left = iter(range(batches))

    def cut_off(*values: Any) -> set[int]:
        """So many batches are written, and the next one is not."""
        added = add_jobs(*values)
        if next(left, None) is None:
            raise ConnectionResetError("cut off")
        return added

    with monkeypatch.context() as patched, suppress(ConnectionResetError):
        patched.setattr(continuation, "add_jobs", cut_off)
        world.store.runs.continue_(old, SITE, "v2", "ann", "")
        assert batches == 3, "five jobs are three batches"
    if batches < 3:
        assert world.claim() == [], "it is a draft until all is carried over"
        continued(world, old)

    assert len(world.claim()) == 5


def test_checkpoints_of_the_run_itself_go_with_it(world: World) -> None:
    old = world.start_with_pages(1)
    world.turn("w", quarantined(world.one()))
    world.tamper(
        "INSERT INTO run_cursor (run_id, partition, cursor, at)"
        f" VALUES ({old}, 'AAPL', '\"2024-03-01\"', 5)"
    )

    new = continued(world, old)

    assert {row[:3] for row in world.dump()["run_cursor"]} == {
        (old, "AAPL", '"2024-03-01"'), (new, "AAPL", '"2024-03-01"'),
    }  # fmt: skip


def test_options_and_what_it_was_made_of_are_kept(world: World) -> None:
    of = world.start_with_pages(1)
    world.turn("w", done(world.one()))
    old, _ = world.store.runs.start(
        world.source(), RunKind.BACKFILL, SITE, "v1", key="b", actor="ann",
        options=RunOptions(start_at=1.0, end_at=2.0, partitions=("A",)), of_run_id=of,
    )  # fmt: skip
    world.store.runs.cancel(old, "ann", "")

    run = world.run(continued(world, old))

    assert (run.kind, run.of_run_id) == (RunKind.BACKFILL, of)
    assert (run.options.start_at, run.options.partitions) == (1.0, ("A",))


@pytest.mark.parametrize("state", ["queued", "running", "paused", "completed"])
def test_only_a_run_that_ended_with_something_left_is_continued(world: World, state: str) -> None:
    run_id = world.start(key="it")
    if state == "paused":
        world.store.runs.pause(run_id, "ann", "")
    if state in ("running", "completed"):
        root = world.one()
    if state == "completed":
        world.turn("w", done(root))
    assert world.run(run_id).state == state

    with pytest.raises(Refused, match=f"run {run_id}"):
        world.store.runs.continue_(run_id, SITE, "v1", "ann", "")


@pytest.mark.parametrize("options", [RunOptions(is_undo=True), RunOptions(is_redrive=True)])
def test_what_has_no_beginning_of_its_own_is_not_continued(
    world: World, options: RunOptions
) -> None:
    run_id, _ = world.store.runs.start(
        world.source(), RunKind.REPLAY, SITE, "v1", key="it", actor="ann",
        options=options,
    )  # fmt: skip
    world.store.runs.cancel(run_id, "ann", "")

    with pytest.raises(Refused, match="is not continued"):
        world.store.runs.continue_(run_id, SITE, "v1", "ann", "")


def test_replay_is_done_again_as_a_whole(world: World) -> None:
    run_id, _ = world.store.runs.start(
        world.source(), RunKind.REPLAY, SITE, "v1", key="it", actor="ann",
        options=RunOptions(is_staged=True), of_run_id=1,
    )  # fmt: skip
    world.turn("w", done(world.one(), children=[a_job("a"), a_job("b")]))
    world.turn("w", *(quarantined(job) if job.key == "b" else done(job) for job in world.claim()))

    new = world.run(continued(world, run_id))

    assert (new.options.is_staged, new.of_run_id, new.skipped) == (True, 1, 0)
    world.turn("w", done(world.one(), children=[a_job("a"), a_job("b")]))
    assert {job.key for job in world.claim()} == {"a", "b"}


def test_continuing_a_run_that_is_not_there_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match="no run 77"):
        world.store.runs.continue_(77, SITE, "v1", "ann", "")


# Who did it, and why.

Steering = Callable[[World, int, int], object]
STEERED: dict[str, tuple[str, Steering]] = {
    "pause a source": ("source.paused", lambda w, r, j: w.store.sources.pause(w.source(), "ann", "why")),
    "resume a source": ("source.resumed", lambda w, r, j: w.store.sources.resume(w.source(), "ann", "why")),
    "hold a source": ("source.held", lambda w, r, j: w.store.sources.hold("acme.com", "ann", "why")),
    "unhold a source": ("source.unheld", lambda w, r, j: w.store.sources.unhold("acme.com", "ann", "why")),
    "hold everything": ("project.held", lambda w, r, j: w.store.sources.hold("", "ann", "why")),
    "unhold everything": ("project.unheld", lambda w, r, j: w.store.sources.unhold("", "ann", "why")),
    "pause a run": ("run.paused", lambda w, r, j: w.store.runs.pause(r, "ann", "why")),
    "resume a run": ("run.resumed", lambda w, r, j: w.store.runs.resume(r, "ann", "why")),
    "hold a job": ("job.held", lambda w, r, j: w.store.jobs.hold(j, "ann", "why")),
    "unhold a job": ("job.unheld", lambda w, r, j: w.store.jobs.unhold(j, "ann", "why")),
    "cancel a job": ("job.cancelled", lambda w, r, j: w.store.jobs.cancel(j, "ann", "why")),
    "retry what failed": ("run.reopened", lambda w, r, j: w.store.runs.retry_failed(r, "ann", "why")),
    "retry a job": ("job.requeued", lambda w, r, j: w.store.jobs.retry(failed(w, r), "ann", "why")),
    "cancel a run": ("run.cancelled", lambda w, r, j: w.store.runs.cancel(r, "ann", "why")),
    "continue a run": ("run.queued", lambda w, r, j: w.store.runs.continue_(r, SITE, "v", "ann", "why")),
    "start a draft": ("run.queued", lambda w, r, j: w.store.runs.start_draft(a_draft(w), "ann", "why")),
}  # fmt: skip
# What has to be done before.
BEFORE = {
    "resume a source": "pause a source", "unhold a source": "hold a source",
    "unhold everything": "hold everything", "resume a run": "pause a run", "unhold a job": "hold a job",
    "retry what failed": "fail", "retry a job": "fail", "continue a run": "fail",
}  # fmt: skip


def failed(world: World, run_id: int) -> int:
    return world.jobs(run_id, JobState.QUARANTINED)[0].id


@pytest.mark.parametrize("act", STEERED)
def test_every_act_of_an_operator_is_journalled_with_actor_and_reason(
    world: World, act: str
) -> None:
    run_id = world.start_with_pages(2)
    job_id = world.jobs(run_id, JobState.QUEUED)[0].id
    before = BEFORE.get(act)
    if before == "fail":
        world.turn("w", *(quarantined(job) for job in world.claim()))
    elif before is not None:
        STEERED[before][1](world, run_id, job_id)
    last = max(event.id for event in world.store.journal.events(limit=1000))
    kind, steer = STEERED[act]

    assert steer(world, run_id, job_id)

    lines = [event for event in world.store.journal.events(limit=1000) if event.id > last]
    assert kind in {line.kind for line in lines}
    steered = [line for line in lines if line.kind == kind]
    assert {(line.actor, line.detail) for line in steered} <= {("ann", "why"), ("ann", "r")}
    assert any((line.actor, line.detail) == ("ann", "why") for line in steered)


def test_every_move_of_a_run_or_job_has_an_actor(world: World) -> None:
    run_id = world.start_with_pages(4)
    jobs = world.claim(slots=3)
    world.turn("w", retried(jobs[0], 5), done(jobs[1]), quarantined(jobs[2]))
    world.clock.advance(5)
    world.turn("w", *(done(job) for job in world.claim()))
    assert world.run(run_id).state is RunState.PARTIAL
    world.store.runs.cancel(continued(world, run_id), "ann", "")
    while world.store.runs.sweep_cancelled():
        pass

    moves = [
        line for line in world.store.journal.events(limit=1000) if line.kind[:4] in ("run.", "job.")
    ]

    assert [(line.kind, line.detail) for line in moves if not line.actor] == []


@pytest.mark.parametrize("by", ["run", "source", "hold", "project"])
def test_running_jobs_of_what_is_paused_or_held_are_named_to_their_worker(
    world: World, by: str
) -> None:
    run_id, other = world.start(), world.start(source="other.org")
    jobs = {job.run_id: job.id for job in world.claim()}
    ids, source_id = sorted(jobs.values()), world.source()
    assert world.store.workers.halted("w", ids) == {}

    match by:
        case "run":
            world.store.runs.pause(run_id, "ann", "later")
        case "source":
            world.store.sources.pause(source_id, "ann", "later")
        case "hold":
            world.store.sources.hold("acme.com", "ann", "later")
        case "project":
            world.store.sources.hold("", "ann", "later")

    halted = world.store.workers.halted("w", ids)
    assert set(halted) == ({*ids} if by == "project" else {jobs[run_id]})
    assert all(reason.endswith(("is paused", "is held")) for reason in halted.values())
    assert world.store.workers.halted("another", ids) == {}
    assert jobs[other] in ids
