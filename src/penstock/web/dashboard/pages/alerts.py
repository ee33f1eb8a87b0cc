"""Alerts: what is wrong now, and one alert with its evidence, what is safe to do, and its runbook."""

from __future__ import annotations

from typing import Any, Literal, cast

from penstock.errors import UsageError
from penstock.web.dashboard.page import ROWS, Visit

STATES = ("unresolved", "open", "acknowledged", "resolved", "all")


def read(visit: Visit) -> dict[str, Any]:
    alerts, source = visit.project.alerts, visit.text("source")
    state = visit.text("state") or "unresolved"
    if state == "standing":  # an older word
        state = "unresolved"
    if state not in STATES:
        raise UsageError(f"there is no state {state!r}", code="no_state")
    wanted = cast(Literal["unresolved", "open", "acknowledged", "resolved", "all"], state)
    page = alerts.list(state=wanted, source=source, cursor=visit.text("cursor"), limit=ROWS)
    return {
        "alerts": page.items,
        "state": state,
        "states": STATES,
        "source": source,
        "routes": alerts.routes(),
        "next": visit.following(page.next),
    }


def read_alert(visit: Visit) -> dict[str, Any]:
    alert = visit.project.alerts.get(visit.path["alert"])
    return {"alert": alert}
