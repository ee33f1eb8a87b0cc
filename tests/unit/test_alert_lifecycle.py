"""What becomes of an alert, and which alerts are one incident."""

from __future__ import annotations

from penstock.alerts.history import Cause, CauseKind, Finding
from penstock.alerts.incidents import attributed, by_incident
from penstock.alerts.lifecycle import CALM_S, Memory, Standing, State, Step, next_step
from penstock.alerts.rules import RULES, Severity

HOUR = 3600.0
DAY = 24 * HOUR


def finding(
    rule: str = "zero-yield",
    source: str = "acme.com",
    since: float = 0.0,
    *,
    kind: CauseKind = "site-change",
    key: str = "",
    severity: Severity = "high",
) -> Finding:
    return Finding(
        rule=rule,
        source=source,
        severity=severity,
        summary="",
        numbers=(),
        cause=Cause(kind=kind, key=key or source, words=""),
        since=since,
    )


def alert(
    step: Step, rule: str = "zero-yield", state: State = "open", resolved_at: float | None = None
) -> Standing:
    return Standing(
        rule=rule, state=state, severity="high", resolved_at=resolved_at, memory=step.memory
    )


def test_one_alert_of_a_rule_and_source_opens_loudly_and_is_then_only_noted() -> None:
    opened = next_step(None, finding(), 0.0)
    assert (opened.verb, opened.is_loud) == ("open", True)
    again = next_step(alert(opened), finding(), 60.0)
    assert (again.verb, again.is_loud) == ("note", False)
    worse = next_step(alert(opened), finding(severity="critical"), 60.0)
    assert (worse.verb, worse.is_loud) == ("note", True)


def test_it_resolves_by_itself_only_after_its_condition_has_ended_for_long_enough() -> None:
    rule, wait = "breaker-open", RULES["breaker-open"].clear_for_s
    opened = next_step(None, finding(rule), 0.0)
    first = next_step(alert(opened, rule), None, 100.0)
    assert first.verb == "remember"
    back = next_step(alert(first, rule), finding(rule), 200.0)
    assert back.memory.clear_since is None
    assert next_step(alert(first, rule), None, 100.0 + wait - 1).verb == "remember"
    assert next_step(alert(first, rule), None, 100.0 + wait).verb == "end"


def test_an_alert_that_keeps_coming_back_goes_silent_and_must_be_calm_for_longer() -> None:
    step = next_step(None, finding(), 0.0)
    for time in (1 * HOUR, 2 * HOUR):
        assert next_step(alert(step), None, time - 600).verb == "end"
        step = next_step(alert(step, state="resolved", resolved_at=time - 600), finding(), time)
        assert step.verb == "reopen"
    assert not step.is_loud
    assert "flapping" in step.reason
    calm = next_step(alert(step), None, 3 * HOUR)
    assert calm.verb == "remember"
    assert next_step(alert(calm), None, 3 * HOUR + CALM_S).verb == "end"


def test_after_a_day_a_condition_that_comes_back_is_a_new_alert() -> None:
    old = Standing(
        rule="zero-yield",
        state="resolved",
        severity="high",
        resolved_at=0.0,
        memory=Memory(opened=(0.0, 1.0, 2.0)),
    )
    step = next_step(old, finding(), 2 * DAY)
    assert (step.verb, step.is_loud, step.memory.opened) == ("open", True, (2 * DAY,))


def test_what_a_person_resolved_stays_resolved_until_its_condition_has_ended() -> None:
    held = Standing(
        rule="zero-yield", state="resolved", severity="high", resolved_at=0.0, is_held=True
    )
    assert next_step(held, finding(), HOUR).verb == "nothing"
    assert next_step(held, None, HOUR).verb == "let_go"


def test_a_snoozed_alert_is_silent_until_its_time_and_then_reminds() -> None:
    snoozed = Standing(rule="zero-yield", state="open", severity="low", snoozed_until=HOUR)
    assert not next_step(snoozed, finding(), 60.0).is_loud
    step = next_step(snoozed, finding(), HOUR)
    assert (step.verb, step.is_loud) == ("wake", True)


def test_a_rule_that_cannot_judge_changes_nothing() -> None:
    standing = Standing(rule="zero-yield", state="open", severity="high")
    assert next_step(standing, None, DAY, is_judged=False).verb == "nothing"


def test_a_host_that_is_down_is_one_incident_of_twelve_alerts() -> None:
    sources = [f"shop-{number}" for number in range(12)]
    found = [finding(source=each, since=60.0 * at) for at, each in enumerate(sources)]
    other = finding(source="elsewhere")
    hosts = {each: ["cdn.example", f"{each}.example"] for each in sources} | {"elsewhere": ["b"]}
    incidents = by_incident(attributed([*found, other], hosts))
    assert {key: len(each) for key, each in incidents.items()} == {
        "host:cdn.example": 12,
        "source:elsewhere": 1,
    }


def test_sources_of_one_host_that_break_on_different_days_are_two_incidents() -> None:
    found = [finding(source="a", since=0.0), finding(source="b", since=3 * DAY)]
    assert len(by_incident(attributed(found, {"a": ["h"], "b": ["h"]}))) == 2


def test_everything_that_one_broken_source_raises_is_one_incident_led_by_the_most_severe() -> None:
    found = [
        finding("rejection-rise", severity="medium", since=0.0),
        finding("extraction-failures", severity="high", since=60.0),
        finding("zero-yield", severity="high", since=30.0, kind="unknown"),
    ]
    [(key, incident)] = by_incident(attributed(found, {})).items()
    assert key == "source:acme.com"
    assert incident[0].rule == "zero-yield"


def test_sources_that_are_late_because_no_worker_is_alive_belong_to_the_workers() -> None:
    found = [
        finding("dead-workers", "", kind="workers", severity="critical"),
        finding("schedule-missed", "a", kind="schedule"),
        finding("stale-source", "b", kind="unknown"),
        finding("quality-drop", "c"),
    ]
    incidents = by_incident(attributed(found, {}))
    assert incidents["workers:"][0].rule == "dead-workers"
    assert {key: len(each) for key, each in incidents.items()} == {"workers:": 3, "source:c": 1}
