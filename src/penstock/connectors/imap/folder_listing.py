"""What is new in one folder.

A folder whose state is that of the last run is not even opened. Where the server counts changes (CONDSTORE),
only what has changed since is listed, and what is gone by QRESYNC, or by counting. Else all messages are
listed, and compared with what is known.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.connectors.contract import Checkpoint, Found, Item, Removed, Unlisted, Unvisited
from penstock.connectors.imap.folders import (
    Folder,
    FolderState,
    address_of,
    address_prefix,
    key_of_address,
    uid_of,
)
from penstock.connectors.listing import KNOWN_BATCH, knowledge_of
from penstock.counting import count

if TYPE_CHECKING:
    from penstock.connectors.imap.connections import Connections
    from penstock.connectors.imap.keys import ImapKeys
    from penstock.connectors.imap.session import Session
    from penstock.jobs.effects.pages import KnownPage
    from penstock.pipeline.context import Context

# UIDs of one listing; ranges, because there may be gaps.
LISTED_AT_ONCE = 5_000
# A folder of which so many messages have changed is listed as a whole.
MOST_GONE = 50_000


class FolderListing:
    """One walk through one folder."""

    def __init__(
        self,
        ctx: Context,
        connections: Connections,
        session: Session,
        folder: Folder,
        keys: ImapKeys,
    ) -> None:
        self._ctx = ctx
        self._connections = connections
        self._session = session
        self._folder = folder
        self._keys = keys
        self._left_out = 0

    async def walk(self, source: str, cursors: Mapping[str, Any]) -> AsyncIterator[Found]:
        from penstock.connectors.imap.session import FolderGone

        self._source, self._prefix = source, address_prefix(source, self._folder.name)
        try:
            state = await self._asked(lambda: self._session.status(self._folder.raw))
            before = await self._complete(cursors.get(self._partition))
            if before is not None and before == _same(state, before):
                yield Unvisited(self._prefix)
                return
            state = await self._asked(lambda: self._session.examine(self._folder.raw))
        except FolderGone:
            # It was listed a moment ago. The next run knows more.
            yield Unlisted(self._prefix, "the folder can't be opened")
            return
        async for found in self._changes(state, before):
            yield found
        left_out = self._left_out
        if left_out:
            words = f"{self._folder.name}: {count(left_out, 'message')} too large or too old"
            self._ctx.note(f"{words} left out")
        cursor = msgspec.to_builtins(msgspec.structs.replace(state, left_out=left_out))
        yield Checkpoint(cursor, self._partition, ordered=False)

    @property
    def _partition(self) -> str:
        return f"folder {self._folder.name}"[:200]

    async def _complete(self, cursor: Any) -> FolderState | None:
        """The state that the last run left, if all of it was read: no attempt failed or was cancelled."""
        if not self._ctx.run.policy.skips_unchanged or not isinstance(cursor, dict):
            return None
        before = msgspec.convert(cursor, FolderState)
        version, done = self._ctx.source.version, 0
        beginning = f"{self._prefix}{before.uidvalidity}/"
        async for page in self._known(beginning):
            if page.done_hash is not None and page.done_version != version:
                return None
            done += page.done_hash is not None
        return before if done == before.messages - before.left_out else None

    async def _known(self, beginning: str) -> AsyncIterator[KnownPage]:
        knowledge, job = knowledge_of(self._ctx), self._ctx.in_progress.job
        after = beginning
        while pages := await knowledge.pages_after(job, after, KNOWN_BATCH):
            for page in pages:
                if not page.url.startswith(beginning):
                    return
                yield page
            after = pages[-1].url

    async def _changes(
        self, state: FolderState, before: FolderState | None
    ) -> AsyncIterator[Found]:
        if not state.messages:
            async for page in self._known(self._prefix):
                yield Removed(page.url)
            yield Unvisited(self._prefix)
            return
        changed = await self._changed_since(state, before)
        if changed is None:
            async for item in self._all(state):
                yield item
            return
        items, gone = changed
        for item in items:
            yield item
        for address in gone:
            yield Removed(address)
        yield Unvisited(self._prefix)

    async def _changed_since(
        self, state: FolderState, before: FolderState | None
    ) -> tuple[list[Item], list[str]] | None:
        """What has changed since the last run; None if the server can't tell all of it."""
        if before is None or before.uidvalidity != state.uidvalidity:
            return None
        if not before.modseq or not state.modseq:
            return None
        session, modseq = self._session, before.modseq
        found, vanished = await self._asked(
            lambda: session.listed(f"1:{max(1, state.uidnext - 1)}", state.messages, modseq)
        )
        # By then it may have counted on.
        found = {uid: about for uid, about in found.items() if uid < state.uidnext}
        new = sum(uid >= before.uidnext for uid in found)
        if session.has_vanished:
            gone = await self._gone(vanished, state)
        else:
            gone = [] if before.messages + new == state.messages else None
        if gone is None:
            return None
        self._left_out = before.left_out
        return self._items(found, state), gone

    async def _gone(
        self, vanished: Sequence[tuple[int, int]], state: FolderState
    ) -> list[str] | None:
        """Addresses of known messages in these ranges of UIDs, which may be wide."""
        if not vanished:
            return []
        found = []
        async for page in self._known(f"{self._prefix}{state.uidvalidity}/"):
            uid = uid_of(page.url)
            if any(first <= uid <= last for first, last in vanished):
                found.append(page.url)
                if len(found) > MOST_GONE:
                    return None
        return found

    async def _all(self, state: FolderState) -> AsyncIterator[Item]:
        for uids, most in await self._ranges(state):
            found, _ = await self._asked(
                lambda uids=uids, most=most: self._session.listed(uids, most)
            )
            for item in self._items(found, state):
                yield item

    async def _ranges(self, state: FolderState) -> list[tuple[str, int]]:
        """UIDs to list, in parts of a bounded size."""
        day = self._keys.first_day
        if day is not None:
            uids = sorted(await self._asked(lambda: self._session.uids_since(day)))
            self._left_out += max(0, state.messages - len(uids))
            parts = [uids[at : at + 500] for at in range(0, len(uids), 500)]
            return [(",".join(map(str, part)), len(part)) for part in parts]
        last = state.uidnext - 1
        if last < 1:  # it does not say what the next one is
            return [("1:*", state.messages)]
        # Where most UIDs are gone, more of them are asked for at once.
        step = max(LISTED_AT_ONCE, last // max(1, state.messages) * LISTED_AT_ONCE)
        return [
            (f"{first}:{min(last, first + step - 1)}", min(step, state.messages))
            for first in range(1, last + 1, step)
        ]

    def _items(self, found: Mapping[int, Any], state: FolderState) -> list[Item]:
        items = []
        for uid in sorted(found):
            size = found[uid].get(b"RFC822.SIZE", 0)
            if size > self._keys.max_bytes or self._is_too_old(found[uid]):
                self._left_out += 1
                continue
            items.append(self._item(uid, size, found[uid].get(b"FLAGS", ()), state.uidvalidity))
        return items

    def _is_too_old(self, about: Mapping[bytes, Any]) -> bool:
        day, came = self._keys.first_day, about.get(b"INTERNALDATE")
        if day is None or not isinstance(came, datetime):
            return False
        # The server's own day decides in SEARCH; its zone is in the date.
        return came.replace(tzinfo=UTC) < day

    def _item(self, uid: int, size: int, flags: Sequence[bytes], uidvalidity: int) -> Item:
        address = address_of(self._source, self._folder.name, uidvalidity, uid)
        about: dict[str, Any] = {
            "folder": self._folder.raw.decode("latin-1"),
            "validity": uidvalidity,
            "uid": uid,
            "size": size,
        }
        # The size, which is equal for equal messages, and no flag unless it is to be followed.
        fingerprint = f"{size}."
        if self._keys.follow_flags:
            about["anew"] = True
            fingerprint += "-".join(sorted(flag.decode("latin-1") for flag in flags))
        return Item(key_of_address(self._source, address), address, fingerprint, about)

    async def _asked(self, work: Any) -> Any:
        return await self._connections.ask(self._ctx, self._session, work, 20_000_000)


def _same(state: FolderState, before: FolderState) -> FolderState | None:
    """The state now, to be compared with the one before; None where it does not tell of changes."""
    if not state.modseq or not state.uidnext:
        return None
    return msgspec.structs.replace(state, left_out=before.left_out)
