"""The list of runs."""

from __future__ import annotations

from typing import Any

from penstock.web.dashboard.page import ROWS, Visit


def read(visit: Visit) -> dict[str, Any]:
    source, active = visit.text("source"), visit.is_on("active")
    page = visit.project.runs.list(source, active=active, cursor=visit.text("cursor"), limit=ROWS)
    return {
        "page": page,
        "source": source,
        "active": active,
        "next": visit.following(page.next),
    }
