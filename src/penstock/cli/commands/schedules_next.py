"""`penstock schedules next`: what will start in the days to come, as a calendar and as a picture."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.commands.schedules import NONE
from penstock.cli.render.tables import column, key_column, text, whole
from penstock.cli.render.wording import count
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.views.schedules import UpcomingTick

COLUMNS = (
    whole("day"),
    column("at", 0),
    "source",
    key_column("schedule", least=8),
    "kind",
    text("starts"),
)
# A schedule that starts more often than this in a day is told in one line.
LINES = 3
CELL, LEFT, TOP, SHADES = (
    26,
    110,
    46,
    ("#eef2f6", "#c6dbef", "#9ecae1", "#6baed6", "#3182bd", "#08519c"),
)


@dataclass(slots=True)
class _Day:
    """What one schedule does on one day."""

    first: list[UpcomingTick] = field(default_factory=list)
    last: UpcomingTick | None = None
    starts: int = 0
    denied: int = 0

    def add(self, coming: UpcomingTick) -> None:
        if len(self.first) < LINES:
            self.first.append(coming)
        self.last = coming
        self.starts += not coming.is_denied
        self.denied += coming.is_denied


def tell_next(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        now = project.now()
        coming = project.schedules.each_upcoming(args.source, days=args.days)
        if args.svg is not None:
            return _draw(args, coming, now)
        if args.json:
            args.out.json_list(each.as_json() for each in coming)
        else:
            is_any = any(source.schedules for source in project.settings.sources.values())
            _tell(args, coming, is_any)
    return 0


def _tell(args: argparse.Namespace, coming: Iterator[UpcomingTick], is_any: bool) -> None:
    days: dict[tuple[date, str, str], _Day] = {}
    for each in coming:
        where = (_local(each.at).date(), each.source, each.schedule)
        days.setdefault(where, _Day()).add(each)
    if not days:
        args.out.line("nothing will start by time in these days" if is_any else NONE)
        return
    rows: list[tuple[object, ...]] = []
    ordered = sorted(days.items(), key=lambda item: (item[0][0], _place(item[1].first[0])))
    for (day, _, _), seen in ordered:
        rows += [(f"{day:%a %Y-%m-%d}", *line) for line in _lines(seen)]
    args.out.table(
        COLUMNS, [("" if _is_same(rows, n) else row[0], *row[1:]) for n, row in enumerate(rows)]
    )
    total = sum(seen.starts for seen in days.values())
    denied = sum(seen.denied for seen in days.values())
    outside = f", {denied:,} outside their hours" if denied else ""
    args.out.line(f"{count(total, 'start')} in {count(args.days, 'day')}{outside}")


def _place(tick: UpcomingTick) -> tuple[float, str, str]:
    return tick.at, tick.source, tick.schedule


def _is_same(rows: Sequence[tuple[object, ...]], number: int) -> bool:
    return number > 0 and rows[number - 1][0] == rows[number][0]


def _lines(seen: _Day) -> list[tuple[str, str, str, str, str]]:
    first, last = seen.first[0], seen.last or seen.first[0]
    if seen.starts + seen.denied <= LINES:
        return [
            (
                f"{_local(each.at):%H:%M:%S}",
                *(each.source, each.schedule, each.kind),
                "outside its hours" if each.is_denied else "",
            )
            for each in seen.first
        ]
    denied = f", {seen.denied:,} more outside its hours" if seen.denied else ""
    span = f"{_local(first.at):%H:%M} to {_local(last.at):%H:%M}"
    told = f"{count(seen.starts, 'start')}{denied}"
    return [(span, first.source, first.schedule, first.kind, told)]


def _draw(args: argparse.Namespace, coming: Iterator[UpcomingTick], now: float) -> int:
    from penstock.private_files import open_report

    first = _local(now).date()
    cells: Counter[tuple[int, int]] = Counter()
    for each in coming:
        if not each.is_denied:
            at = _local(each.at)
            cells[(at.date() - first).days, at.hour] += 1
    title = f"Starts by hour, {count(args.days, 'day')} from {first}" + (
        f", {args.source}" if args.source else ""
    )
    path = Path(args.svg)
    try:
        with open_report(path) as file:
            file.write(svg(cells, first, args.days + 1, title))
    except OSError as error:
        raise UsageError(f"--svg: {path} can't be written ({error.strerror})") from None
    if args.json:
        args.out.json({"file": str(path), "starts": cells.total()})
    else:
        args.out.line(f"{path}: {count(cells.total(), 'start')}")
    return 0


def svg(cells: Counter[tuple[int, int]], first: date, days: int, title: str) -> str:
    """A picture that needs nothing but itself: a row for each day, a column for each hour."""
    if not any(day == days - 1 for day, _ in cells):
        days -= 1  # the last day begins at the hour that it is now, and may be empty
    most = max(cells.values(), default=0)
    width, height = LEFT + 24 * CELL + 20, TOP + days * CELL + 50
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}" '
        'font-family="system-ui, sans-serif" font-size="11" fill="#333">'
    )
    parts = [
        opening,
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="10" y="18" font-size="14" font-weight="600">{escape(title)}</text>',
    ]
    parts += [
        f'<text x="{LEFT + hour * CELL + CELL / 2}" y="{TOP - 6}" text-anchor="middle">{hour:02}</text>'
        for hour in range(24)
    ]
    for day in range(days):
        at, y = first + timedelta(days=day), TOP + day * CELL
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + CELL / 2 + 4}" text-anchor="end">{at:%a %Y-%m-%d}</text>'
        )
        parts += [_cell(at, hour, cells[day, hour], most, y) for hour in range(24)]
    parts.append(_legend(most, TOP + days * CELL + 18))
    return "\n".join([*parts, "</svg>", ""])


def _cell(at: date, hour: int, starts: int, most: int, y: int) -> str:
    said = f"{at:%a %Y-%m-%d} {hour:02}:00: {count(starts, 'start')}"
    return (
        f'<rect x="{LEFT + hour * CELL}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" rx="3" '
        f'fill="{_shade(starts, most)}"><title>{escape(said)}</title></rect>'
    )


def _legend(most: int, y: int) -> str:
    drawn = [
        f'<rect x="{LEFT + n * CELL}" y="{y}" width="{CELL - 2}" height="12" rx="2" fill="{shade}"/>'
        for n, shade in enumerate(SHADES)
    ]
    said = f'<text x="{LEFT + len(SHADES) * CELL + 6}" y="{y + 10}">none to {most:,} an hour</text>'
    return "".join([*drawn, said])


def _shade(starts: int, most: int) -> str:
    if not starts:
        return SHADES[0]
    return SHADES[min(len(SHADES) - 1, 1 + (starts * (len(SHADES) - 1) - 1) // most)]


def _local(at: float) -> datetime:
    return datetime.fromtimestamp(at).astimezone()
