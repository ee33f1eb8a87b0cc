"""The connector `market`: windows of history for each symbol, a stream, and what is derived of both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.contract import Checkpoint, Connector, Document, Gone, Item, Place, Sample
from penstock.connectors.files.file_reader import read_file
from penstock.connectors.market import demo
from penstock.connectors.market.grid import windows_since
from penstock.connectors.market.keys import MarketKeys, keys_from
from penstock.connectors.market.moments import seconds
from penstock.connectors.market.provider import MOST_REFUSED, Page, provider_of
from penstock.connectors.market.run_end import RunEnd
from penstock.connectors.market.sequences import missing_of
from penstock.connectors.market.sessions import is_open_within
from penstock.counting import count
from penstock.jobs.failures import BadData, Permanent, Transient
from penstock.jobs.windows import Window, moment, written
from penstock.pipeline.context import Captured
from penstock.settings.backfill import DEFAULT_PARTITIONS, BackfillSettings

if TYPE_CHECKING:
    from penstock.connectors.market.events import Event
    from penstock.http.response import Response
    from penstock.pipeline.context import Context

HTTP = ("http://", "https://")
MOST_PAGES = 10_000
LARGEST_FILE = 256_000_000
# So many events of a window are held until they are written: an attempt holds 200,000.
HELD = 20_000


class Market(Connector[MarketKeys]):
    """Bars or ticks: a document for each, by (provider, symbol, timestamp, event type, sequence)."""

    name = "market"
    summary = (
        "market data: bars and ticks of a provider, with gap fill, adjustments and reconciliation"
    )
    Settings = MarketKeys
    retry = "provider-safe"
    deletions = "never"
    robots = False
    takes_windows = True
    has_stream = True
    settles = True

    def __init__(self, settings: MarketKeys, place: Place) -> None:
        super().__init__(settings, place)
        self.provider = provider_of(settings, place.source, place.root)
        self.label = settings.label or place.source
        self.start_at = moment(settings.start, "UTC")

    async def discover(
        self, ctx: Context, cursors: Mapping[str, Any]
    ) -> AsyncIterator[Item | Checkpoint]:
        """The windows of each symbol since its checkpoint, with an overlap."""
        async for symbol in self.symbols(ctx):
            cursor = cursors.get(symbol)
            if cursor is None:
                # From here on the symbol is known, and `settle` moves its checkpoint.
                yield Checkpoint(written(_start_of(self.start_at)), symbol)
            since = self._since(ctx, cursor)
            for window in windows_since(symbol, since, ctx.now(), self.settings.window_s):
                if self._is_open(window):
                    yield self.windowed(window)

    def _since(self, ctx: Context, cursor: Any) -> float:
        if cursor is None or not ctx.run.policy.skips_unchanged:
            return self.start_at
        return max(moment(cursor, "UTC") - self.settings.overlap, self.start_at)

    async def symbols(self, ctx: Context) -> AsyncIterator[str]:
        """Those that the source names, or all that the provider lists."""
        for symbol in self.settings.symbols:
            yield symbol
        if self.settings.symbols:
            return
        page = ""
        for _ in range(MOST_PAGES):
            response = await self._get(ctx, self.provider.symbols(page))
            symbols, following = self.provider.parse_symbols(response.body, page)
            for symbol in dict.fromkeys(symbols):
                yield symbol
            if not following or following == page:
                return
            page = following

    def windowed(self, window: Window) -> Item:
        return Item(window.key(), self._address(window, ""), about=dict(window.item()))

    async def read(self, ctx: Context, item: Item) -> AsyncIterator[Document | Item | Checkpoint]:
        """All pages of a window. A row that can't be used is rejected; the others are saved."""
        window = ctx.window
        if not self._is_open(window):
            return
        seen: list[int] = []
        held = 0
        async for page in self._pages(ctx, window):
            _reject(ctx, window.partition, page)
            for event in page.events:
                if not _is_within(event, window):
                    continue
                held += 1
                if event.sequence is not None:
                    seen.append(event.sequence)
                yield event.document(self.label)
            if held >= HELD:
                await ctx.commit()
                held = 0
        self._require_whole(ctx, window, seen)

    async def _pages(self, ctx: Context, window: Window) -> AsyncIterator[Page]:
        symbol, page, known = window.partition, "", {""}
        for _ in range(MOST_PAGES):
            response = await self._get(ctx, self.provider.historical(window, symbol, page), window)
            body, at = response.body, page
            found = await ctx.in_thread(lambda: self.provider.parse(body, symbol, at))  # noqa: B023
            yield found
            page = found.next
            if not page:
                return
            if page in known:
                raise BadData(f"the pages of {symbol} go in a circle", cause="pages in a circle")
            known.add(page)
        raise BadData(f"a window of {symbol} has more than {MOST_PAGES:,} pages", cause="too many")

    def _require_whole(self, ctx: Context, window: Window, seen: Sequence[int]) -> None:
        """A gap of the stream is filled when all that it lacks has come: history may be behind."""
        # Put there with the run that fills a gap.
        wanted = ctx.params.get("gap") if ctx.run.kind == "backfill" and ctx.run.of_run_id else None
        holes = missing_of(wanted, seen) if isinstance(wanted, list) else []
        if holes:
            shown = ", ".join(f"{first}–{last}" for first, last in holes[:5])
            raise Transient(
                f"the history of {window.partition} does not have sequence {shown} yet",
                cause="history is behind the stream",
            )

    async def _get(self, ctx: Context, address: str, window: Window | None = None) -> Response:
        if address.lower().startswith(HTTP):
            return await ctx.fetch(address, missing="fail")

        async def bring() -> Captured:
            path = address.removeprefix("./")
            try:
                body = await ctx.in_thread(
                    lambda: read_file(self.place.root, path, LARGEST_FILE, "skip")
                )
            except Gone:
                raise Permanent(f"there is no file {address}", cause="no file") from None
            return Captured(body)

        return await ctx.capture(self._captured(address, window), bring)

    def _address(self, window: Window, page: str) -> str:
        address = self.provider.historical(window, window.partition, page)
        is_page = address.lower().startswith(HTTP)
        return address if is_page else self._captured(address, window)

    def _captured(self, path: str, window: Window | None) -> str:
        """A file has no address of its own; each window that is read of it is a page."""
        part = "" if window is None else f"#{window.key()}"
        return f"market://{self.place.source}/{path.removeprefix('./')}{part}"

    def _is_open(self, window: Window) -> bool:
        calendar = self.settings.calendar
        return calendar is None or is_open_within(calendar, window.start_at, window.end_at)

    async def listen(self, ctx: Context) -> AsyncIterator[Document | Checkpoint]:
        from penstock.connectors.market.event_stream import EventStream

        async for found in EventStream(self, ctx).events():
            yield found

    async def settle(self, ctx: Context) -> None:
        await RunEnd(self, ctx).settle()

    async def actions(self, ctx: Context, symbol: str) -> list[Event]:
        """The splits and dividends of a symbol, as the provider has them now."""
        found: list[Event] = []
        page = ""
        for _ in range(MOST_PAGES):
            address = self.provider.adjustments(symbol, page)
            if not address:
                return found
            response = await self._get(ctx, address)
            parsed = self.provider.parse_adjustments(response.body, symbol, page)
            _reject(ctx, symbol, parsed)
            found += parsed.events
            if not parsed.next or parsed.next == page:
                return found
            page = parsed.next
        return found

    @classmethod
    def backfill(
        cls, keys: Mapping[str, Any], written: BackfillSettings | None
    ) -> BackfillSettings | None:
        """Symbols that are named are the partitions, and windows are as long as those of every run."""
        found = keys_from(keys)
        if not found.symbols or (written and written.partitions != DEFAULT_PARTITIONS):
            return written
        if written is None:
            return BackfillSettings(window_s=found.window_s, partitions=found.symbols)
        import msgspec

        return msgspec.structs.replace(written, partitions=found.symbols)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {"provider": "folder", "folder": "./prices", "start": "2026-10-01"}

    @classmethod
    def sample(cls, folder: Path) -> Sample:
        demo.write(folder)
        keys = {"provider": "folder", "folder": f"./{folder.name}", "start": demo.START}
        return Sample("demo-market", {**keys, "adjust": "split"})


def _is_within(event: Event, window: Window) -> bool:
    return (
        event.symbol == window.partition and window.start_at <= seconds(event.at_ns) < window.end_at
    )


def _reject(ctx: Context, symbol: str, page: Page) -> None:
    for reason in page.refused[:MOST_REFUSED]:
        ctx.reject(f"{symbol}: {reason}", code="bad_event")
    if len(page.refused) > MOST_REFUSED:
        more = len(page.refused) - MOST_REFUSED
        ctx.note(f"{count(more, 'more row')} of {symbol} can't be used")


def _start_of(at: float) -> Any:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC)
