"""Near: an interval that is shorter around moments that somebody has announced."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.schedules.every import Every, interval_words
from penstock.settings.values import NearSettings

if TYPE_CHECKING:
    from penstock.schedules.schedule import Schedule

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Near:
    """Due by its interval, and by a shorter one from a while before to a while after each announced moment.

    The beginning of such a span is due itself, so no interval leads over it. The longer interval is
    counted from the last moment of the span.
    """

    every: Every
    near: NearSettings
    # In order, apart from each other.
    spans: tuple[Span, ...] = ()

    def around(self, moments: Iterable[float]) -> Near:
        return replace(self, spans=spans_around(moments, self.near.window_s))

    def next_due(self, after: float) -> float | None:
        due = [self.every.next_due(after)]
        begun = bisect_right(self.spans, (after, math.inf))
        if begun and after + self.near.every_s <= self.spans[begun - 1][1]:
            due.append(after + self.near.every_s)
        if begun < len(self.spans):
            due.append(self.spans[begun][0])
        return min(each for each in due if each is not None)

    def words(self) -> str:
        often, window = (interval_words(each) for each in (self.near.every_s, self.near.window_s))
        within = window if window[0].isdigit() else f"1 {window}"
        return f"{self.every.words()}, every {often} within {within} of an announced moment"


def near(schedule: Schedule, moments: Iterable[float]) -> Schedule:
    """This schedule, with these moments announced, if it goes by any."""
    return schedule.around(moments) if isinstance(schedule, Near) else schedule


def spans_around(moments: Iterable[float], window_s: float) -> tuple[Span, ...]:
    """From so long before to so long after each moment; those that touch are one."""
    spans: list[Span] = []
    for at in sorted(moments):
        begin, end = at - window_s, at + window_s
        if spans and begin <= spans[-1][1]:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((begin, end))
    return tuple(spans)
