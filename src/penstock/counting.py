"""A number with its noun, as every message has it."""

from __future__ import annotations


def count(number: float, noun: str, plural: str = "") -> str:
    """`1 job`, `2,000 jobs`, `0 tries`; a number that is not whole has two digits: `1.25 requests`."""
    shown = f"{number:,.0f}" if number == int(number) else f"{number:,.2f}"
    return f"{shown} {noun if shown == '1' else plural or noun + 's'}"
