"""Deliveries of hooks as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.store.hooks import OutboxRow


class HookDeliveryView(View, frozen=True, kw_only=True):
    """A delivery about an ended run, alerts or the audit chain: `delivered`, `due`, `failing` or `given up`.

    `run` is null where it is not about a run. For alerts, `hook` is `alert:` and the name of the route.
    """

    id: int = msgspec.field(name="delivery")
    hook: str
    run_id: int | None = msgspec.field(name="run")
    source: str | None
    run_state: str
    state: str
    attempts: int
    created_at: Time
    due_at: Time | None
    delivered_at: Time | None
    error: str


def delivery_view(row: OutboxRow) -> HookDeliveryView:
    fields = msgspec.structs.asdict(row) | {"run_id": row.run_id or None}
    return HookDeliveryView(**fields, state=row.state)
