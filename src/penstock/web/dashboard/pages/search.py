"""The search box: sources, runs, jobs, pages and records that are called as somebody typed it."""

from __future__ import annotations

from typing import Any

from penstock.web.dashboard.page import Visit


def read(visit: Visit) -> dict[str, Any]:
    text = visit.text("q") or ""
    return {"text": text, "found": visit.project.search(text) if text.strip() else None}
