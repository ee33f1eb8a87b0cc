"""JSONPath: what a path selects, where the mistake of a wrong one is, and how long it takes."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.connectors.jsonpath import PathError, compile_path
from tests.hostile.costs import growth

BOOK = {
    "store": {"book": [{"id": 1, "a-b": "x"}, {"id": 2}, {"id": 3}], "": 7, "é": 8},
    "'": 9,
    "null": None,
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", [BOOK]),
        ("$.store.book[0].id", [1]),
        ("store.book[*].id", [1, 2, 3]),
        ("$.store.book[-1]['id']", [3]),
        ("$.store.book[1:].id", [2, 3]),
        ("$.store.book[::-1].id", [3, 2, 1]),
        ("$.store.book[0:3:2].id", [1, 3]),
        ("$.store.book[::0].id", []),
        ("$ .store\n[ 'book' ] [ 0 ]", [BOOK["store"]["book"][0]]),  # type: ignore[index]
        ("$['store']['book'][0][\"a-b\"]", ["x"]),
        ("$['\\'']", [9]),
        ("$.store['']", [7]),
        ("$.store.é", [8]),
        ("$.store['\\u00e9']", [8]),
        ("$.store['\\ud83e\\uddad']", []),
        ("$.null", [None]),
        ("$.store.*[1].id", [2]),
        ("$.store.book.id", []),
        ("$.store[0]", []),
        ("$.store.book[3]", []),
        ("$.missing.further", []),
    ],
)
def test_a_path_selects_what_the_rfc_says(path: str, found: list[Any]) -> None:
    compiled = compile_path(path)
    assert compiled.find(BOOK) == found
    assert compiled.first(BOOK, "none") == (found[0] if found else "none")
    # As it is written down, it is the same path.
    assert compile_path(compiled.below().text).find(BOOK) == found


@pytest.mark.parametrize(
    ("path", "at"),
    [
        ("", 1), ("$.", 3), ("$a", 2), ("$..a", 4), ("$.a..b", 6), ("a b", 3), ("$.a ", 5), ("a.1", 3),
        ("$[", 3), ("$[01]", 3), ("$[-0]", 3), ("$[1.0]", 4), ("$['a", 5), ("$['a'", 6), ("$[0,1]", 4),
        ("$[?@.a]", 3), ("$['\\x']", 5), ("$['\\ud800']", 10), ("$[9007199254740992]", 3), ("$.a-b", 4),
        ("$[::::]", 5), ("$.a[*]]", 7), ("@.a", 1), ("$" + ".a" * 1000, 1000),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_position(path: str, at: int) -> None:
    with pytest.raises(PathError, match=f"at character {at} of ") as raised:
        compile_path(path)
    assert raised.value.at == at


def test_the_time_is_in_proportion_to_the_document() -> None:
    path = compile_path("$" + "[*]" * 6)

    def search(times: int) -> None:
        wide = [[[[[[1] * 10]]]] for _ in range(2_000 * times)]
        assert len(path.find(wide)) == 20_000 * times

    small, large = growth(lambda: search(1), lambda: search(4), rounds=3)
    assert large < 12 * small + 0.02
