"""The site agents as pipelines: from a site that nobody knows to records, and what is refused on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.http.network import Request
from penstock.testing import RawResponse, journal
from tests.agents.corpus.measure import Figures, measure
from tests.agents.corpus.sites import site
from tests.agents.site_project import SiteProject


def _figures(trial: SiteProject) -> Figures:
    found = trial.records("items")

    def read(url: str, html: str) -> dict[str, object] | None:
        data = found.get(url)
        if data is None or data.get("deleted"):
            return None
        return {name: value for name, value in data.items() if name not in ("url", "extracted")}

    return measure(trial.site, read)


def test_a_site_is_learned_validated_and_extracted(tmp_path: Path) -> None:
    trial = SiteProject(tmp_path, site(0, 0))

    learned, validated, extracted = map(trial.run, ("mapper", "validator", "items"))

    assert [run.state for run in (learned, validated, extracted)] == ["completed"] * 3
    schema = trial.schema
    assert (schema["domain"], schema["version"], schema["is_valid"]) == (trial.site.name, 1, True)
    assert schema["validation"]["pages"] >= 6
    assert not set(schema["held_out"]) & set(trial.network.requests[: len(schema["held_out"])])
    assert trial.records("items").keys() == trial.site.truth.keys()
    figures = _figures(trial)
    assert (figures.precision, figures.recall) >= (0.97, 0.92), figures.mistakes[:5]


@pytest.mark.parametrize(
    ("agents", "why"),
    [
        ([], "nobody has learned the site yet: run its mapper"),
        (["mapper"], "version 1 was not validated: run the validator"),
    ],
)
def test_nothing_is_extracted_by_a_schema_that_is_not_trusted(
    tmp_path: Path, agents: list[str], why: str
) -> None:
    trial = SiteProject(tmp_path, site(1, 0))
    for each in agents:
        trial.run(each)
    before = len(trial.network.requests)

    refused = trial.run("items")

    assert refused.state == "failed"
    assert len(trial.network.requests) == before
    [error] = trial.errors(refused)
    assert why in error


def test_a_fresh_schema_is_left_alone_and_a_stale_one_is_learned_again(tmp_path: Path) -> None:
    trial = SiteProject(tmp_path, site(2, 0))
    trial.run("mapper")
    asked = len(trial.network.requests)

    trial.run("mapper")
    assert (trial.schema["version"], len(trial.network.requests)) == (1, asked)

    trial.clock.advance(31 * 86400)
    trial.run("mapper")
    assert trial.schema["version"] == 2
    assert "older than 30d" in trial.schema["learned_for"]


def test_a_schema_that_reads_the_held_out_pages_badly_is_not_valid(tmp_path: Path) -> None:
    trial = SiteProject(tmp_path, site(3, 0))
    trial.run("mapper")
    for url in trial.schema["held_out"]:
        trial.pages[url] = "<html><body><h1>Moved</h1></body></html>"

    trial.run("validator")

    assert trial.schema["is_valid"] is False
    assert trial.schema["validation"]["score"] < 0.8
    assert any("is missing on" in each for each in trial.schema["validation"]["problems"])
    assert "the validator scored it" in trial.errors(trial.run("items"))[0]


def test_pages_that_did_not_change_are_read_again_by_another_version_of_the_schema(
    tmp_path: Path,
) -> None:
    trial = SiteProject(tmp_path, site(0, 0))
    for each in ("mapper", "validator", "items"):
        trial.run(each)
    trial.run("mapper", force=True)
    trial.run("validator")

    trial.run("items")

    versions = {data["extracted"]["schema_version"] for data in trial.records("items").values()}
    assert versions == {2}
    before = len(trial.network.requests)
    trial.run("items")
    with trial.project() as project:
        assert project.connection.records.of("items")[0].version == 2
    assert len(trial.network.requests) > before


def _while_reading(trial: SiteProject, act: Callable[[], object]) -> None:
    """Once, when the site is asked for its next page, this happens first."""
    answer = trial.network._script
    acts = [act]

    async def script(request: Request) -> RawResponse:
        if acts:
            acts.pop()()
        return await answer(request)

    trial.network._script = script


def _approve_a_change(trial: SiteProject) -> None:
    """A person decides that images are found otherwise: it is proposed and approved."""
    change = {"image_exclude_selectors": ["img.badge"]}
    asked = {
        "id": "1f0c22ab", "kind": "conflict", "name": "n", "description": "d",
        "proposed_at": "2026-01-01T00:00:00Z", "change": change,
    }  # fmt: skip
    with trial.project() as project:
        edit = project.connection.record_edits.edit
        edit("site_schemas", trial.site.name, {"schema_proposals": [asked]}, "ann", "asked")
        project.sites.approve(trial.site.name, "1f0c22ab", actor="ann", reason="badges")


@pytest.mark.parametrize("agent", ["mapper", "validator", "images"])
def test_an_agent_under_way_does_not_overwrite_what_a_person_approves(
    tmp_path: Path, agent: str
) -> None:
    trial = SiteProject(tmp_path, site(0, 0))
    for each in ("mapper", "validator", "items"):
        trial.run(each)
    before = trial.schema
    _while_reading(trial, lambda: _approve_a_change(trial))

    forced: dict[str, Any] = {"force": True} if agent == "mapper" else {}
    assert trial.run(agent, **forced).state == "completed"

    schema = trial.schema
    assert schema["decisions"]["1f0c22ab"]["by"] == "ann"
    [about] = schema["schema_proposals"]
    assert about["status"] == "approved"
    with trial.project() as project:
        kinds = [row.kind for row in journal(project)]
        versions = project.connection.records.versions("site_schemas", trial.site.name)
    assert "job.retry_scheduled" in kinds
    # What was learned or found before the approval was written by nobody.
    approved = next(n for n, row in enumerate(versions) if row.data.get("decisions"))
    assert versions[approved].data["version"] == before["version"] + 1
    for row in versions[approved:]:
        assert row.data["version"] == before["version"] + 1 + (row.data["cataloged_by"] == "system")
        check = row.data["validation"]
        assert check is None or check["version"] == row.data["version"]
