"""Hours of the week in which something may start: windows, less blackouts."""

from __future__ import annotations

from functools import lru_cache

from penstock.settings.windows import DAY_MINUTES, Window


@lru_cache(maxsize=4096)
def allowed_windows(
    windows: tuple[Window, ...], blackouts: tuple[Window, ...]
) -> tuple[Window, ...]:
    """The windows less the blackouts, as windows: both are by the minutes of a week on the same wall."""
    minutes = [not windows] * (7 * DAY_MINUTES)
    for window in windows:
        _paint(minutes, window, True)
    for window in blackouts:
        _paint(minutes, window, False)
    found: dict[tuple[int, int], list[int]] = {}
    for day in range(7):
        for stretch in _stretches(minutes[day * DAY_MINUTES : (day + 1) * DAY_MINUTES]):
            found.setdefault(stretch, []).append(day)
    return tuple(Window(tuple(days), start, end) for (start, end), days in found.items())


def _paint(minutes: list[bool], window: Window, value: bool) -> None:
    length = window.end - window.start + (DAY_MINUTES if window.wraps else 0)
    for day in window.days:
        first = day * DAY_MINUTES + window.start
        for minute in range(first, first + length):
            minutes[minute % len(minutes)] = value


def _stretches(day: list[bool]) -> list[tuple[int, int]]:
    edges = [at for at in range(DAY_MINUTES) if day[at] != (at > 0 and day[at - 1])]
    if len(edges) % 2:
        edges.append(DAY_MINUTES)
    return list(zip(edges[::2], edges[1::2], strict=True))
