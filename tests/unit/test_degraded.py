"""Degraded sources on virtual time: after failures in a row only probes run, and they lead back."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.leader.scheduler import Scheduler
from penstock.errors import ConfigError, Refused, UsageError
from penstock.jobs.run import NO_OPTIONS, RunKind, RunOptions, RunState
from penstock.project import COMMANDS, KINDS
from penstock.project.run_starter import Asked
from penstock.store.entries import EntryFilter
from penstock.store.health import HealthRow, RunEnd, judged
from penstock.store.rows import EventRow, SourceRow
from penstock.testing import Simulation
from tests.unit.site import Shop, Site

HOUR_S = 3600.0


@pytest.fixture
def site() -> Site:
    made = Site()
    made.page("/a", "one")
    made.page("/b", "two")
    return made


@pytest.fixture
def shop(tmp_path: Path, site: Site) -> Shop:
    made = Shop(tmp_path / "project", site)
    made.write()
    return made


def break_down(site: Site) -> None:
    for page in site.pages.values():
        page.status = 410


def mend(site: Site) -> None:
    for page in site.pages.values():
        page.status = 200


def degrade(shop: Shop, site: Site, runs: int = 3) -> None:
    break_down(site)
    for _ in range(runs):
        assert shop.run("full").state == "failed"


def source(shop: Shop) -> SourceRow:
    with shop.project() as project:
        [row] = project.connection.sources.all()
        return row


def told(shop: Shop, noun: str = "source.") -> list[EventRow]:
    with shop.project() as project:
        events = project.connection.journal.events(limit=100_000)
    return [event for event in events if event.kind.startswith(noun)]


def signals(shop: Shop) -> list[str]:
    import apsw

    connection = apsw.Connection(str(shop.folder / "penstock.db"))
    names = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM signal WHERE name LIKE 'source.%' ORDER BY id"
        )
    ]
    connection.close()
    return names


def test_three_failed_runs_in_a_row_degrade_a_source(shop: Shop, site: Site) -> None:
    degrade(shop, site, runs=2)
    assert (source(shop).degraded_at, source(shop).bad_runs) == (None, 2)
    assert shop.run("incremental").state == "failed"

    row = source(shop)
    assert row.degraded_at == pytest.approx(shop.clock.now(), abs=5)
    assert row.degraded_reason.startswith("3 runs in a row failed, the last was run 3")
    assert [event.kind for event in told(shop)] == ["source.degraded"]
    assert signals(shop) == ["source.degraded"]


def test_degraded_source_refuses_all_but_probes_and_says_what_to_do(shop: Shop, site: Site) -> None:
    degrade(shop, site)
    with shop.project() as project:
        for kind in ("full", "incremental", "stream"):
            with pytest.raises(
                Refused, match=r"shop\.example is degraded: 3 runs in a row"
            ) as refused:
                project.run("shop.example", kind)
            assert "--kind probe" in refused.value.hint
            assert "penstock resume shop.example" in refused.value.hint
    assert shop.run("probe").state == "failed"


def test_two_good_probes_in_a_row_make_it_healthy_again(shop: Shop, site: Site) -> None:
    degrade(shop, site)
    mend(site)
    assert shop.run("probe").end_reason == "ok"
    assert (source(shop).good_probes, source(shop).degraded_at is not None) == (1, True)
    break_down(site)
    assert shop.run("probe").state == "failed"
    assert source(shop).good_probes == 0

    mend(site)
    shop.run("probe")
    shop.run("probe")

    row = source(shop)
    assert (row.degraded_at, row.bad_runs, row.good_probes) == (None, 0, 0)
    assert [event.kind for event in told(shop)] == ["source.degraded", "source.recovered"]
    assert signals(shop) == ["source.degraded", "source.recovered"]
    assert shop.run("full").state == "completed"


def test_source_whose_first_page_is_never_wanted_comes_back_all_the_same(
    shop: Shop, site: Site
) -> None:
    degrade(shop, site)
    mend(site)
    site.page("/a", "unwanted")
    assert shop.run("probe").end_reason == "degraded: nothing came out"
    shop.run("probe")
    assert source(shop).degraded_at is None


def test_operator_takes_it_for_healthy_and_that_is_in_the_journal(shop: Shop, site: Site) -> None:
    degrade(shop, site)
    with shop.project() as project:
        assert project.resume("shop.example", actor="ana", reason="they moved back") is True
        assert project.resume("shop.example", actor="ana") is False
    [_, recovered] = told(shop)
    assert (recovered.kind, recovered.actor, recovered.detail) == (
        "source.recovered",
        "ana",
        "they moved back",
    )
    assert shop.run("full").state == "failed"
    assert (source(shop).degraded_at, source(shop).bad_runs) == (None, 1)


def test_partial_runs_and_unchanged_pages_count_for_it_not_against_it(
    shop: Shop, site: Site
) -> None:
    degrade(shop, site, runs=2)
    mend(site)
    site.pages["/a"].status = 410
    assert shop.run("full").state == "partial"
    assert source(shop).bad_runs == 0

    mend(site)
    shop.run("full")
    for _ in range(5):
        run = shop.run("incremental")
        assert (run.state, run.pages_unchanged) == ("completed", 2)
    assert (source(shop).bad_runs, source(shop).degraded_at) == (0, None)


def test_zero_means_never(shop: Shop, site: Site) -> None:
    shop.write(degrade_after=0)
    degrade(shop, site, runs=5)
    assert (source(shop).degraded_at, source(shop).bad_runs) == (None, 5)


def test_numbers_are_the_sources_own(shop: Shop, site: Site) -> None:
    shop.write(degrade_after=1, good_probes=1)
    degrade(shop, site, runs=1)
    assert source(shop).degraded_at is not None
    mend(site)
    shop.run("probe")
    assert source(shop).degraded_at is None


def test_run_that_is_retried_and_fails_again_counts_once(shop: Shop, site: Site) -> None:
    break_down(site)
    run = shop.run("full")
    for _ in range(4):
        with shop.project() as project:
            project.retry_failed(run.id)
            shop.work(project)
            assert project.require_run(run.id).state == "failed"
    assert source(shop).bad_runs == 1

    mend(site)
    with shop.project() as project:
        project.retry_failed(run.id)
        shop.work(project)
    assert source(shop).bad_runs == 0


def test_nothing_of_a_degraded_source_is_tried_again_until_it_is_taken_for_healthy(
    shop: Shop, site: Site
) -> None:
    """Whatever opens an ended run again would run what only probes may; explain says the same."""
    degrade(shop, site)
    with shop.project() as project:
        run = project.connection.runs.newest(limit=1)[0]
        job = next(project.connection.quarantine.each(EntryFilter(run_id=run.id)))
        for again in (
            lambda: project.retry_failed(run.id),
            lambda: project.retry_job(job.id),
            lambda: list(project.release(EntryFilter(job_id=job.id))),
            lambda: list(project.release(EntryFilter(run_id=run.id))),
            lambda: list(project.release(EntryFilter(source="shop.example"))),
            lambda: list(project.release(EntryFilter())),
        ):
            with pytest.raises(Refused, match=r"shop\.example is degraded: 3 runs") as refused:
                again()
            assert "penstock resume shop.example" in refused.value.hint
        assert project.require_run(run.id).state == "failed"
        for outlook in (project.explain(run=run.id), project.explain(job=job.id)):
            assert (outlook.gate, outlook.command) == ("run", "penstock resume shop.example")
        assert list(project.release(EntryFilter(kind="no such kind"))) == []

        project.resume("shop.example")
        assert project.explain(job=job.id).command == f"penstock retry --job {job.id}"
        assert project.retry_failed(run.id) == 2


def test_run_that_has_not_ended_may_try_again_when_its_source_is_degraded(
    shop: Shop, site: Site
) -> None:
    degrade(shop, site, runs=2)
    with shop.project() as project:
        first, second = project.connection.quarantine.each(EntryFilter(run_id=2))
        project.retry_job(first.id)
        project.pause(2)
        # Other pages: what fails again goes from its older entry into the newer one.
        site.pages.clear()
        site.page("/c", "three", status=410)
        project.run("shop.example")
        with Simulation(project, site.network, seed=1, clock=shop.clock) as simulation:
            simulation.run(for_s=60.0)
    assert source(shop).degraded_at is not None
    with shop.project() as project:
        assert project.retry_job(second.id)


def test_scheduler_starts_probes_of_a_degraded_source_and_its_own_kind_when_it_is_well(
    shop: Shop, site: Site
) -> None:
    shop.write(schedule={"every": "1h", "kind": "incremental"})
    break_down(site)
    kinds = []
    for hour in range(8):
        if hour == 5:
            mend(site)
        with shop.project() as project:
            scheduler = Scheduler(project, project.connection)
            scheduler.plan()
            shop.clock.advance(HOUR_S)
            scheduler.tick()
            shop.work(project)
            kinds.append(project.connection.runs.newest(limit=1)[0].kind.value)
    assert kinds == [*["incremental"] * 3, *["probe"] * 4, "incremental"]


def test_schedule_without_a_kind_starts_full_runs(shop: Shop) -> None:
    shop.write(schedule={"every": "1h"})
    with shop.project() as project:
        scheduler = Scheduler(project, project.connection)
        scheduler.plan()
        shop.clock.advance(HOUR_S)
        scheduler.tick()
        assert project.connection.runs.newest(limit=1)[0].kind is RunKind.FULL


def test_kind_that_needs_more_is_refused_with_the_command_that_asks_for_it(shop: Shop) -> None:
    with shop.project() as project:
        for kind, command in COMMANDS.items():
            with pytest.raises(UsageError, match=f"a {kind} needs more") as refused:
                project.run("shop.example", kind)
            assert refused.value.hint == command
        with pytest.raises(UsageError, match="no kind of run 'ful'") as refused:
            project.run("shop.example", "ful")
        assert "full" in refused.value.hint
    assert {*KINDS, *COMMANDS} == set(RunKind)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"degrade_after": -1}, "degrade_after: must be from 0 to 1000"),
        ({"degrade_after": "often"}, "degrade_after: must be a number"),
        ({"degrade_after": 2.5}, "degrade_after: must be a whole number"),
        ({"good_probes": 0}, "good_probes: must be from 1 to 1000"),
        ({"schedule": {"every": "1h", "kind": "incremantal"}}, "did you mean 'incremental'"),
        ({"schedule": {"every": "1h", "kind": "backfill"}}, "kind: must not be 'backfill'"),
        ({"schedule": {"kind": "probe"}}, "needs one of every, cron"),
    ],
)
def test_configuration_that_makes_no_sense_is_told(
    shop: Shop, source: dict[str, Any], problem: str
) -> None:
    shop.write(**source)
    with pytest.raises(ConfigError, match=problem), shop.project():
        pass


# As a table, without a store.

BAD = HealthRow(bad_runs=2, bad_run_id=2)
DEGRADED = HealthRow(3, 3, 1, 100.0, "because")


def end(kind: RunKind, state: RunState, run_id: int = 9, is_good: bool = False) -> RunEnd:
    return RunEnd(1, run_id, kind, NO_OPTIONS, state, "", is_good)


@pytest.mark.parametrize(
    ("before", "ended", "bad_runs", "good_probes", "is_degraded"),
    [
        (HealthRow(), end(RunKind.FULL, RunState.FAILED), 1, 0, False),
        (BAD, end(RunKind.FULL, RunState.FAILED), 3, 0, True),
        (BAD, end(RunKind.INCREMENTAL, RunState.FAILED), 3, 0, True),
        (BAD, end(RunKind.FULL, RunState.FAILED, run_id=2), 2, 0, False),
        (BAD, end(RunKind.FULL, RunState.PARTIAL), 0, 0, False),
        (BAD, end(RunKind.INCREMENTAL, RunState.COMPLETED), 0, 0, False),
        (BAD, end(RunKind.PROBE, RunState.FAILED), 2, 0, False),
        (DEGRADED, end(RunKind.FULL, RunState.FAILED), 4, 1, True),
        (DEGRADED, end(RunKind.FULL, RunState.PARTIAL), 0, 1, True),
        (DEGRADED, end(RunKind.FULL, RunState.COMPLETED), 0, 0, False),
        (DEGRADED, end(RunKind.PROBE, RunState.FAILED), 3, 0, True),
        (DEGRADED, end(RunKind.PROBE, RunState.COMPLETED, is_good=True), 0, 0, False),
        (DEGRADED, end(RunKind.PROBE, RunState.PARTIAL, is_good=True), 0, 0, False),
    ],
)
def test_health_after_each_end(
    before: HealthRow, ended: RunEnd, bad_runs: int, good_probes: int, is_degraded: bool
) -> None:
    after = judged(before, ended, 200.0)
    assert (after.bad_runs, after.good_probes) == (bad_runs, good_probes)
    assert (after.degraded_at is not None) is is_degraded
    if before.degraded_at is not None and is_degraded:
        assert after.degraded_at == before.degraded_at


def test_no_order_of_ends_leads_where_probes_do_not_lead_back_from() -> None:
    outcomes = [
        (kind, state)
        for kind in (RunKind.FULL, RunKind.PROBE)
        for state in (RunState.FAILED, RunState.PARTIAL, RunState.COMPLETED)
    ]
    for walk in itertools.product(outcomes, repeat=5):
        health = HealthRow()
        for number, (kind, state) in enumerate(walk):
            options = RunOptions(degrade_after=2)
            good = kind is RunKind.PROBE and state is RunState.COMPLETED
            health = judged(health, RunEnd(1, number, kind, options, state, "", good), 1.0)
        for number in range(2):
            good_probe = RunEnd(
                1, 90 + number, RunKind.PROBE, NO_OPTIONS, RunState.COMPLETED, "", True
            )
            health = judged(health, good_probe, 2.0)
        assert health.degraded_at is None


def test_changed_pipeline_is_taken_for_healthy_when_somebody_runs_it(
    shop: Shop, site: Site
) -> None:
    degrade(shop, site)
    with shop.project() as project, pytest.raises(Refused, match="is degraded"):
        project.run("shop.example")

    module = next(shop.folder.glob("*.py"))
    module.write_text(module.read_text() + "\n# mended\n")
    with shop.project() as project:
        project.run("shop.example")
        assert (
            project.connection.sources.health(project.source_ids["shop.example"]).degraded_at
            is None
        )
    [event] = [event for event in told(shop) if event.kind == "source.recovered"]
    assert event.detail == "its pipeline has a new version"


def test_runs_tried_at_a_terminal_do_not_degrade_their_source(shop: Shop) -> None:
    with shop.project() as project:
        tried = project.start_run("shop.example", asked=Asked(is_by_hand=True))
        scheduled = project.start_run("shop.example")
    assert (tried.options.is_tried, scheduled.options.is_tried) == (True, False)
