"""Bars as if every split and dividend had been before them.

Raw bars stay as the provider said them, in the collection of the source. Adjusted ones are derived of them
in a collection of their own, under the same keys: when an action comes to be known, those before it become
new versions there, and the raw ones stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors.market.events import (
    ACTIONS,
    BAR,
    DIVIDEND,
    PRICES,
    SPLIT,
    Event,
    prefix_of,
)
from penstock.connectors.market.moments import moment_ns
from penstock.connectors.market.records import records_of

if TYPE_CHECKING:
    from penstock.connectors.market.connector import Market
    from penstock.pipeline.context import Context

COMMIT_EVERY = 2_000
DIGITS = 10


class Factor(msgspec.Struct, frozen=True):
    """What bars before a moment are multiplied with: their prices, and what was traded."""

    before_ns: int
    price: float
    amount: float


class Adjustments:
    """The adjusted bars of a source."""

    def __init__(self, market: Market, ctx: Context) -> None:
        self._market = market
        self._ctx = ctx
        self._raw = market.settings.collection or market.place.source
        self._saved = 0

    async def adjust(self, symbol: str, since: float) -> None:
        """Derive the bars since then; all of them, if the actions are not those that were known."""
        actions = await self._actions(symbol)
        mark = _fingerprint(actions)
        partition = f"{symbol} adjusted"
        if (await self._ctx.cursor(partition) or {}).get("actions") != mark:
            since = 0.0
        factors = factors_of(actions, await self._closes(symbol, actions))
        async for data in self._bars(symbol, since):
            self._save(symbol, data, factors)
            if self._saved % COMMIT_EVERY == 0:
                await self._ctx.commit()
        self._ctx.checkpoint({"actions": mark}, partition, ordered=False)

    async def _actions(self, symbol: str) -> list[Event]:
        """What the provider says, saved as records, too."""
        found = await self._market.actions(self._ctx, symbol)
        own = [each for each in found if each.event_type in ACTIONS and each.symbol == symbol]
        for event in own:
            document = msgspec.to_builtins(event.document(self._market.label))
            self._ctx.save(self._raw, key=document["key"], data=document)
        if self._market.settings.adjust == "split":
            own = [event for event in own if event.event_type == SPLIT]
        return sorted(own, key=lambda event: event.at_ns)

    async def _bars(self, symbol: str, since: float) -> AsyncIterator[dict[str, Any]]:
        prefix = prefix_of(self._market.label, symbol)
        async for record in records_of(self._ctx, self._raw, prefix, since):
            if record.get("kind") == BAR:
                yield record["data"]

    async def _closes(self, symbol: str, actions: list[Event]) -> dict[int, float]:
        """The close before each dividend: what it is a part of."""
        dividends = [each.at_ns for each in actions if each.event_type == DIVIDEND]
        if not dividends:
            return {}
        found: dict[int, float] = {}
        async for data in self._bars(symbol, 0.0):
            at_ns = moment_ns(data["timestamp"])
            for moment in dividends:
                if at_ns < moment:
                    found[moment] = float(data["close"])
        return found

    def _save(self, symbol: str, data: dict[str, Any], factors: list[Factor]) -> None:
        at_ns = moment_ns(data["timestamp"])
        price, amount = factor_at(factors, at_ns)
        values = {
            name: round(value * (price if name in PRICES else amount), DIGITS)
            for name, value in data.items()
            if name in (*PRICES, "volume") and isinstance(value, (int, float))
        }
        event = Event(
            symbol=symbol,
            at_ns=at_ns,
            event_type=BAR,
            sequence=data.get("sequence"),
            values={**values, "factor": round(price, DIGITS)},
        )
        document = msgspec.to_builtins(event.document(self._market.label))
        self._ctx.save(f"{self._raw}.adjusted", key=document["key"], data=document)
        self._saved += 1


def factors_of(actions: list[Event], closes: dict[int, float]) -> list[Factor]:
    """One factor for each action, in the order of their moments. A dividend needs the close before it."""
    found = []
    for event in actions:
        if event.event_type == SPLIT:
            ratio = event.values["ratio"]
            found.append(Factor(event.at_ns, 1 / ratio, ratio))
            continue
        close = closes.get(event.at_ns, 0.0)
        if close > event.values["amount"]:
            found.append(Factor(event.at_ns, 1 - event.values["amount"] / close, 1.0))
    return found


def factor_at(factors: list[Factor], at_ns: int) -> tuple[float, float]:
    """What a bar of this moment is multiplied with: the actions after it."""
    price = amount = 1.0
    for factor in factors:
        if at_ns < factor.before_ns:
            price *= factor.price
            amount *= factor.amount
    return price, amount


def _fingerprint(actions: list[Event]) -> str:
    encoded = msgspec.json.encode(actions, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:32]
