"""Cursors of the journal, as they come back: what the database could not read is refused beforehand."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.app.paging import place_of
from penstock.errors import UsageError
from penstock.store.rows import Cursor

if TYPE_CHECKING:
    from penstock.store.store import Store

SNAPSHOT = re.compile(r"(\d{1,19}):(\d{1,19}):(\d{1,19}(?:,\d{1,19})*)?")


def journal_place(store: Store, cursor: str | None) -> Cursor | None:
    """The place that a cursor of this journal was made of; None is the end."""
    place = place_of(cursor, Cursor)
    if place is None or not store.is_shared:
        return place
    if not _is_snapshot(place.seen) or (place.upto and not _is_snapshot(place.upto)):
        raise UsageError(
            "this cursor does not belong to this journal",
            "pass the `next` of the page before, or begin without one",
            code="bad_cursor",
        )
    return place


def _is_snapshot(text: str) -> bool:
    """Whether a Postgres server would take it: the transactions under way are between both ends, in order."""
    found = SNAPSHOT.fullmatch(text)
    if found is None:
        return False
    first, last = int(found[1]), int(found[2])
    under_way = [int(each) for each in (found[3] or "").split(",") if each]
    is_in_order = all(a < b for a, b in pairwise(under_way))
    within = all(first <= each < last for each in under_way)
    return 0 < first <= last < 2**63 and is_in_order and within
