"""The shape of the store: many small nouns, and no verb that nobody calls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.clock import SystemClock
from penstock.store.sqlite.store import SqliteStore
from penstock.store.store import NOUNS

SOURCE = Path(__file__).parents[2] / "src" / "penstock"
MOST_VERBS = 25
# What only tests and the bench call: they fill a queue, and look at what is there.
FOR_TESTS = {("jobs", "enqueue"), ("jobs", "has_startable")}


@pytest.fixture
def nouns(tmp_path: Path) -> dict[str, set[str]]:
    """The public verbs of each noun of a store."""
    store = SqliteStore(tmp_path / "penstock.db", SystemClock())
    found = {name: getattr(store, name) for name in NOUNS}
    store.close()
    return {
        name: {verb for verb in dir(noun) if not verb.startswith("_")}
        for name, noun in found.items()
    }


def test_no_noun_of_the_store_has_more_verbs_than_a_reader_can_keep_in_mind(
    nouns: dict[str, set[str]],
) -> None:
    assert len(nouns) > 12
    assert {name: len(verbs) for name, verbs in nouns.items() if len(verbs) > MOST_VERBS} == {}


def test_every_verb_of_the_store_is_called_from_outside_of_it(nouns: dict[str, set[str]]) -> None:
    files = [file for file in SOURCE.rglob("*.py") if SOURCE / "store" not in file.parents]
    text = "\n".join(file.read_text() for file in files)
    called = set(re.findall(r"\.(\w+)(?=\.(\w+))", text))
    wanted = {(name, verb) for name, verbs in nouns.items() for verb in verbs}
    assert sorted(wanted - called) == sorted(FOR_TESTS)
