"""docs/scale.md: what was measured, and what is projected from it; the words are written by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "scale.md"
FIRST, LAST = "<!-- measured -->\n", "<!-- end of measured -->"
JOBS = (10_000, 1_000_000, 10_000_000, 50_000_000)
SOURCES = (10, 1_000, 10_000)
KINDS = {"sqlite": "SQLite", "postgres": "Postgres"}
FIGURES = {
    "turn_ms": "turn",
    "status_ms": "status",
    "explain_ms": "explain",
    "overview_ms": "overview",
    "page_ms": "slowest page",
    "prune_ms": "retention, 1,000 rows",
}
Known = dict[tuple[str, int, int], dict[str, Any]]


def write(found: list[dict[str, Any]]) -> None:
    """Put the table of these results into the page, and draw them where there is enough to draw."""
    known = {(each["kind"], each["jobs"], each["sources"]): each for each in found}
    text = PAGE.read_text("utf-8")
    before, rest = text.split(FIRST)
    table = "\n".join(lines(known))
    PAGE.write_text(f"{before}{FIRST}\n{table}\n\n{LAST}{rest.split(LAST)[1]}", "utf-8")
    for name in FIGURES:
        _draw(name, known)


def lines(known: Known) -> Iterator[str]:
    """A line for each size that was measured or can be projected; the others are counted."""
    yield f"| database | finished jobs | sources | {' | '.join(FIGURES.values())} | |"
    yield "|" + "---|" * (4 + len(FIGURES))
    left = 0
    for kind, title in KINDS.items():
        for sources in SOURCES:
            for jobs in JOBS:
                figures, how = _figures(known, kind, jobs, sources)
                if figures:
                    cells = " | ".join(f"{each:.3g}" for each in figures)
                    yield f"| {title} | {jobs:,} | {sources:,} | {cells} | {how} |"
                else:
                    left += 1
    if left:
        yield ""
        yield f"{left} of {len(KINDS) * len(JOBS) * len(SOURCES)} sizes are neither measured nor projected."


def _figures(known: Known, kind: str, jobs: int, sources: int) -> tuple[list[float], str]:
    found = known.get((kind, jobs, sources))
    if found is not None:
        return [found[name] for name in FIGURES], "measured"
    sizes = sorted(each for kind_, each, many in known if (kind_, many) == (kind, sources))
    if len(sizes) < 2 or jobs < sizes[-1]:
        return [], ""
    pair = [known[kind, each, sources] for each in sizes[-2:]]
    figures = [projected(*((each["jobs"], each[name]) for each in pair), jobs) for name in FIGURES]
    return figures, "projected"


def projected(small: tuple[int, float], large: tuple[int, float], jobs: int) -> float:
    """By the power of the number of jobs that lies between the two largest sizes measured; never less."""
    (few, low), (many, high) = small, large
    power = max(0.0, math.log(high / low) / math.log(many / few))
    return high * (jobs / many) ** power


def _draw(name: str, known: Known) -> None:
    """A picture of one figure, where at least one line has two points that were measured."""
    found: dict[str, list[tuple[float, float]]] = {}
    for kind, title in KINDS.items():
        for sources in SOURCES:
            points = sorted(
                (jobs, each[name])
                for (kind_, jobs, many), each in known.items()
                if (kind_, many) == (kind, sources)
            )
            if len(points) > 1:
                found[f"{title}, {sources:,} sources"] = points
    if found:
        from bench.plots import plot

        file = PAGE.with_name(f"scale-{name.removesuffix('_ms')}.png")
        plot(file, found, "finished jobs", f"{FIGURES[name]}, ms of processor time")
