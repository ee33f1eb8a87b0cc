"""Clusters: rows of one company, joined from the likeliest pair on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import itemgetter

import msgspec

from penstock.builder.company import EVIDENCE, Company
from penstock.builder.matching.blocks import pairs
from penstock.builder.matching.scores import THRESHOLD, points, score
from penstock.builder.matching.traits import Traits, traits_of

# Two clusters stay apart if two of their rows are this unlikely to be one company.
LEAST_POINTS_WITHIN = -3.0
# So many pairs of two clusters are looked at; larger clusters are looked at through these.
MOST_LOOKED_AT = 200


class Cluster(msgspec.Struct, frozen=True):
    """Rows of one company, in a fixed order, and the weakest score that joined them (1 for a lone row)."""

    members: tuple[Company, ...]
    weakest: float = 1.0


def match(companies: Sequence[Company], threshold: float = THRESHOLD) -> list[Cluster]:
    """The clusters, in the order of their first rows; the order in which rows are given changes nothing."""
    rows = sorted(companies, key=_order)
    everybody = [traits_of(row) for row in rows]
    found = ((score(everybody[one], everybody[two]), one, two) for one, two in pairs(everybody))
    likely = sorted(
        (each for each in found if each[0] >= threshold), key=lambda e: (-e[0], e[1], e[2])
    )
    groups = _Groups(everybody)
    for value, one, two in likely:
        groups.join(one, two, value)
    return [
        Cluster(tuple(rows[at] for at in members), weakest) for members, weakest in groups.all()
    ]


def _order(company: Company) -> bytes:
    said = {name: value for name, value in company.items() if name != EVIDENCE}
    return msgspec.json.encode(said, order="sorted")


class _Groups:
    """Rows that were joined. A group bears the number of one of its rows."""

    def __init__(self, everybody: Sequence[Traits]) -> None:
        self._everybody = everybody
        self._group = list(range(len(everybody)))
        self._members = {at: [at] for at in range(len(everybody))}
        self._weakest: dict[int, float] = {}
        self._ids = {
            at: {(one.country, one.legal_id)} if one.legal_id else set()
            for at, one in enumerate(everybody)
        }

    def join(self, one: int, two: int, value: float) -> None:
        """Make one group of the two that these rows are in, unless a pair of their rows speaks against it."""
        kept, gone = self._group[one], self._group[two]
        if len(self._members[kept]) < len(self._members[gone]):
            kept, gone = gone, kept
        if kept == gone or not self._may_join(kept, gone):
            return
        for at in self._members[gone]:
            self._group[at] = kept
        self._members[kept] += self._members.pop(gone)
        known = (self._weakest.get(kept, 1.0), self._weakest.pop(gone, 1.0), value)
        self._weakest[kept] = min(known)
        self._ids[kept] |= self._ids.pop(gone)

    def _may_join(self, kept: int, gone: int) -> bool:
        ids = self._ids[kept] | self._ids[gone]
        if len(ids) > len({country for country, _ in ids}):
            return False
        ours, theirs = self._members[kept], self._members[gone]
        looked_at = itertools.islice(itertools.product(ours, theirs), MOST_LOOKED_AT)
        each = self._everybody
        return all(points(each[one], each[two]) >= LEAST_POINTS_WITHIN for one, two in looked_at)

    def all(self) -> list[tuple[list[int], float]]:
        made = [
            (sorted(members), self._weakest.get(group, 1.0))
            for group, members in self._members.items()
        ]
        return sorted(made, key=itemgetter(0))
