"""The references in docs/ say what the code does."""

from __future__ import annotations

import dataclasses
import inspect
import re
import runpy
import tomllib
from datetime import datetime, timedelta
from importlib.metadata import metadata
from operator import attrgetter
from pathlib import Path
from typing import Any, cast, get_args
from zoneinfo import ZoneInfo

import msgspec
import pytest

from penstock import Pipeline, Project
from penstock.jobs.job import DEFAULT_PRIORITY
from penstock.jobs.retry import MAX_DEATHS, MAX_THROTTLES, RETRY_CLASSES
from penstock.jobs.run import RunKind, RunState
from penstock.schedules import Cron, schedule_from
from penstock.settings import (
    BackfillSettings,
    BreakerSettings,
    FetchPolicy,
    Limits,
    Retention,
    ScheduleSettings,
    Settings,
    SourceSettings,
    StreamSettings,
    WorkerSettings,
    load_settings,
)
from penstock.settings.schedule import KEYS, MISSED, OVERLAPS, POLICIES
from penstock.settings.values import WatchSettings
from penstock.store.hooks import body_of
from penstock.store.rows import CauseOfRun, RunRow
from penstock.store.schedule_rows import Outcome

DOCS = Path(__file__).parents[2] / "docs"
PIPELINES = (DOCS / "pipelines.md").read_text()
CONFIGURATION = (DOCS / "configuration.md").read_text()
SCHEDULES = (DOCS / "schedules.md").read_text()


def fields(values: Any) -> tuple[Any, ...]:
    """Of a Struct or of a dataclass."""
    if dataclasses.is_dataclass(values):
        return dataclasses.fields(values)
    return msgspec.structs.fields(values)


def rows(text: str, heading: str) -> list[list[str]]:
    """The first table after a heading, without its head."""
    body = text.split(heading, 1)[1]
    table = body[body.index("|---") :].split("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def seconds(text: str) -> float:
    found = re.fullmatch(r"([\d.]+) (s|min|h)", text)
    assert found is not None, text
    number, unit = found.groups()
    return float(number) * {"s": 1, "min": 60, "h": 3600}[unit]


def test_retry_classes_are_documented_with_their_numbers() -> None:
    documented = {
        row[0].strip("` "): (int(row[1]), seconds(row[2]), seconds(row[3]))
        for row in rows(PIPELINES, "## Retry classes")
    }
    assert documented == {name: (c.tries, c.base_s, c.cap_s) for name, c in RETRY_CLASSES.items()}
    assert f"throttled {MAX_THROTTLES} times" in PIPELINES
    assert MAX_DEATHS == 3
    assert "three it is quarantined as poison" in PIPELINES


def test_every_argument_of_a_step_is_documented() -> None:
    documented = [row[0].strip("`") for row in rows(PIPELINES, "## `@pipeline.step(…)`")]
    signature = inspect.signature(Pipeline.step)
    assert documented == [name for name in signature.parameters if name != "self"]


def test_the_ends_of_a_run_are_documented() -> None:
    documented = {row[0].strip("`") for row in rows(PIPELINES, "## How a run ends")}
    assert documented == {
        RunState.COMPLETED, RunState.PARTIAL, RunState.FAILED, RunState.CANCELLED,
    }  # fmt: skip


def documented_keys(prefix: str) -> set[str]:
    names = re.findall(r"`([\w.]+)`", "\n".join(r[0] for r in rows(CONFIGURATION, "# `penstock")))
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}


@pytest.mark.parametrize(
    ("prefix", "values", "internal"),
    [
        ("worker.", WorkerSettings, set()),
        ("retention.", Retention, set()),
        ("sources.KEY.limits.", Limits, set()),
        ("sources.KEY.breaker.", BreakerSettings, set()),
        ("sources.KEY.stream.", StreamSettings, set()),
        ("sources.KEY.backfill.", BackfillSettings, set()),
        (
            "sources.KEY.fetch.",
            FetchPolicy,
            {"addresses", "connections", "rate_per_s", "has_breaker"},
        ),
    ],
)
def test_every_key_of_the_configuration_is_documented(
    prefix: str, values: type, internal: set[str]
) -> None:
    # Units are in the names of values, not in the names of keys: `grace_s` is read from `grace`.
    known = {f.name for f in fields(values) if f.name not in internal}
    expected = {name.removesuffix("_per_s").removesuffix("_s") for name in known}
    assert documented_keys(prefix) == expected


