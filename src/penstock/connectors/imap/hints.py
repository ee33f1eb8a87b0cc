"""Hints: a mailbox is looked at as soon as its server says that something has changed (IDLE).

A hint is a signal that starts a run, and nothing else: what has changed, the run finds out as any run does.
So a hint that is lost costs time and no message, and each new connection begins with one.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING

from penstock.connectors.imap.folders import wanted_folders
from penstock.http.failures import FetchError, HostClosed
from penstock.jobs.failures import Permanent

if TYPE_CHECKING:
    from penstock.connectors.imap.connector import Imap
    from penstock.connectors.imap.session import Session
    from penstock.pipeline.context import Context

CHANGED = "mail.changed"
# Each hint starts a run: changes that come together are one.
LEAST_S = 10.0
# So often it is looked whether the stream is to stop.
LOOK_S = 2.0
# Servers end a connection that idles for 30 minutes.
RENEWED_S = 1_500.0
FIRST_DELAY_S, LONGEST_DELAY_S = 0.05, 30.0
_CHANGES = frozenset({b"EXISTS", b"EXPUNGE", b"VANISHED"})


class Hints:
    """One attempt at following a mailbox; it ends when it is stopped, or can't ever go on."""

    def __init__(self, imap: Imap, ctx: Context) -> None:
        self._imap = imap
        self._ctx = ctx
        self._changes = _CHANGES | ({b"FETCH"} if imap.settings.follow_flags else set())
        self._was_connected = False
        self._hinted_at = -inf

    async def follow(self) -> None:
        delay_s = FIRST_DELAY_S
        while True:
            self._was_connected = False
            try:
                await self._connection()
            except (OSError, EOFError) as error:
                self._ctx.note(f"the connection for hints was lost ({type(error).__name__})")
            except FetchError as error:
                if error.kind != "transient" or isinstance(error, HostClosed):
                    raise
            delay_s = FIRST_DELAY_S if self._was_connected else min(2 * delay_s, LONGEST_DELAY_S)
            await self._ctx.commit()
            await asyncio.sleep(delay_s)

    async def _connection(self) -> None:
        session = await self._imap.opened(self._ctx)
        try:
            raw, name = await self._folder(session)
            while True:
                await self._imap.asked(self._ctx, session, lambda: session.begin_idle(raw))
                self._was_connected = True
                await self._raise_hint(name)
                await self._idle(session, name)
                await self._imap.asked(self._ctx, session, session.end_idle)
        finally:
            session.close()

    async def _folder(self, session: Session) -> tuple[bytes, str]:
        """The first of the folders that are read: one connection watches one."""
        keys = self._imap.settings
        if not await self._imap.asked(self._ctx, session, lambda: session.can_idle):
            raise Permanent(
                f"{keys.host} does not offer IDLE: run the source by a schedule alone",
                cause="no IDLE",
            )
        folders = await self._imap.asked(self._ctx, session, session.folders)
        found = next(iter(wanted_folders(folders, keys.folders, keys.exclude)), None)
        if found is None:
            raise Permanent(f"{keys.host} has no folder that is to be read", cause="no folder")
        return found.raw, found.name

    async def _idle(self, session: Session, name: str) -> None:
        """Until it is time to begin again: servers and routers drop what is silent for long."""
        loop = asyncio.get_running_loop()
        until, has_changed = loop.time() + RENEWED_S, False
        while has_changed or loop.time() < until:
            words = await self._ctx.in_thread(lambda: session.news(LOOK_S))
            has_changed = has_changed or bool(self._changes.intersection(words))
            if has_changed and loop.time() >= self._hinted_at + LEAST_S:
                await self._raise_hint(name)
                has_changed = False
            await self._ctx.commit()

    async def _raise_hint(self, name: str) -> None:
        self._hinted_at = asyncio.get_running_loop().time()
        self._ctx.signal(CHANGED, folder=name)
        await self._ctx.commit()
