"""A labelled set for matching: noisy rows of known companies, and what a threshold comes to on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb

import msgspec

from penstock.builder.city.lists import listed
from penstock.builder.city.world import World
from penstock.builder.company import Company
from penstock.builder.enrich.address import with_address
from penstock.builder.matching import match
from penstock.builder.normalize.standardize import standardize

# The halves are worlds of their own: no company of one is in the other.
DEVELOPMENT_SEED, HELD_OUT_SEED = 101, 202
SIZE = 800
THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.999)
WANTED_PRECISION = 0.999
LABEL = "key"


class Measured(msgspec.Struct, frozen=True):
    """Of pairs of rows: how many that were joined are one company, and how many of those were joined."""

    threshold: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def labelled_rows(seed: int, size: int = SIZE) -> list[Company]:
    """Rows of all lists of a world as companies; each has the number of its true company as `key`."""
    found = []
    for name, rows in listed(World(seed, size)).items():
        for row, number in rows:
            company = standardize(row, country="US", source=f"dump:{name}") if number >= 0 else None
            if company is not None:
                found.append({**with_address(company), LABEL: number})
    return found


def measure(rows: Sequence[Company], threshold: float) -> Measured:
    """Precision and recall over all pairs of rows."""
    clusters = match(rows, threshold)
    joined = sum(comb(len(cluster.members), 2) for cluster in clusters)
    per_company = Counter(row[LABEL] for row in rows)
    true = sum(comb(count, 2) for count in per_company.values())
    right = sum(
        comb(count, 2)
        for cluster in clusters
        for count in Counter(row[LABEL] for row in cluster.members).values()
    )
    return Measured(threshold, right / joined if joined else 1.0, right / true if true else 1.0)


def chosen_threshold(rows: Sequence[Company]) -> float:
    """The lowest threshold that joins next to nothing wrong.

    A wrong join loses a company without a trace; one that was missed is counted as a likely duplicate.
    """
    return next(each for each in THRESHOLDS if measure(rows, each).precision >= WANTED_PRECISION)
