"""Patterns of files: what they hold, however the names are made."""

from __future__ import annotations

import pytest

from penstock.settings.pattern import pattern_of


@pytest.mark.parametrize(
    ("pattern", "held", "not_held"),
    [
        ("*.csv", ["a.csv", "-.csv"], [".csv", ".a.csv", "a/b.csv", "a.csv.gz"]),
        ("*-*-*.csv", ["a-b-c.csv", "---.csv", "--.csv.csv"], ["a-b.csv", "-.csv"]),
        ("a*b*a", ["aba", "abaa", "aabba"], ["ab", "aa", "abab"]),
        ("*[0-9]?x", ["1ax", "a11x", "x1xx"], ["1x", "abx"]),
        ("**/*.json", ["a.json", "x/a.json", "x/y/z/a.json"], [".x/a.json", "x/.y/a.json"]),
        ("**/a/**/b/*", ["a/b/c", "x/a/y/b/c", "a/a/b/b/c"], ["b/a/c", "a/b", "x/a/y/c"]),
        ("**/**/*", ["a", "x/a", "x/y/a"], [".a"]),
        ("*/x/**", ["a/x/b", "a/x/b/c"], ["x/b", "a/x"]),
    ],
)
def test_what_a_pattern_holds(pattern: str, held: list[str], not_held: list[str]) -> None:
    found = pattern_of(pattern)
    assert [path for path in held if not found.holds(path)] == []
    assert [path for path in not_held if found.holds(path)] == []
