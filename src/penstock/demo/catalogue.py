"""The healthy shop: a robots.txt, a sitemap in two parts, 220 product pages with JSON-LD.

Healthy is not perfect. A few pages sell for nothing or name no price, a few show a product that
another page shows too, and robots.txt asks everybody to stay out of the staff shop. On the second day
three prices are new, and the sitemap says so.
"""

from __future__ import annotations

import html
import json
from typing import Any

from penstock.demo.replies import XML, Answer, Page, Pages, document, robots

PRODUCTS = 220
FREE = frozenset({40, 120, 200})
UNPRICED = frozenset({80, 160})
STAFF_ONLY = frozenset({31, 97, 163})
# Each of these pages shows the product of the page before it, written a little differently.
ON_SALE = frozenset({52, 103, 154, 205})
# What costs a euro more on the second day.
DEARER = frozenset({10, 60, 110})
FIRST_DAY, SECOND_DAY = "2026-03-02", "2026-03-03"

MATERIALS = (
    *("Oak", "Brass", "Linen", "Slate", "Copper", "Walnut"),
    *("Wool", "Glass", "Birch", "Clay", "Cork"),
)
THINGS = (
    *("kettle", "lamp", "stool", "tray", "clock", "basket", "mirror", "shelf", "bowl", "blanket"),
    *("bench", "vase", "candlestick", "coaster", "doormat", "jug", "ladder", "hook", "teapot"),
    "notebook",
)
BRANDS = ("Harrow & Finch", "Nordlys", "Quay", "Tilde", "Ostrava")
SITEMAP_NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def pages(origin: str, is_second_day: bool = False) -> Pages:
    """Every page of the shop, as it is served under this origin."""
    changed = DEARER if is_second_day else frozenset()
    paths = [path_of(number) for number in range(1, PRODUCTS + 1)]
    half = len(paths) // 2
    shop: Pages = {
        "/robots.txt": robots("Disallow: /staff/", f"Sitemap: {origin}/sitemap.xml"),
        "/sitemap.xml": _sitemap("sitemap", [f"{origin}/sitemap-{part}.xml" for part in (1, 2)]),
        "/sitemap-1.xml": _sitemap("url", [origin + path for path in paths[:half]], changed),
        "/sitemap-2.xml": _sitemap("url", [origin + path for path in paths[half:]], changed),
    }
    for number, path in enumerate(paths, start=1):
        price = price_of(number)
        if number in changed:
            price = f"{float(price or 0) + 1:.2f}"
        shop[path] = (Answer(product_page(product(number), price)),)
    return shop


def path_of(number: int) -> str:
    if number in STAFF_ONLY:
        return f"/staff/{number}"
    return f"/sale/{number}" if number in ON_SALE else f"/product/{number}"


def price_of(number: int) -> str | None:
    if number in UNPRICED:
        return None
    if number in FREE:
        return "0"
    if number in ON_SALE:
        return f"{price_of(number - 1)}00"
    return f"{5 + number * 37 % 190}.{number * 5 % 100:02d}"


def product(number: int) -> dict[str, Any]:
    """The JSON-LD of one page, without its offer."""
    if number in ON_SALE:
        original = product(number - 1)
        return {**original, "name": original["name"].replace(" ", "  ")}
    name = f"{MATERIALS[number % len(MATERIALS)]} {THINGS[number % len(THINGS)]}"
    return {
        "@context": "https://schema.org",
        "@type": "Product",
        "sku": f"PEN-{number:04d}",
        "name": name,
        "brand": {"@type": "Brand", "name": BRANDS[number % len(BRANDS)]},
    }


def product_page(thing: dict[str, Any], price: str | None) -> bytes:
    """A product's page: JSON-LD for machines, a heading and a price for people."""
    stock = "OutOfStock" if thing["sku"].endswith("7") else "InStock"
    offer = {
        "@type": "Offer",
        "priceCurrency": "EUR",
        "availability": f"https://schema.org/{stock}",
    }
    if price is not None:
        offer["price"] = price
    data = json.dumps({**thing, "offers": offer}, ensure_ascii=False)
    name = html.escape(thing["name"])
    shown = f'<p><span itemprop=price content="{price}">{price}</span> EUR</p>' if price else ""
    return document(
        thing["name"],
        f"<h1>{name}</h1>{shown}",
        head=f'<script type="application/ld+json">{data}</script>',
    )


def _sitemap(entry: str, urls: list[str], changed: frozenset[int] = frozenset()) -> Page:
    root = "urlset" if entry == "url" else "sitemapindex"
    entries = "\n".join(
        f"<{entry}><loc>{url}</loc>{_lastmod(url, changed)}</{entry}>" for url in urls
    )
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} {SITEMAP_NS}>\n{entries}\n</{root}>\n'
    return (Answer(text.encode(), content_type=XML),)


def _lastmod(url: str, changed: frozenset[int]) -> str:
    number = url.rpartition("/")[2]
    if not number.isdecimal():
        return ""
    return f"<lastmod>{SECOND_DAY if int(number) in changed else FIRST_DAY}</lastmod>"
