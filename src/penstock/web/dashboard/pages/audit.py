"""Audit: the head of the sealed journal, and what people have done lately."""

from __future__ import annotations

from typing import Any

from penstock.web.dashboard.page import ROWS, Visit

# The newest events, of which those of people are shown.
LOOKED_AT = 1000
PEOPLE = ("cli", "python", "api", "dashboard")


def read(visit: Visit) -> dict[str, Any]:
    project = visit.project
    events = project.journal.list(limit=LOOKED_AT).items
    acts = [each for each in events if each.origin in PEOPLE and each.worker is None]
    return {"head": project.audit.head(), "acts": acts[:ROWS]}
