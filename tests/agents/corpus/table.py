"""Write the figures of the corpus into docs/agents.md: python -m tests.agents.corpus.table

All sixty sites, on pages that nothing was learned from, before and after each was redesigned. With extruct
installed its row is measured, too; without it, the row that is there stays.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.agents.schema import SiteSchema
from tests.agents.corpus.measure import Figures, Read, by_schema, learned, measure, samples_of
from tests.agents.corpus.peers import by_extruct, by_hand
from tests.agents.corpus.sites import FAMILY_NAMES, VARIANTS, Site, site

PAGE = Path(__file__).parents[3] / "docs" / "agents.md"
FIRST, LAST = "<!-- corpus -->\n", "<!-- end of corpus -->"
HEAD = (
    "| extracted by | precision before | recall before | precision after a redesign | recall after |\n"
    "|---|---|---|---|---|\n"
)
AGENTS, OLD = (
    "site agents, one run of the mapper after the redesign",
    "site agents, schema from before",
)
EXTRUCT, HAND = "extruct, mapped to the fields", "a parser written by hand"


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


def add_agents(row: Row, old: Row, made: Site, redesigned: Site) -> None:
    """The mapper learns the site, and learns it again by what was extracted before the redesign."""
    schema = learned(made)
    read = by_schema(schema)
    row.before.add(measure(made, read, _unseen(made)))
    old.before.add(measure(made, read, _unseen(made)))
    old.after.add(measure(redesigned, read, _unseen(redesigned)))
    records = {url: found for url, html in made.pages.items() if (found := read(url, html))}
    again: SiteSchema = learned(redesigned, records)
    row.after.add(measure(redesigned, by_schema(again), _unseen(redesigned)))


def add_peer(row: Row, read: Read, made: Site, redesigned: Site) -> None:
    row.before.add(measure(made, read, _unseen(made)))
    row.after.add(measure(redesigned, read, _unseen(redesigned)))


def rows(variants: range = range(VARIANTS)) -> dict[str, Row]:
    found: dict[str, Row] = {AGENTS: Row(), OLD: Row(), HAND: Row()}
    peers: dict[str, Callable[..., object]] = {HAND: by_hand}
    if importlib.util.find_spec("extruct") is not None:
        found[EXTRUCT] = Row()
        peers[EXTRUCT] = by_extruct
    for family in range(len(FAMILY_NAMES)):
        for variant in variants:
            made, redesigned = site(family, variant), site(family, variant, is_redesigned=True)
            add_agents(found[AGENTS], found[OLD], made, redesigned)
            for name, read in peers.items():
                add_peer(found[name], read, made, redesigned)  # type: ignore[arg-type]
    return found


def table(text: str, found: dict[str, Row]) -> str:
    """The page with the rows that were measured; others stay as they are."""
    before, rest = text.split(FIRST)
    known, after = rest.split(LAST)
    lines = {line.split(" | ")[0].strip("| "): f"{line}\n" for line in known.splitlines()}
    order = (AGENTS, OLD, EXTRUCT, HAND)
    made = "".join(
        found[name].words(name) if name in found else lines.get(name, "") for name in order
    )
    return f"{before}{FIRST}\n{HEAD}{made}\n{LAST}{after}"


if __name__ == "__main__":
    PAGE.write_text(table(PAGE.read_text("utf-8"), rows()), encoding="utf-8")
