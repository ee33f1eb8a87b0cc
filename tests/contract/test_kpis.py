"""KPIs on every store: numbers of a scripted incident, and no data where nothing happened."""

from __future__ import annotations

import pytest

from penstock.jobs.run import RunKind, RunOptions
from penstock.metrics.kpis import kpis as kpis_of_sums
from penstock.store import kpis
from tests.contract.scenes import SITE, World, a_save, done, quarantined, throttled

DAY_S = 86400.0
FOLDED = {
    "completion_ratio": "completion_without_restart",
    "mean_recovery_seconds": "mean_recovery_time",
    "duplicates_per_million": "duplicates_per_million",
    "throttling_incidents_per_week": "throttling_incidents_per_week",
    "operator_steps_per_recovery": "operator_steps_to_recover",
}


def numbers(world: World, days: float = 30.0, source: str | None = None) -> dict[str, float | None]:
    source_id = None if source is None else world.source(source)
    report = world.store.kpis.report(world.clock.now() - days * DAY_S, source_id)
    found = {each.name: each.value for each in report.kpis}
    if source is None:
        assert folded(world) == pytest.approx({n: v for n, v in found.items() if v is not None})
    return found


def folded(world: World) -> dict[str, float]:
    """The same numbers from the sums that metrics are made of: no line of the journal is read for them."""
    while world.store.rollups.fold():
        pass
    facts = world.store.metric_facts.read()
    found = kpis_of_sums(facts.kpi_sums, facts.now, facts.first_run_at)
    factor = {"completion_ratio": 100.0}
    return {FOLDED[name]: value * factor.get(name, 1.0) for name, value in found.items()}


def test_nothing_that_happened_is_no_data(world: World) -> None:
    assert set(numbers(world).values()) == {None}


def test_scripted_incident_is_told_in_five_numbers(world: World) -> None:
    # A worker dies under a page, which runs again 4 s later; then the provider asks to wait, twice within
    # a minute; a page fails, and is sent back by one command; at last all is well.
    run_id = world.start_with_pages(2)
    world.claim()
    world.store.workers.bury("w", "killed")
    world.register("w")
    world.clock.advance(4.0)
    one, two = world.claim()
    world.turn("w", throttled(one, 10.0), quarantined(two))
    world.clock.advance(30.0)
    one = world.one()
    world.turn("w", throttled(one, 10.0))
    world.clock.advance(30.0)
    one = world.one()
    world.turn("w", done(one, saves=[a_save("a", {"n": 1}), a_save("a", {"n": 1})]))
    assert world.run(run_id).state == "partial"
    assert numbers(world)["completion_without_restart"] == 0.0
    world.store.runs.retry_failed(run_id, "ana", "mended")
    world.turn("w", done(world.one(), saves=[a_save("b", {})]))
    assert world.run(run_id).state == "completed"

    assert numbers(world) == {
        "completion_without_restart": 100.0,
        "mean_recovery_time": pytest.approx(4.0),
        "duplicates_per_million": pytest.approx(1e6 / 3),
        "throttling_incidents_per_week": 1.0,
        "operator_steps_to_recover": 1.0,
    }


def test_incidents_that_are_far_apart_are_two(world: World) -> None:
    world.start_with_pages(1)
    for _ in range(2):
        world.turn("w", throttled(world.one(), 10.0))
        world.clock.advance(3600.0)

    assert numbers(world)["throttling_incidents_per_week"] == 2.0


def test_numbers_are_of_one_source_and_of_one_time(world: World) -> None:
    for source in ("acme.com", "other.org"):
        world.start(source=source)
        world.turn("w", done(world.one()))
    bad = world.start(source="other.org", key="bad")
    world.turn("w", quarantined(world.one()))
    assert world.run(bad).state == "failed"

    assert numbers(world)["completion_without_restart"] == pytest.approx(200 / 3)
    assert numbers(world, source="acme.com")["completion_without_restart"] == 100.0
    assert numbers(world, source="other.org")["completion_without_restart"] == 50.0
    world.clock.advance(40 * DAY_S)
    assert numbers(world)["completion_without_restart"] is None


def test_journal_that_is_too_long_is_read_from_its_end_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.start_with_pages(3)
    since = world.clock.now() - DAY_S
    assert world.store.kpis.report(since).journal_since is None

    monkeypatch.setattr(kpis, "NEWEST_LINES", 2)
    world.clock.advance(5.0)
    world.claim()

    assert world.store.kpis.report(since).journal_since == world.clock.now()


def test_time_that_a_project_was_down_belongs_to_its_recovery(world: World) -> None:
    world.start_with_pages(1)
    world.claim()
    lease_s = world.store.workers.all()[0].lease_expires_at - world.clock.now()
    world.clock.advance(20.0)  # killed at once, with whoever could have noticed

    died_at = world.store.workers.all()[0].lease_expires_at - lease_s
    world.store.workers.bury("w", "it was gone when Penstock started", died_at)
    world.register("w")
    world.clock.advance(1.0)
    world.claim()

    assert numbers(world)["mean_recovery_time"] == pytest.approx(21.0)


def test_lost_host_is_missed_since_its_last_sign_of_life(world: World) -> None:
    world.start_with_pages(1)
    world.claim()
    world.clock.advance(18.0)
    assert world.store.workers.bury_if_expired("w", "its lease ran out") is not None
    world.register("w")
    world.clock.advance(1.0)
    world.claim()

    assert numbers(world)["mean_recovery_time"] == pytest.approx(19.0)


def test_cancelled_backfill_that_was_started_over_is_no_completion_without_restart(
    world: World,
) -> None:
    january = RunOptions(start_at=0.0, end_at=31 * DAY_S)
    july = RunOptions(start_at=180 * DAY_S, end_at=210 * DAY_S)

    def backfill(options: RunOptions, key: str) -> int:
        about = (world.source(), RunKind.BACKFILL, SITE, "v1")
        run_id, _ = world.store.runs.start(*about, key=key, actor="ana", options=options)
        return run_id

    first = backfill(january, "first")
    world.claim()
    world.store.runs.cancel(first, "ana", "wrong limits")
    while world.store.runs.sweep_cancelled():
        pass
    other = backfill(july, "other")
    world.turn("w", done(world.one()))
    assert (world.run(other).state, numbers(world)["completion_without_restart"]) == (
        "completed", 100.0,
    )  # fmt: skip

    backfill(january, "second")
    world.turn("w", done(world.one()))

    assert numbers(world)["completion_without_restart"] == pytest.approx(200 / 3)
