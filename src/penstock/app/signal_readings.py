"""The readings of a runbook: each of its signals, now. Without the database most of them are unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.app.project_signals import ProjectSignals
from penstock.app.source_signals import SourceSignals
from penstock.errors import StoreError
from penstock.runbooks.runbook import UNKNOWN, Reading, Readings, Runbook

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns

# Figures of the newest run against those before it.
COMPARED = frozenset(
    {
        *("failed_share", "yield_share", "rejected_rise", "duplicate_rise"),
        *("pages_growth", "new_keys_share", "quality_drop"),
    }
)
# What can be read while the database is away.
WITHOUT_STORE = frozenset({"store_reachable", "disk_free"})


def is_reachable(project: Nouns) -> bool:
    """Whether the database answers now."""
    return ProjectSignals(project, None).store_reachable().value is True


def read_signals(
    project: Nouns, runbook: Runbook, source: str | None, found: Mapping[str, Any]
) -> Readings:
    """Each signal of a runbook; `found` are those that its own steps have found."""
    of_project = ProjectSignals(project, source)
    of_source = None if source is None else SourceSignals(project, runbook, source)
    is_there = of_project.store_reachable().value is True
    readings: dict[str, Reading] = {}
    for name in runbook.signals():
        if name in found:
            readings[name] = Reading(found[name])
        elif is_there or name in WITHOUT_STORE:
            readings[name] = _read(name, of_project, of_source)
    return readings


def _read(name: str, of_project: ProjectSignals, of_source: SourceSignals | None) -> Reading:
    if name in COMPARED:
        return UNKNOWN if of_source is None else of_source.compared(name)
    for signals in (of_source, of_project):
        read = getattr(signals, name, None)
        if read is not None:
            try:
                reading: Reading = read()
            except StoreError as error:
                # It went away between two readings, or only this one needs what is broken.
                return Reading(None, error.message)
            return reading
    return UNKNOWN
