"""Image QA: which images are not photos of the item, and what excludes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import pytest

from penstock.agents.gallery.check import Finding, check
from penstock.agents.gallery.picture import Picture, look
from penstock.agents.gallery.shown import addresses_of
from penstock.agents.learn.learn import Sample
from penstock.agents.schema import FieldSchema, PageType, SchemaData, SiteSchema
from tests.agents.pictures import drawing, photo_bytes, saved

SITE = "https://shop.example"
SCHEMA = SiteSchema(
    "shop.example",
    schema_data=SchemaData(
        {
            "item": PageType(
                "/item/[^/]+", {"images": FieldSchema(("css:.g img",), "css", True, 0.9)}
            )
        }
    ),
    image_include_selectors=(".g img",),
)
PAGES = 8


def _pages(polluted: Callable[[int], str] = lambda at: "") -> list[Sample]:
    return [
        Sample(
            f"{SITE}/item/{at}",
            f'<main><h1>Item {at}</h1><div class="g"><img src="/m/{at}-a.jpg"><img src="/m/{at}-b.jpg">'
            f"{polluted(at)}</div></main>",
        )
        for at in range(PAGES)
    ]


def _pictures(**others: bytes) -> dict[str, Picture]:
    found = {
        f"{SITE}/m/{at}-{name}.jpg": look(photo_bytes(f"{at} {name}"))
        for at in range(PAGES)
        for name in "ab"
    }
    return {
        **found,
        **{f"{SITE}/{name.replace('_', '/', 1)}": look(body) for name, body in others.items()},
    }


def _found(
    polluted: Callable[[int], str], pictures: Mapping[str, Picture] | None = None
) -> dict[str, Finding]:
    found = check(SCHEMA, _pages(polluted), _pictures() if pictures is None else pictures)
    return {each.reason: each for each in found}


def test_photos_of_items_are_not_flagged() -> None:
    assert check(SCHEMA, _pages(), _pictures()) == []
    assert check(SCHEMA, _pages(), {}) == []


def test_a_repeated_image_is_noted_with_its_pages_and_the_selector_that_excludes_it() -> None:
    found = _found(lambda at: '<img src="/static/fair.jpg">')

    [finding] = found.values()
    assert (finding.reason, finding.selector, finding.shown) == (
        "repeated across pages",
        ".g img",
        24,
    )
    assert finding.images == (f"{SITE}/static/fair.jpg",)
    assert finding.pages == tuple(f"{SITE}/item/{at}" for at in range(PAGES))
    mended = msgspec.structs.replace(SCHEMA, image_exclude_selectors=finding.exclude)
    assert check(mended, _pages(lambda at: '<img src="/static/fair.jpg">'), _pictures()) == []
    note = finding.note("2026-11-19T06:00:00Z")
    assert (note.selector, note.status, note.id) == (".g img", "open", finding.note("later").id)


def test_the_same_file_at_many_addresses_is_repeated() -> None:
    def polluted(at: int) -> str:
        return f'<img src="/fair.jpg?page={at}">'

    same = {f"{SITE}/fair.jpg?page={at}": look(photo_bytes("fair")) for at in range(PAGES)}

    assert "repeated across pages" in _found(polluted, {**_pictures(), **same})


@pytest.mark.parametrize(
    ("reason", "body", "name"),
    [
        ("not an image", b"<!doctype html><p>gone", "x.jpg"),
        ("vector graphic", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "x.svg"),
        ("tracking pixel", saved(drawing("p", 1, 1), "GIF"), "x.gif"),
        ("icon", saved(drawing("i", 32, 32), "PNG"), "x.png"),
        ("logo", saved(drawing("l", 200, 90), "PNG"), "brand-logo.png"),
        ("banner", photo_bytes("wide", 900, 200), "x.jpg"),
        ("aspect", photo_bytes("tall", 100, 500), "x.jpg"),
        ("sprite", saved(drawing("s", 300, 24), "PNG"), "x.png"),
        ("duplicate", photo_bytes("2 a", 100, 75), "x.jpg"),
    ],
)
def test_what_the_bytes_show_is_flagged(reason: str, body: bytes, name: str) -> None:
    pictures = {**_pictures(), f"{SITE}/z/{name}": look(body)}

    found = _found(lambda at: f'<p class="late"><img src="/z/{name}"></p>' * (at == 2), pictures)

    assert list(found) == [reason]
    assert found[reason].images == (f"{SITE}/z/{name}",)
    assert found[reason].exclude


def test_a_photo_is_not_flagged_for_the_name_of_its_file_or_of_its_gallery() -> None:
    def pages(at: int) -> str:
        return f'<div class="banner-slider"><img src="/m/badge-logo-{at}.jpg"></div>'

    named = {
        f"{SITE}/m/badge-logo-{at}.jpg": look(photo_bytes(f"badge {at}")) for at in range(PAGES)
    }
    slider = [Sample(s.url, s.html.replace('"g"', '"g banner"')) for s in _pages()]

    assert "logo" not in _found(pages, {**_pictures(), **named})
    assert check(SCHEMA, slider, _pictures()) == []


def test_photos_of_other_items_beside_the_gallery_are_flagged_there_and_not_at_home() -> None:
    def polluted(at: int) -> str:
        return "".join(
            f'<p class="more"><img src="/m/{(at + n) % PAGES}-a.jpg"></p>' for n in (1, 3)
        )

    found = _found(polluted)

    assert set(found) == {"of another item"} or set(found) == {"repeated across pages"}
    [finding] = found.values()
    assert len(finding.exclude) == 1
    assert finding.exclude[0] not in (".g img", "img")
    assert all("-a.jpg" in each for each in finding.images)


def test_no_selector_is_proposed_that_would_lose_a_photo() -> None:
    def polluted(at: int) -> str:
        return "<img src='/m/9-z.jpg'>" if at == 2 else ""

    pictures = {**_pictures(), f"{SITE}/m/9-z.jpg": look(photo_bytes("2 a", 60, 45))}

    for finding in _found(polluted, pictures).values():
        assert all("/m/9-z.jpg" in css for css in finding.exclude)


def test_repeated_images_are_fetched_first_and_then_some_of_each_page() -> None:
    pages = _pages(lambda at: '<img src="/static/fair.jpg">')

    found = addresses_of(SCHEMA, pages, most=1 + PAGES)

    assert found[0] == f"{SITE}/static/fair.jpg"
    assert set(found[1:]) == {f"{SITE}/m/{at}-a.jpg" for at in range(PAGES)}
