"""A stream of events, with its gaps.

Messages are stored as they came, batch by batch, before they are parsed. What a batch says is saved, the gaps
in it are signalled, and the place in the stream is remembered, in this order and in one transaction: a gap
can't be forgotten, and an event that comes twice is one record.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from penstock.connectors.contract import Checkpoint, Document
from penstock.connectors.market.events import Event
from penstock.connectors.market.moments import SECOND_NS, moment_ns, written
from penstock.connectors.market.provider import MOST_REFUSED, Frame
from penstock.connectors.market.sequences import Gap, Sequencer
from penstock.connectors.market.sessions import is_fault
from penstock.counting import count
from penstock.http.failures import FetchError, HostClosed
from penstock.jobs.failures import AuthFailed, BadData, Permanent
from penstock.pipeline.context import Captured

if TYPE_CHECKING:
    from penstock.connectors.market.connector import Market
    from penstock.connectors.market.keys import LiveKeys
    from penstock.http.websocket import WebSocket
    from penstock.pipeline.context import Context

BATCH_S = 0.2
BATCH_MESSAGES = 500
BATCH_BYTES = 4_000_000
# So often it is looked whether the stream is to stop.
LOOK_S = 2.0
FIRST_DELAY_S, LONGEST_DELAY_S = 0.05, 30.0
MS_NS = 1_000_000
GAP, STALE, RESTORED = "gap.found", "quality.stream_stale", "quality.stream_restored"


class Lost(Exception):
    """The connection is of no use any more; another one is to be made."""


@dataclass(slots=True)
class Batch:
    """Messages that came together."""

    messages: list[str] = field(default_factory=list)
    size: int = 0
    began_at: float = 0.0

    def add(self, message: str | bytes, now: float) -> None:
        text = message if isinstance(message, str) else message.decode("utf-8", "replace")
        self.began_at = self.began_at if self.messages else now
        self.messages.append(text)
        self.size += len(text)

    def is_full(self, now: float) -> bool:
        is_large = len(self.messages) >= BATCH_MESSAGES or self.size >= BATCH_BYTES
        return bool(self.messages) and (is_large or now - self.began_at >= BATCH_S)


class EventStream:
    """One attempt at a stream; it ends when it is stopped, or can't ever go on."""

    def __init__(self, market: Market, ctx: Context) -> None:
        if market.settings.live is None:
            raise Permanent(
                "this source has no stream: set live: {url: wss://…}", cause="no stream"
            )
        self._market = market
        self._ctx = ctx
        self._keys: LiveKeys = market.settings.live
        self._sequencers: dict[str, Sequencer] = {}
        self._gaps: dict[str, list[Gap]] = {}
        # Symbols of which nothing has come since the connection was made.
        self._unheard: set[str] = set()
        self._is_closed = False
        self._stale_since: float | None = None
        self._heard_at = 0.0
        self._batches = 0

    async def events(self) -> AsyncIterator[Document | Checkpoint]:
        """Everything that comes, over as many connections as it takes."""
        await self._begin()
        delay_s = FIRST_DELAY_S
        while True:
            before = self._batches
            try:
                async for found in self._connection():
                    yield found
            except (Lost, TimeoutError, OSError) as error:
                self._lose(str(error))
            except FetchError as error:
                if error.kind != "transient" or isinstance(error, HostClosed):
                    raise
                self._lose(str(error))
            delay_s = FIRST_DELAY_S if self._batches > before else min(2 * delay_s, LONGEST_DELAY_S)
            await self._ctx.commit()
            await asyncio.sleep(delay_s)

    async def _begin(self) -> None:
        cursors = await self._ctx.in_progress.services.cursors(self._ctx.in_progress.job)
        async for symbol in self._market.symbols(self._ctx):
            known = cursors.get(_partition(symbol)) or {}
            self._sequencers[symbol] = Sequencer(
                symbol,
                self._keys.reorder,
                self._keys.patience,
                known.get("sequence"),
                moment_ns(known["timestamp"]) if known.get("timestamp") else 0,
            )

    async def _connection(self) -> AsyncIterator[Document | Checkpoint]:
        """What comes over one connection."""
        last = {name: each.last for name, each in self._sequencers.items() if each.last is not None}
        wanted = self._market.provider.subscription(list(self._sequencers), last)
        parts = urlsplit(wanted.url)
        is_tls = parts.scheme.lower() == "wss"
        door = self._ctx.door(
            parts.hostname or "", parts.port or (443 if is_tls else 80), tls=is_tls
        )
        async with await door.websocket(wanted.url, wanted.headers) as socket:
            self._unheard = set(self._sequencers)
            self._heard_at = _now()
            for message in wanted.messages:
                await socket.send(message)
            async for batch in self._batched(socket):
                async for found in self._taken(batch):
                    yield found

    async def _batched(self, socket: WebSocket) -> AsyncIterator[Batch]:
        """Batches of messages; empty ones when something is waited for that does not come."""
        batch = Batch()
        while True:
            try:
                message = await socket.receive(self._wait_s(batch))
            except TimeoutError:
                self._check_silence()
            else:
                if message is None:
                    break
                self._heard_at = _now()
                batch.add(message, self._heard_at)
            if batch.is_full(_now()) or not batch.messages:
                full, batch = batch, Batch()
                yield full
        yield batch
        raise Lost("the provider closed the connection")

    def _wait_s(self, batch: Batch) -> float:
        now = _now()
        silent_at = self._heard_at + self._keys.heartbeat
        # Once it is known that silence is no fault, there is no hurry to look again.
        waits = [LOOK_S, silent_at - now if silent_at > now else LOOK_S]
        if batch.messages:
            waits.append(batch.began_at + BATCH_S - now)
        if any(each.waits for each in self._sequencers.values()):
            waits.append(self._keys.patience / 4)
        return max(0.001, min(waits))

    def _check_silence(self) -> None:
        silent_s = _now() - self._heard_at
        if self._is_fault(silent_s):
            raise Lost(f"nothing came for {silent_s:.1f} s")

    def _is_fault(self, silent_s: float) -> bool:
        calendar, now = self._market.settings.calendar, self._ctx.now()
        return is_fault(silent_s, self._keys.heartbeat, calendar, now, is_closed=self._is_closed)

    async def _taken(self, batch: Batch) -> AsyncIterator[Document | Checkpoint]:
        """Save what a batch says, signal its gaps, and remember the place: all of it, or nothing."""
        if batch.messages:
            await self._keep(batch)
        moved: set[str] = set()
        for event in self._in_order(batch):
            moved.add(event.symbol)
            yield event.document(self._market.label)
        self._signal_gaps()
        for symbol in moved:
            yield self._checkpoint(symbol)
        if moved:
            self._restore()
        await self._ctx.commit()

    async def _keep(self, batch: Batch) -> None:
        """As they came: a line for each message."""
        self._batches += 1
        address = f"market://{self._market.place.source}/stream/{self._ctx.run.id}"
        lines = b"\n".join(msgspec.json.encode(message) for message in batch.messages)

        async def bring() -> Captured:
            return Captured(lines)

        name = f"{address}/{self._ctx.attempt}/{self._batches}"
        await self._ctx.capture(name, bring, "application/x-ndjson")

    def _in_order(self, batch: Batch) -> list[Event]:
        events: list[Event] = []
        for message in batch.messages:
            frame = self._parsed(message)
            for event in frame.events:
                events += self._sequenced(event)
        now = _now()
        for sequencer in self._sequencers.values():
            if sequencer.waits:
                ready, gaps = sequencer.due(now)
                events += ready
                self._note_gaps(gaps)
        return events

    def _parsed(self, message: str) -> Frame:
        try:
            frame = self._market.provider.parse_frame(message)
        except BadData as error:
            self._ctx.reject(f"a message of the stream: {error}", code="bad_message")
            return Frame()
        for reason in frame.refused[:MOST_REFUSED]:
            self._ctx.reject(f"an event of the stream: {reason}", code="bad_event")
        if frame.problem:
            raise _refusal(frame.problem)
        if frame.is_closed or frame.events:
            self._is_closed = frame.is_closed
        return frame

    def _sequenced(self, event: Event) -> list[Event]:
        sequencer = self._sequencers.get(event.symbol)
        if sequencer is None:
            return []
        before_ns, restarts = sequencer.last_ns, sequencer.restarts
        is_first = event.symbol in self._unheard
        self._unheard.discard(event.symbol)
        ready, gaps = sequencer.take(event, _now())
        self._note_gaps(gaps)
        is_unnumbered = event.sequence is None and is_first and self._is_apart(before_ns, event)
        if before_ns and (is_unnumbered or sequencer.restarts > restarts):
            # Nothing says how much was missed: what lies between is asked for.
            self._note_gaps([Gap(event.symbol, 0, -1, before_ns, event.at_ns)])
        return ready

    def _is_apart(self, before_ns: int, event: Event) -> bool:
        keys = self._market.settings
        usual_ns = int(1.5 * keys.interval * SECOND_NS) if keys.kind == "bars" else 0
        return event.at_ns - before_ns > usual_ns

    def _note_gaps(self, gaps: list[Gap]) -> None:
        for gap in gaps:
            self._gaps.setdefault(gap.symbol, []).append(gap)

    def _signal_gaps(self) -> None:
        """One signal for each symbol: a linked backfill of exactly this stretch follows."""
        for symbol, gaps in self._gaps.items():
            start_ns = min(gap.start_ns for gap in gaps)
            end_ns = max(gap.end_ns for gap in gaps)
            ranges = [[gap.first, gap.last] for gap in gaps if gap.first <= gap.last]
            self._ctx.signal(
                GAP,
                partition=symbol,
                # A little more on both sides: providers round, and differ in which ends belong to a range.
                start_at=(start_ns // MS_NS - 1) / 1000,
                end_at=(end_ns // MS_NS + 2) / 1000,
                sequences=ranges,
            )
        self._gaps.clear()

    def _checkpoint(self, symbol: str) -> Checkpoint:
        found = self._sequencers[symbol]
        cursor: dict[str, int | str] = {"timestamp": written(found.last_ns, is_exact=True)}
        if found.last is not None:
            cursor["sequence"] = found.last
        return Checkpoint(cursor, _partition(symbol))

    def _lose(self, reason: str) -> None:
        """Once for each outage, and only while the exchange is open."""
        if self._stale_since is not None or not self._is_fault(inf):
            return
        self._stale_since = _now()
        self._ctx.note(f"the stream was lost: {reason}; connecting again")
        self._ctx.signal(STALE, reason=reason)

    def _restore(self) -> None:
        if self._stale_since is None:
            return
        away_s = round(_now() - self._stale_since, 1)
        self._stale_since = None
        dropped = sum(each.duplicates for each in self._sequencers.values())
        self._ctx.note(
            f"the stream is back after {away_s:g} s; {count(dropped, 'duplicate')} so far"
        )
        self._ctx.signal(RESTORED, away_s=away_s)


def _partition(symbol: str) -> str:
    return f"{symbol} stream"


def _now() -> float:
    return asyncio.get_running_loop().time()


def _refusal(problem: str) -> Exception:
    """What a provider says when it ends a stream itself."""
    is_auth = any(word in problem.lower() for word in ("auth", "token", "forbidden", "credential"))
    return AuthFailed(f"the provider refuses the stream: {problem}") if is_auth else Lost(problem)
