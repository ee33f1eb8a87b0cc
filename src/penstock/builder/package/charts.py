"""Charts as SVG that stands in a page: no script, no font or picture from elsewhere."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

LABEL_WIDTH, BAR_WIDTH, ROW, TEXT_ROOM = 150, 360, 20, 70
COLUMN, COLUMN_HEIGHT = 44, 140


class Bar(NamedTuple):
    """A bar of a chart: its share of the whole, and of that a part that is drawn darker."""

    label: str
    value: float
    part: float
    text: str


def bars(bars: Sequence[Bar], top: float) -> str:
    """Bars beside their labels, one below the other."""
    width, height = LABEL_WIDTH + BAR_WIDTH + TEXT_ROOM, ROW * len(bars) + 4
    scale = BAR_WIDTH / (top or 1.0)
    rows = []
    tall = f'height="{ROW - 6}"'
    for at, bar in enumerate(bars):
        y = at * ROW + 2
        start = f'x="{LABEL_WIDTH}" y="{y + 2}"'
        rows.append(
            f'<text x="{LABEL_WIDTH - 6}" y="{y + 13}" text-anchor="end">{html.escape(bar.label)}</text>'
            f'<rect class="all" {start} width="{bar.value * scale:.1f}" {tall}/>'
            f'<rect class="good" {start} width="{bar.part * scale:.1f}" {tall}/>'
            f'<text x="{LABEL_WIDTH + bar.value * scale + 5:.1f}" y="{y + 13}">{html.escape(bar.text)}</text>'
        )
    return _svg(width, height, rows)


def columns(labels: Sequence[str], counts: Sequence[int]) -> str:
    """Columns side by side, with their counts above and labels below."""
    top = max([*counts, 1])
    rows = []
    for at, (label, count) in enumerate(zip(labels, counts, strict=True)):
        x, height = at * COLUMN + 4, COLUMN_HEIGHT * count / top
        y, middle = 16 + COLUMN_HEIGHT - height, at * COLUMN + COLUMN / 2
        rows.append(
            f'<rect class="good" x="{x}" y="{y:.1f}" width="{COLUMN - 8}" height="{height:.1f}"/>'
            f'<text x="{middle}" y="{y - 3:.1f}" text-anchor="middle">{count}</text>'
            f'<text x="{middle}" y="{COLUMN_HEIGHT + 32}" text-anchor="middle">{html.escape(label)}</text>'
        )
    return _svg(COLUMN * len(counts), COLUMN_HEIGHT + 40, rows)


def _svg(width: float, height: float, rows: Sequence[str]) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">' + "".join(rows) + "</svg>"
