"""Failures that are not tried again: too late to be of use, or for a cause that has struck three times."""

from __future__ import annotations

from dataclasses import replace as without

import pytest
from msgspec.structs import replace

from penstock.gates.lane import LaneLimits
from penstock.jobs.causes import ENOUGH
from penstock.jobs.failures import POISON
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Settlement
from penstock.jobs.run import RunKind
from penstock.store.entries import EntryFilter, EntryRow
from tests.contract.scenes import SITE, World, done, pages, quarantined, throttled

SELECTOR = "selector .price"


class Unbroken(dict[int, LaneLimits]):
    """Lanes without a breaker: it would spare the tries that these tests are about."""

    def __setitem__(self, source_id: int, limits: LaneLimits) -> None:
        super().__setitem__(source_id, without(limits, breaker=None))


@pytest.fixture(autouse=True)
def _no_breakers(world: World) -> None:
    world.limits = Unbroken()


def failed(
    job: Claimed,
    cause: str = SELECTOR,
    *,
    kind: str = "data",
    again_s: float | None = None,
    useful_for_s: float | None = None,
) -> Settlement:
    """A failure that ends in quarantine, or with `again_s` in another try."""
    state = JobState.QUARANTINED if again_s is None else JobState.WAITING
    return Settlement(
        job.id, job.attempt, state, again_s or 0.0, spends_try=True, reason=kind, error="broken",
        cause=cause, useful_for_s=useful_for_s, unit="page",
    )  # fmt: skip


def entry(world: World, job: Claimed) -> EntryRow:
    found = world.store.quarantine.get(job.id)
    assert found is not None
    return found


def escalations(world: World) -> list[str]:
    return [
        e.detail for e in world.store.journal.events(limit=10_000) if e.kind == "cause.escalated"
    ]


def start_version(world: World, version: str, count: int) -> list[Claimed]:
    """The pages of a new run of the source, with this version of its pipeline."""
    run_id, _ = world.store.runs.start(
        world.source(), RunKind.FULL, SITE, version, key=version, actor="test"
    )
    [root] = [job for job in world.claim() if job.run_id == run_id]
    world.turn("w", done(root, children=pages(count)))
    return world.claim()


# Useful for.


def test_retry_that_would_come_too_late_is_not_made_and_says_so(world: World) -> None:
    world.start_with_pages(2)
    soon, late = world.claim()

    world.turn(
        "w",
        failed(soon, kind="transient", again_s=3599.0, useful_for_s=3600.0),
        failed(late, kind="transient", again_s=3601.0, useful_for_s=3600.0),
    )

    assert world.job(soon.id).state is JobState.WAITING
    assert world.job(late.id).state is JobState.QUARANTINED
    told = entry(world, late).error
    assert told.startswith("broken (not tried again: it was useful for 1 h, and the next try would")
    assert "job.quarantined" in world.kinds(late.id)


def test_time_of_use_is_counted_from_when_the_job_was_enqueued(world: World) -> None:
    world.start_with_pages(1)
    page = world.one()
    world.turn("w", failed(page, kind="transient", again_s=1800.0, useful_for_s=3600.0))
    world.clock.advance(1800.0)

    again = world.one()
    world.turn("w", failed(again, kind="transient", again_s=1800.5, useful_for_s=3600.0))

    assert world.job(page.id).state is JobState.QUARANTINED


def test_throttle_that_outlasts_the_use_ends_in_quarantine(world: World) -> None:
    world.start_with_pages(1)
    page = world.one()
    world.turn("w", replace(throttled(page, 7300.0), useful_for_s=7200.0))

    assert world.job(page.id).state is JobState.QUARANTINED
    found = entry(world, page)
    assert (found.kind, "not tried again: it was useful for 2 h" in found.error) == (
        "throttled", True,
    )  # fmt: skip


def test_first_try_is_made_however_late_it_is(world: World) -> None:
    world.start_with_pages(1)
    world.clock.advance(10 * 3600.0)

    page = world.one()
    world.turn("w", done(page))

    assert world.job(page.id).state is JobState.SUCCEEDED


# Tries.


def test_attempts_count_over_deaths_and_restarts(world: World) -> None:
    """A death and a failure spend a try each, whoever has the job, and whatever was restarted."""
    world.start_with_pages(1)
    first = world.one()
    world.turn("w", failed(first, kind="transient", again_s=0.0))
    world.register("dies")
    second = world.one("dies")
    world.store.workers.bury("dies", "killed")
    world.store.close()
    world.store = world.kind.open(world.path, world.clock)

    third = world.one()

    assert [first.tries, second.tries, third.tries] == [0, 1, 2]
    assert [first.attempt, second.attempt, third.attempt] == [1, 2, 3]


# Escalation.


def test_three_jobs_that_fail_for_one_cause_escalate_it(world: World) -> None:
    world.start_with_pages(ENOUGH + 1)
    jobs = world.claim()

    for job in jobs[: ENOUGH - 1]:
        world.turn("w", failed(job))
    assert escalations(world) == []
    assert [row.escalated_at for row in world.store.quarantine.each(EntryFilter())] == [None] * 2
    world.turn("w", failed(jobs[ENOUGH - 1]))

    assert len(escalations(world)) == 1
    assert escalations(world)[0].startswith(f"{SELECTOR}: 3 jobs quarantined")
    rows = list(world.store.quarantine.each(EntryFilter(is_escalated=True)))
    assert {row.id for row in rows} == {job.id for job in jobs[:ENOUGH]}
    [cause] = world.store.quarantine.causes()
    assert (cause.cause, cause.failures, cause.source) == (SELECTOR, 3, "acme.com")


