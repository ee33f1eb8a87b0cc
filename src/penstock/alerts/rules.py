"""The rules, as data: what each is about, how bad it is, and which runbook helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.settings.alert_rules import (
    PROJECT_RULES,
    RULE_NAMES,
    SEVERITIES,
    THRESHOLDS,
    RuleChanges,
    Severity,
    Thresholds,
    thresholds_of,
)

__all__ = [
    "RULES",
    "SEVERITIES",
    "ByRule",
    "Rule",
    "Scope",
    "Severity",
    "Thresholds",
    "is_at_least",
    "thresholds_by_rule",
]

Scope = Literal["source", "project"]
# The thresholds of every rule that is on.
ByRule = Mapping[str, Thresholds]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `clear_for_s` is how long its condition must have ended before its alert resolves."""

    name: str
    severity: Severity
    summary: str
    runbook: str
    clear_for_s: float = 0.0

    @property
    def scope(self) -> Scope:
        return "project" if self.name in PROJECT_RULES else "source"

    @property
    def thresholds(self) -> Thresholds:
        """Its thresholds where nothing is configured."""
        return THRESHOLDS[self.name]()


_HOUR_S = 3600.0
_RULES = (
    Rule(
        "zero-yield",
        "high",
        "Runs yield nothing, or much less than usual, on a source that normally yields.",
        "source-broke",
    ),
    Rule(
        "extraction-failures",
        "high",
        "A much larger share of jobs fails than usual.",
        "source-broke",
    ),
    Rule(
        "rejection-rise",
        "medium",
        "A much larger share of records is rejected than usual.",
        "low-quality",
    ),
    Rule(
        "schedule-missed",
        "high",
        "A schedule misses its starts.",
        "schedule-missed",
    ),
    Rule(
        "failures-in-an-hour",
        "high",
        "Many jobs failed for good within one hour.",
        "source-broke",
        clear_for_s=_HOUR_S,
    ),
    Rule(
        "quality-drop",
        "medium",
        "Records score much lower than usual.",
        "low-quality",
    ),
    Rule(
        "duplicate-explosion",
        "medium",
        "A much larger share of what runs find is duplicates than usual.",
        "duplicate-explosion",
    ),
    Rule(
        "backlog-growth",
        "medium",
        "Jobs arrive faster than they are done.",
        "backlog-growth",
        clear_for_s=_HOUR_S,
    ),
    Rule(
        "stale-source",
        "medium",
        "The last good run is too old.",
        "source-broke",
    ),
    Rule(
        "budget-running-out",
        "low",
        "A budget will be exhausted before it is reset.",
        "budget-running-out",
        clear_for_s=_HOUR_S,
    ),
    Rule(
        "breaker-open",
        "medium",
        "A breaker has been open for long.",
        "source-broke",
        clear_for_s=600.0,
    ),
    Rule(
        "schema-drift",
        "medium",
        "Fields of the records have another type, or are empty much more often, than in the run before.",
        "source-broke",
    ),
    Rule(
        "orchestrator-failed",
        "high",
        "A task of Airflow, Dagster or Prefect failed for good, or its run missed a deadline.",
        "source-broke",
    ),
    Rule(
        "mapper-confidence",
        "medium",
        "The mapper has learned a site several times, and is not sure of it.",
        "low-quality",
    ),
    Rule(
        "image-pollution",
        "medium",
        "Galleries of a site have logos, icons, banners or images of other items.",
        "low-quality",
    ),
    Rule(
        "references-waiting",
        "low",
        "Supplier references are `new` for long: nobody has decided them.",
        "low-quality",
    ),
    Rule(
        "compliance-stale",
        "medium",
        "An approved source is not fetched any more: its robots.txt or terms have to be checked.",
        "schedule-missed",
    ),
    Rule(
        "dead-workers",
        "critical",
        "Workers died, or none are alive while jobs wait.",
        "workers-dead",
        clear_for_s=600.0,
    ),
    Rule(
        "store-full",
        "critical",
        "The disk of the database is nearly full, or will be soon.",
        "store-full",
        clear_for_s=_HOUR_S,
    ),
    Rule(
        "hook-given-up",
        "medium",
        "Deliveries to a hook were given up.",
        "delivery-failed",
    ),
    Rule(
        "route-dead",
        "high",
        "Alerts can't be delivered on a route.",
        "delivery-failed",
    ),
)
RULES: Mapping[str, Rule] = {rule.name: rule for rule in _RULES}


def thresholds_by_rule(*layers: RuleChanges) -> dict[str, Thresholds]:
    """The thresholds of every rule that is on: defaults, the project's changes, then the source's."""
    found = {name: thresholds_of(name, *layers) for name in RULE_NAMES}
    return {name: each for name, each in found.items() if each is not None}


def is_at_least(severity: str, least: str) -> bool:
    return SEVERITIES.index(severity) >= SEVERITIES.index(least)
