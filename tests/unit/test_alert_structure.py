"""The structure of pages: what vanished between two, and that no page takes long."""

from __future__ import annotations

import pytest

from penstock.alerts.structure import (
    MOST_NAMES,
    MOST_NODES,
    MOST_SHOWN,
    difference,
    structure_of,
)

GOOD = """<!doctype html><title>A &amp; B</title>
<meta property="og:title" content="a"><div id="main" class="product css-1q2w3e">
<script type="application/ld+json">
{"@context": "https://schema.org", "@type": "Product", "sku": "1",
 "offers": {"@type": "Offer", "price": "9.99"}}</script>
<h1 class="title">Lamp</h1><span class="price" itemprop="price">9.99</span><span class='old price'>
<!-- <p class="hidden"> --><script>document.write('<b class="never">')</script>
<a href=/next class=next>more</a></div>"""


def test_what_a_redesign_took_away_is_named_with_the_most_telling_first() -> None:
    redesigned = """<title>A</title><meta property="og:title" content="a"><main id="app" class="css-9z8y7x">
    <h1 class="title">Lamp</h1><span class="amount">9.99</span><span class="old"></span>
    <a class="next">more</a></main>"""
    found = difference(structure_of(GOOD), structure_of(redesigned))
    assert found.vanished == [
        "JSON-LD Offer",
        "JSON-LD Offer.price",
        "JSON-LD Product",
        "JSON-LD Product.offers",
        "JSON-LD Product.sku",
        "[itemprop=price]",
        "#main",
        "span.price",
        "div.product",
        "script",
        "div",
    ]
    assert found.appeared == ["#app", "span.amount", "main"]
    assert not found.is_other_page


def test_another_page_of_the_same_kind_has_lost_nothing() -> None:
    other = GOOD.replace("css-1q2w3e", "css-7u8i9o").replace("9.99", "12").replace("Lamp", "Desk")
    found = difference(structure_of(GOOD), structure_of(other))
    assert (found.vanished, found.appeared, found.kept) == ([], [], 1.0)
    assert structure_of(GOOD).title == "A & B"


def test_comments_and_scripts_hold_no_elements() -> None:
    assert not {"p.hidden", "b.never"} & structure_of(GOOD).names.keys()


def test_an_error_page_is_another_page_and_not_another_design() -> None:
    blocked = "<html><title>Access denied</title><h2>Access denied</h2></html>"
    assert difference(structure_of(GOOD), structure_of(blocked)).is_other_page


def test_of_json_it_is_the_keys_that_vanish() -> None:
    good = '{"items": [{"id": 1, "price": {"amount": 2}}], "next": null, "by": {"839201": 1}}'
    bad = '{"items": [{"id": 1, "cost": 2}], "next": null}'
    found = difference(structure_of(good), structure_of(bad))
    assert found.vanished == ["key by", "key items.price", "key items.price.amount"]
    assert found.appeared == ["key items.cost"]


def test_of_a_page_that_was_cut_nothing_is_said_to_be_missing() -> None:
    cut = structure_of("<p>" * (MOST_NODES + 1) + GOOD)
    assert not cut.is_whole
    assert difference(structure_of(GOOD), cut).vanished == []


# Each would keep a parser busy that makes a tree, or recurses, or scans to the end for each tag.
HOSTILE = {
    "nested": b"<div class=a>" * 150_000,
    "formatting": b"".join(b"<b id=a%d>" % number for number in range(1000)) + b"<p>" * 300_000,
    "attributes": b"<div " + b"a=1 " * 500_000 + b">",
    "names": b"".join(
        b"<p class=c%s>" % bytes([97 + n % 26] * (n // 26 % 50)) for n in range(99_999)
    ),
    "quotes": b"<a b='" * 300_000,
    "unclosed": b'<a b="' + b"x" * 2_000_000,
    "blanks": b"<a" + b" " * 2_000_000,
    "brackets": b"<" * 2_000_000,
    "comments": b"<!--" * 500_000,
    "scripts": b"<script>" * 250_000,
    "json-ld": b'<script type="application/ld+json">' + b"[" * 400_000,
    "json": b'{"a":' * 99_000,
    "many keys": b"{%s}" % b",".join(b'"k%s":1' % (b"a" * n) for n in range(900)),
    "binary": bytes(range(256)) * 8_000,
    "empty": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_has_a_small_structure(name: str) -> None:
    found = structure_of(HOSTILE[name])
    assert len(found.names) <= MOST_NAMES + 10
    assert len(difference(found, structure_of(b"")).vanished) <= MOST_SHOWN
