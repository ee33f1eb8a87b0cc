"""Proposals: what a person decides about the schema of a site, with actor and reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import convert
from msgspec.structs import replace

from penstock.agents.proposals import made_about
from penstock.agents.schema import Proposal, read_schema
from penstock.app import Project
from penstock.errors import Refused, UsageError
from penstock.store.record_edits import RecordEdits
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock, journal
from tests.contract.scenes import Place

PIPELINE = """
import json
from penstock import Pipeline

learn = Pipeline("learn")


@learn.step(unit="run")
async def save(ctx):
    with open(ctx.params["file"]) as file:
        for each in json.load(file):
            ctx.save("site_schemas", key=each["domain"], data=each, merge="merge")
"""
DOMAIN = "acme.example"


def _proposal(name: str, **about: Any) -> dict[str, Any]:
    return {
        "id": name,
        "kind": "images",
        "name": f".{name}: logo",
        "description": "polluted",
        "proposed_at": "2026-11-19T06:00:00Z",
        "justification": {"note": name, "selector": ".g img", "pages": ["https://acme.example/1"]},
        "change": {"exclude": [f".{name}"]},
        **about,
    }


SCHEMA: dict[str, Any] = {
    "domain": DOMAIN,
    "version": 3,
    "is_valid": True,
    "cataloged_at": "2026-11-19T05:00:00Z",
    "learned_by": "agents",
    "image_include_selectors": [".g img"],
    "image_exclude_selectors": [".old"],
    "validation": {"at": "2026-11-19T05:30:00Z", "version": 3, "score": 0.97, "pages": 8},
    "schema_data": {"page_types": {"item": {"url_pattern": "/i/[^/?]+", "fields": {}}}},
    "schema_proposals": [_proposal("badge"), _proposal("fair", priority=3)],
    "pollution_notes": ["a client's own words"],
}


class Made:
    def __init__(self, project: Project, folder: Path, clock: VirtualClock) -> None:
        self.project, self.folder, self.clock = project, folder, clock

    def save(self, *schemas: dict[str, Any]) -> None:
        (self.folder / "said.json").write_text(json.dumps(schemas))
        self.project.runs.start("agents")
        with Simulation(
            self.project, ScriptedNetwork.of_pages({}), seed=1, clock=self.clock
        ) as simulation:
            simulation.run()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place) -> Iterator[Made]:
    name = f"learns_{tmp_path.name.replace('-', '_')}"
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"{name}.py").write_text(PIPELINE)
    source = {"pipeline": f"{name}:learn", "params": {"file": str(tmp_path / "said.json")}}
    config = {
        "project": "sites",
        "store": str(place) if isinstance(place, str) else f"sqlite:{place}",
        "sources": {"agents": source},
    }
    (tmp_path / "penstock.yaml").write_text(json.dumps(config))
    clock = VirtualClock()
    with Project.load(tmp_path) as project:
        project.clock = clock
        yield Made(project, tmp_path, clock)


def test_approval_changes_the_schema_and_has_it_validated(made: Made) -> None:
    made.save(SCHEMA)
    project = made.project

    seen = project.sites.approve(DOMAIN, "badge", dry_run=True)
    assert (seen.version, seen.is_done) == (4, False)
    assert [each.id for each in project.sites.proposals().items] == ["fair", "badge"]
    done = project.sites.approve(DOMAIN, "badge", actor="ann", reason="they are badges")

    assert done.is_done
    site = project.sites.get(DOMAIN)
    assert (site.data["version"], site.data["validation"]) == (4, None)
    assert site.data["image_exclude_selectors"] == (".old", ".badge")
    [left] = project.sites.proposals(DOMAIN).items
    assert left.id == "fair"
    [approved] = project.sites.proposals(DOMAIN, state="approved").items
    assert (approved.decided_by, approved.reason) == ("ann", "they are badges")
    [event] = [each for each in journal(project) if each.kind == "record.edited"]
    assert (event.actor, event.data["reason"]) == ("ann", "they are badges")
    [signal] = project.signals.list("site.learned").items
    assert (signal.source, signal.data) == ("agents", {"domain": DOMAIN, "version": 4})


def test_rejection_closes_a_proposal_and_leaves_the_schema(made: Made) -> None:
    made.save(SCHEMA)
    project = made.project
    before = project.sites.get(DOMAIN).data

    project.sites.reject(DOMAIN, "fair", actor="ann", reason="they are photos")

    after = project.sites.get(DOMAIN).data
    same = ("version", "image_include_selectors", "image_exclude_selectors", "validation")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert project.signals.list("site.learned").items == []
    for act in (project.sites.reject, project.sites.approve):
        with pytest.raises(Refused, match="was rejected by ann already"):
            act(DOMAIN, "fair")


def test_a_decision_stays_when_the_agent_saves_its_proposals_again(made: Made) -> None:
    made.save(SCHEMA)
    made.project.sites.reject(DOMAIN, "fair", reason="they are photos")

    made.save({"domain": DOMAIN, "schema_proposals": SCHEMA["schema_proposals"]})

    assert [each.id for each in made.project.sites.proposals(DOMAIN).items] == ["badge"]


def test_a_decision_is_made_on_what_an_agent_wrote_meanwhile(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.save(SCHEMA)
    edit, waiting = RecordEdits.edit, [{"domain": DOMAIN, "version": 8}]

    def slow(self: RecordEdits, *args: Any, **options: Any) -> int:
        if waiting:
            made.save(waiting.pop())
        return edit(self, *args, **options)

    monkeypatch.setattr(RecordEdits, "edit", slow)

    assert made.project.sites.approve(DOMAIN, "badge").version == 9
    assert made.project.sites.get(DOMAIN).data["version"] == 9


def _learned(version: int, css: str) -> dict[str, Any]:
    about = {"selectors": [css], "method": "css", "required": True, "confidence": 0.9}
    item = {"url_pattern": "/i/[^/?]+", "fields": {"price": about}}
    return {"domain": DOMAIN, "version": version, "schema_data": {"page_types": {"item": item}}}


def _overwriting(made: Made, **about: Any) -> dict[str, Any]:
    """A proposal that sets whole page types, bound to the schema as it is."""
    schema = read_schema(made.project.sites.get(DOMAIN).data)
    proposal = convert(_proposal("redesign", kind="redesign", justification={}), Proposal)
    proposal = replace(proposal, change={"schema_data": _learned(0, "css:.new")["schema_data"]})
    return {**msgspec.to_builtins(made_about(schema, proposal)), **about}


def test_a_proposal_about_a_schema_that_has_changed_since_is_refused(made: Made) -> None:
    made.save(SCHEMA)
    project = made.project
    about = _overwriting(made)
    made.save({"domain": DOMAIN, "schema_proposals": [*SCHEMA["schema_proposals"], about]})
    [seen] = [e for e in project.sites.proposals().items if e.id == "redesign"]
    assert (seen.is_outdated, seen.version) == (False, 3)
    assert project.sites.approve(DOMAIN, "redesign", dry_run=True).version == 4

    # By hand: the version stays.
    made.save(_learned(3, "css:.by-hand"))

    for is_dry in (True, False):
        with pytest.raises(Refused, match=r"made about version 3 .* has changed since") as error:
            project.sites.approve(DOMAIN, "redesign", dry_run=is_dry)
        assert error.value.code == "proposal_outdated"
    assert project.sites.get(DOMAIN).data["schema_data"]["page_types"]["item"]["fields"]
    assert project.sites.proposal(DOMAIN, "redesign").is_outdated
    assert project.sites.reject(DOMAIN, "redesign").is_done
    # What is about one selector, which is used as before, still holds.
    assert project.sites.approve(DOMAIN, "badge").is_done


def test_an_approval_closes_what_it_makes_pointless(made: Made) -> None:
    made.save(SCHEMA)
    project = made.project
    first, second = _overwriting(made), _overwriting(made, id="model", kind="model")
    dropping = _proposal("gone", change={"drop": [".g img"]}, justification={"selector": ".h img"})
    about = [first, second, dropping, *SCHEMA["schema_proposals"]]
    made.save(
        {
            "domain": DOMAIN,
            "schema_proposals": about,
            "image_include_selectors": [".g img", ".h img"],
        }
    )
    made.save({"domain": DOMAIN, "schema_proposals": [_overwriting(made), *about[1:]]})

    project.sites.approve(DOMAIN, "redesign", actor="ann")

    [over] = project.sites.proposals(DOMAIN, state="outdated").items
    assert (over.id, over.reason) == ("model", "version 4 of the schema has made it pointless")
    assert {each.id for each in project.sites.proposals(DOMAIN).items} == {"fair", "badge", "gone"}
    for act in (project.sites.approve, project.sites.reject):
        with pytest.raises(Refused, match="is outdated: version 4"):
            act(DOMAIN, "model")


def test_what_is_not_there_is_named(made: Made) -> None:
    made.save(SCHEMA)

    with pytest.raises(UsageError, match="nobody has learned a site") as error:
        made.project.sites.get("acme.exampel")
    assert DOMAIN in error.value.hint
    with pytest.raises(UsageError, match="has no proposal 'bagde'") as error:
        made.project.sites.approve(DOMAIN, "bagde")
    assert "badge" in error.value.hint


def test_a_private_site_is_hidden_unless_it_is_asked_for(made: Made) -> None:
    made.save(SCHEMA)
    written = json.loads((made.folder / "penstock.yaml").read_text())
    written["sources"]["agents"]["private"] = True
    (made.folder / "penstock.yaml").write_text(json.dumps(written))

    with Project.load(made.folder) as project:
        shown = repr([*project.sites.each(), *project.sites.each_proposal(state="all")])
        shown += repr(project.sites.get(DOMAIN))
        assert not [word for word in (DOMAIN, ".badge", ".g img") if word in shown]
        project.includes_private = True
        assert DOMAIN in repr(list(project.sites.each()))
