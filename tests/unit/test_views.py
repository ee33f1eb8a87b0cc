"""Views: one declaration for Python and JSON; lists come in pages with an opaque cursor."""

from __future__ import annotations

import msgspec
import pytest

from penstock.app.paging import cursor_of, each_item, page_of, place_of, size_of
from penstock.app.views.view import Page, Time, View
from penstock.cli.remedies import hint_of
from penstock.errors import Refused, Remedy, UsageError


class Leaf(View, frozen=True, kw_only=True):
    since: Time


class Tree(View, frozen=True, kw_only=True):
    name: str
    start: Time = msgspec.field(name="from")
    ended_at: Time | None = None
    leaves: tuple[Leaf, ...] = ()
    note: str | msgspec.UnsetType = msgspec.UNSET


def test_a_view_is_read_by_programs_in_the_order_of_its_fields_with_times_as_text() -> None:
    shown = Tree(name="oak", start=1.5, leaves=(Leaf(since=0.0), Leaf(since=60.0))).as_json()
    assert list(shown) == ["name", "from", "ended_at", "leaves"]
    assert shown["from"] == "1970-01-01T00:00:01.500Z"
    assert shown["ended_at"] is None
    assert shown["leaves"] == [{"since": None}, {"since": "1970-01-01T00:01:00.000Z"}]


def numbers(cursor: str | None, limit: int) -> Page[str]:
    after = place_of(cursor, int) or 0
    rows = range(after + 1, min(after + limit + 1, 2500) + 1)
    return page_of(rows, size_of(limit), str, lambda row: row)


def test_a_list_is_read_to_its_end_page_by_page_and_has_everything_once() -> None:
    assert list(each_item(numbers)) == [str(number) for number in range(1, 2501)]
    assert list(each_item(numbers, 3)) == ["1", "2", "3"]
    assert numbers(None, 2500).next is not None  # no page is larger than a thousand
    assert numbers(cursor_of(2498), 2).next is None


@pytest.mark.parametrize("cursor", ["", "?", "W10", "ImEi", "é", "x" * 5000])
def test_a_cursor_that_was_not_given_out_is_refused_in_words(cursor: str) -> None:
    with pytest.raises(UsageError) as refused:
        place_of(cursor, int)
    assert refused.value.code == "bad_cursor"


def test_an_error_has_a_code_and_its_remedy_is_a_call_for_programs() -> None:
    error = Refused("acme.com is odd", code="source_odd", remedy=Remedy("sources.mend", "acme.com"))
    assert (error.code, Refused("no").code, UsageError("no").code) == (
        "source_odd",
        "refused",
        "usage",
    )
    assert error.hint == "project.sources.mend('acme.com')" == hint_of(error)
