"""The pages of the documentation, their code blocks and their links."""

from __future__ import annotations

import re
import runpy
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^( *)```(.*)$")
HEADING = re.compile(r"^#{1,6} (.*?) *$")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str  # "" for commands
    attributes: dict[str, str]
    text: str

    @property
    def title(self) -> str:
        return self.attributes.get("title", "")

    @property
    def reason(self) -> str:
        """Why it can't run here: `not-run="needs a paid account"` in its info string."""
        return self.attributes.get("not-run", "")

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    return list(_blocks(name_of(page), page.read_text("utf-8")))


def all_blocks() -> list[Block]:
    return [block for page in pages() for block in blocks(page)]


def _blocks(page: str, text: str) -> Iterator[Block]:
    begun: tuple[int, str, str] | None = None
    held: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fence and begun is None:
            begun, held = (number, fence[1], fence[2].strip()), []
        elif begun and fence and fence[1] == begun[1] and not fence[2].strip():
            language, _, rest = begun[2].partition(" ")
            attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', rest))
            yield Block(page, begun[0], language, attributes, textwrap.dedent("\n".join(held)))
            begun = None
        elif begun:
            held.append(line)
    assert begun is None, f"{page}:{begun and begun[0]}: a code block is not closed"


def names_of(text: str, folder: Path) -> dict[str, Any]:
    """What a module with this text defines."""
    (folder / "block.py").write_text(text)
    return runpy.run_path(str(folder / "block.py"))


def prose(page: Path) -> str:
    """A page without its code blocks."""
    kept, inside = [], False
    for line in page.read_text("utf-8").splitlines():
        if FENCE.match(line):
            inside = not inside
        kept.append("" if inside or FENCE.match(line) else line)
    return "\n".join(kept)


def links(page: Path) -> list[str]:
    return LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page)))


@cache
def anchors(page: Path) -> frozenset[str]:
    """What GitHub and the site call the headings of a page."""
    found: list[str] = []
    for line in prose(page).splitlines():
        if heading := HEADING.match(line):
            slug = slug_of(heading[1])
            same = sum(each == slug or each.startswith(f"{slug}_") for each in found)
            found.append(f"{slug}_{same}" if same else slug)
    return frozenset(found)


def slug_of(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
