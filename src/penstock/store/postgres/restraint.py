"""Restraint: a worker that is far from the database leaves most of the work to others.

A turn holds locks over several statements, each of which takes as long as the way to the server and back,
and whoever wants the same lanes or runs waits meanwhile; and what it has begun keeps its places in the
lane until the news of its end has arrived. Over a slow link that is seconds. So who has one, and is not
alone, claims nothing for a while after each turn, and never fills a lane beyond its half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from penstock.gates.lane import LaneLimits

FAR_S = 0.02
# So many times as long as its turn took.
REST = 2.0


class Way(Protocol):
    """The way to the database: how long it is, and who else goes it."""

    @property
    def round_trip_s(self) -> float: ...

    def has_company(self, worker: str) -> bool: ...


def is_called_for(way: Way, worker: str) -> bool:
    """Whether the way is long, and somebody else may be waiting at its end."""
    return way.round_trip_s >= FAR_S and way.has_company(worker)


def halved(limits: Mapping[int, LaneLimits]) -> dict[int, LaneLimits]:
    return {
        source_id: replace(
            own, concurrency=max(1, own.concurrency // 2), candidates=max(1, own.candidates // 2)
        )
        for source_id, own in limits.items()
    }
