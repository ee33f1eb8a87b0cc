"""The planning nouns of a project: schedules that will start something, and backfills that could be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock import Project
from penstock.app.views.schedules import UpcomingTick
from penstock.cli.remedies import hint_of
from penstock.engine.leader.scheduler import Scheduler
from penstock.errors import ConfigError, Refused, UsageError
from penstock.store.schedule_rows import Passing
from tests.contract.scenes import PLAIN_STEPS, Place

WINDOWS = """

@plain.step(after="look", unit="page", windows=True)
def fetch(ctx):
    pass
"""
DAILY, HOURLY = {"name": "daily", "cron": "30 2 * * *"}, {"name": "hourly", "every": "1h"}
YEAR = ("2024-01-01", "2024-12-31")
Open = Callable[..., Project]


@pytest.fixture
def opened(tmp_path: Path, place: Place) -> Iterator[Open]:
    """Opens the project as penstock.yaml would be with these schedules of acme.com."""
    (tmp_path / "steps.py").write_text(PLAIN_STEPS + WINDOWS)
    store = f"sqlite:{place}" if isinstance(place, Path) else place
    with ExitStack() as projects:

        def made(*schedules: dict[str, Any]) -> Project:
            backfill = {"window": "1d", "partitions": ["AAPL", "MSFT"]}
            sources = {"acme.com": {"schedule": list(schedules), "backfill": backfill}, "b": {}}
            settings = {"project": "planning", "store": store, "sources": sources}
            settings["defaults"] = {"pipeline": "steps:plain"}
            (tmp_path / "penstock.yaml").write_text(json.dumps(settings))
            return projects.enter_context(Project.open(tmp_path))

        yield made


def planned(project: Project) -> Project:
    Scheduler(project, project.connection).plan()
    return project


def test_change_of_the_file_is_a_difference_until_a_scheduler_reads_it(opened: Open) -> None:
    planned(opened(DAILY))
    project = opened({**DAILY, "missed": "skip"}, HOURLY)
    schedules = project.schedules

    changed, added = schedules.differences()
    assert (changed.name, changed.change, added.name, added.change) == (
        *("daily", "changed", "hourly"),
        "added",
    )
    assert [key.as_json() for key in changed.keys] == [
        {"key": "missed", "before": None, "after": "skip"}
    ]
    first = schedules.list(limit=1)
    [second] = schedules.list("ACME.com", limit=1, cursor=first.next).items
    assert [(row.name, row.is_planned) for row in (first.items[0], second)] == [
        ("daily", True),
        ("hourly", False),
    ]
    planned(project)
    assert schedules.differences() == []
    assert all(row.is_planned for row in schedules.each())
    newest = schedules.versions("acme.com", limit=2)
    [last] = schedules.versions("acme.com", limit=2, cursor=newest.next).items
    assert [(row.name, row.version) for row in (*newest.items, last)] == [
        ("daily", 1),
        ("daily", 2),
        ("hourly", 1),
    ]


def test_upcoming_ticks_in_pages_are_the_same_as_all_at_once(opened: Open) -> None:
    schedules = planned(opened(DAILY, HOURLY)).schedules
    found: list[UpcomingTick] = []
    cursor = None
    while cursor is not None or not found:
        page = schedules.upcoming("acme.com", days=2, limit=7, cursor=cursor)
        found, cursor = [*found, *page.items], page.next

    assert [row.at for row in found] == sorted(row.at for row in found)
    assert sum(row.schedule == "daily" for row in found) == 2
    # Two calls may straddle an hour.
    assert abs(len(found) - len([*schedules.each_upcoming(days=2)])) <= 1
    assert {row.schedule for row in schedules.each_upcoming(schedule="daily")} == {"daily"}


def test_ticks_of_a_schedule_are_paged_and_explained(opened: Open) -> None:
    project = planned(opened(HOURLY))
    store, schedules = project.connection, project.schedules
    [row] = store.schedules.due(store.now() + 7200)
    due = [round(row.due_at) - 3600.0 * n for n in range(1, 4)]
    store.schedules.pass_ticks(Passing(row, None, passed=due[::-1]))

    newest = schedules.ticks("acme.com", "hourly", limit=2)
    [oldest] = schedules.ticks("acme.com", "hourly", limit=2, cursor=newest.next).items
    assert [tick.due_at for tick in (*newest.items, oldest)] == due
    assert schedules.ticks("acme.com", "hourly", missed=False).items == []
    with pytest.raises(UsageError) as unknown:
        schedules.ticks("acme.com", "hourli")
    assert (unknown.value.code, unknown.value.hint) == ("no_schedule", "did you mean 'hourly'?")
    with pytest.raises(UsageError) as foreign:
        schedules.list(cursor=newest.next)
    assert foreign.value.code == "bad_cursor"
    found = schedules.explain("acme.com")
    assert [each.name for each in found.schedules] == ["hourly"]
    assert len(found.as_json()["schedules"][0]["ticks"]) == 3


def test_same_backfill_goes_on_and_a_dry_run_starts_nothing(opened: Open) -> None:
    backfills = opened().backfills
    plan = backfills.plan("ACME.com", *YEAR, ["AAPL"])
    assert (plan.source, plan.expected, plan.units, plan.missing) == ("acme.com", 366, 366, [])

    assert backfills.start("acme.com", *YEAR, dry_run=True).run is None
    first = backfills.start("acme.com", *YEAR, actor="ann", reason="a test")
    again = backfills.start("acme.com", *YEAR)
    beside = backfills.start("acme.com", *YEAR, new=True)

    assert (first.is_new, again.is_new, beside.is_new) == (True, False, True)
    assert first.run is not None
    assert again.run is not None
    assert (again.run.id, first.run.actor, first.run.reason) == (first.run.id, "ann", "a test")
    assert backfills.start("acme.com", *YEAR, missing=True, dry_run=True).is_new


def test_backfill_to_another_end_is_another_one_unless_it_is_until_now(opened: Open) -> None:
    backfills = opened().backfills
    start, end = YEAR
    backfills.start("acme.com", start, end)
    assert backfills.start("acme.com", start, "2025-06-30", dry_run=True).is_new
    assert backfills.start("acme.com", start, "2024-06-30", dry_run=True).is_new

    until_now = backfills.start("acme.com", start, "2999-12-31").run
    again = backfills.start("acme.com", start, "2999-12-31", dry_run=True).run
    assert until_now is not None
    assert again is not None
    assert again.id == until_now.id


def test_backfill_whose_end_would_not_come_is_refused_with_what_helps(opened: Open) -> None:
    project = opened()
    project.sources.hold("acme.com", actor="ann", reason="they are moving")

    with pytest.raises(Refused) as held:
        project.backfills.start("acme.com", *YEAR, awaited=True, dry_run=True)
    assert (held.value.code, held.value.message) == (
        "source_held",
        "acme.com is held by ann: they are moving",
    )
    assert hint_of(held.value) == "penstock unhold acme.com; --detach queues it for later"
    assert project.backfills.start("acme.com", *YEAR).is_new
    with pytest.raises(ConfigError) as unfit:
        project.backfills.plan("b", *YEAR)
    assert unfit.value.code == "no_backfill_settings"
    assert project.backfills.unknown_partitions("acme.com", ["AAPL", "MSFTT"]) == {
        "MSFTT": "did you mean 'MSFT'?"
    }
