"""Sixty sites with known truth, and again when each has been redesigned."""

from __future__ import annotations

import pytest

from tests.agents.corpus.measure import learned
from tests.agents.corpus.sites import FAMILY_NAMES, VARIANTS, site
from tests.agents.corpus.table import HALVES, PAGE, half, rows, table

PRECISION, RECALL = 0.97, 0.92


@pytest.mark.parametrize("name", HALVES)
def test_fields_are_right_before_a_redesign_and_one_run_after_it(name: str) -> None:
    found, _ = half(HALVES[name])

    for figures in (found.before, found.after):
        assert figures.precision >= PRECISION, figures.mistakes[:5]
        assert figures.recall >= RECALL, figures.missed
    assert found.words(name) in PAGE.read_text("utf-8"), (
        "measure again: -m tests.agents.corpus.table"
    )


@pytest.mark.torture
def test_the_rows_of_the_others_are_those_of_the_table() -> None:
    text = PAGE.read_text("utf-8")

    assert table(text, rows()) == text


def test_sites_are_classified_by_their_own_words() -> None:
    found = [
        (learned(made).site_type, made.site_type)
        for family in range(len(FAMILY_NAMES))
        for made in [site(family, family % VARIANTS)]
    ]

    assert all(said in (None, true) for said, true in found), found
    assert sum(said == true for said, true in found) >= 8


def test_the_same_pages_make_the_same_schema() -> None:
    made = site(3, 4)

    assert learned(made) == learned(made)
