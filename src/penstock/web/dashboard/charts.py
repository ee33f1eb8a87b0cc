"""Charts as data: drawn as SVG by the server, and drawn again with a cursor where there is JavaScript.

In:    points of time and values.
Out:   shapes in the coordinates of a view box, and the same figures as JSON for uPlot.
Never: markup; the templates have that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from penstock.web.dashboard.words import clock, compact, day, moment, number

WIDTH, HEIGHT = 600.0, 100.0
# The share of its place that a bar fills.
FILLED = 0.8


class Shape(NamedTuple):
    """A bar, in the coordinates of the view box."""

    x: float
    y: float
    width: float
    height: float
    tone: str
    title: str


class Series(msgspec.Struct, frozen=True):
    """One row of figures; `tone` is the class of its colour."""

    label: str
    tone: str
    values: list[float | None]


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Figures over time, or one after the other where they have labels: bars that are stacked, or lines."""

    title: str
    kind: Literal["bars", "lines"]
    x: list[float]
    series: list[Series]
    unit: str = ""
    labels: list[str] = []
    # What is said instead of a chart without figures.
    nothing: str = "No figures yet."

    @property
    def is_empty(self) -> bool:
        return not any(value is not None for each in self.series for value in each.values)

    @property
    def ends(self) -> tuple[str, str]:
        """What stands at the two ends of its axis."""
        if self.labels:
            return f"run {self.labels[0]}", f"run {self.labels[-1]}"
        first, last = self.x[0], self.x[-1]
        return f"{day(first)} {clock(first)}", f"{day(last)} {clock(last)}"

    @property
    def top(self) -> float:
        """The highest value that is drawn."""
        if self.kind == "bars":
            return max((sum(v or 0.0 for v in column) for column in self._columns()), default=0.0)
        return max((v for each in self.series for v in each.values if v is not None), default=0.0)

    @property
    def bars(self) -> list[Shape]:
        """The bars, those of one moment upon each other."""
        slot = WIDTH / max(len(self.x), 1)
        scale = HEIGHT / (self.top or 1.0)
        found = []
        for index, column in enumerate(self._columns()):
            base = HEIGHT
            for each, value in zip(self.series, column, strict=True):
                height = (value or 0.0) * scale
                if height:
                    base -= height
                    place = f"run {self.labels[index]}" if self.labels else moment(self.x[index])
                    title = f"{place}: {number(value)} {each.label}"
                    found.append(Shape(index * slot, base, slot * FILLED, height, each.tone, title))
        return found

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """Each line: its tone, its label, and the points of its polyline."""
        return [(each.tone, each.label, self._points(each.values)) for each in self.series]

    @property
    def rows(self) -> list[tuple[str, list[float | None]]]:
        """The same as a table, newest first."""
        names = self.labels or [moment(at) for at in self.x]
        return [*zip(names, map(list, self._columns()), strict=True)][::-1]

    def as_json(self) -> str:
        """For the chart that the browser draws."""
        figures: dict[str, Any] = {
            "kind": self.kind,
            "unit": self.unit,
            "x": self.x,
            "labels": self.labels,
            "series": [[each.label, each.tone, each.values] for each in self.series],
        }
        return compact(figures)

    def _columns(self) -> list[tuple[float | None, ...]]:
        return [*zip(*(each.values for each in self.series), strict=True)]

    def _points(self, values: Sequence[float | None]) -> str:
        xs = [float(at) for at in range(len(self.x))] if self.labels else self.x
        first, last = (xs[0], xs[-1]) if xs else (0.0, 0.0)
        across, up = WIDTH / ((last - first) or 1.0), HEIGHT / (self.top or 1.0)
        points = [
            f"{(x - first) * across:.1f},{HEIGHT - value * up:.1f}"
            for x, value in zip(xs, values, strict=True)
            if value is not None
        ]
        # A line of one point is a dot.
        return " ".join(points * 2 if len(points) == 1 else points)


def stacked(
    title: str,
    x: Sequence[float],
    tones: Mapping[str, str],
    figures: Mapping[str, Mapping[float, float]],
) -> Chart:
    """Bars of several labels at the same moments; what a label has not at a moment is 0.

    Without any figures there is nothing to draw.
    """
    x = x if any(figures.values()) else ()
    series = [
        Series(label, tone, [figures.get(label, {}).get(at, 0.0) for at in x])
        for label, tone in tones.items()
    ]
    return Chart(title=title, kind="bars", x=[*x], series=series)


class Cell(NamedTuple):
    """One place of a heat map: its column and row, how strong it is (0 to 4), and what it says."""

    column: int
    row: int
    tone: str
    title: str


class Heat(msgspec.Struct, frozen=True, kw_only=True):
    """A heat map: columns and rows with their names."""

    title: str
    columns: list[str]
    rows: list[str]
    cells: list[Cell]


def strength(value: float, most: float) -> int:
    """How strong a cell is, of 0 to 4; anything at all is at least 1."""
    if value <= 0:
        return 0
    return min(4, 1 + int(4 * value / (most or 1.0) * 0.999))
