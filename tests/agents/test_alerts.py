"""Alerts about what agents know of sites: they open with evidence, and resolve when it is mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.app import Project
from penstock.app.views.alerts import AlertDetail
from penstock.engine.leader.alerts import AlertChore
from penstock.testing import ScriptedNetwork, Simulation, VirtualClock

DAY_S = 86_400.0
DOMAIN = "acme.example"
PIPELINE = """
import json
from penstock import Pipeline

keep = Pipeline("keep")


@keep.step(unit="run")
async def save(ctx):
    with open(ctx.params["file"]) as file:
        for collection, key, data in json.load(file):
            ctx.save(collection, key=key, data=data)
"""
RULES = ("mapper-confidence", "image-pollution", "references-waiting")


class Kept:
    def __init__(self, project: Project, folder: Path, clock: VirtualClock) -> None:
        self.project, self.folder, self.clock = project, folder, clock
        self._chore = AlertChore(project, project.connection)
        self._chore.plan()

    def save(self, *records: tuple[str, str, dict[str, Any]]) -> None:
        (self.folder / "said.json").write_text(json.dumps(records))
        self.project.runs.start("agents")
        network = ScriptedNetwork.of_pages({})
        with Simulation(self.project, network, seed=1, clock=self.clock) as simulation:
            simulation.run()

    def opened(self, after_s: float = 61.0) -> dict[str, AlertDetail]:
        """The alerts of these rules that are open at the next look."""
        self.clock.advance(after_s)
        self._chore.look()
        found = [self.project.alerts.get(each.id) for each in self.project.alerts.each()]
        return {each.rule: each for each in found if each.rule in RULES}

    def close(self) -> None:
        self._chore.close()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    name = f"keeps_{tmp_path.name.replace('-', '_')}"
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"{name}.py").write_text(PIPELINE)
    source = {"pipeline": f"{name}:keep", "params": {"file": str(tmp_path / "said.json")}}
    (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": {"agents": source}}))
    clock = VirtualClock()
    with Project.load(tmp_path) as project:
        project.clock = clock
        made = Kept(project, tmp_path, clock)
        yield made
        made.close()


def _schema(clock: VirtualClock, unsure: int, notes: int) -> dict[str, Any]:
    from penstock.agents.moments import written_at

    at = written_at(clock.now())
    selectors = {"selectors": ["css:.p"], "confidence": 0.4}
    return {
        "domain": DOMAIN,
        "learned_by": "agents",
        "learnings": [{"at": at, "version": n, "confidence": 0.6} for n in range(unsure)],
        "schema_data": {"page_types": {"item": {"fields": {"price": selectors}}}},
        "pollution_notes": [
            {"selector": f".g{n} img", "reason": "logo", "status": "open", "at": at, "pages": [f"https://{DOMAIN}/{n}"]}
            for n in range(notes)
        ],
    }  # fmt: skip


def test_alerts_about_sites_open_with_evidence_and_resolve(kept: Kept) -> None:
    kept.save(("site_schemas", DOMAIN, _schema(kept.clock, unsure=3, notes=5)))
    assert kept.opened() == {}

    kept.save(("site_schemas", DOMAIN, _schema(kept.clock, unsure=4, notes=6)))
    found = kept.opened()

    assert set(found) == {"mapper-confidence", "image-pollution"}
    unsure, polluted = found["mapper-confidence"], found["image-pollution"]
    assert (unsure.source, unsure.runbook) == ("agents", "low-quality")
    assert [(each.key, each.error) for each in unsure.examples] == [
        ("item.price", "confidence 0.40 by css:.p")
    ]
    assert [(each.key, each.url) for each in polluted.examples] == [
        (f".g{n} img", f"https://{DOMAIN}/{n}") for n in (5, 4, 3)
    ]
    assert "penstock sites proposals" in polluted.commands

    kept.save(("site_schemas", DOMAIN, _schema(kept.clock, unsure=1, notes=0)))
    assert kept.opened() == {}


def test_references_that_stay_new_open_an_alert_until_somebody_decides_them(kept: Kept) -> None:
    supplier = {
        "supplier_name": "Bolts",
        "source_domain": DOMAIN,
        "source_url": f"https://{DOMAIN}/1",
    }
    kept.save(("supplier_references", "1", supplier), ("supplier_references", "2", supplier))
    kept.clock.advance(6 * DAY_S)
    # Another version, but still new.
    kept.save(("supplier_references", "1", {**supplier, "status": "new"}))
    assert kept.opened() == {}

    found = kept.opened(after_s=DAY_S)

    [alert] = found.values()
    assert alert.summary.startswith("2 supplier references new for 7 days")
    assert {each.key for each in alert.examples} <= {"1", "2"}
    assert "Bolts of acme.example" in {each.error for each in alert.examples}
    edit = kept.project.connection.record_edits.edit
    for key in ("1", "2"):
        edit("supplier_references", key, {"status": "dismissed"}, "ann", "no supplier")
    assert kept.opened() == {}


def test_references_that_wait_for_less_are_no_evidence(kept: Kept) -> None:
    kept.save(("supplier_references", "z", {"supplier_name": "Bolts"}))
    kept.clock.advance(6 * DAY_S)
    kept.save(("supplier_references", "a", {"supplier_name": "Nuts"}))

    [alert] = kept.opened(after_s=DAY_S + 61.0).values()
    assert [each.key for each in alert.examples] == ["z"]


def test_what_is_no_schema_keeps_no_alert_from_opening(kept: Kept) -> None:
    odd = {
        "domain": 1,
        "learnings": [7, {"at": []}],
        "pollution_notes": ["x"] * 9,
        "schema_data": [],
    }
    kept.save(("site_schemas", "odd", odd), ("site_schemas", "text", {"pollution_notes": 3}))

    found = kept.opened()
    assert set(found) == {"image-pollution"}
    assert {each.key for each in found["image-pollution"].examples} == {"x"}
