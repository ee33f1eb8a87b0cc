"""Where the page comes from that a step asks for.

From the network, stored before it is handed over; from what the attempt before had stored, where that one
died; from the snapshots alone, in a replay; and in an incremental run only if it is not as it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.engine.worker.budget_use import Spending
from penstock.engine.worker.page_lookups import PageLookups
from penstock.engine.worker.page_revisit import Ask, PageRevisit, Visit
from penstock.engine.worker.replay_pages import ReplayPages
from penstock.engine.worker.snapshot_writer import SnapshotWriter
from penstock.engine.worker.stage_config import StageConfig
from penstock.errors import PipelineError, StoreCorrupt
from penstock.http.browser.options import RenderOptions
from penstock.http.browser.renderer import Renderer, RenderFailed
from penstock.http.cookies import Cookie
from penstock.http.fetch import Fetcher
from penstock.http.response import Response
from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed
from penstock.pipeline.attempt import Bring, StepRun
from penstock.pipeline.visits import is_page
from penstock.store.rows import SnapshotRow
from penstock.store.store import Store


@dataclass(frozen=True, slots=True)
class Errand:
    """One page that an attempt asks for."""

    job: Claimed
    run: StepRun
    config: StageConfig
    url: str
    # Entered while what is shared with others is waited for: the attempt's time stands still.
    idle: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True, slots=True)
class PageFetcher:
    """Fetches for the attempts of one worker."""

    store: Store
    snapshot_writer: SnapshotWriter
    fetcher: Fetcher
    spending: Spending
    replaying: ReplayPages
    ask: Ask
    lookups: PageLookups
    flush: Callable[[Claimed, Effects], Awaitable[None]]
    renderer: Renderer | None = None

    async def fetch(self, errand: Errand, options: dict[str, Any]) -> Response:
        job, run = errand.job, errand.run
        is_aside, is_unkept = options.pop("is_aside", False), options.pop("is_unkept", False)
        hands_over, made_with = options.pop("hands_over", False), options.pop("made_with", "")
        if not run.policy.fetches:
            options.pop("session", None)
            options.pop("price", None)
            return await self.replaying.fetch(job, run, errand.url, options)
        if is_unkept:
            return await self._send(errand, options)
        if is_aside:
            # A login is always a new one.
            return await self._kept(job, await self._send(errand, options))
        if job.is_resumed and options.get("method", "GET") == "GET":
            row = await self.ask(lambda: self.store.snapshots.of(job.id, errand.url))
            stored = await self._stored(job, row)
            if stored is not None:
                return stored
        is_anew = options.pop("is_anew", False)
        if run.policy.skips_unchanged and is_page(options) and not is_anew:
            version = f"{errand.config.source.version} {made_with}".rstrip()
            return await self._revisit(errand, options, version, hands_over=hands_over)
        if options.pop("conditional", False):
            return await self._fetch_if_changed(errand, options)
        return await self._kept(job, await self._send(errand, options))

    async def _send(self, errand: Errand, options: Mapping[str, Any]) -> Response:
        """Out to the network, on the attempt's account."""
        job, source = errand.job, errand.config.settings
        bring: Bring | None = options.get("bring")
        if bring is not None:
            return await bring(options.get("etag"), options.get("last_modified"))
        count = self.spending.counter(job, source.key)
        about = {"source": source.key, "run_id": job.run_id, "count": count, **options}
        about["is_again"] = job.tries > 0
        about["idle"] = errand.idle
        if (session := about.get("session")) is not None:
            about["session"] = msgspec.convert(session, list[Cookie])
        if "render" in about:
            return await self._render(errand, about)
        return await self.fetcher.fetch(errand.url, source.fetch, **about)

    async def _render(self, errand: Errand, about: dict[str, Any]) -> Response:
        """By the browser. A picture of the page is kept beside it, also of one that failed."""
        if self.renderer is None:
            raise PipelineError("there is no browser here: pages are drawn by workers")
        options = msgspec.convert(about.pop("render"), RenderOptions)
        try:
            rendered = await self.renderer.render(
                errand.url, errand.config.settings.fetch, options, **about
            )
        except RenderFailed as failed:
            if failed.screenshot is not None:
                await self.snapshot_writer.keep(errand.job, failed.screenshot)
            raise
        if rendered.screenshot is not None:
            await self.snapshot_writer.keep(errand.job, rendered.screenshot)
        return rendered.response

    async def _kept(self, job: Claimed, response: Response) -> Response:
        kept = await self.snapshot_writer.keep(job, response)
        if job.deaths:
            # A page that kills its worker must be known before the step can see it: it is the evidence.
            await self.flush(job, Effects())
        return kept

    async def _fetch_if_changed(self, errand: Errand, options: dict[str, Any]) -> Response:
        last = await self.ask(lambda: self.store.snapshots.last(errand.url))
        if last is not None:
            options["etag"] = last.headers.get("etag")
            options["last_modified"] = last.headers.get("last-modified")
        response = await self._send(errand, options)
        if last is None or not response.not_modified:
            return await self._kept(errand.job, response)
        stored = await self._stored(errand.job, last, not_modified=True)
        if stored is not None:
            return stored
        # The site says that we have it, and we do not any more.
        options["etag"] = options["last_modified"] = None
        return await self._kept(errand.job, await self._send(errand, options))

    async def last_stored(self, job: Claimed, url: str) -> Response | None:
        """A page as it was stored last, by whatever run."""
        return await self._stored(job, await self.ask(lambda: self.store.snapshots.last(url)))

    async def _stored(
        self, job: Claimed, row: SnapshotRow | None, *, not_modified: bool = False
    ) -> Response | None:
        """A page as it was stored; None if there is none, or it can't be read any more."""
        if row is None:
            return None
        try:
            return await self.snapshot_writer.read(job, row, not_modified=not_modified)
        except StoreCorrupt:
            return None

    async def _revisit(
        self, errand: Errand, options: dict[str, Any], version: str, *, hands_over: bool
    ) -> Response:
        """In an incremental run: no more than is needed to know whether a page is as it was."""
        options.pop("conditional", None)

        async def get(etag: str | None, last_modified: str | None) -> Response:
            about = {"etag": etag, "last_modified": last_modified, **options}
            return await self._send(errand, about)

        async def keep(response: Response) -> Response:
            return await self._kept(errand.job, response)

        revisiting = PageRevisit(self.store, self.snapshot_writer, self.ask, self.lookups)
        visit = Visit(errand.job, errand.url, version, get, keep, hands_over)
        is_page_level = errand.config.stage.unit == "page"
        return await (revisiting.page(visit) if is_page_level else revisiting.other(visit))
