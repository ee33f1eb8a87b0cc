"""A page that was tried, as front ends see it: what its steps did, and what they would write."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.replays import ChangeView, TotalsView, change_view, totals_view
from penstock.app.views.view import Content, ContentKey, View

if TYPE_CHECKING:
    from penstock.engine.dry_run import Tried


class TriedPageView(View, frozen=True, kw_only=True):
    """A page that a step asked for; it has no status if no answer came."""

    url: ContentKey[str]
    status: int | None
    bytes: int
    is_from_snapshot: bool


class TriedJobView(View, frozen=True, kw_only=True):
    """A job and what it came to, in the words that its run would have for it."""

    stage: str
    key: ContentKey[str]
    state: str
    reason: Content[str]
    kind: str
    traceback: Content[str]


class RejectionView(View, frozen=True, kw_only=True):
    """What a step would reject, and why."""

    code: str
    reason: Content[str]
    score: float | None


class TriedView(View, frozen=True, kw_only=True):
    """What trying a page came to; nothing of it is written. The first job is the page's own.

    `is_cut`: it had more jobs than are performed in a try.
    """

    source: str
    stage: str = msgspec.field(name="step")
    item: Content[Any]
    pages: list[TriedPageView]
    jobs: list[TriedJobView]
    changes: list[ChangeView]
    totals: TotalsView
    rejections: list[RejectionView] = msgspec.field(name="rejected")
    enqueued: Content[dict[str, list[str]]] = msgspec.field(name="would_enqueue")
    notes: Content[list[str]]
    signals: list[str]
    is_cut: bool

    @property
    def failed(self) -> list[TriedJobView]:
        """The jobs that failed."""
        return [job for job in self.jobs if job.state == "failed"]


def tried_view(tried: Tried) -> TriedView:
    same = ("source", "stage", "item", "enqueued", "notes", "signals", "is_cut")
    return TriedView(
        **{name: getattr(tried, name) for name in same},
        pages=[TriedPageView(**asdict(each)) for each in tried.pages],
        jobs=[TriedJobView(**asdict(each)) for each in tried.jobs],
        changes=[change_view(each) for each in tried.changes],
        totals=totals_view(tried.totals),
        rejections=[
            RejectionView(code=each.code, reason=each.reason, score=each.score)
            for each in tried.rejections
        ],
    )
