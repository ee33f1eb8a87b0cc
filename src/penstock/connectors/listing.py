"""A listing: what a connector finds, told from what was found before.

What is as it was when it was read is left out, in batches; what is known and not found any more is deleted,
or asked for once more; and what has only another name is recognised by its content.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
from msgspec.structs import replace

from penstock.connectors.contract import (
    Checkpoint,
    Connector,
    Found,
    Item,
    Listed,
    Removed,
    Unlisted,
    Unvisited,
)
from penstock.counting import count
from penstock.http.lastmod import FINGERPRINT, is_older
from penstock.jobs.effects import Announced
from penstock.jobs.effects.pages import KnownPage
from penstock.jobs.failures import BadData

if TYPE_CHECKING:
    from penstock.http.response import Response
    from penstock.jobs.job import Claimed
    from penstock.pipeline.context import Context

BATCH = 500
KNOWN_BATCH = 2000
# So many new items wait for the end of the listing, in case they are known ones under another name.
MOST_HELD = 10_000


class Knowledge(Protocol):
    """What the engine knows of a source's pages."""

    async def known_pages(self, job: Claimed, urls: Sequence[str]) -> dict[str, KnownPage]:
        """What is known of these, by their addresses."""
        ...

    async def pages_after(self, job: Claimed, after_url: str, limit: int) -> list[KnownPage]:
        """The next ones after an address."""
        ...

    async def last_stored(self, job: Claimed, url: str) -> Response | None:
        """What was stored last of an address; None if it is not there any more."""
        ...


def knowledge_of(ctx: Context) -> Knowledge:
    return cast(Knowledge, ctx.in_progress.services)


