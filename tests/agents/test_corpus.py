"""Sixty sites with known truth, and again when each has been redesigned."""

from __future__ import annotations

import pytest

from penstock.agents.schema import SiteSchema
from tests.agents.corpus.measure import Figures, by_schema, learned, measure, samples_of
from tests.agents.corpus.sites import FAMILY_NAMES, VARIANTS, Site, site

PRECISION, RECALL = 0.97, 0.92


def _figures(made: Site, schema: SiteSchema) -> Figures:
    seen = frozenset(each.url for each in samples_of(made))
    return measure(made, by_schema(schema), seen)


@pytest.mark.parametrize("variants", [(0, 1, 2), (3, 4, 5)], ids=["chosen by", "held out"])
def test_fields_are_right_before_a_redesign_and_one_run_after_it(variants: tuple[int, ...]) -> None:
    before, after = Figures(), Figures()
    for family in range(len(FAMILY_NAMES)):
        for variant in variants:
            made = site(family, variant)
            schema = learned(made)
            before.add(_figures(made, schema))
            read = by_schema(schema)
            records = {url: found for url, html in made.pages.items() if (found := read(url, html))}
            redesigned = site(family, variant, is_redesigned=True)
            after.add(_figures(redesigned, learned(redesigned, records)))

    assert (before.precision, before.recall) >= (PRECISION, RECALL), before.mistakes[:5]
    assert before.recall >= RECALL, before.missed
    assert after.precision >= PRECISION, after.mistakes[:5]
    assert after.recall >= RECALL, after.missed


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
