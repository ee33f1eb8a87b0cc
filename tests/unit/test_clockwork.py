"""The clockwork: what is due is looked at when it is due, and nothing is looked at all the time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.cli.entry import main
from penstock.engine.leader.leader_loop import LOOK_S, LeaderLoop
from penstock.project import Project
from penstock.schedules.calendars import known_until
from penstock.store.schedule_rows import Planned
from penstock.testing import VirtualClock
from tests.journeys.rig import PAGES


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    sources = {"a": {"pipeline": "steps:pages", "schedule": {"every": "10s"}}}
    (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": sources}))
    (tmp_path / "steps.py").write_text(PAGES)
    with Project.open(tmp_path) as opened:
        opened.clock = VirtualClock()
        yield opened


def test_a_tick_that_comes_soon_is_not_slept_over(project: Project) -> None:
    clock = project.clock
    assert isinstance(clock, VirtualClock)
    with closing(LeaderLoop(project, project.open_store(), "me")) as clockwork:
        clockwork.look()
        assert clockwork.rest_s == LOOK_S
        clock.advance(9.7)
        clockwork.look()
        assert clockwork.rest_s == pytest.approx(0.3, abs=0.01)
        clock.advance(clockwork.rest_s)
        clockwork.look()
        assert clockwork.rest_s == LOOK_S
        [row] = project.connection.schedules.all()
        assert row.last_started_at == pytest.approx(row.last_due_at, abs=0.01)


def test_a_tick_that_waits_says_for_which_run(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    clock, root = project.clock, project.settings.root
    assert isinstance(clock, VirtualClock)
    config = json.loads((root / "penstock.yaml").read_text())
    config["sources"]["a"]["schedule"]["overlap"] = "queue"
    (root / "penstock.yaml").write_text(json.dumps(config))
    with Project.open(root) as queueing:
        queueing.clock = clock
        with closing(LeaderLoop(queueing, queueing.open_store(), "me")) as clockwork:
            for _ in range(3):
                clockwork.look()
                clock.advance(10.0)
        [run] = queueing.connection.runs.newest()
    for words in (["schedules"], ["schedules", "explain", "a"]):
        assert main([*words, "--project", str(root)]) == 0
        assert f"due, and waits for run {run.id} to end" in capsys.readouterr().out


def rewritten(project: Project, schedule: dict[str, object]) -> Project:
    root = project.settings.root
    config = json.loads((root / "penstock.yaml").read_text())
    config["sources"]["a"]["schedule"] = schedule
    (root / "penstock.yaml").write_text(json.dumps(config))
    found = Project.open(root)
    found.clock = project.clock
    return found


def test_the_end_of_a_calendar_is_told_once_before_it_comes(project: Project) -> None:
    clock = project.clock
    assert isinstance(clock, VirtualClock)
    with rewritten(project, {"session": {"calendar": "XSHG"}}) as markets:
        clock.advance(known_until("XSHG") - 20 * 86_400.0 - markets.connection.now())
        for _ in range(3):
            with closing(LeaderLoop(markets, markets.open_store(), "me")) as clockwork:
                clockwork.look()
                clock.advance(3601.0)
                clockwork.look()
        [signal] = markets.connection.signals.newest("calendar.ending")
        assert signal.data["schedules"] == ["a main"]


def test_ticks_to_be_made_up_for_keep_it_from_being_settled(project: Project) -> None:
    clock = project.clock
    assert isinstance(clock, VirtualClock)
    schedule = {"every": "1h", "missed": "all", "catch_up": 1}
    with rewritten(project, schedule) as patient:
        with closing(LeaderLoop(patient, patient.open_store(), "me")) as clockwork:
            clockwork.look()
            assert clockwork.is_settled
        clock.advance(3 * 3600.0 + 61.0)
        for _ in range(2):
            # Another process finds it so, too: what waits stands in the database.
            with closing(LeaderLoop(patient, patient.open_store(), "me")) as clockwork:
                clockwork.look()
                assert not clockwork.is_settled
                clock.advance(1.0)


def test_what_is_left_to_another_configuration_is_not_looked_at_all_the_time(
    project: Project,
) -> None:
    clock = project.clock
    assert isinstance(clock, VirtualClock)
    with closing(LeaderLoop(project, project.open_store(), "me")) as clockwork:
        clockwork.look()
        other = Planned(project.source_ids["a"], "main", "{}", "", "every", clock.now() + 5.0)
        project.connection.schedules.plan([other])
        clock.advance(5.0)
        clockwork.look()
        assert clockwork.rest_s == LOOK_S


def test_a_source_without_a_schedule_is_said_to_run_by_hand(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    root = project.settings.root
    assert main(["schedules", "explain", "a", "--project", str(root)]) == 0
    assert "in force yet; penstock schedules diff" in capsys.readouterr().out
    (root / "penstock.yaml").write_text("sources: {a: {pipeline: 'steps:pages'}}")
    assert main(["schedules", "explain", "a", "--project", str(root)]) == 0
    assert "it runs by hand only; penstock run a" in capsys.readouterr().out
