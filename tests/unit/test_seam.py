"""A store is made of the verbs of many nouns; none of them may hide another's."""

from __future__ import annotations

from collections import defaultdict

import pytest

from penstock.store.postgres.store import PostgresStore
from penstock.store.sqlite.store import SqliteStore


@pytest.mark.parametrize("store", [SqliteStore, PostgresStore])
def test_no_two_nouns_have_a_method_of_the_same_name(store: type) -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for noun in store.__mro__[1:]:
        for name, value in vars(noun).items():
            if callable(value) and noun is not object and not name.startswith("__"):
                found[name].append(noun.__name__)
    assert {name: nouns for name, nouns in found.items() if len(nouns) > 1} == {}
