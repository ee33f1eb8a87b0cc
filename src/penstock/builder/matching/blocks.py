"""Blocks: rows that share something telling, so that only those are compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from penstock.builder.matching.traits import Traits

# In a larger block only neighbours in the order of names are compared.
MOST_IN_BLOCK = 40
NEIGHBOURS = 8
_PREFIX = 5


def keys(traits: Traits) -> Iterator[str]:
    """The blocks that a company is in: two rows of one company share at least one, if they share anything."""
    if traits.legal_id:
        yield f"id {traits.country} {traits.legal_id}"
    if traits.phone:
        yield f"phone {traits.phone}"
    if traits.domain:
        yield f"domain {traits.domain}"
    if traits.email:
        yield f"email {traits.email}"
    if traits.postcode and traits.street:
        yield f"street {traits.postcode} {traits.street[:12]}"
    for word in traits.words[:3]:
        if traits.postcode:
            yield f"postcode {traits.postcode} {word[:_PREFIX]}"
        if traits.city:
            yield f"city {traits.city[:12]} {word[:_PREFIX]}"
    if len(traits.words) > 1:
        yield f"name {' '.join(sorted(traits.words))[:24]}"


def pairs(everybody: Sequence[Traits]) -> Iterator[tuple[int, int]]:
    """Pairs of places in the list, each once: all of a small block, neighbours of a large one.

    So the number of pairs grows with the number of rows, however many of them share a block.
    """
    blocks: dict[str, list[int]] = defaultdict(list)
    for at, traits in enumerate(everybody):
        for key in dict.fromkeys(keys(traits)):
            blocks[key].append(at)
    seen: set[tuple[int, int]] = set()
    for members in blocks.values():
        for pair in _within(members, everybody):
            if pair not in seen:
                seen.add(pair)
                yield pair


def _within(members: list[int], everybody: Sequence[Traits]) -> Iterator[tuple[int, int]]:
    reach = len(members)
    if reach > MOST_IN_BLOCK:
        members = sorted(members, key=lambda at: (everybody[at].name, at))
        reach = NEIGHBOURS + 1
    for at, first in enumerate(members):
        for second in members[at + 1 : at + reach]:
            yield (first, second) if first < second else (second, first)
