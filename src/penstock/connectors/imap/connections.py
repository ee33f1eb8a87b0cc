"""The connection of a source: opened when it is needed, shared by the jobs of a worker, closed when idle.

Jobs that want messages at the same time get them with one FETCH: one of them asks for all, and the others
wait for it. A connection for each message would take longer than the message.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connectors.contract import Gone
from penstock.connectors.imap.room import Room
from penstock.http.failures import FetchError

if TYPE_CHECKING:
    from penstock.connectors.imap.session import Session
    from penstock.pipeline.context import Context

Answer = TypeVar("Answer")
Open = Callable[["Context"], Awaitable["Session"]]
# How long a server is left alone that asks for it and names no time.
PAUSE_S = 600.0
IDLE_S = 20.0
# What one FETCH brings: so many messages, or so many bytes of them.
BATCH_MESSAGES = 64
BATCH_BYTES = 8_000_000
# What all jobs of a source hold of messages at the same time.
MOST_HELD_BYTES = 64_000_000
# Around each message: its line, flags and date.
AROUND = 4_000


TURN = "turn"


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


class Wanted:
    """A message that a job waits for."""

    def __init__(self, folder: bytes, uidvalidity: int, uid: int, size: int) -> None:
        self.place = (folder, uidvalidity)
        self.uid = uid
        self.size = size
        # The message, None if it is gone, or that it is this one's turn to ask for those that wait.
        self.answer: asyncio.Future[dict[bytes, Any] | str | None] = _future()


class Connections:
    """What the jobs of one source share in one process. It belongs to one event loop at a time."""

    def __init__(self, open_session: Open, host: str, port: int) -> None:
        self._open = open_session
        self._where = (host, port)
        # Weak: a worker's loop is not kept for the sake of an idle connection, which ends with it.
        self._loop: weakref.ref[asyncio.AbstractEventLoop] | None = None
        self._idle: Session | None = None
        self._closing: weakref.ref[asyncio.TimerHandle] | None = None
        self._waiting: list[Wanted] = []
        self._is_asking = False
        self._was_kept = False
        self._room = Room(MOST_HELD_BYTES)

    @property
    def room(self) -> Room:
        """What messages may be held in."""
        self._attach()
        return self._room

    async def ask(
        self, ctx: Context, session: Session, work: Callable[[], Answer], max_bytes: int
    ) -> Answer:
        """One request on a connection. The connection is of no use after an error."""
        from penstock.connectors.imap.session import Busy

        door = ctx.door(*self._where)
        before = session.received
        try:
            return await door.ask(
                lambda: ctx.in_thread(work),
                received=lambda: session.received - before,
                max_bytes=max_bytes,
            )
        except Busy:
            raise door.pause(PAUSE_S) from None

    async def session(self, ctx: Context) -> Session:
        """The idle connection, or a new one. Give it back with `keep`, or close it."""
        self._attach()
        closing = self._closing() if self._closing is not None else None
        if closing is not None:
            closing.cancel()
        found, self._idle = self._idle, None
        return found or await self._open(ctx)

    def keep(self, session: Session) -> None:
        """It is well: the next one may have it, for a while."""
        self._attach()
        if self._idle is not None:
            session.close()
            return
        self._idle = session
        later = asyncio.get_running_loop().call_later(IDLE_S, self._close_idle)
        self._closing = weakref.ref(later)

    async def message(self, ctx: Context, wanted: Wanted) -> dict[bytes, Any]:
        """A message with its flags and date; Gone if the folder does not have it any more."""
        self._attach()
        self._waiting.append(wanted)
        if not self._is_asking or await self._answered(wanted) == TURN:
            wanted.answer = _future()
            await self._lead(ctx, wanted)
        found = wanted.answer.result()
        if not isinstance(found, dict):
            raise Gone("the message is not in its folder any more")
        return found

    async def _answered(self, wanted: Wanted) -> object:
        try:
            return await wanted.answer
        except asyncio.CancelledError:
            self._waiting = [each for each in self._waiting if each is not wanted]
            if wanted.answer.done() and not wanted.answer.cancelled():
                # Its turn came as it was stopped: it must not be lost to the others.
                self._hand_over()
            raise

    async def _lead(self, ctx: Context, own: Wanted) -> None:
        """Ask for those that wait, until one's own message is there; then it is another one's turn."""
        self._is_asking = True
        try:
            # Those that start together come together.
            await asyncio.sleep(0)
            while not own.answer.done():
                await self._ask_for(ctx, self._batch(own))
        finally:
            self._waiting = [each for each in self._waiting if each is not own]
            self._hand_over()

    def _hand_over(self) -> None:
        self._is_asking = False
        for each in self._waiting:
            if not each.answer.done():
                self._is_asking = True
                each.answer.set_result(TURN)
                return

    def _batch(self, own: Wanted) -> list[Wanted]:
        """One's own message, and others of the same folder."""
        batch, size = [own], own.size
        for each in self._waiting:
            if len(batch) >= BATCH_MESSAGES or size >= BATCH_BYTES:
                break
            if each is not own and each.place == own.place and not each.answer.done():
                batch.append(each)
                size += each.size
        return batch

    async def _ask_for(self, ctx: Context, batch: list[Wanted]) -> None:
        try:
            try:
                found = await self._fetched(ctx, batch)
            except FetchError as error:
                if error.is_permanent or not self._was_kept:
                    raise
                # Servers close idle connections at any moment. Once more, on a new one.
                found = await self._fetched(ctx, batch)
        except Exception as error:
            self._fail(batch, error)
            raise
        for each in batch:
            if not each.answer.done():
                each.answer.set_result(found.get(each.uid))
        taken = set(map(id, batch))
        self._waiting = [each for each in self._waiting if id(each) not in taken]

    def _fail(self, batch: list[Wanted], error: Exception) -> None:
        """Those that were asked for together fail together, each as an attempt of its own."""
        taken = set(map(id, batch))
        self._waiting = [each for each in self._waiting if id(each) not in taken]
        for each in batch[1:]:
            if not each.answer.done():
                each.answer.set_exception(error)
                each.answer.exception()  # heard, even if its attempt has ended

    async def _fetched(self, ctx: Context, batch: list[Wanted]) -> dict[int, Any]:
        self._was_kept = self._idle is not None
        session = await self.session(ctx)
        try:
            found = await self._from(ctx, session, batch)
        except BaseException:
            session.close()
            raise
        self.keep(session)
        return found

    async def _from(self, ctx: Context, session: Session, batch: list[Wanted]) -> dict[int, Any]:
        from penstock.connectors.imap.session import FolderGone

        folder, uidvalidity = batch[0].place
        try:
            # Servers need not show what came after a folder was opened.
            uidnext = session.state.uidnext if session.state else 0
            if session.folder != folder or max(each.uid for each in batch) >= uidnext:
                await self.ask(ctx, session, lambda: session.examine(folder), 1_000_000)
        except FolderGone:
            return {}
        if session.state is None or session.state.uidvalidity != uidvalidity:
            return {}  # recreated: what was listed is not there any more
        uids = sorted({each.uid for each in batch})
        allowed = sum(2 * each.size + AROUND for each in batch)
        return await self.ask(ctx, session, lambda: session.messages(uids, allowed), allowed)

    def _attach(self) -> None:
        """Nothing of another loop is of use: its worker has ended."""
        loop = asyncio.get_running_loop()
        if self._loop is None or self._loop() is not loop:
            self._close_idle()
            self._loop, self._closing = weakref.ref(loop), None
            self._waiting, self._is_asking = [], False
            self._room = Room(MOST_HELD_BYTES)
            # No timer of a loop that was closed comes any more.
            weakref.finalize(loop, self._close_idle)

    def _close_idle(self) -> None:
        if self._idle is not None:
            self._idle.close()
            self._idle = None
