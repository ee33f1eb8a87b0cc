"""The site that `make docs` builds asks for nothing outside, and renders every block and link."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

MKDOCS = ROOT / ".docs" / "venv" / "bin" / "mkdocs"
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
OUTSIDE = re.compile(r"(?:[a-z]+:)?//")
IN_STYLES = re.compile(r"(?:url\(|@import)\s*[\"']?((?:[a-z]+:)?//[^\"')]+)")
# What MkDocs leaves of a block whose info string it can't read.
NOT_RENDERED = re.compile(r"```|<code>\w+ title=")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not MKDOCS.exists():
        pytest.skip(
            "`make docs` has not installed MkDocs here; links and blocks are tested without it"
        )
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [MKDOCS, "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


class Loads(HTMLParser):
    """What a browser loads to show a page, in the order of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADED.get(tag, ""))
        is_loaded = tag != "link" or "canonical" not in (dict(attrs).get("rel") or "")
        if address and is_loaded:
            self.found.append(address)


def outside(text: str) -> Iterator[str]:
    page = Loads()
    page.feed(text)
    yield from (address for address in page.found if OUTSIDE.match(address))
    yield from IN_STYLES.findall(text)


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        "<style>@import 'https://fonts.example/css'; a { background: url(//cdn.example/a.png) }</style>",
    ],
)
def test_page_that_asks_for_something_outside_is_found(text: str) -> None:
    assert list(outside(text))


def test_no_page_asks_for_anything_outside(site: Path) -> None:
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > 30
    assert {str(each): found for each in files if (found := [*outside(each.read_text())])} == {}


def test_every_block_is_rendered(site: Path) -> None:
    broken = [page for page in site.rglob("*.html") if NOT_RENDERED.search(page.read_text())]
    assert broken == []
    # A diagram would be drawn by a script from outside.
    assert "mermaid" not in (site / "states.html").read_text()
