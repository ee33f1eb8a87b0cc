"""Thresholds of the alert rules, as they stand in `alerts:` of the project or of a source.

One Struct for each rule: its keys are the thresholds, with their bounds, defaults and descriptions.
"""

from typing import Annotated, Any, Literal

from msgspec import field

from penstock.errors import nearest
from penstock.settings.declaration import (
    Keys,
    Reads,
    Schema,
    Usual,
    about,
    between,
    decode,
    keys_of,
    no_less,
)
from penstock.settings.document import Entry, join
from penstock.settings.kinds import Duration, Ref, variable
from penstock.settings.section import Section, describe

Severity = Literal["low", "medium", "high", "critical"]
SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high", "critical")

OwnSeverity = Annotated[
    Severity | None,
    about("severity of this alert: low, medium, high or critical"),
    Usual("its own"),
]
Share = Annotated[float, between(0.0, 1.0)]
Runs = Annotated[int, between(1, 1000)]
Count = Annotated[int, between(1, 1_000_000_000)]
Deviations = Annotated[
    float,
    between(0.0, 100.0),
    about("how many median absolute deviations away from the baseline it must be"),
]
Least = Annotated[
    int,
    between(3, 1000),
    about("runs that a baseline needs; with fewer the rule stays silent, and says so"),
]


class Thresholds(Keys, frozen=True):
    """What every rule has: a severity that replaces its own."""

    severity: OwnSeverity = None


class ZeroYield(Thresholds, frozen=True):
    """Nothing, or much less than usual, from a source that normally yields."""

    runs: Annotated[Runs, about("consecutive runs with too little yield")] = 2
    below: Annotated[
        Share, about("share of the baseline's yield; a run that yields less has too little")
    ] = 0.5
    deviations: Deviations = 4.0
    history: Least = 8


class ExtractionFailures(Thresholds, frozen=True):
    """A larger share of jobs fails than usual."""

    runs: Annotated[Runs, about("consecutive runs with too many failures")] = 2
    rise: Annotated[Share, about("how far above the baseline the share of failed jobs must be")] = (
        0.15
    )
    at_least: Annotated[Count, about("failed jobs in these runs together")] = 5
    deviations: Deviations = 5.0
    history: Least = 8


class RejectionRise(Thresholds, frozen=True):
    """A larger share of records is rejected than usual."""

    runs: Annotated[Runs, about("consecutive runs with too many rejects")] = 2
    rise: Annotated[
        Share, about("how far above the baseline the share of rejected records must be")
    ] = 0.15
    at_least: Annotated[Count, about("rejected records in these runs together")] = 10
    deviations: Deviations = 5.0
    history: Least = 8


class ScheduleMissed(Thresholds, frozen=True):
    """A schedule does not start its runs."""

    starts: Annotated[Count, about("consecutive starts that were missed")] = 2
    grace_s: Annotated[Duration, about("how long a start must be overdue at least")] = field(
        default=300.0, name="grace"
    )


class FailuresInAnHour(Thresholds, frozen=True):
    """Many jobs of a source were quarantined within one hour."""

    failures: Annotated[Count, about("jobs that failed for good within one hour")] = 50
    rise: Annotated[
        float,
        between(1.0, 1000.0),
        about("how many times the largest usual hour of this source it must be"),
    ] = 3.0


class QualityDrop(Thresholds, frozen=True):
    """The mean score of records is lower than usual."""

    runs: Annotated[Runs, about("consecutive runs with a low mean score")] = 2
    drop: Annotated[
        Share, about("how far below the baseline the mean score must be, as a share of it")
    ] = 0.1
    at_least: Annotated[Count, about("scored records in these runs together")] = 10
    deviations: Deviations = 5.0
    history: Least = 8


class DuplicateExplosion(Thresholds, frozen=True):
    """A larger share of what a run finds is duplicates than usual."""

    runs: Annotated[Runs, about("consecutive runs with too many duplicates")] = 2
    rise: Annotated[Share, about("how far above the baseline the share of duplicates must be")] = (
        0.3
    )
    at_least: Annotated[Count, about("duplicates in these runs together")] = 20
    deviations: Deviations = 5.0
    history: Least = 8