def test_what_fails_for_an_escalated_cause_is_not_tried_again(world: World) -> None:
    world.start_with_pages(ENOUGH + 2)
    *first, later, other = world.claim()
    world.turn("w", *(failed(job) for job in first))

    world.turn(
        "w",
        failed(later, kind="unknown", again_s=1.0),
        failed(other, "selector .name", kind="unknown", again_s=1.0),
    )

    assert world.job(later.id).state is JobState.QUARANTINED
    assert world.job(other.id).state is JobState.WAITING
    found = entry(world, later)
    assert found.escalated_at is not None
    assert "not tried again: 3 jobs of this source were quarantined for the same" in found.error


def test_another_source_is_not_concerned(world: World) -> None:
    runs = world.start_all({"acme.com": ENOUGH, "other.com": 1})
    jobs = world.claim()
    [other] = [job for job in jobs if job.run_id == runs[1]]
    world.turn("w", *(failed(job) for job in jobs if job is not other))

    world.turn("w", failed(other, kind="unknown", again_s=1.0))

    assert world.job(other.id).state is JobState.WAITING


def test_five_failures_of_one_turn_escalate_once_and_mark_all(world: World) -> None:
    world.start_with_pages(5)

    world.turn("w", *(failed(job) for job in world.claim()))

    assert len(escalations(world)) == 1
    assert world.store.quarantine.count(EntryFilter(is_escalated=True)) == 5


def test_new_version_of_the_pipeline_starts_the_count_again(world: World) -> None:
    world.start_with_pages(ENOUGH)
    world.turn("w", *(failed(job) for job in world.claim()))

    first, second = start_version(world, "v2", 2)
    world.turn("w", failed(first, kind="unknown", again_s=1.0))
    world.turn("w", failed(second))

    assert world.job(first.id).state is JobState.WAITING
    [cause] = world.store.quarantine.causes()
    assert (cause.failures, cause.escalated_at, cause.pipeline_version) == (1, None, "v2")


@pytest.mark.parametrize("act", ["release", "retry", "retry --failed"])
def test_release_starts_the_count_again(world: World, act: str) -> None:
    run_id = world.start_with_pages(ENOUGH)
    jobs = world.claim()
    world.turn("w", *(failed(job) for job in jobs))

    if act == "release":
        list(world.store.quarantine.release(EntryFilter(cause=SELECTOR), "me", "mended"))
    elif act == "retry":
        world.store.jobs.retry(jobs[0].id, "me", "mended")
    else:
        world.store.runs.retry_failed(run_id, "me", "mended")

    again = world.claim()
    world.turn("w", failed(again[0], kind="unknown", again_s=1.0))
    assert world.job(again[0].id).state is JobState.WAITING
    assert world.store.quarantine.causes() == []
    world.turn("w", *(done(job) for job in again[1:]))


def test_page_that_succeeds_disproves_a_transient_cause(world: World) -> None:
    """Three pages of a thousand are broken at the server: the others still have their tries."""
    world.start_with_pages(ENOUGH + 3)
    *broken, well, fourth, fifth = world.claim()
    down = "transient 500 acme.com"
    for job in broken[:-1]:
        world.turn("w", failed(job, down, kind="transient"))
    world.turn("w", done(well))
    world.turn("w", failed(broken[-1], down, kind="transient"))
    assert escalations(world) == []

    world.turn("w", failed(fourth, down, kind="transient", again_s=1.0))
    world.turn("w", failed(fifth, down, kind="transient", again_s=1.0))

    assert world.job(fourth.id).state is JobState.WAITING
    assert world.job(fifth.id).state is JobState.WAITING


def test_host_that_answers_nobody_is_escalated_until_it_answers(world: World) -> None:
    world.start_with_pages(ENOUGH + 3)
    *broken, down, well, after = world.claim()
    cause = "transient 500 acme.com"
    world.turn("w", *(failed(job, cause, kind="transient") for job in broken))

    world.turn("w", failed(down, cause, kind="transient", again_s=1.0))
    world.turn("w", done(well))
    world.turn("w", failed(after, cause, kind="transient", again_s=1.0))

    assert world.job(down.id).state is JobState.QUARANTINED
    assert world.job(after.id).state is JobState.WAITING


def test_failures_without_a_cause_have_nothing_in_common(world: World) -> None:
    world.start_with_pages(ENOUGH + 1)
    world.turn("w", *(quarantined(job) for job in world.claim()))

    assert (escalations(world), world.store.quarantine.causes()) == ([], [])


@pytest.mark.parametrize("cause", ["a\x00b", "\ud800", "é" * 1000, "'; DROP TABLE job --"])
def test_causes_may_be_any_text(world: World, cause: str) -> None:
    world.start_with_pages(ENOUGH + 1)
    *first, later = world.claim()
    world.turn("w", *(failed(job, cause) for job in first))

    world.turn("w", failed(later, cause, kind="unknown", again_s=1.0))

    assert world.job(later.id).state is JobState.QUARANTINED


def test_job_that_kills_its_workers_has_an_entry_too(world: World) -> None:
    world.start_with_pages(1)
    for name in ("a", "b", "c"):
        world.register(name)
        job = world.one(name)
        world.store.workers.bury(name, "killed")

    found = entry(world, job)
    assert (found.kind, found.quarantines, found.deaths) == (POISON, 1, 3)


def test_escalated_cause_raises_a_signal_with_its_last_error(world: World) -> None:
    run_id = world.start_with_pages(ENOUGH)

    world.turn("w", *(failed(job) for job in world.claim()))

    [raised] = [each for each in world.store.signals.after() if each.name == "cause.escalated"]
    assert (raised.source, raised.data) == (
        "acme.com", {"cause": SELECTOR, "failures": ENOUGH, "run": run_id, "error": "broken"},
    )  # fmt: skip
