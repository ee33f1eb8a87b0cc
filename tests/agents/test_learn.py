"""Learning a site: what is taken, and above all what is not."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.agents.extract import extract
from penstock.agents.learn.addresses import matches, patterns_of
from penstock.agents.learn.learn import Learned, Sample, learn
from penstock.agents.learn.values import value_of
from penstock.agents.schema import read_schema, written

SITE = "https://shop.example/items"


def _learned(pages: list[str], **about: Any) -> Learned:
    return learn(
        [Sample(f"{SITE}/thing-{at}-{at}", html) for at, html in enumerate(pages, 1)], **about
    )


def _page(inside: str, head: str = "") -> str:
    return f"<html><head>{head}</head><body><main>{inside}</main></body></html>"


def _item(at: int, rest: str = "") -> str:
    return _page(
        f"<h1>Thing {at}</h1><dl class=s><dt>Price</dt><dd>${at}00</dd>"
        f"<dt>Make</dt><dd>Maker {at}</dd></dl>{rest}"
    )


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("money", "$1,234.50", 1234.5),
        ("money", "1.234,50 €", 1234.5),
        ("money", "1 234 €", 1234.0),
        ("money", "CHF 1'234", 1234.0),
        ("money", "was $20 now $15", None),
        ("money", "Call for price", None),
        ("currency", "€ 12", "EUR"),
        ("currency", "$12", None),
        ("count", "12,345 mi", 12345),
        ("count", "12.345 km", 12345),
        ("count", "many", None),
        ("year", "1969", 1969),
        ("year", "69", None),
        ("date", "19 November 2026", "2026-11-19"),
        ("date", "19.11.2026", "2026-11-19"),
        ("date", "03/04/2026", None),
        ("date", "31/04/2026", None),
        ("vin", "1G1YY22P9S5100001", "1G1YY22P9S5100001"),
        ("vin", "not a vin", None),
        ("phone", "(555) 010-0123", "5550100123"),
        ("email", "mailto:a@b.example?subject=x", "a@b.example"),
        ("text", "n/a", None),
        ("text", "—", None),
    ],
)
def test_a_text_is_a_value_of_its_kind_or_nothing(kind: Any, text: str, value: Any) -> None:
    assert value_of(kind, text) == value


def test_types_of_pages_are_told_apart_by_their_addresses() -> None:
    items = [f"https://a.example/inventory/{n}-red-car" for n in range(9)]
    others = ["https://a.example/", "https://a.example/about", "https://a.example/contact"]
    lists = [f"https://a.example/inventory?page={n}" for n in range(4)]

    found = patterns_of([*items, *others, *lists])

    [pattern] = [each for each, members in found.items() if members == items]
    assert matches(pattern, "https://a.example/inventory/77-blue-car")
    assert not any(matches(pattern, url) for url in [*others, *lists])


def test_a_page_without_a_value_has_null_and_not_its_neighbours() -> None:
    learned = _learned([_item(at) for at in range(1, 6)])
    card = f'<div><a href="{SITE}/other-1-9">Other 9</a><p>Price: $99</p></div>'
    bare = _page(f"<h1>Bare</h1><section>{card}{card.replace('-9', '-8')}</section>")

    found = extract(learned.schema, f"{SITE}/bare-1-1", bare)

    assert found is not None
    assert (found.data["title"], found.data["price"], found.data["make"]) == ("Bare", None, None)
    assert set(found.missing) == {"price", "make"}


def test_two_answers_on_one_page_are_none() -> None:
    learned = _learned([_item(at) for at in range(1, 6)])
    twice = _item(7, "<dl class=s><dt>Price</dt><dd>$900</dd></dl>")

    found = extract(learned.schema, f"{SITE}/twice-1-1", twice)

    assert found is not None
    assert found.data["price"] is None


def test_witnesses_that_contradict_each_other_leave_a_field_out_and_are_told() -> None:
    def page(at: int) -> str:
        said = f'{{"@type": "Product", "name": "Thing {at}", "sku": "S{at}"}}'
        head = f'<script type="application/ld+json">{said}</script>'
        return _page(
            f"<h1>Thing {at}</h1><dl><dt>SKU</dt><dd>OTHER-{at}</dd><dt>Make</dt><dd>M{at}</dd></dl>",
            head,
        )

    learned = _learned([page(at) for at in range(1, 6)])

    assert "sku" not in learned.schema.schema_data.available_fields
    [conflict] = learned.conflicts["item"].values()
    assert {each["values"][0][0] for each in conflict} == {"S", "O"}


def test_what_is_the_same_on_all_pages_is_the_sites_own() -> None:
    box = "<div class=box><p>Phone: (555) 010-0000</p></div>"

    learned = _learned([_item(at, box) for at in range(1, 6)])

    assert "phone" not in learned.schema.schema_data.available_fields


def test_images_of_the_site_and_of_other_items_are_not_the_items() -> None:
    def page(at: int) -> str:
        shots = f'<img src="/m/{at}-a.jpg"><img src="/m/{at}-b.jpg">'
        gallery = f'<div class=g>{shots}<img src="/badge.png"></div>'
        others = "".join(
            f'<div class=c><a href="{SITE}/thing-{n}-{n}"><img src="/m/{n}-a.jpg"></a></div>'
            for n in (7, 8)
        )
        return _item(at, gallery + others)

    learned = _learned([page(at) for at in range(1, 6)])
    found = extract(learned.schema, f"{SITE}/thing-3-3", page(3))

    assert found is not None
    assert found.data["images"] == [f"https://shop.example/m/3-{x}.jpg" for x in "ab"]


def test_values_found_before_name_what_a_redesign_left_without_a_label() -> None:
    known = {
        f"{SITE}/thing-{at}-{at}": {"engine": f"V{at}", "title": f"Thing {at}"}
        for at in range(1, 6)
    }
    pages = [_item(at, f"<p class=zz>V{at}</p>") for at in range(1, 6)]

    assert "engine" not in _learned(pages).schema.schema_data.available_fields
    assert "engine" in _learned(pages, known=known).schema.schema_data.available_fields


def test_a_schema_reads_back_as_it_was_written() -> None:
    schema = _learned([_item(at) for at in range(1, 6)]).schema

    assert read_schema(written(schema)) == schema


@pytest.mark.parametrize(
    "html", ["", "<", "<html><body>" + "<div>" * 3000, "\x00", "<h1>x</h1>" * 500]
)
def test_no_page_is_too_broken_to_be_looked_at(html: str) -> None:
    learned = _learned([_item(1), _item(2), _item(3), html])

    extract(learned.schema, f"{SITE}/broken-1-1", html)
