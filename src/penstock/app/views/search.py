"""What a search has found, as front ends see it."""

from __future__ import annotations

from penstock.app.views.jobs import JobView, RecordKey
from penstock.app.views.pages import SnapshotView
from penstock.app.views.runs import RunView
from penstock.app.views.view import View


class SearchView(View, frozen=True, kw_only=True):
    """What is called as somebody typed it; a few of each kind, none of them read by a scan."""

    text: str
    sources: list[str]
    runs: list[RunView]
    jobs: list[JobView]
    pages: list[SnapshotView]
    records: list[RecordKey]

    @property
    def is_empty(self) -> bool:
        return not (self.sources or self.runs or self.jobs or self.pages or self.records)
