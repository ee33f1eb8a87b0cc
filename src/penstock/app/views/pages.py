"""Pages as they were fetched, as front ends see them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.view import Content, ContentKey, Hidden, Time, View

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.store.rows import SnapshotRow

__all__ = ["PageView", "Response", "SnapshotView", "is_text", "page_view", "snapshot_view"]

_TEXTUAL = ("json", "xml", "javascript", "html", "csv", "yaml")


class SnapshotView(View, frozen=True, kw_only=True):
    """A page as it was fetched, without its body: `pages.read` has that."""

    id: int = msgspec.field(name="snapshot")
    url: ContentKey[str]
    status: int
    headers: Content[dict[str, str]]
    fetched_at: Time
    hash: str
    segment: Hidden[str]
    offset: Hidden[int]
    length: Hidden[int]
    final_url: ContentKey[str]
    job_id: int = msgspec.field(name="job")
    run_id: int = msgspec.field(name="run")


class PageView(View, frozen=True, kw_only=True):
    """A page: its body as text, as base64 where it is not text, or left out."""

    url: str
    final_url: str
    status: int
    headers: dict[str, str]
    fetched_at: Time
    job_id: int = msgspec.field(name="job")
    run_id: int = msgspec.field(name="run")
    id: int = msgspec.field(name="snapshot")
    hash: str
    bytes: int
    body: str | msgspec.UnsetType = msgspec.UNSET
    body_base64: str | msgspec.UnsetType = msgspec.UNSET


def snapshot_view(row: SnapshotRow) -> SnapshotView:
    return SnapshotView(**msgspec.structs.asdict(row))


def page_view(row: SnapshotView, response: Response, *, with_body: bool) -> PageView:
    return PageView(
        url=row.url,
        final_url=row.final_url or row.url,
        status=row.status,
        headers=row.headers,
        fetched_at=row.fetched_at,
        job_id=row.job_id,
        run_id=row.run_id,
        id=row.id,
        hash=row.hash,
        bytes=len(response.body),
        body=response.text if with_body and is_text(response) else msgspec.UNSET,
        body_base64=base64.b64encode(response.body).decode()
        if with_body and not is_text(response)
        else msgspec.UNSET,
    )


def is_text(response: Response) -> bool:
    """Whether people can read its body."""
    kind = response.content_type
    if kind.startswith("text/") or any(word in kind for word in _TEXTUAL):
        return True
    return not kind and b"\x00" not in response.body[:4096]
