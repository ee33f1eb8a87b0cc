"""Metrics: what exports ask for exists, turns are counted cheaply, files are replaced at once."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from penstock import Project
from penstock.engine.worker.turn_times import EVERY_S, TurnTimes
from penstock.errors import UsageError
from penstock.exporters.dashboards import DASHBOARDS
from penstock.exporters.prometheus_rules import ALERTS, RECORDING
from penstock.metrics.registry import FAMILIES
from penstock.runbooks.library import RUNBOOKS
from penstock.testing import VirtualClock
from tests.unit.test_web import Site, visit

PARTS = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
KNOWN = {
    "penstock_info",
    *(rule.name for rule in RECORDING),
    *(
        f"{family.shown_name}{part}"
        for family in FAMILIES.values()
        for part in PARTS.get(family.kind, ("",))
    ),
}
NAMES = re.compile(r"(?:\w+:)?penstock_\w+(?::\w+)?")


def test_dashboards_and_rules_ask_for_series_that_exist_and_show_every_family() -> None:
    panels = [q.expression for d in DASHBOARDS for panel in d.panels for q in panel.queries]
    rules = [rule.expression for rule in (*RECORDING, *ALERTS)]
    asked = {name for text in (*panels, *rules) for name in NAMES.findall(text)}
    assert asked - KNOWN == set()
    shown = {name for text in panels for name in NAMES.findall(text)}
    unseen = {
        family.name
        for family in FAMILIES.values()
        if not any(name.startswith(family.name) for name in shown)
    }
    assert unseen == set()
    assert {rule.runbook for rule in ALERTS} - set(RUNBOOKS) == {""}


def test_labels_are_of_bounded_sets() -> None:
    bounded = {
        "source", "stage", "state", "outcome", "kind", "result", "rule", "scope", "measure", "period", "host",
        "severity",
    }  # fmt: skip
    assert {label for family in FAMILIES.values() for label in family.labels} == bounded


def test_turns_are_written_now_and_then_and_only_while_something_ends() -> None:
    clock = VirtualClock()
    times = TurnTimes(clock)

    def turn(seconds: float, *, has_ends: bool) -> bool:
        began = clock.monotonic()
        clock.advance(seconds)
        return times.note(began, has_ends=has_ends)

    assert not turn(0.002, has_ends=False)
    assert turn(0.2, has_ends=True)
    found = {(measure, label): amount for measure, label, amount in times.amounts()}
    assert found == {
        ("turn_seconds", "0.0025"): 1,
        ("turn_seconds", "0.25"): 1,
        ("turn_seconds_sum", ""): pytest.approx(0.202),
    }
    times.written()
    assert times.amounts() == []
    assert not turn(0.002, has_ends=True)
    clock.advance(EVERY_S)
    assert turn(0.002, has_ends=True)


def test_a_file_for_the_collector_is_replaced_at_once_and_readable_by_all(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": {"a": {"pipeline": "x:y"}}}))
    file = tmp_path / "penstock.prom"
    file.write_text("what was there before")
    with Project.open(tmp_path) as project, file.open() as reader:
        project.metrics.write(file)
        assert reader.read() == "what was there before"  # who reads it has the old one, whole
        assert file.read_text().startswith("# HELP penstock_info")
        assert stat.S_IMODE(file.stat().st_mode) & 0o444 == 0o444
        assert [each.name for each in tmp_path.glob(".penstock.prom*")] == []
        with pytest.raises(UsageError, match="can't be written"):
            project.metrics.write(tmp_path / "nowhere" / "penstock.prom")


def test_who_may_look_is_answered_in_the_format_that_is_asked_for(tmp_path: Path) -> None:
    async def steps(at: Site) -> None:
        assert (await at.ask("GET", "/metrics")).status == 401
        await at.log_in()
        plain = await at.ask("GET", "/metrics", headers={"Accept": "text/plain"})
        assert plain.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        accepted = "application/openmetrics-text;version=1.0.0,text/plain;q=0.3"
        as_open = await at.ask("GET", "/metrics", headers={"Accept": accepted})
        assert as_open.headers["Content-Type"].startswith(
            "application/openmetrics-text; version=1.0.0"
        )
        assert (plain.text.endswith("# EOF\n"), as_open.text.endswith("# EOF\n")) == (False, True)

    (tmp_path / "penstock.yaml").write_text(json.dumps({"sources": {"a": {"pipeline": "x:y"}}}))
    with Project.open(tmp_path) as project:
        visit(project, steps)