def test_every_key_of_a_source_and_of_the_project_is_documented() -> None:
    known = {f.name.removesuffix("_s") for f in fields(SourceSettings)}
    # Each of its schedules is read from the same key; the schemas are those of the project's collections.
    of_source = known - {"key", "schedules", "schemas", "unset", "options"} | {"schedule"}
    documented = {key.split(".")[0] for key in documented_keys("sources.KEY.")}
    assert documented == of_source
    of_project = {f.name for f in fields(Settings)}
    derived = {"root", "file", "environment", "cell", "secrets", "unset", "warnings"}
    # Defaults are laid under the sources, and leave nothing of their own.
    written = of_project - derived | {"defaults"}
    assert {key.split(".")[0] for key in documented_keys("")} == written


def test_the_default_priority_is_documented() -> None:
    assert f"else {DEFAULT_PRIORITY}" in PIPELINES


# Schedules.


def schedule_examples() -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", SCHEDULES, flags=re.DOTALL)


@pytest.mark.parametrize("example", schedule_examples())
def test_every_example_of_a_schedule_can_be_used(example: str, tmp_path: Path) -> None:
    source = "sources:\n  other: {pipeline: p:p}\n  acme.com:\n    pipeline: p:p\n"
    text = "".join(f"    {line}\n" for line in example.splitlines())
    (tmp_path / "penstock.yaml").write_text(source + text)
    schedules = load_settings(tmp_path, environ={}).sources["acme.com"].schedules
    assert schedules
    for each in schedules:
        schedule_from(each, "acme.com").next_due(1.8e9)


def test_every_policy_has_an_example_and_every_key_a_row() -> None:
    named = {row[0].strip("`").partition(":")[0] for row in rows(SCHEDULES, "## Policies")}
    assert named == {*POLICIES, "manual"}
    keys = [row[0].strip("`") for row in rows(SCHEDULES, "## What every schedule takes")]
    assert len(keys) == len(set(keys))
    assert set(keys) == set(KEYS) - set(POLICIES)
    examples = "".join(schedule_examples())
    assert all(f"{policy}:" in examples for policy in POLICIES)


def test_the_defaults_of_schedules_are_documented() -> None:
    said = {row[0].strip("`"): row[3] for row in rows(SCHEDULES, "## What every schedule takes")}
    usual, watch = ScheduleSettings(), WatchSettings("")
    assert said["name"] == f"`{usual.name}`"
    assert said["kind"].startswith(f"`{usual.run_kind}`;")
    assert said["timezone"] == f"`{usual.timezone}`"
    assert said["missed"] == f"`{usual.missed}`"
    assert said["catch_up"] == f"{usual.catch_up_per_min:g}"
    assert said["overlap"].startswith(f"`{usual.overlap}`;")
    assert said["mode"] == f"`{usual.mode}`"
    assert said["runs"] == f"{usual.runs}"
    assert (said["slowest"], said["fastest"]) == (f"`{usual.slowest}`", f"`{usual.fastest}`")
    assert said["debounce"] == f"`{watch.debounce_s:g}s`"
    assert said["rescan"] == f"`{watch.rescan_s:g}s`"


def test_the_outcomes_of_ticks_and_the_choices_are_documented() -> None:
    outcomes = [row[0].strip("`") for row in rows(SCHEDULES, "## What is recorded")]
    assert outcomes == list(get_args(Outcome))
    assert [r[0].strip("`") for r in rows(SCHEDULES, "## Missed ticks")] == list(MISSED)
    assert [r[0].strip("`") for r in rows(SCHEDULES, "## When the run before")] == list(OVERLAPS)


