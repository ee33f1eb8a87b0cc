"""`penstock builder demo`: the dataset of a city, and how much of it is true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli.exits import KPI_MISSED
from tests.journeys.builder_rig import JobRig


def test_demo_builds_the_dataset_of_a_city_and_compares_it_with_the_truth(tmp_path: Path) -> None:
    rig = JobRig(tmp_path)
    first = rig.builder("demo", "--companies", "12", "--dir", "city", "--json")
    # In so small a city, one company that is there twice is more than the target allows.
    assert first.returncode == KPI_MISSED, first.stdout + first.stderr
    *steps, truth = map(json.loads, first.stdout.splitlines())
    assert [each["status"] for each in steps] == ["OK"] * len(steps)
    assert truth["expected"] == 12
    assert truth["recall"] == 1.0
    assert truth["precision"] >= 0.9
    assert {each["field"] for each in truth["fields"]} >= {"name", "phone", "domain"}

    assert truth["duplicates"] == 1

    again = rig.builder("demo", "--companies", "12", "--dir", "city", "--resume")
    assert again.returncode == KPI_MISSED, again.stdout + again.stderr
    assert f"{truth['companies']} companies; 12 are true: precision" in again.stdout
    package = tmp_path / "city" / "out" / "package" / "companies.jsonl"
    assert len(package.read_bytes().splitlines()) == truth["companies"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--companies", "5001"), "more than 5000 companies is too large"),
        (("--companies", "many"), "many"),
        (("--profile", "stanard"), "there is no profile 'stanard'; did you mean 'standard'?"),
    ],
)
def test_mistakes_of_the_demo_are_one_line_each(
    tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    found = JobRig(tmp_path).builder("demo", "--dir", "city", *words)
    assert found.returncode == 2
    assert told in found.stderr
    assert "Traceback" not in found.stderr
