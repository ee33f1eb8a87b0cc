"""Quarantine, from the command line: what an operator sees of failures, and what they can do about them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.job import JobState
from tests.journeys.rig import ENVIRONMENT, Rig

STEPS = """
import os
from pathlib import Path

from penstock import AuthFailed, BadData, Pipeline, Transient

here = Path(__file__).parent
shop = Pipeline("shop")


@shop.step(unit="run")
def discover(ctx):
    for n in range(8):
        yield {"n": n, "note": "=1+1"}


@shop.step(after="discover", unit="page", key="n")
def extract(page, ctx):
    with open(here / "tried", "a") as file:
        file.write(f"{page['n']}\\n")
    if (here / "mended").exists():
        return page
    if page["n"] < 4:
        raise BadData(f"no price, asked with {ctx.params['token']}", cause="selector .price")
    if page["n"] == 4:
        raise AuthFailed("=cmd|' /C calc'!A0")
    if page["n"] == 5:
        raise Transient("not now", cause="the shop is closed")
    return page


@shop.step(after="extract", unit="candidate")
def persist(page, ctx):
    ctx.save("page", key=str(page["n"]), data=page)
"""
SECRET = "hunter2-hunter2"


class Command:
    def __init__(self, rig: Rig) -> None:
        self.rig = rig

    def ok(self, *words: str) -> str:
        done = self.rig.penstock("quarantine", *words)
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stdout + done.stderr
        return done.stdout

    def refused(self, *words: str) -> str:
        done = self.rig.penstock("quarantine", *words)
        assert done.returncode in (2, 7), done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr

    def entries(self, *filters: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.ok("list", "--json", *filters))
        return found

    def tried(self) -> list[int]:
        return [int(line) for line in (self.rig.folder / "tried").read_text().split()]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    source = {
        "pipeline": "steps:shop", "params": {"token": "${SHOP_TOKEN}"}, "breaker": "off",
        "limits": {"concurrency": 1},
    }  # fmt: skip
    monkeypatch.setitem(ENVIRONMENT, "SHOP_TOKEN", SECRET)
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    with Rig(tmp_path, {"shop": source}, STEPS) as rig:
        assert rig.penstock("run", "shop").returncode == 3
        yield Command(rig)


def test_operator_finds_what_failed_mends_it_and_releases_it(command: Command) -> None:
    # What fails fast was tried once, what may pass four times.
    tried = command.tried()
    assert [tried.count(n) for n in range(8)] == [1, 1, 1, 1, 1, 4, 1, 1]
    found = command.entries()
    assert [(each["kind"], each["quarantines"]) for each in found] == [
        *[("data", 1)] * 4, ("auth", 1), ("transient", 1),
    ]  # fmt: skip
    # Four pages failed at one selector: a person has to look.
    escalated = command.entries("--escalated")
    assert [each["cause"] for each in escalated] == ["selector .price"] * 4
    shown = command.ok("show", str(escalated[0]["job"]))
    for part in (
        "selector .price",
        "no price, asked with ***",
        "steps.py",
        '"n":0',
        "release --job",
    ):
        assert part in shown
    told = command.ok("list", "--kind", "data")
    assert "! selector .price" in told

    job = str(escalated[0]["job"])
    command.ok("note", job, "asked the shop")
    assert "asked the shop" in command.ok("show", job)

    selection = ("release", "--cause", "selector .price", "--since", "1h")
    assert "would release 4 jobs; nothing was changed" in command.ok(*selection, "--dry-run")
    assert "Release 4 jobs from quarantine? There is no terminal to answer in" in command.refused(
        *selection
    )
    assert len(command.entries()) == 6
    (command.rig.folder / "mended").touch()
    told = command.ok(*selection, "--yes", "--reason", "the parser is mended")
    assert "4 jobs released" in told
    assert command.rig.penstock("up", "--until-idle").returncode in (0, 3)

    assert [each["kind"] for each in command.entries()] == ["auth", "transient"]
    assert {row.key for row in command.rig.store.records.of("page")} == {
        "0",
        "1",
        "2",
        "3",
        "6",
        "7",
    }
    events = command.rig.events("quarantine.released")
    assert {event.detail for event in events} == {"the parser is mended"}
    assert len(events) == 4


def test_committed_replay_closes_the_entries_of_the_pages_that_it_did(command: Command) -> None:
    (command.rig.folder / "mended").touch()
    assert command.rig.penstock("replay", "1", "--quarantined").returncode == 0

    done = command.rig.penstock("replay", "2", "--commit", "--yes")

    assert "committed: 6 added" in done.stdout
    assert "penstock undo 2" in done.stdout
    assert "quarantine" not in done.stdout
    assert command.entries() == []
    closed = command.entries("--closed", "--run", "1")
    assert len(closed) == 6
    assert "of run 2 succeeded" in closed[0]["closed_why"]
    assert "of run 2 succeeded" in command.ok("show", str(closed[0]["job"]))


def test_second_failure_keeps_one_entry_and_counts(command: Command) -> None:
    [entry] = command.entries("--kind", "auth")
    command.ok("release", "--job", str(entry["job"]), "--yes")
    assert command.rig.penstock("up", "--until-idle").returncode in (0, 3)

    [again] = command.entries("--kind", "auth")
    assert (again["job"], again["quarantines"], again["attempt"]) == (entry["job"], 2, 2)
    assert again["first_at"] == entry["first_at"] < again["since"]


def test_what_is_given_up_is_cancelled_and_nothing_else_is(command: Command) -> None:
    assert "1 job discarded" in command.ok("discard", "--kind", "auth", "--yes", "--reason", "old")

    assert [each["kind"] for each in command.entries()] == [*["data"] * 4, "transient"]
    assert len(command.rig.jobs(JobState.CANCELLED)) == 1
    [event] = command.rig.events("quarantine.discarded")
    assert event.detail == "old"
    assert "no matching entries in quarantine" in command.refused(
        "discard", "--kind", "auth", "--yes"
    )


def test_export_has_everything_and_nothing_that_a_spreadsheet_would_run(command: Command) -> None:
    lines = [json.loads(line) for line in command.ok("export").splitlines()]
    assert len(lines) == 6
    assert lines[0]["item"] == {"n": 0, "note": "=1+1"}
    assert "raise BadData" in lines[0]["traceback"]
    assert lines[0]["error"] == "BadData: no price, asked with ***"

    rows = list(csv.DictReader(io.StringIO(command.ok("export", "--format", "csv"))))
    assert [row["kind"] for row in rows] == [*["data"] * 4, "auth", "transient"]
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())


MISTAKES = [
    ("release", "release what? A filter such as --run RUN, --cause CAUSE, or --all"),
    ("discard --all --run 1", "discard what?"),
    ("list --kind dta", "there is no kind 'dta'"),
    ("list --source shp", "has no source 'shp'"),
    ("list --run 99", "there is no run 99"),
    ("list --since yesterday", "--since can't be 'yesterday'"),
    ("release --job 99 --yes", "there is no job 99"),
    ("release --cause selector --yes", "did you mean 'selector .price'?"),
    ("show 1", "job 1 is succeeded, not quarantined"),
    ("show 99", "there is no job 99"),
    ("note 1 hello", "job 1 is not in quarantine"),
    ("shwo", "there is no command 'shwo'"),
    ("", "VERB"),
]


def test_mistakes_are_told_in_a_line(command: Command) -> None:
    for words, told in MISTAKES:
        assert told in command.refused(*words.split())
