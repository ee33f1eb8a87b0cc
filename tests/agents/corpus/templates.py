"""Ten families of templates: how a site builds the page of an item."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from tests.agents.corpus.shown import label_of, text_of
from tests.agents.corpus.world import Item

# What machines are told, by schema.org.
SAID = {
    "year": "vehicleModelDate", "engine": "vehicleEngine", "transmission": "vehicleTransmission",
    "color": "color", "interior": "vehicleInteriorColor", "vin": "vehicleIdentificationNumber",
    "sku": "sku", "category": "category", "phone": "telephone", "email": "email", "address": "address",
    "model": "model", "website": "sameAs", "date": "startDate",
}  # fmt: skip


@dataclass(frozen=True)
class Look:
    """How one variant of a template differs from the next."""

    language: str = "en"
    euro: bool = False
    is_shuffled: bool = False
    has_traps: bool = False
    is_lazy: bool = False
    is_wrapped: bool = False
    prefix: str = ""
    suffix: str = ""
    currency: str = "USD"


@dataclass(frozen=True)
class Facts:
    """An item as a template writes it: label and text of each field, and the addresses of its images."""

    item: Item
    url: str
    rows: tuple[tuple[str, str, str], ...]
    images: tuple[str, ...]
    look: Look

    @property
    def title(self) -> str:
        return escape(self.item.title)

    @property
    def description(self) -> str:
        return escape(str(self.item.truth["description"]))

    @property
    def price(self) -> str:
        return next((text for name, _, text in self.rows if name == "price"), "")

    def without(self, *names: str) -> list[tuple[str, str, str]]:
        return [row for row in self.rows if row[0] not in names]

    def cls(self, name: str) -> str:
        return f"{self.look.prefix}{name}{self.look.suffix}"


def facts_of(item: Item, url: str, images: tuple[str, ...], look: Look, order: list[str]) -> Facts:
    rows = tuple(
        (
            name,
            label_of(name, look.language),
            escape(text_of(name, item.truth[name], euro=look.euro, currency=look.currency)),
        )
        for name in order
        if name in item.truth
    )
    return Facts(item, url, rows, images, look)


def image_tags(facts: Facts, inside: str = "{}") -> str:
    found = []
    for at, address in enumerate(facts.images):
        where = (
            f'src="data:image/gif;base64,R0lGOD" data-src="{address}"'
            if facts.look.is_lazy
            else f'src="{address}"'
        )
        found.append(inside.format(f'<img {where} alt="{facts.title} {at + 1}">'))
    return "".join(found)


def _said(facts: Facts) -> dict[str, Any]:
    truth = facts.item.truth
    made: dict[str, Any] = {"name": truth["title"], "description": truth["description"]}
    made.update({SAID[name]: value for name, value in truth.items() if name in SAID})
    if "phone" in truth:
        return {"@type": "LocalBusiness", **made, "image": list(facts.images)}
    made["image"] = list(facts.images)
    made["url"] = facts.url
    if "make" in truth:
        made["brand"] = {"@type": "Brand", "name": truth["make"]}
    if "mileage" in truth:
        made["mileageFromOdometer"] = {"@type": "QuantitativeValue", "value": truth["mileage"]}
    if "price" in truth:
        offer = {
            "@type": "Offer",
            "price": str(truth["price"]),
            "priceCurrency": facts.look.currency,
        }
        made["offers"] = offer
    return {"@type": "Event" if "lot" in truth else "Product", **made}


def json_ld(facts: Facts) -> tuple[str, str]:
    """JSON-LD for machines, and for people a list with labels."""
    site = {"@type": "Organization", "name": "The Site", "telephone": "(555) 010-0000"}
    data: Any = {"@context": "https://schema.org", "@graph": [site, _said(facts)]}
    if not facts.look.is_wrapped:
        data = [{"@context": "https://schema.org", **_said(facts)}, site]
    rows = "".join(f"<li><span>{label}</span> <b>{text}</b></li>" for _, label, text in facts.rows)
    body = (
        f'<h1 class="{facts.cls("title")}">{facts.title}</h1>'
        f'<div class="{facts.cls("slides")}">{image_tags(facts)}</div>'
        f'<ul class="{facts.cls("facts")}">{rows}</ul>'
        f'<div class="{facts.cls("text")}"><p>{facts.description}</p></div>'
    )
    return f'<script type="application/ld+json">{json.dumps(data)}</script>', body


def microdata(facts: Facts) -> tuple[str, str]:
    """Microdata in the text itself; what schema.org has no word for has a label."""
    kind = "LocalBusiness" if "phone" in facts.item.truth else "Product"
    rows = []
    for name, label, text in facts.without("price"):
        if name in SAID and name not in ("website", "date", "address"):
            rows.append(f'<p>{label}: <span itemprop="{SAID[name]}">{text}</span></p>')
        else:
            rows.append(f"<p>{label}: <span>{text}</span></p>")
    price = (
        f'<div itemprop="offers" itemscope itemtype="https://schema.org/Offer">'
        f'<meta itemprop="priceCurrency" content="{facts.look.currency}">'
        f'<span itemprop="price" content="{facts.item.truth["price"]}">{facts.price}</span></div>'
        if facts.price
        else ""
    )
    body = (
        f'<div itemscope itemtype="https://schema.org/{kind}"><h1 itemprop="name">{facts.title}</h1>{price}'
        f'<div class="{facts.cls("photos")}">{image_tags(facts)}</div>{"".join(rows)}'
        f'<div itemprop="description">{facts.description}</div></div>'
    )
    return "", body


def open_graph(facts: Facts) -> tuple[str, str]:
    """OpenGraph, and elements whose classes name the field; no labels."""
    head = (
        f'<meta property="og:title" content="{facts.title} | The Site">'
        f'<meta property="og:image" content="{facts.images[0]}">'
        '<meta property="og:site_name" content="The Site">'
    )
    if facts.price:
        head += f'<meta property="og:price:currency" content="{facts.look.currency}">'
    rows = "".join(
        f'<div class="{facts.cls("item-" + name.replace("_", "-"))}">{text}</div>'
        for name, _, text in facts.rows
    )
    body = (
        f'<h1>{facts.title}</h1><div class="{facts.cls("gallery")}">{image_tags(facts)}</div>{rows}'
        f'<div class="{facts.cls("item-description")}">{facts.description}</div>'
    )
    return head, body


def definitions(facts: Facts) -> tuple[str, str]:
    """A list of definitions."""
    rows = "".join(f"<dt>{label}</dt><dd>{text}</dd>" for _, label, text in facts.without("price"))
    price = f'<p class="{facts.cls("price")}">{facts.price}</p>' if facts.price else ""
    body = (
        f'<h1>{facts.title}</h1>{price}<figure class="{facts.cls("media")}">{image_tags(facts)}</figure>'
        f'<dl class="{facts.cls("specs")}">{rows}</dl><h2>{label_of("description", facts.look.language)}</h2>'
        f"<p>{facts.description}</p>"
    )
    return "", body


def table(facts: Facts) -> tuple[str, str]:
    """A table whose rows have a header."""
    rows = "".join(f"<tr><th>{label}:</th><td>{text}</td></tr>" for _, label, text in facts.rows)
    body = (
        f'<h1>{facts.title}</h1><div class="{facts.cls("pics")}">'
        f"{image_tags(facts, '<a href=#>{}</a>')}</div>"
        f'<table class="{facts.cls("details")}"><tbody>{rows}</tbody></table>'
        f'<div class="{facts.cls("catalogue-text")}"><p>{facts.description}</p></div>'
    )
    return "", body


def bold(facts: Facts) -> tuple[str, str]:
    """Paragraphs that begin with a word in bold."""
    rows = "".join(f"<p><strong>{label}:</strong> {text}</p>" for _, label, text in facts.rows)
    body = (
        f'<h1 class="{facts.cls("entry")}">{facts.title}</h1>'
        f'<div class="{facts.cls("content")}">{image_tags(facts, "<p>{}</p>")}{rows}'
        f'<div class="{facts.cls("story")}">{facts.description}</div></div>'
    )
    return "", body


def hashed(facts: Facts) -> tuple[str, str]:
    """Classes that a build tool made, and rows of two elements."""
    h = {name: f"_{abs(hash_of(name + facts.look.prefix)):x}"[:7] for name in "rkvtdgp"}
    rows = "".join(
        f'<div class="{h["r"]}"><span class="{h["k"]}">{label}</span>'
        f'<span class="{h["v"]}">{text}</span></div>'
        for _, label, text in facts.without("price")
    )
    price = f'<div class="{h["p"]}"><span>{facts.price}</span></div>' if facts.price else ""
    body = (
        f'<h1 class="{h["t"]}">{facts.title}</h1>{price}'
        f'<section class="{h["g"]}">{image_tags(facts)}</section>'
        f'<section>{rows}</section><section class="{h["d"]}"><p>{facts.description}</p></section>'
    )
    return "", body


def hash_of(text: str) -> int:
    found = 5381
    for sign in text:
        found = (found * 33 + ord(sign)) % 0xFFFFFF
    return found + 0xA00000


def lines(facts: Facts) -> tuple[str, str]:
    """Lines of a list such as `Mileage: 12,000 mi`; the first heading is the name of the site."""
    rows = "".join(f"<li>{label}: {text}</li>" for _, label, text in facts.rows)
    body = (
        f'<h1>The Site</h1><h2 class="{facts.cls("item-title")}">{facts.title}</h2>'
        f'<ul class="{facts.cls("thumbs")}">{image_tags(facts, "<li>{}</li>")}</ul>'
        f'<ul class="{facts.cls("list")}">{rows}</ul><div class="{facts.cls("body-text")}">'
        f"<p>{facts.description}</p></div>"
    )
    return "", body


def cards(facts: Facts) -> tuple[str, str]:
    """A card for each fact: a small heading, and the value under it."""
    rows = "".join(
        f'<div class="{facts.cls("fact")}"><div class="{facts.cls("k")}">{label}</div>'
        f'<div class="{facts.cls("v")}">{text}</div></div>'
        for _, label, text in facts.rows
    )
    body = (
        f'<article><h1>{facts.title}</h1><div class="{facts.cls("grid")}">{rows}</div>'
        f'<div class="{facts.cls("shots")}">{image_tags(facts)}</div>'
        f"<h3>{label_of('description', facts.look.language)}</h3>"
        f"<div>{facts.description}</div></article>"
    )
    return "", body


def old_tables(facts: Facts) -> tuple[str, str]:
    """Tables for the layout, without a class anywhere."""
    rows = "".join(
        f"<tr><td><font size=2>{label}</font></td><td><font size=2>{text}</font></td></tr>"
        for _, label, text in facts.rows
    )
    body = (
        "<center><table width=800><tr><td valign=top>"
        f"<h1><font color=red>{facts.title}</font></h1><table border=1>{rows}</table>"
        f"<p><font size=2>{facts.description}</font></p></td>"
        f"<td>{image_tags(facts, '{}<br>')}</td></tr></table></center>"
    )
    return "", body


Template = Callable[[Facts], tuple[str, str]]
FAMILIES: dict[str, Template] = {
    "json-ld": json_ld,
    "microdata": microdata,
    "open-graph": open_graph,
    "definitions": definitions,
    "table": table,
    "bold": bold,
    "hashed": hashed,
    "lines": lines,
    "cards": cards,
    "old-tables": old_tables,
}