class Listing:
    """One walk of a connector through its place."""

    def __init__(self, ctx: Context, connector: Connector[Any]) -> None:
        self._ctx = ctx
        self._attempt = ctx.in_progress
        self._connector = connector
        self._knowledge = knowledge_of(ctx)
        self._batch: list[Item] = []
        self._held: list[Item] = []
        self._unlisted: list[str] = []
        self._listed: list[str] = []
        self._removed: list[str] = []
        self._checkpoints: list[Checkpoint] = []
        self._is_known_place: bool | None = None
        self.found = self.unchanged = self.deleted = self.renamed = 0

    async def take(self, found: Found) -> AsyncIterator[Item]:
        """What of it is to be read."""
        if isinstance(found, Item):
            self._batch.append(found)
            if len(self._batch) < BATCH:
                return
        async for item in self._changed():
            yield item
        if isinstance(found, Unlisted):
            self._unlisted.append(found.address)
            self._ctx.note(f"not listed: {found.address}: {found.reason}")
        elif isinstance(found, Listed):
            self._listed.append(found.address)
        elif isinstance(found, Unvisited):
            self._unlisted.append(found.address)
        elif isinstance(found, Removed):
            self._removed.append(found.address)
        elif isinstance(found, Checkpoint):
            self._checkpoints.append(found)
            if self._connector.deletions == "never" and not self._connector.finds_renames:
                self._remember()

    async def rest(self) -> AsyncIterator[Item]:
        """The end of the listing: what is left of it, and what it does not have any more."""
        async for item in self._changed():
            yield item
        self._listed = _outermost(self._listed)
        gone = await self._unseen() if self._tells_deletions() else []
        gone += await self._known_to_be_removed()
        moved = await self._renames(gone)
        for item in self._held:
            yield moved.get(item.address, item)
        sources = {item.moved_from: item.key for item in moved.values()}
        for page in gone:
            yield self._missing(page, sources)
        self._remember()
        self._tell()

    def _remember(self) -> None:
        """Checkpoints, once all that they stand for is handed on: also what was held, and what is gone."""
        for each in self._checkpoints:
            self._ctx.checkpoint(each.cursor, each.partition, ordered=each.ordered)
        self._checkpoints.clear()

    async def _changed(self) -> AsyncIterator[Item]:
        """Of a batch: those that are not as they were. All are announced first: they count as seen."""
        batch, self._batch = self._batch, []
        self.found += len(batch)
        for item in batch:
            self._attempt.announce(Announced(item.address, item.announced))
        known: dict[str, KnownPage] = {}
        is_asked = bool(batch) and self._attempt.run.policy.skips_unchanged
        if is_asked:
            known = await self._knowledge.known_pages(
                self._attempt.job, [item.address for item in batch]
            )
        for found in batch:
            page = known.get(found.address)
            is_new = is_asked and (page is None or page.done_hash is None)
            item = replace(found, is_new=True) if is_new else found
            if page is not None and self._is_as_it_was(item, page):
                self.unchanged += 1
            elif page is None and await self._may_be_renamed():
                self._held.append(item)
            else:
                yield item

    def _is_as_it_was(self, item: Item, page: KnownPage) -> bool:
        """By the rule of Revisiting, for what needs not even a job."""
        return (
            page.done_hash is not None
            and page.done_version == self._attempt.version
            and page.done_run_id != self._attempt.job.run_id
            and page.done_parts == 1
            and is_older(item.announced, page.done_announced, page.done_at or 0.0)
        )

    async def _may_be_renamed(self) -> bool:
        if not self._connector.finds_renames or len(self._held) >= MOST_HELD:
            return False
        if not self._attempt.run.policy.skips_unchanged:
            return False
        if self._is_known_place is None:
            known = await self._knowledge.pages_after(self._attempt.job, "", 1)
            self._is_known_place = any(page.done_hash for page in known)
        return self._is_known_place

    def _tells_deletions(self) -> bool:
        kind = self._connector.deletions
        return bool(self._listed) if kind == "within" else kind != "never"

    async def _unseen(self) -> list[KnownPage]:
        """Known pages that this run has not met."""
        attempt = self._attempt
        if not attempt.run.policy.notes_announced or attempt.run.options.pages is not None:
            return []
        await self._ctx.commit()
        unseen, after = [], ""
        while pages := await self._knowledge.pages_after(attempt.job, after, KNOWN_BATCH):
            after = pages[-1].url
            unseen += [page for page in pages if self._is_missing(page)]
            if len(pages) < KNOWN_BATCH:
                break
        if unseen and not self.found and self._connector.deletions == "absent":
            raise BadData(
                f"nothing is there, and {count(len(unseen), 'item')} were read before: is it the same place, "
                "and mounted? Nothing was deleted",
                cause="the place is empty",
            )
        return unseen

    async def _known_to_be_removed(self) -> list[KnownPage]:
        """Of what the place says is gone: what was read before."""
        if not self._attempt.run.policy.notes_announced:
            return []
        found: list[KnownPage] = []
        for at in range(0, len(self._removed), BATCH):
            addresses = self._removed[at : at + BATCH]
            known = await self._knowledge.known_pages(self._attempt.job, addresses)
            found += [page for page in known.values() if page.done_hash is not None]
        return found

    def _is_missing(self, page: KnownPage) -> bool:
        if page.done_hash is None or page.announced_run_id == self._attempt.job.run_id:
            return False
        if self._connector.deletions == "within" and not _is_below(page.url, self._listed):
            return False
        return not any(page.url.startswith(address) for address in self._unlisted)

    async def _renames(self, gone: Sequence[KnownPage]) -> dict[str, Item]:
        """Held items whose content is that of one that is gone, by address."""
        by_hash = {page.done_hash: page for page in gone}
        sizes = {_size(page.done_announced.removeprefix(FINGERPRINT)) for page in gone}
        moved: dict[str, Item] = {}
        for item in self._held:
            if not by_hash or _size(item.fingerprint) not in sizes:
                continue
            page = by_hash.pop(await self._connector.digest(self._ctx, item), None)
            if page is not None:
                before = self._connector.key_of(page.url)
                moved[item.address] = msgspec.structs.replace(item, moved_from=before)
                self.renamed += 1
        return moved

    def _missing(self, page: KnownPage, moved: dict[str, str]) -> Item:
        key = self._connector.key_of(page.url)
        if self._connector.deletions == "asked":
            return self._connector.again(key, page)
        self.deleted += 1
        return Item(key, page.url, is_deleted=True, moved_to=moved.get(key, ""))

    def _tell(self) -> None:
        counts = {
            "unchanged": self.unchanged,
            "renamed": self.renamed,
            "deleted": self.deleted - self.renamed,
        }
        told = "".join(f", {number:,} {word}" for word, number in counts.items() if number)
        if told:
            self._ctx.note(f"{count(self.found, 'item')} found{told}")


def _outermost(addresses: list[str]) -> list[str]:
    """Without those that are below another, in their order."""
    kept: list[str] = []
    for address in sorted(addresses):
        if not kept or not address.startswith(kept[-1]):
            kept.append(address)
    return kept


def _is_below(url: str, addresses: list[str]) -> bool:
    """Whether one of these, of which none is below another, is the beginning of the URL."""
    at = bisect_right(addresses, url)
    return at > 0 and url.startswith(addresses[at - 1])


def _size(fingerprint: str) -> str:
    return fingerprint.partition(".")[0]
