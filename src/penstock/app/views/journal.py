"""Events of the journal as front ends see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.view import Content, Time, View

if TYPE_CHECKING:
    from penstock.store.rows import EventRow


OF_PEOPLE = ("cli", "python", "api", "dashboard", "mcp", "schedule")


class EventView(View, frozen=True, kw_only=True):
    """An event: what happened to what, by whom and from where.

    `data` is by its kind, `detail` the same as a sentence.
    `origin` is the front end that a person acted by (`cli`, `python`, `api`, `dashboard`), or what started it
    (`schedule`, `leader`); a worker has none.
    """

    id: int = msgspec.field(name="event")
    at: Time
    kind: str
    source: str | None
    run_id: int | None = msgspec.field(name="run")
    job_id: int | None = msgspec.field(name="job")
    attempt: int | None
    actor: str
    detail: Content[str]
    worker: str | None
    data: Content[dict[str, Any]]
    origin: str | None

    def may_quote(self) -> bool:
        """What people did carries their own words."""
        return self.worker is not None or self.origin not in OF_PEOPLE


def event_view(row: EventRow) -> EventView:
    return EventView(**msgspec.structs.asdict(row))
