"""A metric family: its name, what it says, where it is from, and how its samples are made of the facts.

Labels are bounded. Sources beyond a cap share the label `other`, and so do other values (stages, kinds of
failures, hosts) beyond theirs. Keys, addresses and ids are never labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from operator import itemgetter
from typing import Literal

import msgspec

from penstock.metrics.facts import Facts

Kind = Literal["counter", "gauge", "histogram", "summary"]
OTHER = "other"
# Of every label but the source, so many values have a series of their own.
MOST_VALUES = 50
# The values of the labels, and the sample.
Sample = tuple[tuple[str, ...], float]
# The values of the labels, how many are in each bucket, and the sum of the values.
HistogramSample = tuple[tuple[str, ...], Mapping[str, float], float]
# The values of the labels, how many there were, and their sum.
SummarySample = tuple[tuple[str, ...], float, float]


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """`derived` says where it is from, for the reader. `samples` are made in the shape of its kind."""

    name: str
    kind: Kind
    help: str
    derived: str
    labels: tuple[str, ...] = ()
    samples: Callable[[Scrape], Iterable[Sample | HistogramSample | SummarySample]]
    # The measure whose buckets a histogram has.
    buckets: str = ""

    @property
    def shown_name(self) -> str:
        """As it is queried: the name of a counter ends in _total."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


class Scrape:
    """The facts with bounded labels."""

    def __init__(self, facts: Facts, most_sources: int) -> None:
        self.facts = facts
        # By their age: a source that is added later takes nobody's place, so that sums never fall.
        self._named = {each.key for each in facts.sources[:most_sources]}

    def source(self, key: str) -> str:
        """The label of a source."""
        return key if key in self._named else OTHER

    @cached_property
    def _totals(self) -> dict[str, dict[tuple[str, str], float]]:
        """By measure, source and label.

        Always added up in the same order: rounding must not make a sum fall.
        """
        found: dict[str, dict[tuple[str, str], float]] = {}
        of_sources = [each for each in self.facts.totals if each[0] is not None]
        for source, measure, label, value in sorted(of_sources, key=itemgetter(0, 1, 2)):
            place = (source if source in self._named else OTHER, label)
            sums = found.setdefault(measure, {})
            sums[place] = sums.get(place, 0.0) + value
        return found

    def by_source(self, measure: str) -> dict[tuple[str], float]:
        """A sum without labels: by source; 0 where there is none yet, so that the first is seen to be one."""
        found = {(self.source(each.key),): 0.0 for each in self.facts.sources}
        for (source, _), value in self._totals.get(measure, {}).items():
            found[(source,)] = found.get((source,), 0.0) + value
        return found

    def by_label(self, measure: str, known: Iterable[str] = ()) -> dict[tuple[str, str], float]:
        """By source and label; 0 of the known labels where there is none yet."""
        sources = {self.source(each.key) for each in self.facts.sources}
        found = {(source, label): 0.0 for source in sorted(sources) for label in known}
        return merged({**found, **self._totals.get(measure, {})}, 1)

    def buckets(self, measure: str) -> dict[str, dict[str, float]]:
        """The buckets of a histogram, by source."""
        found: dict[str, dict[str, float]] = {}
        for (source, label), value in self._totals.get(measure, {}).items():
            found.setdefault(source, {})[label] = value
        return found

    def of_all(self, measure: str) -> dict[str, float]:
        """By label, of what belongs to no single source."""
        return {
            label: value
            for source, each, label, value in self.facts.totals
            if source is None and each == measure
        }


def merged(values: Mapping[tuple[str, str], float], place: int) -> dict[tuple[str, str], float]:
    """With at most so many values of the label at this place: the rest is summed as `other`."""
    allowed = bounded(labels[place] for labels in values)
    found: dict[tuple[str, str], float] = {}
    for labels, value in values.items():
        kept = [*labels]
        kept[place] = labels[place] if labels[place] in allowed else OTHER
        where = (kept[0], kept[1])
        found[where] = found.get(where, 0.0) + value
    return found


def bounded(values: Iterable[str]) -> frozenset[str]:
    """The values that have a series of their own: the first ones by name."""
    return frozenset(sorted(set(values))[:MOST_VALUES])
