"""Quarantine as front ends see it: entries, what they have in common, and which of them are meant."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.view import Content, ContentKey, Hidden, Time, View

if TYPE_CHECKING:
    from penstock.store.entries import CauseRow, EntryRow


class EntryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects entries; fields that are not set match everything.

    `is_apart`: failures of replays and probes instead of those of the work itself. `is_closed`: closed
    entries instead of open ones.
    """

    source: str | None = None
    run_id: int | None = None
    stage: str | None = None
    kind: str | None = None
    cause: str | None = None
    since: float | datetime | None = None
    is_escalated: bool = False
    job_id: int | None = None
    is_apart: bool = False
    is_closed: bool = False

    @property
    def is_all(self) -> bool:
        return self == EntryFilter()


class NoteView(View, frozen=True, kw_only=True):
    """A note on an entry."""

    at: Time
    actor: str
    text: str


class EntryView(View, frozen=True, kw_only=True):
    """A job in quarantine. Lists leave out `traceback` and `item`, which can be long.

    `quarantines` is how often this page came here, `first_at` and `last_at` when.
    """

    id: int = msgspec.field(name="job")
    run_id: int = msgspec.field(name="run")
    source: str
    stage: str
    unit: str
    key: ContentKey[str]
    kind: str
    cause: Content[str]
    error: Content[str]
    traceback: Content[str | msgspec.UnsetType] = msgspec.UNSET
    item: Content[Any] = msgspec.UNSET
    snapshot: int | None
    url: ContentKey[str | None]
    attempt: int
    tries: int
    deaths: int
    quarantines: int
    since: Time
    first_at: Time
    last_at: Time
    escalated_at: Time | None
    closed_at: Time | None
    closed_why: str
    closed_by_job_id: int | None = msgspec.field(name="closed_by_job")
    notes: tuple[NoteView, ...]
    status: Hidden[int | None]
    item_text: Content[Hidden[str | None]] = None


class CauseView(View, frozen=True, kw_only=True):
    """A cause that several failures share. An escalated one is not retried automatically."""

    source: str
    cause: Content[str]
    failures: int
    pipeline_version: str
    first_at: Time
    last_at: Time
    escalated_at: Time | None


class GroupView(View, frozen=True, kw_only=True):
    """Entries of one source, kind and cause. `error` and `job` are those of the newest.

    What a budget or the like has stopped has no cause.
    """

    source: str
    kind: str
    cause: Content[str]
    jobs: int
    first_at: Time
    last_at: Time
    escalated_at: Time | None
    error: Content[str]
    job_id: int = msgspec.field(name="job")


class ReleasedView(View, frozen=True, kw_only=True):
    """How many jobs were queued again, of how many that matched."""

    released: int
    jobs: int
    is_done: bool


class DiscardedView(View, frozen=True, kw_only=True):
    """How many jobs were discarded, of how many that matched."""

    discarded: int
    jobs: int
    is_done: bool


_SAME = (
    *("id", "run_id", "source", "stage", "unit", "key", "kind", "cause", "error", "attempt"),
    *("tries", "deaths", "quarantines", "since", "first_at", "last_at", "escalated_at"),
    *("closed_at", "closed_why", "closed_by_job_id"),
)


def entry_view(row: EntryRow, *, is_whole: bool = False) -> EntryView:
    long: dict[str, Any] = {}
    if is_whole:
        long = {"traceback": row.traceback, "item": _item(row.item), "item_text": row.item}
    page = row.snapshot
    return EntryView(
        **{name: getattr(row, name) for name in _SAME},
        **long,
        snapshot=page.id if page else None,
        url=page.url if page else None,
        status=page.status if page else None,
        notes=tuple(NoteView(at=n.at, actor=n.actor, text=n.text) for n in row.notes),
    )


def cause_view(row: CauseRow) -> CauseView:
    return CauseView(**msgspec.structs.asdict(row))


def _item(text: str | None) -> Any:
    """The item itself; as text where it is not JSON."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
