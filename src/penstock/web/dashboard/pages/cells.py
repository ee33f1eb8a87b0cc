"""All cells on one page each: an overview, sources, runs, alerts and a search. One that is down is named."""

from __future__ import annotations

from typing import Any, Literal, cast

from penstock.errors import UsageError
from penstock.web.dashboard.page import ROWS, Visit
from penstock.web.dashboard.pages.alerts import STATES

# How many alerts and runs the overview lists; the pages of their own have more.
SHOWN = 12
State = Literal["unresolved", "open", "acknowledged", "resolved", "all"]


def read(visit: Visit) -> dict[str, Any]:
    found = visit.project.cells.overview(limit=SHOWN)
    return {"status": found.status, "alerts": found.alerts, "runs": found.runs}


def read_sources(visit: Visit) -> dict[str, Any]:
    only, cursor = visit.text("in"), visit.text("cursor")
    page = visit.project.cells.sources(cell=only, cursor=cursor, limit=ROWS)
    return {
        "page": page,
        "unreachable": page.unreachable,
        "only": only,
        "names": list(visit.project.settings.cells),
        "next": visit.following(page.next),
    }


def read_runs(visit: Visit) -> dict[str, Any]:
    active = visit.is_on("active")
    return {"found": visit.project.cells.runs(active=active, limit=ROWS), "active": active}


def read_alerts(visit: Visit) -> dict[str, Any]:
    state = visit.text("state") or "unresolved"
    if state not in STATES:
        raise UsageError(f"there is no state {state!r}", code="no_state")
    found = visit.project.cells.alerts(state=cast(State, state), limit=ROWS)
    return {"found": found, "state": state, "states": STATES}


def read_search(visit: Visit) -> dict[str, Any]:
    text = visit.text("q") or ""
    return {"text": text, "found": visit.project.cells.search(text) if text.strip() else None}
