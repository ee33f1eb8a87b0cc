"""Cadence auto on virtual time: the leader moves a source by its runs, a person sets and undoes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.entry import main
from penstock.engine.leader.cadences import CadenceChore, set_cadence, undo_cadence
from penstock.engine.leader.scheduler import Scheduler
from penstock.errors import Refused, UsageError
from penstock.project import Project
from penstock.schedules.auto import LOST_PROBES
from penstock.schedules.cadence import Cadence
from penstock.testing import journal
from tests.unit.site import Shop, Site

KEY = "shop.example"


@pytest.fixture
def site() -> Site:
    made = Site()
    made.page("/a", "one")
    made.page("/b", "two")
    return made


@pytest.fixture
def shop(tmp_path: Path, site: Site) -> Shop:
    return Shop(tmp_path / "project", site)


def auto(shop: Shop, **more: Any) -> None:
    shop.write(schedule={"cadence": "auto", **more})
    with shop.project() as project:
        Scheduler(project, project.connection).plan()
        look(project)


def look(project: Project) -> int:
    return CadenceChore(project, project.connection).look()


def told(project: Project) -> list[tuple[str, str]]:
    events = [event for event in journal(project) if event.kind.startswith("cadence.")]
    return [(event.kind, event.detail) for event in events]


def run_quietly(shop: Shop, runs: int) -> None:
    for _ in range(runs):
        shop.run("full")
        shop.later(1)


def due(project: Project) -> float | None:
    [row] = project.connection.schedules.all()
    return row.next_due_at


def planned_words(project: Project) -> str:
    [row] = project.connection.schedules.all()
    return row.words


def test_a_source_that_is_as_it_was_becomes_slower_and_so_does_its_schedule(shop: Shop) -> None:
    shop.write(schedule={"cadence": "auto"})
    shop.run("full")  # everything is new: before it was looked at
    auto(shop)
    run_quietly(shop, 3)
    with shop.project() as project:
        assert look(project) == 1
        assert look(project) == 0
        [row] = project.connection.cadences.all()
        assert (row.level, row.before) == ("low", "medium")
        [(kind, detail)] = told(project)
        assert kind == "cadence.changed"
        assert detail.startswith("medium to low: 3 runs in a row; in run 4 100% of what it saw")
        expected = Cadence("low", KEY).next_due(project.connection.now())
        assert due(project) == pytest.approx(expected, abs=0.01)
        rule = Scheduler(project, project.connection).rule(
            row.source_id, KEY, project.settings.sources[KEY].schedules[0]
        )
        assert rule.words() == "weekly (low)"
        assert planned_words(project) == "auto: weekly (low), moved from medium"
        Scheduler(project, project.connection).plan()
        assert planned_words(project) == "auto: weekly (low), moved from medium"


def test_suggest_only_proposes_and_once(shop: Shop) -> None:
    shop.write(schedule={"cadence": "auto"})
    shop.run("full")
    auto(shop, mode="suggest")
    with shop.project() as project:
        before = due(project)
    for _ in range(3):
        run_quietly(shop, 3)
        with shop.project() as project:
            look(project)
    with shop.project() as project:
        [row] = project.connection.cadences.all()
        assert (row.level, row.proposed) == ("medium", "low")
        assert [kind for kind, _ in told(project)] == ["cadence.proposed"]
        assert planned_words(project) == "auto: every 2 to 3 days (medium), low is proposed"
        assert due(project) == before


def test_a_person_sets_a_class_and_undoes_it(shop: Shop) -> None:
    auto(shop, slowest="medium")
    with shop.project() as project:
        with pytest.raises(Refused, match="nothing to undo"):
            undo_cadence(project, KEY, "ada", "")
        with pytest.raises(Refused, match="medium to high"):
            set_cadence(project, KEY, "low", "ada", "")
        assert set_cadence(project, KEY, "high", "ada", "it is a shop").level == "high"
        with pytest.raises(Refused, match="is high already"):
            set_cadence(project, KEY, "high", "ada", "")
        assert look(project) == 0
        assert undo_cadence(project, KEY, "ada", "it was quiet").level == "medium"
        assert told(project) == [
            ("cadence.changed", "medium to high: it is a shop"),
            ("cadence.changed", "high to medium: undone: it was quiet"),
        ]


def test_a_degraded_source_is_probed_and_returns_to_its_class(shop: Shop, site: Site) -> None:
    auto(shop)
    for page in site.pages.values():
        page.status = 410
    run_quietly(shop, 3)
    with shop.project() as project:
        assert look(project) == 1
        [row] = project.connection.cadences.all()
        assert (row.level, row.before) == ("probe", "medium")
        words = "auto: a probe every 2 days (probe), moved from medium"
        assert planned_words(project) == words
    for page in site.pages.values():
        page.status = 200
    shop.run("probe")
    with shop.project() as project:
        assert look(project) == 0
    shop.run("probe")
    with shop.project() as project:
        assert look(project) == 1
        assert project.connection.cadences.all()[0].level == "medium"
        assert told(project)[-1] == ("cadence.changed", "probe to medium: it is healthy again")
        assert planned_words(project) == "auto: every 2 to 3 days (medium), back from probes"


def test_a_source_begins_with_a_class_within_its_bounds(shop: Shop) -> None:
    auto(shop, slowest="high")
    with shop.project() as project:
        assert planned_words(project) == "auto: daily (high)"
        expected = Cadence("high", KEY).next_due(project.connection.now())
        assert due(project) == pytest.approx(expected, abs=0.01)


def test_the_commands_go_by_the_class_that_a_source_was_moved_to(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    auto(shop)
    where = ["--project", str(shop.folder)]
    assert main(["schedules", "cadence", *where, KEY, "--set", "high", "--reason", "a shop"]) == 0
    words = "auto: daily (high), moved from medium"
    for command in (["schedules"], ["schedules", "explain", KEY], ["sources"]):
        capsys.readouterr()
        assert main([*command, *where]) == 0
        assert words in capsys.readouterr().out, command
    assert main(["schedules", "explain", KEY, *where]) == 0
    assert ": a shop" in capsys.readouterr().out
    assert main(["schedules", "next", "--days", "7", "--json", *where]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 7


def test_a_source_that_is_not_even_probed_is_told_of_with_what_to_do(
    shop: Shop, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    auto(shop)
    for page in site.pages.values():
        page.status = 410
    run_quietly(shop, 3)
    with shop.project() as project:
        look(project)
    for _ in range(LOST_PROBES):
        shop.run("probe")
        shop.later(1)
    with shop.project() as project:
        assert look(project) == 1
    capsys.readouterr()
    for command in (["status"], ["schedules", "explain", KEY]):
        assert main([*command, "--project", str(shop.folder)]) == 0
        out = capsys.readouterr().out
        assert f"not even probed: {LOST_PROBES} probes in a row failed" in out
        assert f"penstock schedules cadence {KEY} --set medium" in out


def test_ticks_that_a_change_leaves_behind_are_those_of_the_class_it_was_moved_to(
    shop: Shop,
) -> None:
    auto(shop)
    with shop.project() as project:
        set_cadence(project, KEY, "high", "ada", "")
    shop.later(10)
    shop.write(schedule={"every": "1h"})
    with shop.project() as project:
        Scheduler(project, project.connection).plan()
        [row] = project.connection.schedules.all()
        [missed] = project.connection.schedules.tick_counts(row.source_id)
        assert (missed.outcome, missed.ticks) == ("missed", 10)


def test_the_command_says_who_has_no_class(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.write(schedule={"cadence": "high"})
    words = ["schedules", "cadence", "--project", str(shop.folder)]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("no source has a class yet")
    assert main([*words, KEY]) == UsageError("").exit_code


def test_the_command_shows_sets_and_refuses(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    auto(shop)
    words = ["schedules", "cadence", "--project", str(shop.folder)]
    assert main([*words, KEY, "--set", "low", "--reason", "they are away"]) == 0
    assert main([*words, "--json"]) == 0
    out = capsys.readouterr().out
    assert '"class":"low"' in out.replace(" ", "")
    assert "they are away" in out
    assert main([*words, "--undo"]) == 2
    assert main([*words, KEY, "--set", "daily"]) == 2
    assert main([*words, KEY, "--undo"]) == 0
    shop.write(schedule={"cadence": "high"})
    assert main([*words, KEY, "--set", "low"]) == UsageError("").exit_code
    assert "is not auto" in capsys.readouterr().err
