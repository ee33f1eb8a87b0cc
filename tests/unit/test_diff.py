"""The difference of two records: exactly what turns one into the other."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.jobs.diff import DEEPEST, NOTHING, FieldChange, applied, field_changes, shown_path

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


def text_of(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


@given(JSON, JSON)
def test_the_changes_make_the_new_value_of_the_old_one(before: Any, after: Any) -> None:
    assert text_of(applied(before, field_changes(before, after))) == text_of(after)


@given(JSON, JSON)
def test_there_is_no_change_exactly_where_the_text_is_the_same(before: Any, after: Any) -> None:
    assert (field_changes(before, after) == []) == (text_of(before) == text_of(after))


@given(JSON)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert field_changes(value, msgspec.json.decode(text_of(value))) == []


def test_nested_fields_are_told_apart() -> None:
    before = {"name": "a", "price": {"amount": 1, "currency": "EUR"}, "old": 1}
    after = {"name": "a", "price": {"amount": 2, "currency": "EUR"}, "new": None}

    assert field_changes(before, after) == [
        FieldChange(("new",), NOTHING, None),
        FieldChange(("old",), 1, NOTHING),
        FieldChange(("price", "amount"), 1, 2),
    ]


def test_lists_of_one_length_are_compared_item_by_item_and_others_as_wholes() -> None:
    assert field_changes({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == [
        FieldChange(("a", 1, "b"), 2, 3)
    ]
    assert field_changes({"a": [1, 2]}, {"a": [2]}) == [FieldChange(("a",), [1, 2], [2])]


@pytest.mark.parametrize(("before", "after"), [(1, 1.0), (1, True), (0.0, -0.0), (0, None)])
def test_what_json_writes_differently_is_different(before: Any, after: Any) -> None:
    assert field_changes({"x": before}, {"x": after}) == [FieldChange(("x",), before, after)]
    assert field_changes([[before]], [[after]]) == [FieldChange((0, 0), before, after)]


def test_what_is_nested_very_deep_is_compared_as_a_whole() -> None:
    def nested(leaf: int) -> Any:
        value: Any = leaf
        for _ in range(500):
            value = {"in": value}
        return value

    [change] = field_changes(nested(1), nested(2))

    assert len(change.path) == DEEPEST
    assert applied(nested(1), [change]) == nested(2)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ((), "(all)"),
        (("price",), "price"),
        (("images", 2, "url"), "images[2].url"),
        (("data-id", "a.b", ""), 'data-id["a.b"][""]'),
        (("<b>",), '["<b>"]'),
    ],
)
def test_paths_are_shown_as_people_write_them(path: Any, shown: str) -> None:
    assert shown_path(path) == shown
