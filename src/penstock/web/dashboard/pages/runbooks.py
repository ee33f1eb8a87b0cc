"""Runbooks: all of them, and one on live data: its signals now, the step that applies, and what was done."""

from __future__ import annotations

from typing import Any

from penstock.web.dashboard.page import ROWS, Visit


def read(visit: Visit) -> dict[str, Any]:
    runbooks = visit.project.runbooks
    return {
        "runbooks": [*runbooks.each()],
        "executions": runbooks.executions(limit=ROWS).items,
    }


def read_runbook(visit: Visit) -> dict[str, Any]:
    runbooks, name = visit.project.runbooks, visit.path["runbook"]
    runbook, source = runbooks.get(name), visit.text("source")
    needs_source = runbook.scope == "source" and source is None
    return {
        "runbook": runbook,
        "source": source,
        "state": None if needs_source else runbooks.state(name, source),
        "sources": [row.key for row in visit.project.sources.each()] if needs_source else [],
    }
