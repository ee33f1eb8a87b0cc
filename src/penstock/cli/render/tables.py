"""Tables that fit the terminal and keep what the next command needs: ids, keys and states.

A table that is too wide first shortens its times, then drops columns that are empty, then those of the
highest rank, and then cuts long text. What it drops is named by `Layout.hidden`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

# The layout is made from the first rows; later rows keep it, so that any number of them can be streamed.
PAGE = 500
GAP = 2
# No cell may become narrower than this, even if the line is then wider than the terminal.
NARROWEST = 6
ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Column:
    """How a column gives way when its table is too wide.

    A column of rank 0 is never dropped; of the others the highest rank is dropped first. `least` is the
    width below which a cell is not cut; a column without it is never cut. Numbers are never cut either.
    """

    name: str
    rank: int = 4
    least: int | None = 12
    is_cut_in_the_middle: bool = False


def whole(name: str, rank: int = 0) -> Column:
    """An id, a state, a number or a time: useless in part."""
    return Column(name, rank, None)


def key_column(name: str, rank: int = 0, least: int = 20) -> Column:
    """A key or a URL: its beginning and its end tell it from others."""
    return Column(name, rank, least, is_cut_in_the_middle=True)


def text(name: str, rank: int = 2, least: int = 16) -> Column:
    """A sentence: its beginning says most."""
    return Column(name, rank, least)


# Columns that mean the same in every table. A table that needs another rank says so.
_KNOWN = {
    each.name: each
    for each in (
        *map(whole, ("run", "job", "event", "reject", "signal", "delivery", "attempt")),
        *map(whole, ("state", "kind", "outcome", "code", "what")),
        *(key_column(name) for name in ("key", "url")),
        key_column("source", least=12),
        key_column("stage", 1, least=8),
        text("error", 2),
        *(text(name, 3) for name in ("why", "reason", "detail", "data", "cause")),
        *(whole(name, 5) for name in ("at", "since", "began", "took", "updated", "due")),
    )
}


def column(of: str | Column, rank: int | None = None) -> Column:
    """The column of this name as all tables have it, or with a rank of its own."""
    found = of if isinstance(of, Column) else _KNOWN.get(of, Column(of))
    return found if rank is None else replace(found, rank=rank)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as it is, and as it is when room is scarce."""

    full: str
    brief: str
    is_number: bool = False


@dataclass(slots=True)
class Layout:
    """Which columns are shown and how wide, what was dropped, and the width that would show everything."""

    columns: Sequence[Column]
    numeric: Sequence[bool]
    widths: dict[int, int]
    is_brief: bool = False
    hidden: list[str] = field(default_factory=list)
    wanted: int = 0


def pages(rows: Iterable[Sequence[Cell]]) -> Iterator[list[Sequence[Cell]]]:
    """The rows in pieces that fit into memory; at least one piece, which may be empty."""
    remaining = iter(rows)
    yield list(itertools.islice(remaining, PAGE))
    while page := list(itertools.islice(remaining, PAGE)):
        yield page


def lay_out(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None) -> Layout:
    """The layout for these rows on a terminal of this width; without one, nothing is left out."""
    numeric = [bool(rows) and all(row[at].is_number for row in rows) for at in range(len(columns))]
    full = _natural(columns, rows, is_brief=False)
    made = Layout(columns, numeric, dict(enumerate(full)))
    if width is None or _total(full) <= width:
        return made
    natural = _natural(columns, rows, is_brief=True)
    made.is_brief, made.wanted = True, _total(natural)
    made.widths = dict(enumerate(natural))
    _drop_empty(made, rows, width)
    _drop_by_rank(made, width)
    _cut(made, width)
    return made


def widened(layout: Layout, rows: Sequence[Sequence[Cell]]) -> Layout:
    """The same layout with room for these rows too; for output that nothing limits."""
    natural = _natural(layout.columns, rows, is_brief=False)
    widths = {at: max(width, natural[at]) for at, width in layout.widths.items()}
    return replace(layout, widths=widths)


def fitted(cell: str, width: int, in_the_middle: bool) -> str:
    """The text, cut so that it is at most so wide."""
    if shown_width(cell) <= width:
        return cell
    if not in_the_middle:
        return _head(cell, width - 1) + ELLIPSIS
    head = _head(cell, (width - 1) // 2)
    # From the end, as much as the head has left room for.
    tail = _head(cell[::-1], width - 1 - shown_width(head))[::-1]
    return head + ELLIPSIS + tail


def shown_width(cell: str) -> int:
    """How many places of a terminal the text takes."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)


def _head(cell: str, width: int) -> str:
    if cell.isascii():
        return cell[: max(0, width)]
    taken = 0
    for at, char in enumerate(cell):
        taken += shown_width(char)
        if taken > width:
            return cell[:at]
    return cell


def _natural(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], is_brief: bool
) -> list[int]:
    widths = [shown_width(each.name) for each in columns]
    for row in rows:
        for at, cell in enumerate(row):
            widths[at] = max(widths[at], shown_width(cell.brief if is_brief else cell.full))
    return widths


def _total(widths: Iterable[int]) -> int:
    every = list(widths)
    return sum(every) + GAP * max(0, len(every) - 1)


def _drop_empty(layout: Layout, rows: Sequence[Sequence[Cell]], width: int) -> None:
    """What is empty is dropped in silence: nothing is lost."""
    for at in list(layout.widths):
        is_empty = layout.columns[at].rank and not any(row[at].full for row in rows)
        if is_empty and _total(layout.widths.values()) > width:
            del layout.widths[at]


def _drop_by_rank(layout: Layout, width: int) -> None:
    while _total(_floor(layout, at) for at in layout.widths) > width:
        droppable = [at for at in layout.widths if layout.columns[at].rank]
        if not droppable:
            return
        worst = max(droppable, key=lambda at: (layout.columns[at].rank, at))
        del layout.widths[worst]
        layout.hidden.append(layout.columns[worst].name)
    layout.hidden.sort(key=[each.name for each in layout.columns].index)


def _floor(layout: Layout, at: int) -> int:
    least = layout.columns[at].least
    if least is None or layout.numeric[at]:
        return layout.widths[at]
    return min(layout.widths[at], max(least, shown_width(layout.columns[at].name)))


def _cut(layout: Layout, width: int) -> None:
    """Give every column its least, and what is left to those that want more, place by place."""
    natural = dict(layout.widths)
    layout.widths = {at: _floor(layout, at) for at in natural}
    spare = width - _total(layout.widths.values())
    while spare > 0:
        wanting = [at for at in natural if layout.widths[at] < natural[at]]
        if not wanting:
            return
        for at in wanting[:spare]:
            layout.widths[at] += 1
        spare -= len(wanting[:spare])
    while spare < 0:
        widest = max(
            (
                at
                for at in natural
                if layout.columns[at].least is not None and not layout.numeric[at]
            ),
            key=lambda at: layout.widths[at],
            default=None,
        )
        if widest is None or layout.widths[widest] <= NARROWEST:
            return
        layout.widths[widest] -= 1
        spare += 1