@pytest.mark.parametrize(
    ("expression", "spring", "autumn"),
    [
        ("30 2 * * *", ["03:00"], ["02:30"]),
        ("0,20,40 2 * * *", ["03:00"], ["02:00", "02:20", "02:40"]),
        ("0 * * * *", 23, 25),
    ],
)
def test_what_the_page_says_of_clocks_is_so(
    expression: str, spring: list[str] | int, autumn: list[str] | int
) -> None:
    assert f"`{expression}`" in SCHEDULES
    zone, cron = ZoneInfo("Europe/Paris"), Cron(expression, "Europe/Paris")
    for day, expected in (
        (datetime(2026, 3, 29, tzinfo=zone), spring),
        (datetime(2026, 10, 25, tzinfo=zone), autumn),
    ):
        moment, end, found = day.timestamp() - 1, (day + timedelta(days=1)).timestamp(), []
        while (due := cron.next_due(moment)) is not None and due < end:
            found.append(f"{datetime.fromtimestamp(due, zone):%H:%M}")
            moment = due
        assert (len(found) if isinstance(expected, int) else found) == expected


def test_what_a_hook_is_told_is_documented() -> None:
    about = (9, 1, "prices", RunKind.FULL, RunState.COMPLETED, "ops", "", "v1")
    errors = [CauseOfRun("selector .price", 2, 7, "data", "no price")]
    body = body_of(RunRow(*about, 1.0, 1.0, 2.0, 0, 0, 0, 0, 0, 0), "", errors)
    names = ["project", *body]
    for part in ("records", "jobs"):
        names += cast(dict[str, int], body[part])
    names += cast(list[dict[str, object]], body["errors"])[0]

    section = CONFIGURATION.split("## Hooks")[1].split("\n## ")[0]

    assert [name for name in names if f"`{name}`" not in section] == []


PYTHON = (DOCS / "python.md").read_text()


def test_every_verb_of_a_program_is_there(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text("sources: {}")
    project = Project.open(tmp_path)
    named = set(re.findall(r"\bproject\.([a-z_.]+)\(", PYTHON))
    assert len(named) > 20
    for name in sorted(named):
        assert callable(attrgetter(name)(project)), name


def test_the_program_does_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "shop-watch"
    folder.mkdir()
    (folder / "penstock.yaml").write_text("sources: {acme.com: {pipeline: 'documented:shop'}}")
    (folder / "documented.py").write_text(
        "from penstock import Pipeline\nshop = Pipeline('shop')\n\n"
        "@shop.step(unit='run')\ndef look(ctx):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(folder)

    program = tmp_path / "program.py"
    program.write_text(re.findall(r"```python\n(.*?)```", PYTHON, re.DOTALL)[0])
    runpy.run_path(str(program))

    assert capsys.readouterr().out.split() == ["person", "cancelled"]


def test_only_the_driver_for_postgres_has_a_licence_that_asks_for_more() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
    extras = [each for some in project["optional-dependencies"].values() for each in some]
    names = {re.split(r"[\[<>=]", each)[0] for each in (*project["dependencies"], *extras)}
    # Where there is a choice, as of dulwich (Apache-2.0 OR GPL-2.0-or-later), the other licence will do.
    copyleft = {name for name in names if all("GPL" in each for each in choices_of(name))}
    assert copyleft == {"psycopg"}
    assert "psycopg" in (DOCS.parent / "README.md").read_text()


def choices_of(name: str) -> list[str]:
    return licence_of(name).split(" OR ")


def licence_of(name: str) -> str:
    """As its package names it; where it has the whole text instead, it has a classifier, too."""
    about = metadata(name)
    told = [*(about.get_all("License-Expression") or []), *(about.get_all("License") or [])]
    told += [each for each in about.get_all("Classifier") or [] if "License" in each]
    return " ".join(each for each in told if "\n" not in each)
