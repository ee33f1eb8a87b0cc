"""The list of sources: how each stands, and why it does not start."""

from __future__ import annotations

from typing import Any

from penstock.web.dashboard.page import ROWS, Visit


def read(visit: Visit) -> dict[str, Any]:
    page = visit.project.sources.list(cursor=visit.text("cursor"), limit=ROWS)
    keys = [each.key for each in page.items]
    outlooks = {each.source: each for each in visit.project.outlook(keys)} if keys else {}
    return {"page": page, "outlooks": outlooks, "next": visit.following(page.next)}
