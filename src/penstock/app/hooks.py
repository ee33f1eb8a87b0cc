"""Hooks: what the outside is told of runs that have ended, and what it has accepted."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.app.noun import Noun, who
from penstock.app.paging import USUAL, each_item, page_of, place_of, size_of
from penstock.app.views.hooks import HookDeliveryView, delivery_view
from penstock.app.views.view import Page


class Hooks(Noun):
    """The deliveries of hooks."""

    def list(
        self, *, undelivered: bool = False, cursor: str | None = None, limit: int = USUAL
    ) -> Page[HookDeliveryView]:
        """Deliveries, newest first."""
        size = size_of(limit)
        rows = self._store.hooks.outbox(
            undelivered_only=undelivered, limit=size + 1, before_id=place_of(cursor, int)
        )
        return page_of(rows, size, delivery_view, lambda row: row.id)

    def each(
        self, *, undelivered: bool = False, limit: int | None = None
    ) -> Iterator[HookDeliveryView]:
        """Iterate over all of them, or the newest `limit`, page by page."""
        return each_item(
            lambda cursor, size: self.list(undelivered=undelivered, cursor=cursor, limit=size),
            limit,
        )

    def redeliver(self, delivery: int, *, actor: str | None = None, reason: str = "") -> bool:
        """Send a failed delivery again now, with all its attempts; False if it was delivered."""
        return self._store.hooks.retry(delivery, who(actor), reason)
