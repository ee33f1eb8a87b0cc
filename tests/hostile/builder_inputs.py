"""Pages and values that mean harm, for what the builder reads of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.builder.enrich.address import parsed_address
from penstock.builder.enrich.geocoder import Photon
from penstock.builder.enrich.google_maps import Places
from penstock.builder.enrich.serp import Searx
from penstock.builder.enrich.site import contact_links, page_facts
from penstock.builder.normalize.names import name_key
from penstock.builder.normalize.standardize import standardize
from penstock.builder.parse.rows import html_rows, jsonld_rows

URL = "http://acme.com/"
Build = Callable[[int], Any]


def _times(n: int, piece: str) -> str:
    return piece * (n // len(piece))


def read_page(html: str) -> object:
    return (
        page_facts(html, URL, "US"),
        contact_links(html, URL),
        html_rows(html, URL),
        jsonld_rows(html, URL),
    )


def read_value(text: str) -> object:
    columns = (
        "name",
        "address",
        "street",
        "city",
        "postcode",
        "country",
        "phone",
        "email",
        "website",
        "opened",
    )
    row: dict[str, Any] = dict.fromkeys(columns, text)
    name_key.cache_clear()
    return standardize(row, country="US"), parsed_address(text, "US"), name_key(text)


def read_answer(value: Any) -> object:
    return Photon(URL).read(value), Places(URL).read(value), Searx(URL).read(value)


def _described(inner: str) -> str:
    return f'<script type="application/ld+json">{inner}</script>'


PAGES: dict[str, Build] = {
    "addresses of e-mail": lambda n: "<p>" + _times(n, "a@b.com "),
    "dots and signs": lambda n: "<p>" + _times(n, "a.a.a+a-a_") + "@",
    "signs": lambda n: "<p>" + "@" * n,
    "digits": lambda n: "<p>" + "1" * n,
    "numbers": lambda n: "<p>" + _times(n, "+1 (217) 555-0188 x<br>"),
    "groups of digits": lambda n: "<p>" + _times(n, "1 (2)/3-4. "),
    "spelled out": lambda n: "<p>" + _times(n, "a [at] b [dot] c "),
    "blanks before": lambda n: "<p>" + " " * n + "[at]",
    "addresses": lambda n: _times(n, "<p>12 Main St, Springfield, IL 62704</p>"),
    "links": lambda n: _times(n, "<a href='/contact'>x</a>"),
    "numbers to call": lambda n: _times(n, "<a href='tel:2175550188'>x</a>"),
    "footers": lambda n: _times(n, "<footer>x</footer>"),
    "nested footers": lambda n: _times(n, "<footer>x"),
    "a table": lambda n: "<table><tr><th>name<th>city" + _times(n, "<tr><td>a<td>b"),
    "nested tables": lambda n: _times(n, "<table><tr><th>name<th>city<td>"),
    "items in items": lambda n: _times(n, "<p itemscope itemprop=a>"),
    "a graph": lambda n: _described('{"@graph":[' + _times(n, '{"@type":"Store"},') + "0]}"),
    "graphs in graphs": lambda n: _described(_times(n // 2, '{"@graph":[') + _times(n // 6, "]}")),
    "one name": lambda n: _described('{"@type":"Store","name":"' + "a" * n + '"}'),
    "many pages": lambda n: _described('{"@type":"Store","sameAs":[' + _times(n, '"x.com/a",') + "0]}"),
}  # fmt: skip
VALUES: dict[str, Build] = {
    "letters": lambda n: "a" * n,
    "digits": lambda n: "1" * n,
    "blanks": lambda n: " " * n + "a",
    "marks": lambda n: "a" + "\u0301\u0323" * (n // 2),
    "words": lambda n: _times(n, "a "),
    "commas": lambda n: _times(n, "1,"),
    "signs": lambda n: "@" * n,
    "dots": lambda n: _times(n, "a."),
    "forms": lambda n: _times(n, "inc "),
    "foreign host": lambda n: "http://" + "ß" * n,
}
ANSWERS: dict[str, Build] = {
    "features": lambda n: {"features": [{"properties": {"city": "a" * 100}}] * (n // 100)},
    "places": lambda n: {"places": [{"addressComponents": [{"types": ["route"], "longText": "a" * n}] * 9}]},
    "results": lambda n: {"results": [{"url": "http://a.com/" + "a" * n}] * 20},
}  # fmt: skip
