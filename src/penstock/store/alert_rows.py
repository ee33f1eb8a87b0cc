"""Rows of alerts, and of what routes are told of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from penstock.store.database import LAST_ID

AlertState = Literal["open", "acknowledged", "resolved"]
Change = Literal["opened", "escalated", "reminded", "resolved"]
# In the outbox a route stands beside hooks, whose names have no colon.
ROUTE = "alert:"


class AlertRow(msgspec.Struct, frozen=True):
    """An alert without its evidence. `finding` and `memory` are JSON; the source is None for the project."""

    id: int
    rule: str
    source_id: int
    source: str | None
    state: AlertState
    severity: str
    summary: str
    cause: str
    incident_id: int
    opened_at: float
    seen_at: float
    acknowledged_at: float | None
    resolved_at: float | None
    snoozed_until: float | None
    is_held: bool
    actor: str
    reason: str
    finding: str
    memory: str

    @property
    def is_standing(self) -> bool:
        return self.state != "resolved"


class Notice(msgspec.Struct, frozen=True, array_like=True):
    """What a route is told of an alert; sent once it is in the outbox."""

    alert_id: int
    route: str
    number: int
    change: Change
    at: float
    sent_at: float | None = None

    @property
    def key(self) -> tuple[int, str, int]:
        return self.alert_id, self.route, self.number


@dataclass(frozen=True, slots=True)
class Opening:
    """An alert to be opened, with its evidence and whom to tell. Without an incident it leads its own."""

    rule: str
    source_id: int
    severity: str
    summary: str
    cause: str = ""
    incident_id: int = 0
    finding: str = "{}"
    memory: str = "{}"
    evidence: str = "{}"
    pins: tuple[int, ...] = ()
    routes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlertFilter:
    standing_only: bool = False
    state: AlertState | None = None
    source_id: int | None = None
    rule: str | None = None
    incident_id: int | None = None

    def as_values(self, limit: int, before_id: int | None) -> dict[str, Any]:
        return {
            "standing_only": self.standing_only,
            "state": self.state,
            "source_id": self.source_id,
            "rule": self.rule,
            "incident_id": self.incident_id,
            "limit": limit,
            "before_id": LAST_ID if before_id is None else before_id,
        }
