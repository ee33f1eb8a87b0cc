"""`project.alerts` and `penstock alerts`: lists in pages, evidence, acts with who and why, and refusals."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock import Project
from penstock.alerts.history import Cause, Finding, Number
from penstock.alerts.rules import RULES
from penstock.cli.entry import main, parser_for
from penstock.cli.remedies import hint_of
from penstock.engine.alerting.advice import SAFE, safe_commands
from penstock.engine.alerting.evidence import Evidence, Example
from penstock.errors import UsageError
from penstock.store.alert_rows import Opening
from tests.contract.scenes import PLAIN_STEPS, Place

FINDING = Finding(
    rule="zero-yield",
    source="acme.com",
    severity="high",
    summary="2 runs in a row yielded nothing",
    numbers=(Number(name="yield", value=0, baseline=120, counted=30, unit="records"),),
    cause=Cause(kind="site-change", key="acme.com", words="the site has probably changed"),
    since=1.0,
    run=7,
)
EVIDENCE = Evidence(
    examples=[Example(what="page", key="a", url="https://acme.com/a", job=3, snapshot=9)],
    runbook="source-broke",
    runbook_command="penstock runbook source-broke acme.com",
    safe=["penstock pause acme.com"],
)


@pytest.fixture
def project(tmp_path: Path, place: Place) -> Iterator[Project]:
    (tmp_path / "steps.py").write_text(PLAIN_STEPS)
    store = f"sqlite:{place}" if isinstance(place, Path) else place
    settings: dict[str, Any] = {"project": "nouns", "store": store}
    settings["sources"] = {
        "acme.com": {"pipeline": "steps:plain"},
        "b.com": {"pipeline": "steps:plain"},
    }
    settings["alerts"] = [{"to": "http://127.0.0.1:9/x", "name": "dead", "allow_private": True}]
    (tmp_path / "penstock.yaml").write_text(json.dumps(settings))
    with Project.open(tmp_path) as made:
        yield made


def opened(project: Project, rule: str = "zero-yield", source: str = "acme.com") -> int:
    opening = Opening(
        rule,
        project.source_ids[source],
        "high",
        FINDING.summary,
        cause=FINDING.cause.words,
        finding=msgspec.json.encode(FINDING).decode(),
        evidence=msgspec.json.encode(EVIDENCE).decode(),
    )
    found = project.connection.alerts.open(opening)
    assert found is not None
    return found


def penstock(project: Project, *words: str) -> str:
    """What the command prints; it must succeed."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out)
        assert main(["--project", str(project.settings.root), *words]) == 0
    return out.getvalue()


STATES = ("unresolved", "standing")


def test_alerts_are_listed_in_pages_and_filtered(project: Project) -> None:
    first, second = opened(project), opened(project, source="b.com")
    third = opened(project, rule="stale-source")
    alerts = project.alerts
    page = alerts.list(limit=2)
    [last] = alerts.list(limit=2, cursor=page.next).items
    assert [view.id for view in (*page.items, last)] == [third, second, first]
    assert [view.id for view in alerts.each(source="ACME.com")] == [third, first]
    assert [view.id for view in alerts.each(rule="stale-source")] == [third]
    assert alerts.resolve(first, actor="ann")
    assert [view.id for view in alerts.each()] == [third, second]
    assert [view.id for view in alerts.each(state="resolved")] == [first]
    # `standing` is an older word.
    assert alerts.list(state="standing") == alerts.list(state="unresolved") == alerts.list()
    of_words = [
        json.loads(penstock(project, "alerts", "--state", word, "--json")) for word in STATES
    ]
    assert [[each["alert"] for each in rows] for rows in of_words] == [[third, second]] * 2
    assert [view.id for view in project.status(outlook=False).alerts] == [third, second]
    with pytest.raises(UsageError, match="there is no rule") as unknown:
        alerts.list(rule="zero-yeld")
    assert (unknown.value.code, unknown.value.hint) == ("no_rule", "did you mean 'zero-yield'?")


