"""Extracting: a page by the schema of its site. What its selectors do not find is None."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

import msgspec

from penstock.agents.learn import addresses
from penstock.agents.learn.images import Selectors, images_of
from penstock.agents.learn.page import Page
from penstock.agents.learn.reading import first_value, is_same, value_at
from penstock.agents.learn.selectors import raw_values
from penstock.agents.learn.structured import images_at, kind_of, the_thing, things_of
from penstock.agents.learn.vocabulary import field_named
from penstock.agents.schema import FieldSchema, PageType, SiteSchema


class Extracted(msgspec.Struct, frozen=True):
    """What a page says: every field of its type; `disputed` are those whose selectors disagree."""

    page_type: str
    data: dict[str, Any]
    missing: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()


def type_of(schema: SiteSchema, url: str) -> tuple[str, PageType] | None:
    """The type of page that an address is of."""
    for name, page_type in schema.schema_data.page_types.items():
        if addresses.matches(page_type.url_pattern, url):
            return name, page_type
    return None


def extract(schema: SiteSchema, url: str, html: str) -> Extracted | None:
    """The fields of a page; None for a page of a type that has none."""
    found = type_of(schema, url)
    if found is None or not found[1].fields:
        return None
    name, page_type = found
    page = Page(url, html, lambda link: addresses.matches(page_type.url_pattern, link))
    data: dict[str, Any] = {}
    disputed = []
    for field, about in page_type.fields.items():
        if field == "images":
            data[field] = _images(page, schema, about) or None
            continue
        data[field] = first_value(page, about.selectors, field_named(field))
        if _is_disputed(page, field, about, data[field]):
            disputed.append(field)
    _with_currency(page, page_type, data)
    missing = [
        field for field, about in page_type.fields.items() if about.required and not data[field]
    ]
    return Extracted(name, data, tuple(missing), tuple(disputed))


def _with_currency(page: Page, page_type: PageType, data: dict[str, Any]) -> None:
    """The currency that the text of the price names, where it surely is one."""
    about = page_type.fields.get("price")
    if about is None or data.get("currency") is not None or data.get("price") is None:
        return
    if (found := first_value(page, about.selectors, field_named("currency"))) is not None:
        data["currency"] = found


def _is_disputed(page: Page, field: str, about: FieldSchema, value: Any) -> bool:
    if value is None or len(about.selectors) < 2:
        return False
    known = field_named(field)
    said = [value_at(page, selector, known) for selector in about.selectors]
    return any(each is not None and not is_same(known, each, value) for each in said)


def _images(page: Page, schema: SiteSchema, about: FieldSchema) -> list[str]:
    if about.method == "css":
        selectors = Selectors(schema.image_include_selectors, schema.image_exclude_selectors)
        return images_of(page, selectors)
    found: dict[str, None] = {}
    for selector in about.selectors:
        found.update(
            dict.fromkeys(urljoin(page.base, each) for each in images_said(page, selector))
        )
    return list(found)


def images_said(page: Page, selector: str) -> list[str]:
    """The addresses of images that structured data names, as it says them."""
    prefix, _, rest = selector.partition(":")
    if prefix == "meta":
        return [str(each) for each in raw_values(page, selector)]
    kind, _, name = rest.partition("/")
    thing = the_thing(page, things_of(page, prefix), kind)
    return images_at(thing[name]) if thing is not None and name in thing else []


def is_thing(page: Page, kind: str) -> bool:
    """Whether a page describes a thing of this type."""
    return any(kind_of(thing) == kind for thing in page.things)
