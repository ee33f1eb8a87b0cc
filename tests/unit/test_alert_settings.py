"""Alert rules and routes in penstock.yaml."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.alerts.rules import RULES, thresholds_by_rule
from penstock.errors import ConfigError
from penstock.settings.alert_rules import (
    PROJECT_RULES,
    THRESHOLDS,
    ExtractionFailures,
    ZeroYield,
)
from penstock.settings.alerts import RouteSettings
from penstock.settings.load import load_settings
from penstock.settings.values import Settings

SOURCES = (
    "sources: {acme.com: {pipeline: 'shop:a', alert_rules: %s}, b.example: {pipeline: 'shop:a'}}\n"
)
OF_NOBODY = f"alerts: [{{to: 'https://a.example', sources: [acme.org]}}]\n{SOURCES % '{}'}"


def settings(folder: Path, text: str, **environ: str) -> Settings:
    (folder / "penstock.yaml").write_text(text)
    return load_settings(folder, environ=environ)


def route(folder: Path, text: str, **environ: str) -> RouteSettings:
    [found] = settings(folder, f"alerts: [{{{text}}}]\n{SOURCES % '{}'}", **environ).alerts
    return found


def problem(folder: Path, text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        settings(folder, text, **environ)
    return f"{caught.value.message} {caught.value.hint}"


def test_every_rule_has_thresholds_and_is_on_without_any_setting() -> None:
    assert set(RULES) == set(THRESHOLDS) == set(thresholds_by_rule())
    assert {rule.name for rule in RULES.values() if rule.scope == "project"} == set(PROJECT_RULES)


def test_a_source_changes_single_thresholds_over_those_of_the_project(tmp_path: Path) -> None:
    text = "alert_rules: {zero-yield: {runs: 5, below: 0.1}, quality-drop: off}\n" + SOURCES % (
        "{zero-yield: {runs: 3}, quality-drop: on, stale-source: off}"
    )
    found = settings(tmp_path, text)
    acme = thresholds_by_rule(found.alert_rules, found.sources["acme.com"].alert_rules)
    other = thresholds_by_rule(found.alert_rules, found.sources["b.example"].alert_rules)
    assert acme["zero-yield"] == ZeroYield(runs=3, below=0.1)
    assert "quality-drop" in acme
    assert "stale-source" not in acme
    assert "quality-drop" not in other
    assert other["extraction-failures"] == ExtractionFailures()


def test_off_alone_switches_every_rule_off(tmp_path: Path) -> None:
    found = settings(tmp_path, f"alert_rules: off\n{SOURCES % 'off'}")
    assert thresholds_by_rule(found.alert_rules) == {}
    alone = thresholds_by_rule(found.sources["acme.com"].alert_rules)
    assert set(alone) == set(PROJECT_RULES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alert_rules: {zero-yeild: off}", "zero-yeild: unknown rule, did you mean 'zero-yield'?"),
        ("alert_rules: {zero-yield: 3}", "alert_rules.zero-yield: must be off, on, or a mapping, not 3"),
        ("alert_rules: {zero-yield: {run: 3}}", "unknown key, did you mean 'runs'?"),
        ("alert_rules: {zero-yield: {below: 2}}", "zero-yield.below: must be from 0 to 1"),
        ("alert_rules: {breaker-open: {open_for: long}}", "breaker-open.open_for"),
        ("alert_rules: {zero-yield: {severity: hihg}}", "did you mean 'high'?"),
        (SOURCES % "{store-full: off}", "is about the whole project"),
        ("alerts: {to: 'https://a.example'}", "must be a list of routes, not a mapping; thresholds"),
        ("alerts: [{when: severity >= high}]", "to: is missing"),
        ("alerts: [{to: ops@example.com}]", "must be an address such as https://example.com/hook"),
        ("alerts: [{to: 'smtp://mail.example.com'}]", "needs who receives it"),
        ("alerts: [{to: 'https://:80'}]", "has no sound host"),
        ("alerts: [{to: 'https://a.example', when: severity > hihg}]", "hihg, did you mean 'high'?"),
        ("alerts: [{to: 'https://a.example', when: high}]", "write it as severity >= high"),
        ("alerts: [{to: 'https://a.example', when: source == a}]", "source can't be compared"),
        ("alerts: [{to: 'https://a.example', when: rule >= zero-yield}]", "with == and != only"),
        ("alerts: [{to: 'https://a.example', quiet: 22-6}]", "is not a window"),
        ("alerts: [{to: 'https://a.example', quiet: '00:00-24:00'}]", "is all hours of the week"),
        ("alerts: [{to: 'https://a.example', timezone: Europe/Paris}]", "belongs to quiet"),
        ("alerts: [{to: 'https://a.example', sources: []}]", "leave it out for all sources"),
        ("alerts: [{to: 'ntfy://topic', secret: 'a'}]", "belongs to a webhook"),
        ("alerts: [{to: 'https://a.example/1'}, {to: 'https://a.example/2'}]", "two routes of one name"),
        (OF_NOBODY, "there is no source 'acme.org', did you mean 'acme.com'?"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_write_instead(
    text: str, expected: str, tmp_path: Path
) -> None:
    assert expected in problem(tmp_path, text)


def test_no_error_and_no_repr_shows_the_address_of_a_route(tmp_path: Path) -> None:
    slack = "https://hooks.example/T0canary"
    assert "canary" not in repr(route(tmp_path, "to: '${SLACK}'", SLACK=slack))
    for wrong in ("canary", "https://canary:0x/", "smtp://mail.example/?to=canary"):
        assert "canary" not in problem(tmp_path, "alerts: [{to: '${SLACK}'}]", SLACK=wrong)


def test_a_route_takes_what_its_condition_and_sources_say(tmp_path: Path) -> None:
    found = route(
        tmp_path,
        "to: 'https://a.example', when: severity >= high and rule != stale-source, "
        "sources: [Acme.com, '*.shop']",
    )
    assert found.accepts("high", "zero-yield", "acme.com")
    assert found.accepts("critical", "zero-yield", "one.shop")
    assert found.accepts("critical", "store-full", "")
    assert not found.accepts("medium", "zero-yield", "acme.com")
    assert not found.accepts("high", "stale-source", "acme.com")
    assert not found.accepts("high", "zero-yield", "b.example")


def test_quiet_hours_hold_an_alert_until_they_end_unless_it_is_critical(tmp_path: Path) -> None:
    found = route(tmp_path, "to: 'https://a.example', quiet: '22:00-06:00', timezone: Europe/Paris")

    def at(hour: int, day: int = 10) -> float:
        return datetime(2026, 11, day, hour, tzinfo=UTC).timestamp()

    assert found.held_until("high", at(22)) == at(5, 11)
    assert found.held_until("critical", at(22)) == at(22)
    assert found.held_until("high", at(12)) == at(12)


def test_the_kind_of_a_route_is_that_of_its_address(tmp_path: Path) -> None:
    kinds = {
        "https://a.example/x": ("webhook", "a.example"),
        "smtps://me:pw@mail.example:465/?to=ops@a.example,b@a.example": ("smtp", "mail.example"),
        "tgram://token/chat": ("apprise", "tgram"),
    }
    for to, expected in kinds.items():
        found = route(tmp_path, f"to: '{to}'")
        assert (found.kind, found.name) == expected
