"""Statuses and exit codes of the builder's steps: failures, budgets, targets, batches, steps side by side."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.builder_rig import (
    WITHIN_S,
    HoldingApi,
    JobRig,
    city_job,
    held_job,
    statuses,
)
from tests.journeys.rig import until
from tests.postgres.ports import free_port


@pytest.fixture
def rig(tmp_path: Path) -> JobRig:
    return JobRig(tmp_path)


def job(**about: Any) -> dict[str, Any]:
    return {"profile": "quick", "dumps": [{"path": "companies.csv"}], **about}


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, error = process.communicate(timeout=WITHIN_S)
    return process.returncode, out + error


def test_failed_step_ends_the_profile_and_nothing_is_packaged(rig: JobRig) -> None:
    rig.write(job(dumps=[{"path": "later.csv"}]))

    steps = rig.steps("run-profile", exit_code=4)

    assert steps["dumps.collect"]["status"] == "FAIL"
    assert "later.csv" in steps["dumps.collect"]["reason"]
    assert "package.export" not in steps
    assert not (rig.out / "package").exists()
    later = rig.run("run-step", "normalize.standardize", "--resume")
    assert later.returncode == 7
    assert "comes after dumps.collect, which is FAIL in run 1" in later.stderr

    (rig.folder / "companies.csv").rename(rig.folder / "later.csv")
    steps = rig.steps("resume")
    assert steps["dumps.collect"]["status"] == steps["package.export"]["status"] == "OK"
    assert steps["api.collect"]["status"] == "SKIPPED"


def test_continue_on_error_packages_what_is_left(tmp_path: Path) -> None:
    with city_job(tmp_path, 12) as (rig, _):
        found = json.loads((tmp_path / "job.yaml").read_text())
        rig.write({**found, "sitemap": {}, "http": {"seeds": ["http://nobody.localhost/"]}})
        steps = rig.steps("run-profile", exit_code=4)
        assert steps["http.static"]["status"] == "FAIL"
        assert "package.export" not in steps

        steps = rig.steps("resume", "--continue-on-error", exit_code=4)

        assert statuses(steps)["http.static"] == "FAIL"
        assert statuses(steps)["package.export"] == "OK"


def test_items_that_fail_are_a_warning_and_strict_says_so(tmp_path: Path) -> None:
    with city_job(tmp_path, 12) as (rig, _):
        found = json.loads((tmp_path / "job.yaml").read_text())
        seeds = ["http://nobody.localhost/"]
        found |= {"http": {"seeds": seeds}, "serp": {}, "output": {"max_missing_pct": 100}}
        rig.write(found)

        steps = rig.steps("run-profile", "--strict", exit_code=3)

        assert steps["http.static"]["status"] == "WARN"
        assert steps["http.static"]["counts"]["quarantined"] == 1
        assert steps["package.export"]["status"] == "OK"
        done = rig.run("run-step", "package.export", "--resume")
        assert done.returncode == 0


def test_missed_target_has_an_exit_code_of_its_own(rig: JobRig) -> None:
    rig.write(job(kpi_targets={"min_quality_score": 99, "max_dup_pct": 50}))

    last = rig.steps("run-profile", exit_code=9)["package.export"]

    verdicts = {each["name"]: (each["is_met"], each["is_asked"]) for each in last["kpis"]}
    assert verdicts["min_quality_score"] == (False, True)
    assert verdicts["max_dup_pct"] == (True, True)
    assert not verdicts["min_lines_per_s"][1], "a target that the job does not name"
    assert last["all_kpis_met"] is False
    assert (rig.out / "package" / "companies.csv").exists()
    assert rig.run("resume").returncode == 9, "it is no better the second time"
    rig.write(job(kpi_targets={"min_quality_score": 1}))
    assert rig.steps("run-profile")["package.export"]["all_kpis_met"] is True


def test_request_budget_says_which_and_how_to_go_on(tmp_path: Path) -> None:
    with city_job(tmp_path, 12) as (rig, city):
        bound = ("--max-http-requests", "20")
        steps = rig.steps("run-profile", *bound, exit_code=8)

        [first] = [each for each in steps.values() if each["status"] == "BUDGET_EXCEEDED"][:1]
        assert "max_http_requests of 20" in first["reason"]
        assert "it does not reset: raise it and continue with --resume" in first["reason"]
        assert city.counted <= 20
        assert not (rig.out / "package").exists()
        budget = {each["name"]: each for each in first["budgets"]}["max_http_requests"]
        assert (budget["bound"], budget["is_exhausted"]) == (20, True)

        steps = rig.steps("resume", "--max-http-requests", "0")
        assert steps["dumps.collect"]["status"] == "SKIPPED"
        assert steps[first["step"]]["status"] == steps["package.export"]["status"] == "OK"
        assert (rig.out / "package").exists()
        assert len(rig.runs()) == 1


def test_budget_of_a_day_says_when_it_resets(tmp_path: Path) -> None:
    with city_job(tmp_path, 12) as (rig, city):
        found = json.loads((tmp_path / "job.yaml").read_text())
        found["source"]["budget"] = {"requests": "15/d"}
        rig.write(found)

        steps = rig.steps("run-profile", exit_code=8)

        reasons = [each["reason"] for each in steps.values() if "had no room" in each["reason"]]
        assert "requests a day of 15" in reasons[0]
        assert "it resets at 20" in reasons[0]
        assert city.counted <= 15


def test_time_and_memory_are_budgets_too(rig: JobRig) -> None:
    rig.steps("run-step", "dumps.collect")
    late = rig.steps("run-step", "api.collect", "--time-budget-min", "0.0001", exit_code=8)
    assert "time_budget_min" in late["api.collect"]["reason"]
    with HoldingApi() as api:
        rig.write(held_job(api))
        steps = rig.steps("run-profile", "--max-ram-mb", "20", exit_code=8)
        assert "ram_mb" in next(iter(steps.values()))["reason"]


def test_two_steps_in_two_processes_share_the_request_budget(tmp_path: Path, database: str) -> None:
    bound = 9
    with city_job(tmp_path, 60, penstock={"store": database}) as (rig, city):
        for step in ("dumps.collect", "api.collect", "http.sitemap"):
            rig.steps("run-step", step, "--max-http-requests", str(bound))
        words = ("http.static", "--resume", "--json", "--max-http-requests", str(bound))
        both = [rig.start("run-step", *words, "--shard", f"{part}/2") for part in (1, 2)]
        answers = [ended(each) for each in both]

        assert {code for code, _ in answers} == {8}, answers
        assert city.counted == bound


def test_on_a_file_one_step_works_at_a_time_and_keeps_its_configuration(rig: JobRig) -> None:
    with HoldingApi() as api:
        rig.write(held_job(api))
        first = rig.start("run-step", "api.collect")
        until(api.asked("held").is_set, "it asks", process=first)

        second = rig.run("run-step", "dumps.collect")
        assert second.returncode == 6
        assert "on SQLite a drain has the project to itself" in second.stderr
        assert "use Postgres" in second.stderr
        other = rig.run("run-step", "dumps.collect", "--set", "dedupe.threshold=0.9")
        assert other.returncode == 6
        assert "another configuration of this job is at work" in other.stderr

        api.let_go("held")
        assert ended(first)[0] == 0
    assert rig.steps("run-step", "dumps.collect")["dumps.collect"]["run"] == 1


def test_steps_side_by_side_serve_metrics_on_one_port(tmp_path: Path, database: str) -> None:
    port, rig = free_port(), JobRig(tmp_path)

    def scraped() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
            return text

    with HoldingApi() as api:
        rig.write(
            held_job(
                api,
                profile={
                    "extends": "quick",
                    "steps": ["http.sitemap", "http.static", "parse.html"],
                },
                sitemap={"urls": [f"{api.url}/sitemap.xml"]},
                penstock={"store": database},
            )
        )
        serves = ("--prometheus-port", str(port), "--continue-on-error")
        first = rig.start("run-step", "api.collect", *serves)
        until(api.asked("held").is_set, "it asks", process=first)
        second = rig.start("run-step", "http.sitemap", *serves)
        until(api.asked("sitemap.xml").is_set, "it asks", process=second)
        assert "penstock_jobs{" in scraped()

        api.let_go("held")
        code, said = ended(first)
        assert code == 0, said
        until(lambda: _or_nothing(scraped), "the other process serves them")
        api.let_go("sitemap.xml")
        ended(second)


def _or_nothing(scraped: Any) -> str:
    try:
        found: str = scraped()
    except OSError:
        return ""
    return found


def test_port_of_another_program_costs_the_metrics_and_nothing_else(rig: JobRig) -> None:
    with HoldingApi() as api:
        port = api.url.rpartition(":")[2]
        answer = rig.run("run-step", "dumps.collect", "--prometheus-port", port)
    assert answer.returncode == 0
    assert f"no metrics on port {port}: port {port} is in use" in answer.stderr


def test_batch_tells_success_from_failure(rig: JobRig) -> None:
    rig.write(job(), "good.yaml")
    rig.write(job(country="XX"), "bad.yaml")
    rig.write(job(dumps=[{"path": "nowhere.csv"}]), "missing.yaml")
    words = ("--jobs", "bad.yaml", "missing.yaml", "good.yaml", "--outdir", "all")

    answer = rig.builder("batch", *words, "--json")

    assert answer.returncode == 4
    found = {each["item"]: each for each in map(json.loads, answer.stdout.splitlines())}
    assert {name: each["status"] for name, each in found.items()} == {
        "bad": "ERROR",
        "missing": "FAILED",
        "good": "SUCCESS",
    }
    assert "'XX' is no country" in found["bad"]["reason"]
    assert found["missing"]["reason"].startswith("dumps.collect: ")
    assert (rig.folder / "all" / "good" / "package" / "companies.csv").exists()
    stopped = rig.builder("batch", *words, "--json", "--stop-on-error")
    assert (stopped.returncode, len(stopped.stdout.splitlines())) == (4, 1)


def test_batch_makes_a_job_of_each_code(rig: JobRig) -> None:
    (rig.folder / "companies.csv").write_text("name,category\nAcme,10.71\nCorner,47.24\n")
    words = ("--template", "job.yaml", "--naf", "10.71", "47.24", "--outdir", "all")

    assert rig.builder("batch", *words).returncode == 0

    for code, name in (("10.71", "Acme"), ("47.24", "Corner")):
        text = (rig.folder / "all" / code / "package" / "companies.jsonl").read_text()
        assert [json.loads(line)["name"] for line in text.splitlines()] == [name]


def test_interrupted_step_says_so_and_goes_on(rig: JobRig) -> None:
    with HoldingApi() as api:
        rig.write(held_job(api))
        process = rig.start("run-step", "api.collect")
        until(api.asked("held").is_set, "it asks", process=process)
        process.send_signal(signal.SIGINT)
        code, said = ended(process)
        assert code == 130, said
        assert "Traceback" not in said
        api.let_go("held")
        step = rig.steps("run-step", "api.collect", "--resume")["api.collect"]
        assert (step["status"], step["run"]) == ("OK", 1)


def test_first_steps_that_begin_at_once_begin_one_run(tmp_path: Path, database: str) -> None:
    rig = JobRig(tmp_path)
    rig.write(job(penstock={"store": database}))
    both = [rig.start("run-step", step) for step in ("dumps.collect", "api.collect")]

    assert [ended(each)[0] for each in both] == [0, 0]
    assert [each.id for each in rig.runs()] == [1]
