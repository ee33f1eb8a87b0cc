"""Wrong jobs and wrong commands: one clear line each, and nothing is begun."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.builder_rig import JobRig

DUMPS = [{"path": "companies.csv"}]


@pytest.fixture
def rig(tmp_path: Path) -> JobRig:
    return JobRig(tmp_path)


def test_all_mistakes_of_a_job_are_told_at_once_with_line_and_nearest_key(rig: JobRig) -> None:
    (rig.folder / "job.yaml").write_text(
        "nich: bakeries\n"
        "crawl: {max_page: 3, max_pages: 0}\n"
        "dumps:\n"
        "  - {path: a.csv, format: cvs}\n"
        "  - {name: x}\n"
        "kpi_targets: {min_quality_score: high}\n"
        "budgets: {max_http_requests: -1, ram: 5}\n"
        "profile: quick\n"
        "profile: deep\n"
    )

    answer = rig.run("run-profile")

    assert answer.returncode == 2
    assert "there are 9 mistakes:" in answer.stderr
    for line in (
        "job.yaml:1: nich: unknown key, did you mean 'niche'?",
        "job.yaml:2: crawl.max_page: unknown key, did you mean 'max_pages'?",
        "job.yaml:2: crawl.max_pages: must be a whole number >= 1",
        "job.yaml:4: dumps[0].format: can't be 'cvs', did you mean 'csv'?",
        "job.yaml:5: dumps[1].path: is missing",
        "job.yaml:6: kpi_targets.min_quality_score: must be a number, not text",
        "job.yaml:7: budgets.max_http_requests: must be a whole number >= 0",
        "job.yaml:7: budgets.ram: unknown key, did you mean 'ram_mb'?",
        "job.yaml:9: profile: is defined twice (first: line 8)",
    ):
        assert line in answer.stderr
    assert not rig.out.exists()


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ({"country": "XX"}, "job.yaml:8: country: 'XX' is no country"),
        ({"kpi_targets": {"min_speed": 1}}, "kpi_targets: has no 'min_speed'"),
        ({"serp": {"provider": "searx"}}, "serp.url: is missing"),
        ({"api": {"endpoints": [{"url": "list.json"}]}}, "a file with JSON is one of `dumps`"),
        ({"profile": "quik"}, "there is no profile 'quik'; did you mean 'quick'?"),
        (
            {"profiles": {"a": {"extends": "b"}, "b": {"extends": "a"}}, "profile": "a"},
            "profiles extend each other: a → b → a",
        ),
        (
            {"profile": {"extends": "quick", "without": "normalize.resolve"}},
            "'normalize.resolve'",
        ),
        (
            {"profile": "mine", "profiles": {"mine": {"without": "normalize.resolve"}}},
            "profile 'mine': step 'enrich.email' needs 'normalize.resolve'",
        ),
        ({"dumps": []}, "the job names nothing to read"),
        ({"profile": "deep"}, "maps.key is missing, which enrich.google_maps needs"),
        ({"features": {"surp": True}}, "there is no feature 'surp'; did you mean 'serp'?"),
        ({"source": {"limits": {"concurency": 2}}}, "source.limits.concurency: unknown key"),
        ({"source": {"params": {}}}, "source.params: is made of the job; leave it out"),
        ({"penstock": {"sources": {}}}, "penstock.sources: is made of the job; leave it out"),
        ({"penstock": {"store": "mysql:x"}}, "store: "),
        (
            {"profile": "deep", "maps": {"key": "x"}, "budgets": {"ram_mb": 100}},
            "'headless.collect' needs memory_mb 500, a worker has 100",
        ),
    ],
)
def test_mistakes_of_a_job_are_one_line_each(rig: JobRig, about: dict[str, Any], told: str) -> None:
    rig.write({"profile": "quick", "dumps": DUMPS, **about})

    answer = rig.run("run-profile")

    assert answer.returncode == 2, answer.stderr
    assert told in answer.stderr
    assert len(answer.stderr.splitlines()) <= 2, "a line, and a hint"
    assert not list(rig.folder.glob("out/penstock.db"))


def test_variable_that_is_not_set_is_named_and_its_value_is_never_written(rig: JobRig) -> None:
    endpoint = {"url": "http://127.0.0.1:9/x", "auth": {"bearer": "${CHAMBER_TOKEN}"}}
    rig.write({"profile": "quick", "dumps": DUMPS, "api": {"endpoints": [endpoint]}})

    missing = rig.run("run-profile")
    given = rig.run("run-profile", environment={"CHAMBER_TOKEN": "s3cret-of-chamber"})

    assert missing.returncode == 2
    assert "job.yaml:" in missing.stderr
    assert "CHAMBER_TOKEN" in missing.stderr
    assert "set it in the environment" in missing.stderr
    assert given.returncode == 4, "nobody listens there"
    assert "s3cret" not in given.stdout + given.stderr
    assert "${CHAMBER_TOKEN}" in (rig.out / "penstock.yaml").read_text()
    assert "s3cret" not in (rig.out / "penstock.yaml").read_text()


@pytest.mark.parametrize(
    ("words", "exit_code", "told"),
    [
        (
            "run-step http.statik",
            2,
            "there is no step 'http.statik'\n  did you mean 'http.static'?",
        ),
        ("run-step", 2, "run which step?"),
        ("run-profile --profile nobody", 2, "there is no profile 'nobody'"),
        ("run-profile --feature maps --no-feature maps", 2, "both on and off"),
        (
            "run-profile --set crawl.max_pagez=5",
            2,
            "with its profile and --set: crawl.max_pagez: unknown key, did you mean 'max_p",
        ),
        ("run-profile --set crawl", 2, "write it as crawl.max_pages=5"),
        ("run-profile --sample 0", 2, "'0' is not a number from 1 up"),
        ("run-profile --max-http-requests -1", 2, "--max-http-requests"),
        ("run-step dumps.collect --shard 3/2", 2, "there is no part 3 of 2"),
        ("run-profile --project .", 2, "a job has a project of its own, in --outdir"),
    ],
)
def test_mistakes_of_a_command_are_one_line_each(
    rig: JobRig, words: str, exit_code: int, told: str
) -> None:
    answer = rig.run(*shlex.split(words))

    assert answer.returncode == exit_code
    assert told in answer.stderr


def test_project_of_somebody_else_is_not_overwritten(rig: JobRig) -> None:
    rig.out.mkdir()
    (rig.out / "penstock.yaml").write_text("project: mine\n")

    answer = rig.run("run-profile")

    assert answer.returncode == 2
    assert "is a project of its own\n  choose another --outdir" in answer.stderr
    assert (rig.out / "penstock.yaml").read_text() == "project: mine\n"
    a_file = rig.builder("run-profile", "--job", "job.yaml", "--outdir", "companies.csv")
    assert a_file.returncode == 2
    assert "companies.csv is no folder\n  name another one" in a_file.stderr


def test_extra_that_is_not_installed_is_named(rig: JobRig) -> None:
    away = rig.folder / "away" / "phonenumbers"
    away.mkdir(parents=True)
    (away / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'phonenumbers'\", name='phonenumbers')\n"
    )
    process = rig.start("run-profile", path=away.parent)
    out, error = process.communicate(timeout=120)

    assert process.returncode == 2, out + error
    assert "needs the module 'phonenumbers'" in error
    assert "pip install 'penstock[builder]'" in error


def test_job_of_the_documentation_is_read(rig: JobRig) -> None:
    page = (Path(__file__).parents[2] / "docs" / "builder-cli.md").read_text()
    text = page.partition('title="job.yaml"')[2].partition("\n")[2].partition("```")[0]
    (rig.folder / "job.yaml").write_text(text)

    answer = rig.run("run-profile", "--dry-run", environment={"MEMBERS_TOKEN": "x"})

    assert answer.returncode == 0, answer.stderr
    assert "bakeries (standard)" in answer.stdout
    assert "2,000" in answer.stdout


def test_job_that_is_not_there_is_told(rig: JobRig) -> None:
    answer = rig.builder("run-profile", "--job", "jobb.yaml", "--outdir", "out")
    assert answer.returncode == 2
    assert "jobb.yaml: there is no such file" in answer.stderr
    empty = rig.builder("batch", "--outdir", "out")
    assert empty.returncode == 2
    assert "a batch of nothing" in empty.stderr


def test_first_job_fits_its_schema_and_runs_without_a_network(rig: JobRig) -> None:
    written = rig.builder("init", "bakeries")
    assert written.returncode == 0
    job = (rig.folder / "bakeries" / "job.yaml").read_text()
    assert job.startswith("# yaml-language-server: $schema=job.schema.json\n")
    schema = json.loads((rig.folder / "bakeries" / "job.schema.json").read_text())
    assert schema == json.loads(rig.builder("schema").stdout)
    assert schema["additionalProperties"] is False
    assert "max_http_requests" in schema["$defs"]["Budgets"]["properties"]
    again = rig.builder("init", "bakeries")
    assert again.returncode == 7

    ran = rig.builder("run-profile", "--job", "bakeries", "--outdir", "bakeries/out")

    assert ran.returncode == 0, ran.stderr
    assert (rig.folder / "bakeries" / "out" / "package" / "companies.csv").exists()