class BacklogGrowth(Thresholds, frozen=True):
    """Jobs arrive faster than they are done, and the queue will not be empty soon."""

    hours: Annotated[int, between(1, 168), about("consecutive hours in which the queue grew")] = 3
    jobs: Annotated[Count, about("jobs that must be waiting")] = 1000
    clears_in_s: Annotated[
        Duration, no_less(60.0), about("it is no alert while the queue will be empty within this")
    ] = field(default=6 * 3600.0, name="clears_in")


class StaleSource(Thresholds, frozen=True):
    """The last good run is too old."""

    intervals: Annotated[
        float,
        between(1.0, 1000.0),
        about(
            "how many of its usual intervals between good runs may pass; a source with "
            "`freshness` uses that instead"
        ),
    ] = 3.0
    at_least_s: Annotated[
        Duration, no_less(1.0), about("never before this age, except with `freshness`")
    ] = field(default=3600.0, name="at_least")
    history: Least = 5


class BudgetRunningOut(Thresholds, frozen=True):
    """At its present rate a budget is exhausted before it is reset."""

    used: Annotated[Share, about("share of the budget that must be used before it is forecast")] = (
        0.5
    )
    early_s: Annotated[
        Duration, about("how long before the reset the budget must run out at least")
    ] = field(default=3600.0, name="early")


class BreakerOpen(Thresholds, frozen=True):
    """A breaker has been open for long."""

    open_for_s: Annotated[Duration, no_less(1.0), about("how long without closing in between")] = (
        field(default=3600.0, name="open_for")
    )


class SchemaDrift(Thresholds, frozen=True):
    """The fields of records that have a schema have changed from one run to the next."""

    within_s: Annotated[Duration, about("how long after the run the alert stays open")] = field(
        default=86_400.0, name="within"
    )
    new_fields: Annotated[
        bool, about("also for a new field; else only for another type or many empty values")
    ] = False


class OrchestratorFailed(Thresholds, frozen=True):
    """An orchestrator tries a task of the source no more, or a run of it missed its deadline."""

    within_s: Annotated[
        Duration, about("how long after that the alert stays open, without a good run since")
    ] = field(default=86_400.0, name="within")


class MapperConfidence(Thresholds, frozen=True):
    """The mapper has learned a site, and is not sure of it, again and again."""

    below: Annotated[Share, about("confidence that a schema must have")] = 0.7
    times: Annotated[Count, about("alert when it was lower more often than this")] = 3
    within_s: Annotated[Duration, no_less(3600.0), about("how far back it counts")] = field(
        default=30 * 86_400.0, name="within"
    )


class ImagePollution(Thresholds, frozen=True):
    """The galleries of a site are polluted, and stay so."""

    notes: Annotated[Count, about("alert when more notes than this are not solved")] = 5


class ReferencesWaiting(Thresholds, frozen=True):
    """Supplier references that nobody has decided."""

    waits_s: Annotated[Duration, no_less(3600.0), about("how long one may stay `new`")] = field(
        default=7 * 86_400.0, name="waits"
    )


class ComplianceStale(Thresholds, frozen=True):
    """A source may not be fetched, because its robots.txt or terms have to be checked."""

    ahead_s: Annotated[Duration, about("alert so long before a check goes stale")] = field(
        default=0.0, name="ahead"
    )


class DeadWorkers(Thresholds, frozen=True):
    """Workers died, or none are left while jobs wait."""

    workers: Annotated[Count, about("workers that died within the time of `within`")] = 3
    within_s: Annotated[Duration, no_less(60.0), about("how far back deaths count")] = field(
        default=3600.0, name="within"
    )
    none_for_s: Annotated[
        Duration, no_less(1.0), about("how long jobs may be due while no worker is alive")
    ] = field(default=300.0, name="none_for")


class StoreFull(Thresholds, frozen=True):
    """The database's disk is nearly full, or will be soon."""

    free: Annotated[Share, about("share of the disk that must be free")] = 0.05
    full_in_s: Annotated[
        Duration, no_less(3600.0), about("alert when the disk will be full within this")
    ] = field(default=3 * 86400.0, name="full_in")


class HookGivenUp(Thresholds, frozen=True):
    """Deliveries to a hook were given up."""

    deliveries: Annotated[Count, about("deliveries given up within the time of `within`")] = 1
    within_s: Annotated[Duration, no_less(60.0), about("how far back they count")] = field(
        default=86400.0, name="within"
    )


