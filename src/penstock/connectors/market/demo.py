"""Demo data: forty days of bars of two symbols that nobody trades, with a split. The same ones every time."""

from __future__ import annotations

import csv
import json
import math
from datetime import date, timedelta
from pathlib import Path

START = "2026-09-01"
DAYS = 40
SPLIT_AFTER = 25
BASES = {"ACME": 120.0, "GLOBEX": 48.0}
SATURDAY = 5


def write(folder: Path) -> None:
    """The files of the provider `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    days = _days()
    for symbol, base in BASES.items():
        ratio = 2.0 if symbol == "ACME" else 1.0
        with (folder / f"{symbol}.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["timestamp", "open", "high", "low", "close", "volume"])
            table.writerows(
                _bar(day, number, base, ratio if number >= SPLIT_AFTER else 1.0)
                for number, day in enumerate(days)
            )
    split = {
        "symbol": "ACME",
        "timestamp": days[SPLIT_AFTER].isoformat(),
        "event_type": "split",
        "ratio": 2,
    }
    (folder / "symbols.json").write_text(json.dumps(list(BASES)), encoding="utf-8")
    (folder / "actions.json").write_text(json.dumps([split]), encoding="utf-8")


def _days() -> list[date]:
    first = date.fromisoformat(START)
    days = [first + timedelta(days=number) for number in range(2 * DAYS)]
    return [day for day in days if day.weekday() < SATURDAY][:DAYS]


def _bar(day: date, number: int, base: float, ratio: float) -> list[str]:
    opened = (base + 6 * math.sin(number / 5)) / ratio
    closed = (base + 6 * math.sin((number + 1) / 5)) / ratio
    high, low = max(opened, closed) * 1.01, min(opened, closed) * 0.99
    volume = round((10_000 + 900 * (number % 7)) * ratio)
    return [
        day.isoformat(),
        *(f"{value:.2f}" for value in (opened, high, low, closed)),
        str(volume),
    ]
