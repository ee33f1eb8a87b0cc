"""Rejects as front ends see them, and which of them are meant."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Content, ContentKey, Hidden, Time, View

if TYPE_CHECKING:
    from penstock.store.reject_rows import RejectRow


class RejectFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects rejects; fields that are not set match everything.

    `open_only`: those that are not redriven yet.
    """

    source: str | None = None
    run_id: int | None = None
    code: str | None = None
    since: float | datetime | None = None
    ids: tuple[int, ...] | None = None
    open_only: bool = False


class RejectView(View, frozen=True, kw_only=True):
    """A rejected item. Lists leave out `item`, which is JSON as text."""

    id: int = msgspec.field(name="reject")
    source: str
    run_id: int = msgspec.field(name="run")
    job_id: int = msgspec.field(name="job")
    stage: str
    key: ContentKey[str]
    code: str
    reason: Content[str]
    score: float | None
    snapshot_id: int | None = msgspec.field(name="snapshot")
    at: Time
    redriven_run_id: int | None = msgspec.field(name="redriven_run")
    item: Content[str | msgspec.UnsetType] = msgspec.UNSET


class RedriveView(View, frozen=True, kw_only=True):
    """A run that redrives rejects. A dry run has no run and no count of items."""

    run_id: int | None = msgspec.field(name="run")
    rejects: int
    items: int | None
    source: Hidden[str]


def reject_view(row: RejectRow, item: str | msgspec.UnsetType = msgspec.UNSET) -> RejectView:
    return RejectView(**msgspec.structs.asdict(row), item=item)
