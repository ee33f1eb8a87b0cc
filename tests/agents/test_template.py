"""`penstock init --template site-agents`: the cadence of the agents, and that the project really runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.app import Project
from penstock.cli import exits, main
from penstock.engine.leader.retries import Retries
from penstock.settings import load_settings
from tests.agents.corpus.sites import site
from tests.agents.local_server import serving
from tests.agents.site_project import SiteProject

SITE = "example.com"


def _made(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["init", str(folder), "--template", "site-agents"]) == exits.DONE
    assert f"{SITE}/mapper" in capsys.readouterr().out
    return folder


def test_the_template_passes_the_check_and_has_the_cadence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _made(tmp_path / "shop-watch", capsys)

    assert main(["config", "check", "--project", str(folder)]) == exits.DONE

    found = load_settings(folder, environ={})
    assert found.project == "shop-watch"
    nightly = {
        key: [each.cron for each in source.schedules if each.cron]
        for key, source in found.sources.items()
    }
    assert nightly == {
        f"{SITE}/mapper": ["0 1 * * *"],
        f"{SITE}/validator": ["0 3 * * *"],
        SITE: ["0 5 * * *"],
        f"{SITE}/images": ["0 7 * * SUN"],
        f"{SITE}/steward": [],
        "retries": ["20 * * * *"],
    }
    waits = {
        key: [signal for each in source.schedules for signal in each.signals]
        for key, source in found.sources.items()
    }
    assert waits[f"{SITE}/validator"][0] == f"site.learned of {SITE}/mapper"
    assert waits[SITE] == [f"site.validated of {SITE}/validator"]
    assert found.sources[f"{SITE}/mapper"].params["limit"] == 30
    assert found.sources[f"{SITE}/images"].params["site_types"] == ["builder", "fabricator"]


def test_the_project_of_the_template_reads_a_site_on_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, made = _made(tmp_path, capsys), site(0, 0)
    origin = f"https://{made.name}"
    pages = {url.removeprefix(origin) or "/": html for url, html in made.pages.items()}

    def answer(path: str, body: bytes) -> tuple[int, str, bytes]:
        found = pages.get(path)
        if found is None:
            return 404, "text/plain", b"not found"
        return 200, "text/html; charset=utf-8", found.replace(origin, server.url).encode()

    with serving(answer) as server:
        file = folder / "penstock.yaml"
        text = file.read_text().replace("https://example.com/", f"{server.url}/")
        quick = "limits: {concurrency: 4, rate: 100/s}\n  fetch: {allow_private: true}"
        file.write_text(text.replace("limits: {concurrency: 4, rate: 60/m}", quick))
        with Project.load(folder) as project:
            for source in (f"{SITE}/mapper", f"{SITE}/validator", SITE, "retries"):
                assert project.runs.perform(source).state == "completed", source
            records = list(project.records.each("items"))
            [learned] = project.sites.list().items

    assert len(records) == len(made.truth)
    assert learned.is_trusted
    assert learned.domain == "127.0.0.1"


def test_failures_are_retried_a_few_times_and_then_left_to_a_person(tmp_path: Path) -> None:
    more = {"retries": {"params": {"sources": ["items"], "times": 2}}}
    trial = SiteProject(tmp_path, site(0, 0))
    written = json.loads((tmp_path / "penstock.yaml").read_text())
    pipeline = {"pipeline": "penstock.agents.pipelines:retries"}
    written["sources"]["hourly"] = {**pipeline, **more["retries"]}
    (tmp_path / "penstock.yaml").write_text(json.dumps(written))
    refused = trial.run("items")

    def hour() -> list[Any]:
        """An hour later: what is asked for, handed over twice, as after a crash."""
        trial.clock.advance(3600)
        trial.run("hourly")
        with trial.project() as project:
            [signal, *_] = project.connection.signals.newest("retry.wanted")
            for _ in range(2):
                Retries(project, project.connection).receive(signal)
            trial.work(project)
            found = project.connection.signals.newest("retry.made")
            return [each.data["number"] for each in reversed(found)]

    assert refused.state == "failed"
    assert hour() == [1]
    assert hour() == [1, 2]
    assert hour() == [1, 2]
    trial.clock.advance(2 * 86_400)
    trial.run("mapper")
    trial.run("validator")
    with trial.project() as project:
        assert project.require_run(refused.id).state == "failed"


def test_a_failure_is_mended_by_a_retry_when_its_cause_is_gone(tmp_path: Path) -> None:
    trial = SiteProject(tmp_path, site(0, 0))
    refused = trial.run("items")
    trial.run("mapper")
    trial.run("validator")
    with trial.project() as project:
        project.signals.raise_("retry.wanted", {"sources": ["items", "nobody", 7]})
        [signal] = project.connection.signals.newest("retry.wanted")
        Retries(project, project.connection).receive(signal)
        trial.work(project)
        assert project.require_run(refused.id).state == "completed"
    assert trial.records("items").keys() == trial.site.truth.keys()


def test_image_qa_of_the_template_leaves_other_sites_alone(tmp_path: Path) -> None:
    trial = SiteProject(tmp_path, site(0, 0), images={"site_types": ["builder", "fabricator"]})
    trial.run("mapper")
    before = len(trial.network.requests)

    trial.run("images")

    assert trial.schema["site_type"] not in ("builder", "fabricator")
    assert len(trial.network.requests) == before
