"""The rhythm of a feed: how long there is nothing new, as it says itself or as it was seen to be."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import pairwise
from statistics import median

from penstock.connectors.feed.entries import Entries

SHORTEST_S = 300.0
LONGEST_S = 86_400.0
# A feed that says nothing is looked at four times in the time between two of its entries.
LOOKS = 4
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s{0,9}=\s{0,9}\"?([0-9]{1,9})")


def rest_s(found: Entries, headers: dict[str, str]) -> float:
    """For how long the feed need not be asked again: the longest of what it says, else what was observed."""
    said = [found.ttl_s or 0.0, _max_age_s(headers.get("cache-control", ""))]
    longest = max(said) or _observed_s(found)
    return min(LONGEST_S, max(SHORTEST_S, longest))


def _max_age_s(header: str) -> float:
    age = _MAX_AGE.search(header[:1000].lower())
    return float(age[1]) if age else 0.0


def _observed_s(found: Entries) -> float:
    times = sorted(
        datetime.fromisoformat(entry.published).timestamp()
        for entry in found.entries[:100]
        if entry.published
    )
    gaps = [after - before for before, after in pairwise(times) if after > before]
    return median(gaps) / LOOKS if gaps else 0.0
