"""Deliveries of hooks as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.store.hooks import OutboxRow


class HookDeliveryView(View, frozen=True, kw_only=True):
    """A delivery about an ended run, or about alerts: `delivered`, `due`, `failing` or `given up`.

    Where it is about alerts, `hook` is `alert:` and the name of the route, and `run` is null.
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
