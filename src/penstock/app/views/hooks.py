"""Deliveries of hooks as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.store.hooks import OutboxRow


class HookDeliveryView(View, frozen=True, kw_only=True):
    """A delivery about an ended run: `delivered`, `due`, `failing` or `given up`."""

    id: int = msgspec.field(name="delivery")
    hook: str
    run_id: int = msgspec.field(name="run")
    source: str | None
    run_state: str
    state: str
    attempts: int
    created_at: Time
    due_at: Time | None
    delivered_at: Time | None
    error: str


def delivery_view(row: OutboxRow) -> HookDeliveryView:
    return HookDeliveryView(**msgspec.structs.asdict(row), state=row.state)
