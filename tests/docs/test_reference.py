"""The pages that are made from code say what the code says."""

from __future__ import annotations

from typing import Any

import pytest

from docs.generators.__main__ import DOCS, PAGES
from docs.generators.verbs import all_verbs, class_of, nouns, verbs
from docs.generators.views import documented


@pytest.mark.parametrize("name", PAGES)
def test_page_is_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == PAGES[name](), "make reference"


def test_every_verb_and_every_view_says_what_it_is() -> None:
    found: list[Any] = [*all_verbs(), *documented()]
    silent = [each.__qualname__ for each in found if not each.__doc__]
    assert silent == []


def test_every_noun_of_a_project_has_its_verbs_on_the_page() -> None:
    page = (DOCS / "python-reference.md").read_text("utf-8")
    missing = [
        f"{noun}.{verb}"
        for noun in nouns()
        for verb in verbs(class_of(noun))
        if f"\n### {noun}.{verb}\n" not in page
    ]
    assert {"runs", "sources", "signals"} <= set(nouns())
    assert missing == []
