"""What is done when a run has read all its windows.

Checkpoints move to where history is complete; adjusted bars are derived; and two providers are compared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, cast

from penstock.connectors.market.adjustments import Adjustments
from penstock.connectors.market.reconciliation import Reconciliation
from penstock.http.failures import FetchError
from penstock.jobs.failures import BadData, Permanent
from penstock.jobs.windows import SLACK_S, moment, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.connectors.market.connector import Market
    from penstock.jobs.job import Claimed
    from penstock.pipeline.context import Context

BATCH = 200


class Coverage(Protocol):
    """What the engine knows of windows that were ingested."""

    async def covered(
        self, job: Claimed, partitions: Sequence[str], start_at: float, end_at: float
    ) -> list[tuple[str, float, float]]: ...


class RunEnd:
    """The end of one run."""

    def __init__(self, market: Market, ctx: Context) -> None:
        self._market = market
        self._ctx = ctx

    async def settle(self) -> None:
        market, ctx = self._market, self._ctx
        adjusting = Adjustments(market, ctx) if market.settings.adjust != "none" else None
        about = market.settings.reconcile
        reconciling = None if about is None else Reconciliation(market, ctx, about)
        failed: list[tuple[str, Exception]] = []
        ended = 0
        async for symbol, since, reached in self._symbols():
            try:
                if adjusting is not None:
                    await adjusting.adjust(symbol, since)
                if reconciling is not None:
                    await reconciling.compare(symbol, since)
            except (BadData, Permanent, FetchError) as error:
                failed.append((symbol, error))
                continue
            ended += 1
            # Not before: its next turn begins where this one did, if it has come to nothing.
            if reached is not None:
                ctx.checkpoint(reached, symbol)
        if reconciling is not None:
            reconciling.tell()
        await self._tell(failed, ended)

    async def _tell(self, failed: list[tuple[str, Exception]], ended: int) -> None:
        """Symbols that fail alone are rejected, and the next run begins where they were."""
        passing = [
            error for _, error in failed if isinstance(error, FetchError) and not error.is_permanent
        ]
        if passing or (failed and not ended):
            await self._ctx.commit()
            raise passing[0] if passing else failed[0][1]
        for symbol, error in failed:
            self._ctx.reject(f"{symbol} is not adjusted or compared: {error}", code="not_settled")

    async def _symbols(self) -> AsyncIterator[tuple[str, float, str | None]]:
        """Each symbol of the run, since when its records may be others, and where it has come to."""
        options = self._ctx.run.options
        if self._ctx.run.kind == "backfill":
            for symbol in options.partitions:
                yield symbol, options.start_at or 0.0, None
            return
        cursors = await self._ctx.in_progress.services.cursors(self._ctx.in_progress.job)
        # Checkpoints of the stream are objects.
        known = {name: cursor for name, cursor in cursors.items() if isinstance(cursor, str)}
        names = list(known)
        for first in range(0, len(names), BATCH):
            batch = names[first : first + BATCH]
            reached = await self._reached(batch, known)
            for symbol in batch:
                yield symbol, self._since(known[symbol]), reached.get(symbol)

    def _since(self, cursor: str) -> float:
        if self._ctx.run.kind == "full":
            return self._market.start_at
        # The last windows begin before the overlap does.
        keys = self._market.settings
        return moment(cursor, "UTC") - keys.overlap - keys.window_s

    async def _reached(self, symbols: list[str], known: dict[str, str]) -> dict[str, str]:
        """The end of what is ingested without a hole, counted from where the checkpoint was."""
        attempt = self._ctx.in_progress
        coverage = cast(Coverage, attempt.services)
        since = min(moment(known[symbol], "UTC") for symbol in symbols)
        found: dict[str, list[tuple[float, float]]] = {}
        reached: dict[str, str] = {}
        now = self._ctx.now()
        for name, start_at, end_at in await coverage.covered(attempt.job, symbols, since, now):
            found.setdefault(name, []).append((start_at, end_at))
        for symbol in symbols:
            at = before = moment(known[symbol], "UTC")
            for start_at, end_at in sorted(found.get(symbol, ())):
                if start_at > self._opening(at) + SLACK_S:
                    break
                at = max(at, end_at)
            if at > before:
                reached[symbol] = written(datetime.fromtimestamp(at, UTC))
        return reached

    def _opening(self, at: float) -> float:
        """Where the next window with anything in it begins: nobody asks for the others."""
        keys = self._market.settings
        if keys.calendar is None:
            return at
        from penstock.connectors.market.sessions import opens_at

        opens = opens_at(keys.calendar, at)
        return max(at, opens - opens % keys.window_s)
