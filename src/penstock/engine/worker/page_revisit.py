"""A page that is visited again: an incremental run asks no more than it must to know whether it changed.

Nothing at all, where the sitemap or feed that this run has read says so; else for the page if it has changed;
else its content tells. What is as it was, and was extracted by the very code and configuration of today, is
left alone; by others, it is extracted anew from what was stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from penstock.engine.worker.calls import Answer
from penstock.engine.worker.page_lookups import PageLookups
from penstock.engine.worker.snapshot_writer import SnapshotWriter
from penstock.errors import StoreCorrupt
from penstock.http.lastmod import is_older
from penstock.http.response import Response
from penstock.jobs.effects import Extracted
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import Unchanged
from penstock.store.pages import PageRow
from penstock.store.rows import SnapshotRow
from penstock.store.store import Store

Keep = Callable[[Response], Awaitable[Response]]


class Ask(Protocol):
    async def __call__(self, verb: Callable[[], Answer]) -> Answer: ...


class Get(Protocol):
    """One request, with what it is to be compared with."""

    async def __call__(self, etag: str | None, last_modified: str | None) -> Response: ...


@dataclass(frozen=True, slots=True)
class Visit:
    """One fetch of an attempt: how the page is asked for, and how it is kept."""

    job: Claimed
    url: str
    version: str
    get: Get
    keep: Keep
    # A page that is as it was is handed over, too: it leads to others.
    hands_over: bool = False


@dataclass(frozen=True, slots=True)
class PageRevisit:
    """Fetches pages of incremental runs."""

    store: Store
    snapshot_writer: SnapshotWriter
    ask: Ask
    lookups: PageLookups

    async def page(self, visit: Visit) -> Response:
        """The page for a page-level step; Unchanged when there is nothing to do about it."""
        job = visit.job
        known = await self.lookups.get(job.source_id, visit.url)
        if known is None or known.done_hash is None:
            return await visit.keep(await visit.get(None, None))
        # Another step of this very run may have done it: then it is this one's turn.
        is_done = known.done_version == visit.version and known.done_run_id != job.run_id
        response, how = await self._looked_at(visit, known, is_done)
        if response is None:
            raise Unchanged(how)
        if not how:
            return response
        if is_done and known.done_parts == 1 and not visit.hands_over:
            about = (response.content_hash, response.snapshot_id, response.fetched_at)
            page = Extracted(visit.url, *about, visit.version, is_same=True)
            raise Unchanged(how, page)
        return replace(response, not_modified=True, is_done=is_done)

    async def other(self, visit: Visit) -> Response:
        """What any other step asks for: fetched only if it has changed, and handed over either way."""
        last = await self.ask(lambda: self.store.snapshots.last(visit.url))
        response, _ = await self._asked_for(visit, last)
        return response

    async def _looked_at(
        self, visit: Visit, known: PageRow, is_done: bool
    ) -> tuple[Response | None, str]:
        """The page, and by what it is known to be as it was; no page where it need not even be read."""
        if known.announced_run_id == visit.job.run_id and _is_older(known):
            how = f"its sitemap or feed names no change since {known.announced}"
            if is_done and known.done_parts == 1 and not visit.hands_over:
                return None, how
            if known.snapshot is not None:
                stored = await self._stored(visit, known.snapshot)
                if stored is not None:
                    return stored, how
        response, is_same = await self._asked_for(visit, known.snapshot)
        if is_same:
            return response, "the site says so"
        is_equal = response.content_hash == known.done_hash
        return response, "its content is the same" if is_equal else ""

    async def _asked_for(self, visit: Visit, last: SnapshotRow | None) -> tuple[Response, bool]:
        """The page as it is now, and whether the site says that it is the one we have."""
        etag = last.headers.get("etag") if last else None
        last_modified = last.headers.get("last-modified") if last else None
        response = await visit.get(etag, last_modified)
        if last is None or not response.not_modified:
            return await visit.keep(response), False
        stored = None
        # The answer is about the page that the redirects end at; if that is another now, ours is not meant.
        if response.url == (last.final_url or response.url):
            stored = await self._stored(visit, last)
        if stored is None:
            return await visit.keep(await visit.get(None, None)), False
        return replace(stored, fetched_at=response.fetched_at), True

    async def _stored(self, visit: Visit, row: SnapshotRow) -> Response | None:
        """A page as it was stored; None if it can't be read any more."""
        try:
            return await self.snapshot_writer.read(visit.job, row, not_modified=True)
        except StoreCorrupt:
            return None


def _is_older(known: PageRow) -> bool:
    return known.done_at is not None and is_older(
        known.announced, known.done_announced, known.done_at
    )
