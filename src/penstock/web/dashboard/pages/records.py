"""Records: browse them by collection and key, compare their versions, and follow them to page and run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import UsageError
from penstock.web.dashboard.page import ROWS, Visit

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.pages import SnapshotView

# Of a record's fields, so many are shown in a list.
FIELDS = 4


def read(visit: Visit) -> dict[str, Any]:
    return {"collections": visit.project.records.collections()}


def read_collection(visit: Visit) -> dict[str, Any]:
    project = visit.project
    collection = project.records.require_collection(visit.path["collection"])
    source, run = visit.text("source"), visit.number("run")
    page = project.records.list(
        collection.collection,
        source=source,
        run=run,
        cursor=visit.text("cursor"),
        limit=ROWS,
    )
    return {
        "collection": collection,
        "page": page,
        "fields": _fields(page.items),
        "next": visit.following(page.next),
        "source": source,
        "run": run,
    }


def _fields(records: list[Any]) -> list[str]:
    """The fields that the records of this page have in common, in their order."""
    data = [each.data for each in records if isinstance(each.data, dict)]
    if not data:
        return []
    return [name for name in data[0] if all(name in each for each in data)][:FIELDS]


def read_record(visit: Visit) -> dict[str, Any]:
    project = visit.project
    collection, key = visit.text("collection") or "", visit.text("key") or ""
    versions = project.records.history(collection, key)
    newest = versions[-1]
    return {
        "collection": collection,
        "key": key,
        "newest": newest.record,
        "versions": versions[::-1],
        "page": _page(project, newest.record.snapshot_id),
    }


def _page(project: Project, snapshot: int | None) -> SnapshotView | None:
    """The page that a record came from; None if it came from none, or the page is no longer kept."""
    if snapshot is None:
        return None
    try:
        return project.pages.get(snapshot)
    except UsageError:
        return None
