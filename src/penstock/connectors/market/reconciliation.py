"""The bars of two providers, symbol by symbol and moment by moment.

Both are read in the order of their keys, side by side. What one of them has after the last that the other has
is not compared yet: the other may only be behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from penstock.connectors.market.events import BAR, NUMBERS, escaped, prefix_of
from penstock.connectors.market.records import records_of

if TYPE_CHECKING:
    from penstock.connectors.market.connector import Market
    from penstock.connectors.market.keys import ReconcileKeys
    from penstock.pipeline.context import Context

COMMIT_EVERY = 2_000
AGREES, DIFFERS, ONLY_HERE, ONLY_THERE = "agrees", "differs", "only_here", "only_there"
SIGNAL = "quality.reconciliation"
Bar = dict[str, Any]


class Reconciliation:
    """The comparison of one run."""

    def __init__(self, market: Market, ctx: Context, about: ReconcileKeys) -> None:
        self._ctx = ctx
        self._about = about
        self._raw = market.settings.collection or market.place.source
        self._label = market.label
        self._there = about.collection or about.source
        self._label_there = about.label or about.source
        self._target = f"{self._raw}.reconciliation"
        self._found: Counter[str] = Counter()
        self._compared = 0

    async def compare(self, symbol: str, since: float) -> None:
        prefix = f"{escaped(symbol)}|"
        known = {
            record["timestamp"]: record
            async for record in records_of(self._ctx, self._target, prefix, since)
        }
        here = self._bars(self._raw, self._label, symbol, since)
        there = self._bars(self._there, self._label_there, symbol, since)
        async for timestamp, left, right in side_by_side(here, there):
            self._judge(symbol, timestamp, left, right, known.get(timestamp))
            self._compared += 1
            if self._compared % COMMIT_EVERY == 0:
                await self._ctx.commit()

    def tell(self) -> None:
        """What is new, as a signal that alerts and schedules can wait for."""
        if not self._found:
            return
        there = self._label_there
        words = ", ".join(f"{number:,} {status}" for status, number in self._found.items())
        self._ctx.note(f"compared with {there}: {words}")
        if set(self._found) - {AGREES}:
            self._ctx.signal(SIGNAL, compared_with=there, **self._found)

    async def _bars(
        self, collection: str, label: str, symbol: str, since: float
    ) -> AsyncIterator[tuple[str, Bar]]:
        async for record in records_of(self._ctx, collection, prefix_of(label, symbol), since):
            if record.get("kind") == BAR:
                yield record["data"]["timestamp"], record["data"]

    def _judge(
        self, symbol: str, timestamp: str, left: Bar | None, right: Bar | None, known: Bar | None
    ) -> None:
        """Write down what differs, and that it does not any more."""
        status, values = judged(left, right, self._about.tolerance)
        if status == AGREES and (known is None or known["status"] == AGREES):
            return
        made: Bar = {
            "key": f"{escaped(symbol)}|{timestamp}",
            "kind": "reconciliation",
            "symbol": symbol,
            "timestamp": timestamp,
            "status": status,
            "here": self._label,
            "there": self._label_there,
            "values": values,
        }
        if made != known:
            self._found[status] += 1
            self._ctx.save(self._target, key=made["key"], data=made)


def judged(left: Bar | None, right: Bar | None, tolerance: float) -> tuple[str, dict[str, Any]]:
    """Whether two bars agree, and the values in which they do not."""
    if left is None or right is None:
        return (ONLY_THERE if left is None else ONLY_HERE), {}
    values = {
        name: {"here": left[name], "there": right[name]}
        for name in NUMBERS
        if name in left and name in right and not is_close(left[name], right[name], tolerance)
    }
    return (DIFFERS if values else AGREES), values


def is_close(left: float, right: float, tolerance: float) -> bool:
    return abs(left - right) <= tolerance * max(abs(left), abs(right))


async def side_by_side(
    here: AsyncIterator[tuple[str, Bar]], there: AsyncIterator[tuple[str, Bar]]
) -> AsyncIterator[tuple[str, Bar | None, Bar | None]]:
    """Bars of the same moment together, in order, until one of the two has no more."""
    left, right = await anext(here, None), await anext(there, None)
    while left is not None and right is not None:
        if left[0] == right[0]:
            yield left[0], left[1], right[1]
            left, right = await anext(here, None), await anext(there, None)
        elif left[0] < right[0]:
            yield left[0], left[1], None
            left = await anext(here, None)
        else:
            yield right[0], None, right[1]
            right = await anext(there, None)
