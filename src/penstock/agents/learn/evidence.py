"""Evidence: where a field may stand, and what was found there on each page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from selectolax.lexbor import LexborNode

from penstock.agents.learn.page import Page
from penstock.agents.learn.reading import is_same, value_at
from penstock.agents.learn.selectors import raw_values, ways_to
from penstock.agents.learn.vocabulary import Field

MOST_WAYS = 60


@dataclass(frozen=True, slots=True)
class Evidence:
    """One selector for one field: its values page by page, and how far its kind is trusted."""

    field: Field
    selector: str
    trust: float
    values: tuple[Any, ...]
    # On how many pages the selector found something, a value or not.
    touched: int = 0

    @property
    def present(self) -> int:
        return sum(value is not None for value in self.values)

    @property
    def coverage(self) -> float:
        return self.present / max(1, len(self.values))

    @property
    def valid(self) -> float:
        """The share of what it found that is a value of its kind."""
        return self.present / self.touched if self.touched else 0.0

    @property
    def varies(self) -> bool:
        return len({str(value) for value in self.values if value is not None}) > 1

    def shared(self, other: Evidence) -> int:
        return sum(a is not None and b is not None for a, b in self._beside(other))

    def agreement(self, other: Evidence) -> float:
        """The share of pages with both values on which they are the same; 1 where there is no such page."""
        both = [(a, b) for a, b in self._beside(other) if a is not None and b is not None]
        return sum(is_same(self.field, a, b) for a, b in both) / len(both) if both else 1.0

    def _beside(self, other: Evidence) -> Iterator[tuple[Any, Any]]:
        return zip(self.values, other.values, strict=True)


def evidence_of(pages: Sequence[Page], about: Field, selector: str, trust: float) -> Evidence:
    """What a selector says on these pages."""
    values = tuple(value_at(page, selector, about) for page in pages)
    touched = sum(bool(raw_values(page, selector)) for page in pages)
    return Evidence(about, selector, trust, values, touched)


Targets = dict[int, LexborNode]


def best_way(
    pages: Sequence[Page],
    targets: Targets,
    steady: frozenset[str],
    made: Callable[[str], str] = "css:{}".format,
) -> str | None:
    """The first selector that finds just these nodes; else the one that is right most, and never wrong."""
    best, best_right = None, 0
    for css in _candidates(targets, steady):
        right = _right(pages, targets, css)
        if right == len(targets):
            return made(css)
        if right > best_right:
            best, best_right = css, right
    return made(best) if best is not None and best_right * 2 >= len(targets) else None


def _candidates(targets: Targets, steady: frozenset[str]) -> Iterable[str]:
    """Ways to the first, the middle and the last of the nodes, those that they share first."""
    nodes = list(targets.values())
    some = [nodes[0], nodes[len(nodes) // 2], nodes[-1]]
    counts: Counter[str] = Counter()
    order: dict[str, int] = {}
    for node in some:
        for at, way in enumerate(dict.fromkeys(ways_to(node, steady))):
            counts[way] += 1
            order.setdefault(way, at)
    return sorted(order, key=lambda way: (-counts[way], order[way]))[:MOST_WAYS]


def _right(pages: Sequence[Page], targets: Targets, css: str) -> int:
    """On how many pages it finds just the node that is meant; 0 if it finds another anywhere."""
    right = 0
    for at, page in enumerate(pages):
        found = page.css(css)
        if at not in targets:
            if found:
                return 0
            continue
        if any(node.mem_id != targets[at].mem_id for node in found):
            return 0
        right += bool(found)
    return right
