"""The records that are merged by key: half of them are already there, and half of those changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# Fields of a record that say little, and how long each is, where a record is to be wide.
FILLING_CHARACTERS = 28


def first_load(records: int, more_fields: int = 0) -> Iterator[dict[str, Any]]:
    """What is in the table before the clock starts: every other key."""
    return (_record(number, 0, more_fields) for number in range(0, records, 2))


def second_load(records: int, more_fields: int = 0) -> Iterator[dict[str, Any]]:
    """What is merged: all keys; of those already there, every other one has a new price."""
    return (_record(number, 1 if number % 4 == 0 else 0, more_fields) for number in range(records))


def check(prices: dict[str, float], records: int) -> None:
    """Insist that a side ended with exactly the records of the second load."""
    expected = {record["sku"]: record["price"] for record in second_load(records)}
    if prices != expected:
        raise ValueError(f"{len(prices)} records, {len(expected)} expected, or prices differ")


def detail(at: int) -> str:
    """The name of one of the fields that make a record wide."""
    return f"detail_{at:02d}"


def _record(number: int, edition: int, more_fields: int) -> dict[str, Any]:
    record = {
        "sku": f"SKU-{number:07d}",
        "name": f"Product number {number}",
        "brand": f"Brand {number % 997}",
        "price": round(number % 400 + edition * 0.5 + 0.45, 2),
        "currency": "EUR",
        "stock": number % 50,
        "category": f"category-{number % 37}",
        "rating": number % 50 / 10,
        "url": f"https://example.test/p/{number}.html",
        "description": f"A plain description of product {number}, long enough to be one.",
    }
    for at in range(more_fields):
        record[detail(at)] = f"detail {at} of product {number} ".ljust(FILLING_CHARACTERS, "x")
    return record
