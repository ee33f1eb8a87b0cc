"""The references in docs/ say what the code does."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from penstock import Pipeline
from penstock.jobs.job import DEFAULT_PRIORITY
from penstock.jobs.retry import MAX_DEATHS, MAX_THROTTLES, RETRY_CLASSES
from penstock.jobs.run import RunState
from penstock.settings import (
    BackfillSettings,
    BreakerSettings,
    FetchPolicy,
    Limits,
    Retention,
    Settings,
    SourceSettings,
    StreamSettings,
    WorkerSettings,
)

DOCS = Path(__file__).parents[2] / "docs"
PIPELINES = (DOCS / "pipelines.md").read_text()
CONFIGURATION = (DOCS / "configuration.md").read_text()


def rows(text: str, heading: str) -> list[list[str]]:
    """The first table after a heading, without its head."""
    body = text.split(heading, 1)[1]
    table = body[body.index("|---") :].split("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def seconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+) (s|min|h)", text).groups()  # type: ignore[union-attr]
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
        ("sources.KEY.fetch.", FetchPolicy, {"connections", "rate_per_s", "has_breaker"}),
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
    # Each of its schedules is read from the same key.
    of_source = known - {"key", "schedules"} | {"schedule"}
    documented = {key.split(".")[0] for key in documented_keys("sources.KEY.")}
    assert documented == of_source
    of_project = {f.name for f in fields(Settings)}
    derived = {"root", "file", "environment", "secrets"}
    assert {key.split(".")[0] for key in documented_keys("")} == of_project - derived


def test_the_default_priority_is_documented() -> None:
    assert f"else {DEFAULT_PRIORITY}" in PIPELINES
