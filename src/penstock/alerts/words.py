"""Numbers as sentences have them."""

from __future__ import annotations

from penstock.counting import count


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `5.5 h`, `3 days`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.3g} h"
    return count(float(f"{seconds / 86400:.3g}"), "day")


def share(value: float) -> str:
    """`12 %`; less than 10 % with one more digit."""
    return (
        f"{value:.1%}".replace("%", " %") if abs(value) < 0.1 else f"{value:.0%}".replace("%", " %")
    )


def amount(value: float) -> str:
    """`1,240`, `3.2`."""
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.1f}"


def size(value: float) -> str:
    for unit, worth in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if value >= worth:
            return f"{value / worth:.3g} {unit}"
    return count(round(value), "byte")
