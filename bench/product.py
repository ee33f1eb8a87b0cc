"""One product page and what every crawler under test makes of it: same markup, parser and score.

The parser is shared on purpose: with it, the crawlers differ by their engine and nothing else.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import msgspec
from selectolax.lexbor import LexborHTMLParser

WORDS = (
    "steel brass oak linen enamel copper walnut ceramic cotton marble slate cork rattan birch "
    "kettle lamp chair shelf bowl knife board clock mirror basket stool vase tray frame bench"
).split()


# Beyond so many pages the links and the prose are those of earlier ones: only the products are new.
DISTINCT = 5_000


def page(number: int, pages: int) -> bytes:
    """A page of 6 to 10 KB with one JSON-LD product; every fiftieth repeats the one before it."""
    shown = _shown_on(number)
    product = {
        "@context": "https://schema.org",
        "@type": "Product",
        "sku": f"SKU-{shown:06d}",
        "name": " ".join(random.Random(shown).choices(WORDS, k=3)).title(),
        "brand": {"@type": "Brand", "name": WORDS[shown % len(WORDS)].title()},
        "offers": {"@type": "Offer", "price": f"{shown % 400 + 0.95:.2f}", "priceCurrency": "EUR"},
    }
    links, prose = _filling(number % DISTINCT, pages)
    html = (
        f"<!doctype html><html><head><title>{product['name']}</title>"
        f'<script type="application/ld+json">{msgspec.json.encode(product).decode()}</script>'
        f"</head><body><nav><ul>{links}</ul></nav><main><h1>{product['name']}</h1>{prose}</main>"
        "</body></html>"
    )
    return html.encode()


@cache
def _filling(seed: int, pages: int) -> tuple[str, str]:
    # Seeded per page, so that any process can make any page and all agree on it.
    rng = random.Random(seed)
    links = "".join(
        f'<li><a href="/p/{rng.randrange(pages)}.html">{" ".join(rng.choices(WORDS, k=2))}</a></li>'
        for _ in range(24)
    )
    prose = "".join(
        f"<p>{' '.join(rng.choices(WORDS, k=60))}.</p>" for _ in range(rng.randint(12, 20))
    )
    return links, prose


def check(skus: set[str], pages: int) -> None:
    """Insist that a crawler ended with every product of the site, each once."""
    expected = {f"SKU-{_shown_on(number):06d}" for number in range(pages)}
    if skus != expected:
        raise ValueError(f"{len(skus)} products were saved, {len(expected)} expected")


def _shown_on(number: int) -> int:
    return number - 1 if number % 50 == 49 else number


def parse(html: str) -> dict[str, Any]:
    """The product of a page, flat and cleaned."""
    node = LexborHTMLParser(html).css_first('script[type="application/ld+json"]')
    if node is None:
        raise ValueError("no JSON-LD on this page")
    found = msgspec.json.decode(node.text())
    return {
        "sku": found["sku"],
        "name": found["name"].strip(),
        "brand": found["brand"]["name"],
        "price": round(float(found["offers"]["price"]), 2),
        "currency": found["offers"]["priceCurrency"],
    }


def score(product: dict[str, Any]) -> float:
    """How complete a product is, from 0 to 1."""
    filled = sum(bool(product[name]) for name in ("sku", "name", "brand", "price", "currency"))
    return filled / 5 if product["price"] > 0 else 0.2
