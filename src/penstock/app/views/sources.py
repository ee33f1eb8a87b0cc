"""Sources as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.breakers import BreakerView
from penstock.app.views.budgets import ExhaustedBudgetView
from penstock.app.views.view import Content, Hidden, Time, View

if TYPE_CHECKING:
    from penstock.store.promises import BreachRow
    from penstock.store.rows import HoldRow, SourceRow


class HoldView(View, frozen=True, kw_only=True):
    """A hold: no jobs of this source start; without a source, none of the project."""

    source: str | None
    at: Time
    actor: str
    reason: str


class BreachView(View, frozen=True, kw_only=True):
    """A broken freshness, deadline or schema rule of a source, and the run that broke it."""

    source: str
    rule: str
    since: Time
    run_id: int | None = msgspec.field(name="run")
    detail: str
    ended_at: Time | None


class SourceView(View, frozen=True, kw_only=True):
    """A source: its open work and its last run. While it is degraded, only probes of it run."""

    key: str = msgspec.field(name="source")
    paused_at: Time | None
    pause_reason: str
    cooldown_until: Time
    cooldown_reason: str
    schedule: str
    next_run_at: Time | None
    last_run_id: int | None = msgspec.field(name="last_run")
    last_state: str | None
    last_finished_at: Time | None
    queued: int
    running: int
    waiting: int
    quarantined: int
    degraded_at: Time | None
    degraded_reason: Content[str]
    bad_runs: int
    good_probes: int


class NextRunView(View, frozen=True, kw_only=True):
    """When a source is due. `begins_at` is when its hours begin, if that moment is outside of them.

    It is overdue if nobody has started it a minute later.
    """

    source: str
    at: Time
    begins_at: Time | None
    is_overdue: bool


class SourceDetail(SourceView, frozen=True, kw_only=True):
    """A source with what penstock.yaml says of it, and what keeps it from starting.

    A former source, which is no longer configured, has no pipeline. `spent` is the exhausted budget. For
    why it does not start, see `project.outlook`. `lifecycle` is `proposed`, `trial`, `active` or `retired`.
    """

    lifecycle: str
    owner: str
    pipeline: str | None
    breaker: BreakerView | None
    held: list[HoldView]
    breaches: list[BreachView]
    spent: Hidden[ExhaustedBudgetView | None]

    @property
    def is_configured(self) -> bool:
        return self.pipeline is not None


def hold_view(row: HoldRow) -> HoldView:
    return HoldView(source=row.scope or None, at=row.at, actor=row.actor, reason=row.reason)


def breach_view(row: BreachRow) -> BreachView:
    return BreachView(**msgspec.structs.asdict(row))


def source_view(row: SourceRow) -> SourceView:
    return SourceView(**known_of(row))


def known_of(row: SourceRow) -> dict[str, Any]:
    """The fields of a source that its row has."""
    known = msgspec.structs.asdict(row)
    del known["id"]
    return known
