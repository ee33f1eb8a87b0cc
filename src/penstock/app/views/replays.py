"""Replays and undos as front ends see them: what was started, and the difference that it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.runs import RunView, run_view
from penstock.app.views.view import Content, ContentKey, Hidden, View
from penstock.jobs.diff import NOTHING, FieldChange, shown_path

if TYPE_CHECKING:
    from penstock.app.diffs import Diff
    from penstock.app.replay_service import Pages
    from penstock.app.undo import UndoReport
    from penstock.jobs.record_changes import RecordChange, Totals
    from penstock.store.replays import Committed, Rejects


class ReplayStarted(View, frozen=True, kw_only=True):
    """A replay that was started. It is not new if the same one had not ended: that one continues."""

    run: RunView
    is_new: bool
    # A replay of the same run that another version of the pipeline had begun.
    cancelled: int | None
    # Pages whose jobs retention has dropped, and steps that the pipeline no longer has.
    missing_pages: int
    unknown_steps: list[str]


class ReplayPagesView(View, frozen=True, kw_only=True):
    """What there is to replay. `missing` pages have no job any more, `unknown` stages no step."""

    pages: int
    missing: int
    unknown: tuple[str, ...]


class FieldView(View, frozen=True, kw_only=True):
    """A field that differs. `before` or `after` is missing where the field is: null is a value."""

    field: ContentKey[str]
    path: Content[list[str | int]]
    before: Content[Any] = msgspec.UNSET
    after: Content[Any] = msgspec.UNSET


class ChangeView(View, frozen=True, kw_only=True):
    """What would become of one record; `left_alone` says why nothing would, unless it is forced."""

    collection: str
    key: ContentKey[str]
    kind: str
    left_alone: str | None
    score_before: float | None
    score_after: float | None
    fields: list[FieldView]


class ScoresView(View, frozen=True, kw_only=True):
    """How many scores move, and by how much on the average."""

    up: int
    down: int
    mean_shift: float


class TotalsView(View, frozen=True, kw_only=True):
    """A difference in numbers; `fields` counts the records in which each field changes."""

    added: int
    removed: int
    changed: int
    same: int
    conflicts: int
    newer: int
    scores: ScoresView
    fields: Content[dict[str, int]]

    @property
    def differences(self) -> int:
        """How many records would become different."""
        return self.added + self.removed + self.changed

    @property
    def left_alone(self) -> int:
        """How many would have to be forced."""
        return self.conflicts + self.newer


class OnlyView(View, frozen=True, kw_only=True):
    """How much was rejected on one side only, and the first of it."""

    count: int
    first: Content[list[dict[str, str]]]


class RejectsShiftView(View, frozen=True, kw_only=True):
    """What a replay rejects, beside what the replayed runs did."""

    now: int
    before: int
    only_now: OnlyView
    only_before: OnlyView


class DiffView(View, frozen=True, kw_only=True):
    """What a replay would change: in numbers, the gravest records of it, and what it rejects."""

    run: RunView
    totals: TotalsView
    first: list[ChangeView]
    rejected: RejectsShiftView


class CommittedView(View, frozen=True, kw_only=True):
    """What a commit wrote, and what it did not touch."""

    added: int
    changed: int
    removed: int
    conflicts: int
    newer: int


class LaterView(View, frozen=True, kw_only=True):
    """A record that a later run has changed."""

    collection: str
    key: ContentKey[str]
    run: int


class UndoView(View, frozen=True, kw_only=True):
    """What undoing a run would do, or did."""

    run_id: int = msgspec.field(name="run")
    undone_by: int | None
    brought_back: int
    returned: int
    removed: int
    changed_later: int
    no_longer_kept: int
    first: list[ChangeView]
    first_changed_later: list[LaterView]
    # An undo of this run was interrupted: there is something to do, be it only to say that it is done.
    is_cut_short: Hidden[bool]

    @property
    def differences(self) -> int:
        """How many records become different."""
        return self.brought_back + self.returned + self.removed

    @property
    def is_wanted(self) -> bool:
        """Whether there is something to do."""
        return self.is_cut_short or self.differences > 0


def diff_view(diff: Diff, now: float) -> DiffView:
    return DiffView(
        run=run_view(diff.run, now),
        totals=totals_view(diff.totals),
        first=[change_view(each) for each in diff.first],
        rejected=rejects_view(diff.rejected_now, diff.rejected_before),
    )


def replay_pages_view(found: Pages) -> ReplayPagesView:
    return ReplayPagesView(**msgspec.structs.asdict(found))


def change_view(change: RecordChange) -> ChangeView:
    return ChangeView(
        collection=change.collection,
        key=change.key,
        kind=change.kind,
        left_alone=change.obstacle or None,
        score_before=change.score_before,
        score_after=change.score_after,
        fields=[field_view(each) for each in change.fields],
    )


def field_view(field: FieldChange) -> FieldView:
    before, after = (
        msgspec.UNSET if value is NOTHING else value for value in (field.before, field.after)
    )
    name, path = shown_path(field.path), list(field.path)
    return FieldView(field=name, path=path, before=before, after=after)


def totals_view(totals: Totals) -> TotalsView:
    names = ("added", "removed", "changed", "same", "conflicts", "newer")
    mean_shift = round(totals.mean_shift, 6)
    return TotalsView(
        **{name: getattr(totals, name) for name in names},
        scores=ScoresView(up=totals.scores_up, down=totals.scores_down, mean_shift=mean_shift),
        fields=dict(totals.common_fields),
    )


def rejects_view(now: Rejects, before: Rejects) -> RejectsShiftView:
    return RejectsShiftView(
        now=now.count,
        before=before.count,
        only_now=OnlyView(count=now.only, first=now.first),
        only_before=OnlyView(count=before.only, first=before.first),
    )


def committed_view(done: Committed) -> CommittedView:
    names = ("added", "changed", "removed", "conflicts", "newer")
    return CommittedView(**{name: getattr(done, name) for name in names})


def undo_view(report: UndoReport) -> UndoView:
    totals, later = report.totals, report.later
    return UndoView(
        run_id=report.run_id,
        undone_by=report.undo_run_id,
        brought_back=totals.changed,
        returned=totals.added,
        removed=totals.removed,
        changed_later=later.count,
        no_longer_kept=totals.lost,
        first=[change_view(each) for each in report.first],
        first_changed_later=[
            LaterView(collection=collection, key=key, run=run)
            for collection, key, run in later.first
        ],
        is_cut_short=report.is_cut_short,
    )
