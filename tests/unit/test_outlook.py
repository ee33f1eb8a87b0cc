"""The outlook of a project: lists, explain and Python name the same gate, in the order of the claim."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Project
from penstock.cli.entry import main
from penstock.errors import Remedy, UsageError
from penstock.settings import load_settings
from penstock.store.sqlite.database import SqliteDatabase
from penstock.testing import VirtualClock
from tests.contract.scenes import PLAIN_STEPS

SETTINGS = """
project: shop
sources:
  acme.com: {pipeline: "steps:plain"}
  closed.example:
    pipeline: "steps:plain"
    limits: {windows: ["02:00-03:00"]}
  night.example:
    pipeline: "steps:plain"
    schedule: {every: 1h, windows: ["02:00-03:00"]}
  token.example: {pipeline: "steps:plain", params: {token: "${SHOP_TOKEN}"}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A Friday at 08:00."""
    (tmp_path / "steps.py").write_text(PLAIN_STEPS, "utf-8")
    (tmp_path / "penstock.yaml").write_text(SETTINGS, "utf-8")
    with Project(load_settings(tmp_path, None), VirtualClock()) as made:
        yield made


def stops(project: Project, source: str) -> list[str]:
    [seen] = project.outlook([source])
    return [stop.name for stop in seen.stops]


def test_list_tells_the_gate_that_the_claim_asks_first(project: Project) -> None:
    """It told of the cooldown, while explain and the workers went by the hours."""
    source_id = project.source_ids["closed.example"]
    project.breakers.open("closed.example", 3600, reason="down")
    project.connection._db.do(
        "cool_down", id=source_id, until=project.now() + 600, reason="Retry-After"
    )

    assert stops(project, "closed.example") == ["window", "breaker", "cooldown"]
    gates = [gate.name for gate in project.explain("closed.example").gates if not gate.is_open]
    assert [name for name in gates if name in ("window", "breaker", "cooldown")] == [
        "window",
        "breaker",
        "cooldown",
    ]


def test_gates_of_the_configuration_are_told_by_lists_and_by_explain(project: Project) -> None:
    _ = project.source_ids
    [seen] = project.outlook(["token.example"])
    said = project.explain("token.example")

    for answer in (seen, said):
        assert (answer.stands, answer.gate) == ("person", "variables")
        assert answer.gates[0].by == "SHOP_TOKEN is not set"
    assert [stop.name for stop in seen.stops] == ["variables"]


def test_next_run_is_not_before_the_hours_of_its_schedule(project: Project) -> None:
    from penstock.store.schedule_rows import Planned

    source_id, at = project.source_ids["night.example"], project.now() + 3600
    store = project.connection
    store.schedules.plan([Planned(source_id, "main", "{}", "every hour", "every", at)])

    [seen] = project.outlook(["night.example"])

    assert (seen.stands, seen.gate) == ("idle", "work")
    assert seen.opens_at == project.explain("night.example").opens_at
    assert seen.opens_at is not None
    assert seen.opens_at > at + 3600


def test_outlook_names_the_verb_that_helps(project: Project) -> None:
    project.runs.start("acme.com")
    project.sources.pause("ACME.com", reason="they are moving")

    [seen] = project.outlook(["https://acme.com/"])

    assert seen.remedy == Remedy("sources.resume", "acme.com")
    assert seen.as_json()["remedy"] == {"verb": "sources.resume", "target": "acme.com"}
    assert (seen.since, seen.command) == (project.now(), "penstock resume acme.com")


def test_outlook_of_a_source_that_is_new_in_the_file_writes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.connection.now()  # the file is made
    monkeypatch.setattr(SqliteDatabase, "writing", None)

    seen = {each.source: each for each in project.outlook()}

    assert list(seen) == ["acme.com", "closed.example", "night.example", "token.example"]
    assert (seen["acme.com"].stands, seen["acme.com"].gate) == ("idle", "work")
    assert [stop.name for stop in seen["closed.example"].stops] == ["window"]


def test_outlook_of_a_source_that_there_never_was(project: Project) -> None:
    with pytest.raises(UsageError) as refused:
        project.outlook(["acne.com"])
    assert refused.value.code == "no_source"
    assert "acme.com" in refused.value.hint


def test_sources_and_status_print_what_the_outlook_says(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.runs.start("acme.com")
    project.sources.pause("acme.com", reason="they are moving")
    folder = str(project.settings.root)

    assert main(["--project", folder, "sources"]) == 0
    told = capsys.readouterr().out
    assert "paused since" in told
    assert "the environment variable SHOP_TOKEN is not set" in told
    assert main(["--project", folder, "status"]) == 0
    assert "they are moving; penstock resume acme.com" in capsys.readouterr().out
    assert main(["--project", folder, "explain", "acme.com", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["gate"], said["verdict"]) == (
        "paused",
        "waits for you: penstock resume acme.com; penstock up",
    )
