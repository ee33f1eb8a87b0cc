"""Events: bars, ticks, splits and dividends, and the records that they become."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.connectors.contract import Document
from penstock.connectors.market.moments import written

BAR, SPLIT, DIVIDEND = "bar", "split", "dividend"
ACTIONS = (SPLIT, DIVIDEND)
# Their moments are those of calendars; ticks are told apart by nanoseconds.
ROUND = (BAR, *ACTIONS)
PRICES = ("open", "high", "low", "close", "price", "bid", "ask", "vwap")
AMOUNTS = ("volume", "size", "bid_size", "ask_size", "trades")
NUMBERS = (*PRICES, *AMOUNTS, "ratio", "amount")
# What an event must have to be one.
NEEDED = {BAR: "close", SPLIT: "ratio", DIVIDEND: "amount", "trade": "price"}


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to a symbol. `values` are numbers by their names: open, close, price, ratio."""

    symbol: str
    at_ns: int
    event_type: str = BAR
    # Counts the events of its symbol, where the provider numbers them.
    sequence: int | None = None
    values: dict[str, float] = {}
    text: str = ""

    @property
    def timestamp(self) -> str:
        return written(self.at_ns, is_exact=self.event_type not in ROUND)

    def key(self, provider: str) -> str:
        """(provider, symbol, timestamp, event type, sequence), which sorts by them in this order."""
        number = "" if self.sequence is None else str(self.sequence)
        parts = (provider, self.symbol, self.timestamp, self.event_type, number)
        return "|".join(map(escaped, parts))

    def document(self, provider: str) -> Document:
        data: dict[str, Any] = {
            "provider": provider,
            "symbol": self.symbol,
            "timestamp": self.timestamp,
            "event_type": self.event_type,
            "sequence": self.sequence,
            **self.values,
        }
        return Document(
            key=self.key(provider),
            kind=self.event_type,
            title=f"{self.symbol} {self.timestamp}",
            text=self.text,
            data=data,
        )


def escaped(part: str) -> str:
    """A part of a key in which no other can begin."""
    return part.replace("%", "%25").replace("|", "%7C")


def prefix_of(provider: str, symbol: str) -> str:
    """What all keys of a symbol begin with."""
    return f"{escaped(provider)}|{escaped(symbol)}|"


def number(name: str, value: Any) -> float:
    """A finite number, written as one or as text; ValueError says which field is none."""
    try:
        if isinstance(value, bool):
            raise ValueError
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {value!r:.40}, no number") from None
    if not math.isfinite(found):
        raise ValueError(f"{name} is {found}, no number")
    return found


def whole(name: str, value: Any) -> int:
    """A whole number that is not negative, such as a sequence."""
    found = number(name, value)
    exact = value if isinstance(value, int) else int(str(value).partition(".")[0])
    if found != exact or exact < 0:
        raise ValueError(f"{name} is {value!r:.40}, no number of a sequence")
    return int(exact)


def values_of(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row that have a name here; what is empty is left out."""
    return {name: number(name, row[name]) for name in NUMBERS if row.get(name) not in (None, "")}
