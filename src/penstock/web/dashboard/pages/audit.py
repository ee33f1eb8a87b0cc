"""Audit: the head of the sealed journal, and what people have done lately."""

from __future__ import annotations

from typing import Any

from penstock.web.dashboard.page import ROWS, Visit


def read(visit: Visit) -> dict[str, Any]:
    project = visit.project
    acts = project.journal.acts(cursor=visit.text("cursor"), limit=ROWS)
    return {"head": project.audit.head(), "acts": acts.items, "next": visit.following(acts.next)}
