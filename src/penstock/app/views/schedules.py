"""Schedules as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.store.cadences import CadenceRow


class CadenceView(View, frozen=True, kw_only=True):
    """The class of a source whose cadence is `auto`: since when, why, and what it was before.

    `proposed` is the class that it would have if it were moved by itself.
    """

    source: str
    level: str = msgspec.field(name="class")
    since: Time
    before: str | None
    proposed: str | None
    reason: str
    steps: int = msgspec.field(name="runs_in_a_row")
    last_run_id: int | None = msgspec.field(name="last_run")


def cadence_view(row: CadenceRow) -> CadenceView:
    return CadenceView(
        source=row.source,
        level=row.level,
        since=row.since,
        before=row.before or None,
        proposed=row.proposed or None,
        reason=row.reason,
        steps=row.steps,
        last_run_id=row.last_run_id or None,
    )
