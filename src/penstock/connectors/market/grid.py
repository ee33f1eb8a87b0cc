"""The grid: history is asked for in windows that begin at the same moments in every run.

A window that is asked for again has the same address, so that it is known whether anything in it changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.jobs.windows import Window


def windows_since(symbol: str, since: float, until: float, window_s: float) -> Iterator[Window]:
    """The windows that hold any of this time; the last may end after it."""
    at = since - since % window_s
    while at < until:
        yield Window(symbol, at, at + window_s)
        at += window_s
