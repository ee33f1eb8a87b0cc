"""What an engine may show of a run that has ended: its collections, and checks of their quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.app import Project
from penstock.app.views.runs import RunDetail
from penstock.bridges.drains import failing_in_one_line
from penstock.bridges.places import Place
from penstock.errors import UsageError

SCHEMA, REJECTS, ALERTS = "schema", "rejects", "alerts"
DESCRIPTIONS = {
    SCHEMA: "all records of the collection fit its schema",
    REJECTS: "the run rejected no item",
    ALERTS: "no alert about the source is open",
}
# Records that do not fit are wrong; the others may be as they should be, and are looked at.
ERRORS = {SCHEMA}
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one collection. `is_error`: what builds on the collection should not be built."""

    name: str
    passed: bool
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_error(self) -> bool:
        return self.name in ERRORS


@dataclass(frozen=True, slots=True)
class CollectionState:
    """A collection after a run: how many records it has, what the run did, and the checks."""

    collection: str
    metadata: Mapping[str, Any]
    checks: Sequence[Check]


def collections_of(project: Project, named: Sequence[str] | None) -> list[str]:
    """The collections that are meant: those that are named, else those of `collections:`."""
    found = list(named) if named is not None else list(project.settings.collections)
    if not found:
        raise UsageError(
            "which collections does the source save? penstock.yaml has none under `collections:`",
            'name them: collections=["product"]',
            code="collections_missing",
        )
    return found


def checks_of(project: Project, collection: str) -> list[str]:
    """Which checks a collection has; only one with a schema can be tested against it."""
    schema = [SCHEMA] if collection in project.settings.collections else []
    return [*schema, REJECTS, ALERTS]


def states_of(
    place: Place, run_id: int, source: str, collections: Sequence[str], dashboard: str = ""
) -> list[CollectionState]:
    """Look at collections after a run of a source."""
    with failing_in_one_line(), place.opened() as project:
        run = project.runs.detail(run_id)
        held = {each.collection: each.records for each in project.records.collections()}
        of_source = [_rejects(run), _alerts(project, source)]
        return [
            CollectionState(
                collection=name,
                metadata=_metadata(run, held.get(name, 0)),
                checks=[*_schema(project, name, name in held), *of_source],
            )
            for name in collections
        ]


def _metadata(run: RunDetail, records: int) -> dict[str, Any]:
    shown = ("inserted", "updated", "unchanged", "rejected", "quarantined")
    return {
        "records": records,
        "run": run.id,
        "run state": str(msgspec.to_builtins(run.state)),
        "seconds": run.seconds,
        **{name: run.counts[name] for name in shown},
    }


def _schema(project: Project, collection: str, is_held: bool) -> list[Check]:
    if collection not in project.settings.collections:
        return []
    if not is_held:
        return [Check(SCHEMA, True, {"records": 0})]
    found = project.records.check_schema(collection, limit=SHOWN)
    misfits = [f"{each.key}: {each.problem}" for each in found.shown]
    metadata = {"records": found.records, "misfits": found.misfits, "first misfits": misfits}
    return [Check(SCHEMA, found.misfits == 0, metadata)]


def _rejects(run: RunDetail) -> Check:
    return Check(REJECTS, not run.rejects, dict(run.rejects))


def _alerts(project: Project, source: str) -> Check:
    found = project.alerts.list(source=source, limit=SHOWN).items
    return Check(ALERTS, not found, {each.rule: each.summary for each in found})
