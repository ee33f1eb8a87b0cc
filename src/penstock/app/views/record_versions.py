"""The versions of a record as front ends see them: each with what it changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from penstock.app.views.records import RecordView
from penstock.app.views.replays import FieldView, field_view
from penstock.app.views.view import View
from penstock.jobs.diff import field_changes


class RecordVersionView(View, frozen=True, kw_only=True):
    """One version of a record, and the fields that differ from the version before it."""

    record: RecordView
    fields: list[FieldView]


def version_views(versions: Sequence[RecordView]) -> list[RecordVersionView]:
    """These versions, oldest first; the first has no version to differ from."""
    return [
        RecordVersionView(record=versions[0], fields=[]),
        *(
            RecordVersionView(
                record=after,
                fields=[field_view(each) for each in field_changes(before.data, after.data)],
            )
            for before, after in pairwise(versions)
        ),
    ]
