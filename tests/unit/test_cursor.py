"""Which way a cursor goes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.jobs.cursor import compared, is_empty, refusal

PLAIN = st.one_of(st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9), st.text(max_size=8))
CURSORS = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
NOTHING: tuple[Any, ...] = (None, "", [], {})
WAYS = {1: "on", 0: "same", -1: "back", None: "who knows"}


@pytest.mark.parametrize(
    ("old", "new", "way"),
    [
        (1, 2, "on"),
        (1, 1.0, "same"),
        (2.5, 2, "back"),
        ("a", "b", "on"),
        ("9", "10", "on"),
        ("-2", "-1", "on"),
        ("9a", "10a", "back"),
        ("2024-01-02", "2024-01-10", "on"),
        ("2024-01-02T00:00:00Z", "2024-01-02T00:30:00+01:00", "back"),
        ("2024-01-02", "2024-01-02T00:00:00Z", "same"),
        ("2024-13-02", "2024-01-02", "back"),
        ([1, "b"], [1, "a"], "back"),
        ([1], [1, 0], "on"),
        ([1, 5], [2], "on"),
        ([1, None], [1, 3], "on"),
        ({"day": "2024-01-02", "page": 9}, {"day": "2024-01-03", "page": 1}, "on"),
        ({"day": "2024-01-02", "page": 9}, {"day": "2024-01-02", "page": 8}, "back"),
        ({"a": 1}, {"b": 0}, "who knows"),
        ([1], ["a"], "who knows"),
        (1, "2", "who knows"),
        (True, 2, "who knows"),
    ],
)
def test_way_of_a_cursor(old: Any, new: Any, way: str) -> None:
    assert WAYS[compared(old, new)] == way


@given(old=CURSORS, new=CURSORS)
def test_what_goes_on_goes_back_the_other_way(old: Any, new: Any) -> None:
    way, other = compared(old, new), compared(new, old)

    if isinstance(old, dict) and isinstance(new, dict):
        return  # one field on and another back is on, both ways
    if not _holds_objects(old) and not _holds_objects(new):
        assert (way is None) == (other is None)
        assert way is None or way == -(other or 0)


def _holds_objects(cursor: Any) -> bool:
    return isinstance(cursor, dict) or (
        isinstance(cursor, list) and any(map(_holds_objects, cursor))
    )


@given(cursor=CURSORS)
def test_same_cursor_is_never_refused_and_nothing_is_never_moved_to(cursor: Any) -> None:
    assert compared(cursor, cursor) == 0
    assert refusal(cursor, cursor) == ""
    for empty in NOTHING:
        assert is_empty(cursor) or refusal(cursor, empty) == "it is empty"
        assert refusal(empty, cursor) == ""
        assert is_empty(cursor) or refusal(cursor, empty, is_ordered=False) == "it is empty"


def test_why_a_cursor_is_refused_is_said() -> None:
    assert refusal(7, 6) == "it goes back"
    assert refusal(7, "8") == "it is a text, and the checkpoint is a number"
    assert refusal(7, False) == "it is true or false, and the checkpoint is a number"
    assert refusal("zz", "aa", is_ordered=False) == ""
    assert refusal({"a": 1}, {"b": 1}) == ""


def test_cursors_nested_too_deeply_to_be_compared_are_no_crash() -> None:
    old, new = 1, 2
    for _ in range(900):
        old, new = [old], [new]  # type: ignore[assignment]
    assert compared(old, new) is None
    assert refusal(old, new) == ""
