"""What is done is what the store has committed for this configuration, never a file that exists."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from penstock import Project
from penstock.builder.registry import builder
from tests.journeys.builder_rig import QUICK, JobRig, city_job, statuses
from tests.journeys.rig import until


@pytest.fixture
def rig(tmp_path: Path) -> JobRig:
    return JobRig(tmp_path)


def package(rig: JobRig) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (rig.out / "package").iterdir()}


@pytest.mark.parametrize("profile", sorted(builder.profiles))
def test_packaging_is_last_in_every_profile(rig: JobRig, profile: str) -> None:
    job = {"profile": "quick", "dumps": [{"path": "companies.csv"}], "maps": {"key": "a key"}}
    rig.write(job)  # a profile with maps is refused without a key
    answer = rig.run("run-profile", "--profile", profile, "--dry-run", "--json")

    steps = json.loads(answer.stdout)["steps"]
    after = {each["step"]: set(each["after"]) for each in steps}
    before, waiting = set[str](), ["package.export"]
    while waiting:
        new = after[waiting.pop()] - before
        before |= new
        waiting += new
    assert steps[-1]["step"] == "package.export"
    assert before == set(after) - {"package.export"}


def test_resume_verb_goes_on_after_a_kill_and_asks_for_nothing_twice(tmp_path: Path) -> None:
    with city_job(tmp_path, 24) as (rig, city):
        process = rig.start("run-profile")
        until(lambda: (rig.out / "penstock.db").exists() and rig.runs(), "a run", process=process)
        [run] = rig.runs()
        until(lambda: rig.succeeded(run.id).get("http.serp", 0) >= 8, "8 are searched for")
        process.kill()
        process.communicate()
        done, asked = rig.succeeded(run.id), Counter(city.requests)
        assert not done.get("package.export"), "it was killed in the middle"

        steps = rig.steps("resume")

        assert [each.id for each in rig.runs()] == [run.id]
        assert rig.runs()[0].state == "completed"
        assert steps["normalize.resolve"]["status"] == "SKIPPED"
        assert steps["package.export"]["status"] == "OK"
        companies = steps["enrich.address"]["counts"]["succeeded"]
        assert done["http.serp"] < companies
        assert steps["http.serp"]["counts"] == {"succeeded": companies}
        chamber = next(host for host in city.requests if host.startswith("chamber"))
        assert city.requests[chamber] == asked[chamber], "what was collected is not collected again"
        lines = (rig.out / "package" / "companies.jsonl").read_bytes().splitlines()
        assert len({json.loads(line)["id"] for line in lines}) == len(lines)


def test_package_that_was_cut_off_is_written_again(rig: JobRig) -> None:
    rig.steps("run-profile")
    whole = package(rig)
    file = rig.out / "package" / "companies.csv"
    file.write_bytes(whole["companies.csv"][:40])

    step = rig.steps("run-step", "package.export", "--resume")["package.export"]

    assert step["status"] == "OK"
    assert "companies.csv is not what was written" in step["reason"]
    assert package(rig) == whole
    again = rig.steps("run-step", "package.export", "--resume")["package.export"]
    assert (again["status"], again["done"]) == ("SKIPPED", 0)


def test_files_that_are_there_are_not_taken_for_done(rig: JobRig) -> None:
    rig.steps("run-profile")
    for file in rig.out.glob("penstock.db*"):
        file.unlink()

    assert set(statuses(rig.steps("resume")).values()) == {"OK"}


@pytest.mark.parametrize(
    "changed",
    [
        ("--set", "dedupe.threshold=0.95"),
        ("--profile", "mine"),
        ("--sample", "2"),
    ],
)
def test_other_configuration_is_not_done(rig: JobRig, changed: tuple[str, str]) -> None:
    mine = {"mine": {"extends": "quick", "without": "enrich.phone"}}
    rig.write({"profile": "quick", "profiles": mine, "dumps": [{"path": "companies.csv"}]})
    rig.steps("run-profile")

    assert set(statuses(rig.steps("resume", *changed)).values()) == {"OK"}
    assert len(rig.runs()) == 2
    assert set(statuses(rig.steps("resume")).values()) == {"SKIPPED"}, "the first one still is"
    other = rig.run("resume", *changed, "--run-id", "1")
    assert other.returncode == 7
    assert "run 1 has another configuration" in other.stderr
    assert set(statuses(rig.steps("resume", *changed)).values()) == {"SKIPPED"}


def test_other_budget_goes_on_with_the_same_run(rig: JobRig) -> None:
    rig.steps("run-profile")

    steps = rig.steps("resume", "--max-http-requests", "9", "--time-budget-min", "600")

    assert set(statuses(steps).values()) == {"SKIPPED"}
    assert len(rig.runs()) == 1


def test_without_resume_a_new_run_begins(rig: JobRig) -> None:
    rig.steps("run-profile")

    assert set(statuses(rig.steps("run-profile")).values()) == {"OK"}
    assert [each.id for each in rig.runs()] == [2, 1]
    older = rig.steps("resume", "--run-id", "1")
    assert {(each["status"], each["run"]) for each in older.values()} == {("SKIPPED", 1)}


def test_steps_of_one_job_share_a_run_and_come_in_order(rig: JobRig) -> None:
    early = rig.run("run-step", "normalize.resolve")
    assert early.returncode == 7
    assert "no run of this configuration has done that" in early.stderr
    assert not (rig.out / "package").exists()
    assert rig.steps("run-step", "dumps.collect")["dumps.collect"]["run"] == 1
    open_one = rig.run("run-step", "normalize.standardize")
    assert open_one.returncode == 7
    assert "comes after api.collect, which is not done" in open_one.stderr

    for step in QUICK[1:]:
        assert rig.steps("run-step", step)[step]["run"] == 1
    assert rig.runs()[0].state == "completed"

    begun = rig.run("run-step", "enrich.phone")
    assert begun.returncode == 7
    assert "--resume continues it" in begun.stderr
    assert rig.steps("run-step", "dumps.collect")["dumps.collect"]["run"] == 2, "a new one"


def test_sample_limits_rows_pages_and_companies(tmp_path: Path) -> None:
    with city_job(tmp_path, 60) as (rig, city):
        steps = rig.steps("run-profile", "--sample", "3")

        counts = {name: sum(each["counts"].values()) for name, each in steps.items()}
        assert counts["http.static"] == counts["enrich.address"] == counts["http.serp"] == 3
        assert counts["normalize.standardize"] <= 3 * 3 + 2 * 10, "3 of each list, and of 3 pages"
        lines = (rig.out / "package" / "companies.jsonl").read_bytes().splitlines()
        assert len(lines) == 3
        assert city.counted < 60


def test_sample_takes_nothing_away_from_what_was_built_before(rig: JobRig) -> None:
    rig.steps("run-profile")
    rig.steps("run-profile", "--sample", "1")

    with Project.open(rig.out) as project:
        companies = [each.data for each in project.records.each("companies")]
    assert len(companies) == 3
    assert not any(company.get("deleted") for company in companies)


def test_dry_run_asks_for_nothing_and_writes_nothing(tmp_path: Path) -> None:
    with city_job(tmp_path, 12) as (rig, city):
        first = rig.run("run-profile", "--dry-run")
        assert (first.returncode, rig.out.exists()) == (0, False)
        assert "a new run" in first.stdout
        rig.steps("run-step", "dumps.collect")
        asked = city.counted
        before = {file: file.read_bytes() for file in rig.out.rglob("*") if file.is_file()}

        plan = json.loads(rig.run("run-profile", "--resume", "--dry-run", "--json").stdout)

        would = {each["step"]: each["would"] for each in plan["steps"]}
        assert (would["dumps.collect"], would["http.static"]) == ("skip", "run")
        assert plan["run"] == 1
        assert city.counted == asked
        after = {file: file.read_bytes() for file in rig.out.rglob("*") if file.is_file()}
        assert after == before
