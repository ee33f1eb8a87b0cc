"""Breakers as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.store.breaker_rows import BreakerRow


class BreakerView(View, frozen=True, kw_only=True):
    """The breaker of a source or host: `closed` sends requests, `open` sends none, `half-open` a few.

    `opens_at` is when an open one is tried again, `ramp` how many at a time try a half-open one. `well` and
    `failed` count what became of it lately.
    """

    key: str = msgspec.field(name="breaker")
    kind: str
    name: str
    state: str
    since: Time
    opens_at: Time | None
    opened_at: Time
    trips: int
    ramp: int | None
    well: int
    failed: int
    reason: str


def breaker_view(row: BreakerRow) -> BreakerView:
    return BreakerView(
        key=row.key,
        kind=row.kind,
        name=row.name,
        state=row.state,
        since=row.since,
        opens_at=row.opens_at if row.state == "open" else None,
        opened_at=row.opened_at,
        trips=row.trips,
        ramp=row.ramp if row.state == "half-open" else None,
        well=sum(ok for _, ok, _ in row.buckets),
        failed=sum(failed for _, _, failed in row.buckets),
        reason=row.reason,
    )
