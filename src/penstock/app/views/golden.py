"""Golden corpora as front ends see them."""

from __future__ import annotations

from penstock.app.views.replays import ChangeView
from penstock.app.views.view import Content, ContentKey, View


class GoldenLeftOutView(View, frozen=True, kw_only=True):
    """A page that was not recorded, and why."""

    url: ContentKey[str]
    reason: Content[str]


class GoldenRecordedView(View, frozen=True, kw_only=True):
    """What was recorded: `cases` pages, and `records` that today's code makes of them."""

    source: str
    folder: str
    cases: int
    added: int
    records: int
    seed: int
    left_out: list[GoldenLeftOutView]


class GoldenCorpusView(View, frozen=True, kw_only=True):
    """A corpus that is there."""

    source: str
    folder: str
    cases: int
    records: int
    private: bool


class GoldenShiftView(View, frozen=True, kw_only=True):
    """What else a page comes to now and did not, or did and does not: `change` is added or removed.

    `what` is rejected, skipped or enqueues.
    """

    change: str
    what: str
    key: ContentKey[str]
    reason: Content[str]


class GoldenCaseView(View, frozen=True, kw_only=True):
    """One page: `state` is same, differs or failed. `problems` say why it failed."""

    case: str
    url: ContentKey[str]
    state: str
    changes: list[ChangeView]
    shifts: list[GoldenShiftView]
    problems: Content[list[str]]
    traceback: Content[str]


class GoldenCheckedView(View, frozen=True, kw_only=True):
    """What checking a corpus came to; `details` are the pages that differ or failed."""

    source: str
    folder: str
    cases: int
    same: int
    differs: int
    failed: int
    updated: bool
    details: list[GoldenCaseView]

    @property
    def holds(self) -> bool:
        """Whether today's code makes of every page what was approved."""
        return not self.differs and not self.failed
