"""No link of the documentation leads nowhere, and the site has every page."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, anchors, links, name_of, pages, prose, slug_of

MKDOCS = (ROOT / "mkdocs.yml").read_text("utf-8")


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.is_file(), link
        assert target.is_relative_to(DOCS) or page.name == "README.md", f"{link}: not in the site"
        if anchor:
            assert anchor in anchors(target), link


def test_every_page_is_in_the_navigation_once() -> None:
    named = re.findall(r": ([\w/-]+\.md)$", MKDOCS, re.MULTILINE)
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_an_index_page_is_the_first_of_its_section() -> None:
    # The site gives it no entry of its own: it is what the title of the section leads to.
    lines = MKDOCS.partition("\nnav:\n")[2].splitlines()
    for before, line in pairwise(lines):
        if line.endswith("/index.md"):
            assert before.endswith(":"), line.strip()


# What MkDocs takes for a fenced block; it shows any other info string as text.
INFO = re.compile(r'(\w+( [\w-]+="[^"]*")*)?')


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_page_can_be_rendered_and_loads_nothing_from_outside(page: Path) -> None:
    text = page.read_text("utf-8")
    fences = re.findall(r"^ *```(.*)$", text, re.MULTILINE)
    assert [each for each in fences if not INFO.fullmatch(each.strip())] == []
    assert re.findall(r"!\[[^\]]*\]\([a-z]+:|<(?:script|iframe|link|img)\b", prose(page)) == []


@pytest.mark.parametrize(
    ("heading", "slug"),
    [
        ("`ctx.fetch`", "ctxfetch"),
        ("Hooks: who is told", "hooks-who-is-told"),
        ("2026-11-16: A claim skips what is locked", "2026-11-16-a-claim-skips-what-is-locked"),
    ],
)
def test_headings_have_the_anchors_that_github_gives_them(heading: str, slug: str) -> None:
    assert slug_of(heading) == slug
