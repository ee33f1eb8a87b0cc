"""Lists in pages: an opaque cursor says where the next page begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from penstock.app.views.view import Page
from penstock.errors import UsageError

# How many items a page has unless asked for otherwise, and at most.
USUAL, LARGEST = 50, 1000
Place = TypeVar("Place")
Row = TypeVar("Row")
Item = TypeVar("Item")


def cursor_of(place: Any) -> str:
    """The cursor of a place in a list: what its order goes by, as the store needs it."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def place_of(cursor: str | None, kind: type[Place]) -> Place | None:
    """The place that a cursor was made of; None is the beginning."""
    if cursor is None:
        return None
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        return msgspec.json.decode(base64.b64decode(padded, b"-_", validate=True), type=kind)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise UsageError(
            "this cursor does not belong to this list",
            "pass the `next` of the page before, with the same filters",
            code="bad_cursor",
        ) from None


def size_of(limit: int) -> int:
    """How many items a page is to have; a longer list is read page by page."""
    if limit < 1:
        raise UsageError(f"the limit can't be {limit}", "the minimum is 1", code="bad_limit")
    return min(limit, LARGEST)


def page_of(
    rows: Sequence[Row], limit: int, view: Callable[[Row], Item], place: Callable[[Row], Any]
) -> Page[Item]:
    """A page of at most `limit` items from that many rows and, if there are more, one beyond."""
    shown = rows[:limit]
    following = cursor_of(place(shown[-1])) if len(rows) > limit else None
    return Page([view(row) for row in shown], following)


def page_within(
    rows: Iterable[Row],
    cursor: str | None,
    limit: int,
    view: Callable[[Row], Item],
    place: Callable[[Row], Place],
    kind: type[Place],
) -> Page[Item]:
    """A page of a short list that was read whole, in the order of its places."""
    after, size = place_of(cursor, kind), size_of(limit)
    left = [row for row in rows if after is None or place(row) > after]  # type: ignore[operator]
    return page_of(left, size, view, place)


def each_item(
    read: Callable[[str | None, int], Page[Item]], limit: int | None = None
) -> Iterator[Item]:
    """All items of a list, or the first so many, read in pages as you go."""
    cursor: str | None = None
    left = limit
    while left is None or left > 0:
        page = read(cursor, LARGEST if left is None else min(left, LARGEST))
        yield from page.items
        cursor, left = page.next, None if left is None else left - len(page.items)
        if cursor is None:
            return
