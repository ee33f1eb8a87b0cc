"""A simulation as one page of HTML that needs nothing else: its plots are drawn in it, it has no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from penstock.cli.render.wording import local_time
from penstock.counting import count

if TYPE_CHECKING:
    from penstock.app.views.forecast import BudgetFigures, Figures

STYLE = """
:root { color-scheme: light dark; --line: #8885; --one: #0969da; --two: #bf5700; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .25rem 1rem .25rem 0; }
th, td { border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; } td:first-child { min-width: 9rem; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: currentColor; }
.axis { stroke: var(--line); } .s0 { stroke: var(--one); fill: none; stroke-width: 2; }
.s1 { stroke: var(--two); fill: none; stroke-width: 2; stroke-dasharray: 5 3; }
.bound { stroke: #cf222e; stroke-dasharray: 2 3; } .note { color: #777; }
.k0 { color: var(--one); } .k1 { color: var(--two); }
"""
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720.0, 180.0, 56.0, 22.0, 10.0
MOST_BUDGETS = 12
DAY_S = 86_400.0
BY_SOURCE = (
    "starts",
    "skipped",
    "denied",
    "missed",
    "completed",
    "partial",
    "failed",
    "requests",
    "freshness_breaches",
    "deadline_breaches",
)


def page(
    sides: dict[str, Figures],
    changes: Sequence[str],
    notes: Sequence[str],
    lines: Callable[[Figures], list[tuple[str, str]]],
    tidy: Callable[[str], str],
) -> Iterator[str]:
    """The page, piece by piece; `tidy` masks what is secret."""

    def text(value: object) -> str:
        return escape(tidy(str(value)), quote=True)

    first = next(iter(sides.values()))
    title = f"Simulation of {count(first.days, 'day')} from {local_time(first.began_at)}"
    yield "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
    yield f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n<h1>{text(title)}</h1>\n"
    keys = (f'<span class="k{n}">{text(name)}</span>' for n, name in enumerate(sides))
    yield f"<p>Seed {first.seed}. {' · '.join(keys)}</p>\n"
    for change in changes:
        yield f"<p><code>{text(change)}</code></p>\n"
    yield from _table(sides, lines, text)
    plots: list[tuple[str, list[Sequence[float]]]] = [
        ("Starts a day", [each.starts_by_day for each in sides.values()]),
        ("Backlog, the most of each day, jobs", [each.backlog_by_day for each in sides.values()]),
        ("Worker slots in use, %", [[100 * u for u in f.use_by_day] for f in sides.values()]),
    ]
    for name, series in plots:
        yield f"<h2>{text(name)}</h2>\n{_plot(series, _days(first))}\n"
    yield from _budgets(sides, text)
    yield from _sources(sides, text)
    yield "<h2>What this rests on, and what is not simulated</h2>\n"
    for note in notes:
        yield f'<p class="note">{text(note)}</p>\n'
    yield "</html>\n"


def _policy() -> str:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _table(
    sides: dict[str, Figures],
    lines: Callable[[Figures], list[tuple[str, str]]],
    text: Callable[[object], str],
) -> Iterator[str]:
    columns = [dict(lines(each)) for each in sides.values()]
    yield f"<table><tr><th>figure{''.join(f'<th>{text(name)}' for name in sides)}\n"
    for name in dict.fromkeys(name for column in columns for name in column):
        cells = "".join(f"<td>{text(column.get(name, ''))}" for column in columns)
        yield f"<tr><td>{text(name)}{cells}\n"
    yield "</table>\n"


def _budgets(sides: dict[str, Figures], text: Callable[[object], str]) -> Iterator[str]:
    """Those of which the most is used, each with its bound on either side."""
    found: dict[str, dict[str, BudgetFigures]] = {}
    for side, figures in sides.items():
        for budget in figures.budgets:
            found.setdefault(budget.name, {})[side] = budget
    tight = sorted(found.items(), key=lambda each: -max(map(_share, each[1].values())))
    days = _days(next(iter(sides.values())))
    for name, of in tight[:MOST_BUDGETS]:
        series = [of[side].by_day if side in of else [] for side in sides]
        bounds = sorted({budget.bound for budget in of.values()})
        yield f"<h2>Budget: {text(name)}</h2>\n{_plot(series, days, bounds)}\n"


def _share(budget: BudgetFigures) -> float:
    return budget.most_used / budget.bound if budget.bound else 0.0


def _sources(sides: dict[str, Figures], text: Callable[[object], str]) -> Iterator[str]:
    for name, figures in sides.items():
        yield f"<h2>By source: {text(name)}</h2>\n<table><tr><th>source"
        yield "".join(f"<th>{text(column.replace('_', ' '))}" for column in BY_SOURCE)
        for source in figures.sources:
            cells = "".join(f"<td>{getattr(source, column):,}" for column in BY_SOURCE)
            yield f"\n<tr><td>{text(source.source)}{' *' if source.is_assumed else ''}{cells}"
        yield "\n</table>\n"
        if any(source.is_assumed for source in figures.sources):
            yield '<p class="note">* without history: its runs are assumed</p>\n'


def _days(figures: Figures) -> list[str]:
    """The days of the plots: each begins at the time of day at which the simulation does."""
    begins = (figures.began_at + day * DAY_S for day in range(figures.days))
    return [local_time(at)[5:10] for at in begins]


def _plot(
    series: Sequence[Sequence[float]], names: Sequence[str], bounds: Sequence[float] = ()
) -> str:
    days = len(names)
    top = max([1.0, *(value for each in series for value in each), *bounds])
    width, height = WIDTH - LEFT, HEIGHT - BOTTOM - TOP

    def x(day: int) -> float:
        return LEFT + (day + 0.5) * width / max(1, days)

    def y(value: float) -> float:
        return TOP + height * (1.0 - value / top)

    parts = [f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img">']
    for value in (0.0, top / 2, top):
        at = y(value)
        parts.append(
            f'<line class="axis" x1="{LEFT:g}" x2="{WIDTH:g}" y1="{at:.1f}" y2="{at:.1f}"/>'
        )
        parts.append(
            f'<text x="{LEFT - 6:g}" y="{at + 4:.1f}" text-anchor="end">{value:,.4g}</text>'
        )
    parts.extend(
        f'<text x="{x(day):.1f}" y="{HEIGHT - 6:g}" text-anchor="middle">{names[day]}</text>'
        for day in range(0, days, max(1, days // 10))
    )
    for bound in bounds:
        at = y(bound)
        parts.append(
            f'<line class="bound" x1="{LEFT:g}" x2="{WIDTH:g}" y1="{at:.1f}" y2="{at:.1f}"/>'
        )
    for number, each in enumerate(series):
        points = " ".join(f"{x(day):.1f},{y(value):.1f}" for day, value in enumerate(each))
        parts.append(f'<polyline class="s{number}" points="{points}"/>')
    return "".join((*parts, "</svg>"))