class RouteDead(Thresholds, frozen=True):
    """Alerts can't be delivered on a route."""

    dead_for_s: Annotated[
        Duration, no_less(1.0), about("how long its deliveries must have failed without a success")
    ] = field(default=900.0, name="dead_for")


THRESHOLDS: dict[str, type[Thresholds]] = {
    "zero-yield": ZeroYield,
    "extraction-failures": ExtractionFailures,
    "rejection-rise": RejectionRise,
    "schedule-missed": ScheduleMissed,
    "failures-in-an-hour": FailuresInAnHour,
    "quality-drop": QualityDrop,
    "duplicate-explosion": DuplicateExplosion,
    "backlog-growth": BacklogGrowth,
    "stale-source": StaleSource,
    "budget-running-out": BudgetRunningOut,
    "breaker-open": BreakerOpen,
    "schema-drift": SchemaDrift,
    "orchestrator-failed": OrchestratorFailed,
    "mapper-confidence": MapperConfidence,
    "image-pollution": ImagePollution,
    "references-waiting": ReferencesWaiting,
    "compliance-stale": ComplianceStale,
    "dead-workers": DeadWorkers,
    "store-full": StoreFull,
    "hook-given-up": HookGivenUp,
    "route-dead": RouteDead,
}
RULE_NAMES = tuple(THRESHOLDS)
# About the project as a whole: a source can't change them.
PROJECT_RULES = ("dead-workers", "store-full", "hook-given-up", "route-dead")
SOURCE_RULES = tuple(name for name in RULE_NAMES if name not in PROJECT_RULES)

# What a file changes of each rule: thresholds by their attributes, or None where the rule is off.
RuleChanges = dict[str, dict[str, Any] | None]


def read_rules(entry: Entry, path: str, known: tuple[str, ...] = RULE_NAMES) -> RuleChanges:
    """The rules that are written, each with the thresholds that are; `off` alone turns all of them off."""
    if _is_off(entry):
        return dict.fromkeys(known)
    if not isinstance(entry.value, dict):
        raise entry.error(path, f"must be off, or a mapping of rules, not {describe(entry)}")
    found: RuleChanges = {}
    for name, inner in entry.value.items():
        at = join(path, name)
        if name not in known:
            raise inner.error(at, _unknown(name, known))
        found[name] = _read_rule(THRESHOLDS[name], inner, at)
    return found


def read_source_rules(entry: Entry, path: str) -> RuleChanges:
    return read_rules(entry, path, SOURCE_RULES)


def _unknown(name: str, known: tuple[str, ...]) -> str:
    if name in PROJECT_RULES:
        return "is about the whole project; write it under `rules` in the project's `alerts`"
    return f"unknown rule, {nearest(name, known)}"


def _read_rule(thresholds: type[Thresholds], entry: Entry, path: str) -> dict[str, Any] | None:
    if _is_off(entry):
        return None
    if entry.value is True or entry.value == "on" or entry.value is None:
        return {}
    if not isinstance(entry.value, dict):
        raise entry.error(path, f"must be off, on, or a mapping, not {describe(entry)}")
    read = decode(thresholds, entry, path)
    at = Section(entry, path, [key.name for key in keys_of(thresholds)])
    return {
        key.attribute: getattr(read, key.attribute)
        for key in keys_of(thresholds)
        if at.has(key.name)
    }


def _is_off(entry: Entry) -> bool:
    return entry.value is False or entry.value == "off"


def rules_schema(known: tuple[str, ...], ref: Ref) -> Schema:
    switch = {"enum": ["off", "on", False, True]}
    each = {
        name: {"anyOf": [switch, ref(THRESHOLDS[name]), variable(), {"type": "null"}]}
        for name in known
    }
    rules = {"type": "object", "properties": each, "additionalProperties": False}
    return {"anyOf": [{"enum": ["off", False]}, rules, variable()]}


SourceRules = Annotated[
    RuleChanges,
    Reads(read_source_rules, lambda ref: rules_schema(SOURCE_RULES, ref), lambda _: None),
]


def thresholds_of(name: str, *layers: RuleChanges) -> Thresholds | None:
    """The rule's thresholds with these changes over its defaults, the last on top; None where it is off."""
    changes: dict[str, Any] = {}
    is_on = True
    for layer in layers:
        if name in layer:
            changed = layer[name]
            is_on = changed is not None
            changes |= changed or {}
    return THRESHOLDS[name](**changes) if is_on else None
