"""Structured data: the one thing that a page is about, and the paths of its values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

from penstock.agents.learn.page import Page
from penstock.agents.learn.values import clean
from penstock.agents.learn.vocabulary import said_as

DEEPEST = 4
# Things around what a page is about.
ABOUT_THE_SITE = frozenset(
    "BreadcrumbList WebSite WebPage SearchAction ItemList SiteNavigationElement ImageObject CollectionPage "
    "ItemPage AboutPage ContactPage ListItem ImageGallery".split()
)
Thing = dict[str, Any]


def kind_of(thing: Thing) -> str:
    """The type of a thing without the address of its vocabulary; the first of several."""
    said = thing.get("@type") or thing.get("type") or ""
    said = said[0] if isinstance(said, list) and said else said
    return said.rstrip("/").rpartition("/")[2] if isinstance(said, str) else ""


def the_thing(page: Page, found: list[Thing], kind: str) -> Thing | None:
    """The thing of this type that the page is about. Of several, the one that says so; else none."""
    alike = [thing for thing in found if kind_of(thing) == kind]
    if len(alike) <= 1:
        return alike[0] if alike else None
    here = page.url.partition("#")[0].rstrip("/")
    for about in (
        [thing for thing in alike if _address(page, thing) == here],
        [thing for thing in alike if clean(str(thing.get("name", ""))) == page.heading],
    ):
        if len(about) == 1:
            return about[0]
    return None


def _address(page: Page, thing: Thing) -> str:
    for name in ("url", "@id", "mainEntityOfPage"):
        said = thing.get(name)
        said = said.get("@id") if isinstance(said, dict) else said
        if isinstance(said, str) and said:
            return urljoin(page.base, said).partition("#")[0].rstrip("/")
    return ""


def things_of(page: Page, method: str) -> list[Thing]:
    return page.things if method == "json-ld" else page.items


def kinds_on(page: Page, method: str) -> set[str]:
    """The types that the page has exactly one thing of, or one that is about the page."""
    found = things_of(page, method)
    kinds = {kind_of(thing) for thing in found} - ABOUT_THE_SITE - {""}
    return {kind for kind in kinds if the_thing(page, found, kind) is not None}


def paths_of(thing: Thing) -> Iterator[str]:
    """The paths of a thing that are known fields."""
    for path in _paths(thing, "", 0):
        if said_as(path) is not None:
            yield path


def _paths(thing: Thing, before: str, depth: int) -> Iterator[str]:
    for name, value in thing.items():
        if name.startswith("@") or name == "type":
            continue
        path = f"{before}{name}"
        yield path
        value = _only(value)
        if isinstance(value, dict) and depth < DEEPEST:
            yield from _paths(value, f"{path}/", depth + 1)


def at_path(thing: Thing, path: str) -> Any:
    """The value at `offers/price`; None where it is a list of several, or an object with no name."""
    value: Any = thing
    for name in path.split("/"):
        value = _only(value)
        value = value.get(name) if isinstance(value, dict) else None
    if path.rpartition("/")[2] in ("image", "photo"):
        return value
    value = _only(value)
    if isinstance(value, dict):
        value = _named(value, path)
    if path.rpartition("/")[2] in ("availability", "itemCondition") and isinstance(value, str):
        value = value.rstrip("/").rpartition("/")[2]
    return value if isinstance(value, str | int | float) else None


def _named(value: Thing, path: str) -> Any:
    if path == "address":
        parts = ("streetAddress", "postalCode", "addressLocality", "addressRegion")
        said = [clean(str(value[part])) for part in parts if value.get(part)]
        return ", ".join(said) or None
    # An object of one value: `{"@value": …}`, `{"@type": "Brand", "name": …}` has a path of its own.
    return value.get("@value")


def _only(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def images_at(value: Any) -> list[str]:
    """The addresses of an image, of a list of them, or of objects that have one."""
    found = []
    for each in value if isinstance(value, list) else [value]:
        said = (each.get("url") or each.get("contentUrl")) if isinstance(each, dict) else each
        if isinstance(said, str) and said:
            found.append(said)
    return found
