"""Write the figures of the corpus into docs/agents.md: python -m tests.agents.corpus.table

All sixty sites, on pages that nothing was learned from, before and after each was redesigned. With extruct
installed its row is measured, too; without it, the row that is there stays.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.agents.corpus.measure import Figures, Read, by_schema, learned, measure, samples_of
from tests.agents.corpus.peers import by_extruct, by_hand
from tests.agents.corpus.sites import FAMILY_NAMES, VARIANTS, Site, site

PAGE = Path(__file__).parents[3] / "docs" / "agents.md"
FIRST, LAST = "<!-- corpus -->\n", "<!-- end of corpus -->"
HEAD = (
    "| extracted by | precision before | recall before | precision after a redesign | recall after |\n"
    "|---|---|---|---|---|\n"
)
# The site agents, by the half of the sites: the one by which the method was chosen, and the other one.
HALVES = {
    "site agents, 30 sites that the method was chosen by": (0, 1, 2),
    "site agents, 30 other sites": (3, 4, 5),
}
OLD = "site agents with the schema from before, 60 sites"
EXTRUCT, HAND = "extruct, mapped to the fields, 60 sites", "a parser written by hand, 60 sites"


@dataclass
class Row:
    """Figures before and after the redesigns."""

    before: Figures = field(default_factory=Figures)
    after: Figures = field(default_factory=Figures)

    def words(self, name: str) -> str:
        figures = (
            self.before.precision,
            self.before.recall,
            self.after.precision,
            self.after.recall,
        )
        return f"| {name} | {' | '.join(f'{each:.3f}' for each in figures)} |\n"


def _unseen(made: Site) -> frozenset[str]:
    return frozenset(each.url for each in samples_of(made))


def half(variants: Sequence[int]) -> tuple[Row, Row]:
    """The mapper learns each site, and learns it again by what was extracted before the redesign.

    The second row is what comes of leaving the schema as it was.
    """
    new, old = Row(), Row()
    for made, redesigned in _sites(variants):
        schema = learned(made)
        read = by_schema(schema)
        before = measure(made, read, _unseen(made))
        new.before.add(before)
        old.before.add(before)
        old.after.add(measure(redesigned, read, _unseen(redesigned)))
        records = {url: found for url, html in made.pages.items() if (found := read(url, html))}
        again = by_schema(learned(redesigned, records))
        new.after.add(measure(redesigned, again, _unseen(redesigned)))
    return new, old


def peer(read: Read) -> Row:
    """What knows no schema, on the same pages."""
    row = Row()
    for made, redesigned in _sites(range(VARIANTS)):
        row.before.add(measure(made, read, _unseen(made)))
        row.after.add(measure(redesigned, read, _unseen(redesigned)))
    return row


def _sites(variants: Iterable[int]) -> Iterator[tuple[Site, Site]]:
    for family in range(len(FAMILY_NAMES)):
        for variant in variants:
            yield site(family, variant), site(family, variant, is_redesigned=True)


def rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    left = Row()
    for name, variants in HALVES.items():
        found[name], old = half(variants)
        left.before.add(old.before)
        left.after.add(old.after)
    found[OLD], found[HAND] = left, peer(by_hand)
    if importlib.util.find_spec("extruct") is not None:
        found[EXTRUCT] = peer(by_extruct)
    return found


def table(text: str, found: dict[str, Row]) -> str:
    """The page with the rows that were measured; others stay as they are."""
    before, rest = text.split(FIRST)
    known, after = rest.split(LAST)
    lines = {line.split(" | ")[0].strip("| "): f"{line}\n" for line in known.splitlines()}
    made = "".join(
        found[name].words(name) if name in found else lines.get(name, "")
        for name in (*HALVES, OLD, EXTRUCT, HAND)
    )
    return f"{before}{FIRST}\n{HEAD}{made}\n{LAST}{after}"


if __name__ == "__main__":
    PAGE.write_text(table(PAGE.read_text("utf-8"), rows()), encoding="utf-8")
