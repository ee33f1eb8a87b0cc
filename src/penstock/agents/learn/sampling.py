"""Sampling: which pages of a site to learn from, and which to keep for checking what was learned."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from penstock.agents.learn.addresses import patterns_of

PER_TYPE = 12
MOST_TYPES = 8
HELD_OUT = 6


def sample_of(urls: Iterable[str], salt: str = "", per_type: int = PER_TYPE) -> list[str]:
    """Some addresses of each type of page, spread over the site; the same ones whenever it is asked."""
    groups = patterns_of(urls)
    ranked = sorted(groups.items(), key=lambda each: (-len(each[1]), each[0]))[:MOST_TYPES]
    chosen: list[str] = []
    for _, members in ranked:
        chosen += spread(members, salt)[:per_type]
    return chosen


def held_out_of(
    urls: Iterable[str],
    pattern_members: Collection[str],
    sampled: Collection[str],
    most: int = HELD_OUT,
) -> list[str]:
    """Pages of a type that were not learned from; where there are none, some that were."""
    others = [url for url in dict.fromkeys(urls) if url in pattern_members and url not in sampled]
    return spread(others or pattern_members, "held out")[:most]


def spread(urls: Iterable[str], salt: str) -> list[str]:
    """In an order that has nothing to do with the site's own."""
    return sorted(
        dict.fromkeys(urls), key=lambda url: hashlib.sha256(f"{salt} {url}".encode()).digest()
    )
