"""A small exchange: a ledger of ticks and bars, and what it answers to requests. All of it by its seed."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.testing import RawResponse, answer

SECOND_NS = 1_000_000_000
DAY_S = 86_400.0
Row = dict[str, Any]


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


@dataclass
class Exchange:
    """What happened, by symbol; and how it is told over HTTP in the format `plain`."""

    symbols: list[str]
    seed: int = 1
    page_size: int = 100
    bars: dict[str, list[Row]] = field(default_factory=dict)
    ticks: dict[str, list[Row]] = field(default_factory=dict)
    actions: dict[str, list[Row]] = field(default_factory=dict)
    # History does not have the newest ticks yet, for so many requests.
    behind: int = 0
    # Addresses with this in them are answered with a page for people.
    broken: str = ""
    asked: list[str] = field(default_factory=list)

    def trade_days(self, start_at: float, days: int) -> None:
        """A bar a day for each symbol."""
        rng = random.Random(self.seed)
        for symbol in self.symbols:
            price = 100.0
            for number in range(days):
                opened, price = price, round(price * rng.uniform(0.97, 1.03), 2)
                self.bars.setdefault(symbol, []).append(
                    {
                        "timestamp": iso(start_at + number * DAY_S),
                        "open": opened,
                        "high": max(opened, price) + 1,
                        "low": min(opened, price) - 1,
                        "close": price,
                        "volume": rng.randrange(1_000, 9_000),
                    }
                )

    def trade(self, start_at: float, ticks: int, every_s: float = 0.01) -> None:
        """Ticks of each symbol, numbered from 1; some of them at the same moment."""
        rng = random.Random(self.seed)
        for symbol in self.symbols:
            at_ns = int(start_at * SECOND_NS)
            for number in range(1, ticks + 1):
                at_ns += rng.choice((0, 1, 1, 2)) * int(every_s * SECOND_NS)
                row = {"symbol": symbol, "timestamp": at_ns, "sequence": number}
                row |= {"price": round(rng.uniform(9, 11), 2), "size": rng.randrange(1, 500)}
                self.ticks.setdefault(symbol, []).append(row)

    def get(self, url: str) -> RawResponse:
        self.asked.append(url)
        if self.broken and self.broken in url:
            return answer("<html>Sorry</html>")
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        what, _, name = parts.path.lstrip("/").partition("/")
        symbol = unquote(name)
        if what == "symbols":
            return self._page(self.symbols, query)
        if what == "actions":
            return self._page(self.actions.get(symbol, []), query)
        if what != "history" or (symbol not in self.bars and symbol not in self.symbols):
            return answer("", status=404)
        kept = self.bars if query["kind"] == "bars" else self.ticks
        rows = [row for row in kept.get(symbol, []) if _is_within(row, query)]
        if self.behind:
            self.behind -= 1
            rows = rows[: len(rows) // 2]
        return self._page(rows, query)

    def _page(self, rows: Sequence[Any], query: dict[str, str]) -> RawResponse:
        first = int(query.get("page", "0"))
        last = first + self.page_size
        body = {"rows": rows[first:last], "next": str(last) if last < len(rows) else None}
        return answer(json.dumps(body), headers={"Content-Type": "application/json"})


def _is_within(row: Row, query: dict[str, str]) -> bool:
    at_ns = row["timestamp"]
    at_ns = _ns(at_ns) if isinstance(at_ns, str) else at_ns
    return bool(_ns(query["from"]) <= at_ns < _ns(query["to"]))


def _ns(text: str) -> int:
    """Exactly: a float has no place for nanoseconds."""
    moment = datetime.fromisoformat(text)
    return int(moment.replace(microsecond=0).timestamp()) * SECOND_NS + moment.microsecond * 1000