def test_alert_is_shown_with_its_evidence_by_the_command(project: Project) -> None:
    alert = opened(project)
    shown = penstock(project, "alerts", "show", str(alert))
    for words in (
        "high: acme.com: 2 runs in a row yielded nothing",
        "yield: 0 records (usually 120, of 30 runs)",
        "https://acme.com/a (penstock page 3)",
        "the site has probably changed",
        "penstock runbook source-broke acme.com",
        "penstock pause acme.com",
    ):
        assert words in shown
    found = json.loads(penstock(project, "alerts", "show", str(alert), "--json"))
    assert (found["alert"], found["examples"][0]["snapshot"]) == (alert, 9)
    [listed] = json.loads(penstock(project, "alerts", "--json"))
    assert (listed["alert"], listed["runbook"]) == (alert, "source-broke")


def test_acts_on_an_alert_say_what_they_did_and_the_journal_who_and_why(project: Project) -> None:
    alert = str(opened(project))
    assert "is acknowledged" in penstock(project, "alerts", "ack", alert, "--reason", "mine")
    assert "was acknowledged already" in penstock(project, "alerts", "ack", alert)
    assert "is snoozed for 2 h" in penstock(project, "alerts", "snooze", alert, "--for", "2h")
    until = datetime.fromtimestamp(project.now() + 3 * 86_400 + 60, UTC).isoformat()
    assert "is snoozed for 3 d" in penstock(project, "alerts", "snooze", alert, "--until", until)
    assert project.alerts.get(int(alert)).snoozed_until == pytest.approx(
        project.now() + 259_260, abs=60
    )
    assert "is resolved" in penstock(project, "alerts", "resolve", alert, "--reason", "fixed")
    assert "was resolved already" in penstock(project, "alerts", "resolve", alert)
    rows = project.connection.journal.events(kind="alert", limit=9)
    assert [row.kind for row in rows][1:] == [
        "alert.acknowledged",
        *("alert.snoozed", "alert.snoozed"),
        "alert.resolved",
    ]
    assert rows[1].data["reason"] == "mine"


def test_what_does_not_exist_is_refused_with_a_way_on(project: Project) -> None:
    for act in (project.alerts.get, project.alerts.acknowledge, project.alerts.resolve):
        with pytest.raises(UsageError, match="there is no alert 99") as unknown:
            act(99)
        assert unknown.value.code == "no_alert"
        assert hint_of(unknown.value) == "penstock alerts list --all lists them"
    with pytest.raises(UsageError, match="a minute to a year"):
        project.alerts.snooze(opened(project), 5.0)
    with pytest.raises(UsageError, match="there is no route 'ded'") as route:
        project.alerts.test("ded")
    assert route.value.hint == "did you mean 'dead'?"


def test_test_of_a_route_says_what_was_wrong_and_is_in_the_journal(project: Project) -> None:
    found = project.alerts.test("dead", actor="ann", reason="new route")
    assert not found.is_accepted
    assert found.error.startswith("no connection")
    [row] = project.connection.journal.events(kind="alert.route_tested", limit=9)
    assert (row.actor, row.data["route"]) == ("ann", "dead")
    [route] = project.alerts.routes()
    assert (route.name, route.kind) == ("dead", "webhook")


def test_rules_of_a_source_say_what_they_do_and_why_one_is_silent(project: Project) -> None:
    settings = project.settings.root / "penstock.yaml"
    known = json.loads(settings.read_text())
    known["sources"]["acme.com"]["alert_rules"] = {"quality-drop": "off"}
    settings.write_text(json.dumps(known))
    alert = opened(project)
    rows = json.loads(penstock(project, "alerts", "rules", "acme.com", "--json"))
    found = {row["rule"]: (row["state"], row["why"], row["alert"]) for row in rows}
    assert found["zero-yield"] == ("alert", FINDING.summary, alert)
    assert found["rejection-rise"] == ("silent", "0 of 10 runs for a baseline", None)
    assert found["quality-drop"][0] == "off"
    assert found["breaker-open"][0] == "watching"
    shown = penstock(project, "alerts", "rules")
    assert "dead-workers" in shown
    assert "zero-yield" not in shown


def test_every_rule_has_advice_that_can_be_typed() -> None:
    assert set(SAFE) == set(RULES)
    for rule, known in RULES.items():
        for command in safe_commands(rule, "acme.com" if known.scope == "source" else ""):
            words = command.split()[1:]
            parser_for(words).parse_args(words, argparse.Namespace(project=None, env=None))
