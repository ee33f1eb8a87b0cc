"""What the steps of a dry run may ask for: pages, records, cursors. What they flush is only kept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.clock import Clock
from penstock.engine.dry_run.tried import Tried, TriedPage
from penstock.gates.rates import RateDecision, RateRequest, Sent
from penstock.http.browser.options import RenderOptions
from penstock.http.browser.renderer import Renderer
from penstock.http.door import Door
from penstock.http.failures import FetchError
from penstock.http.fetch import Fetcher
from penstock.http.network import AiohttpNetwork, Network
from penstock.http.request_gates import Caller
from penstock.http.response import Response
from penstock.jobs.effects import Effects
from penstock.jobs.effects.pages import KnownPage
from penstock.jobs.failures import Permanent
from penstock.jobs.job import Claimed
from penstock.pipeline.attempt import BeforeRequest, Bring
from penstock.project import Project
from penstock.settings import SourceSettings
from penstock.store.rows import SnapshotRow


class DryServices:
    """The services of the attempts of one dry run."""

    def __init__(
        self,
        project: Project,
        source: SourceSettings,
        tried: Tried,
        fetcher: Fetcher,
        *,
        is_offline: bool,
        renderer: Renderer | None = None,
        has_cursors: bool = True,
    ) -> None:
        self._project = project
        self._source = source
        self._tried = tried
        self._fetcher = fetcher
        self._is_offline = is_offline
        self._renderer = renderer
        self._has_cursors = has_cursors
        self._flushed = Effects()

    async def fetch(self, job: Claimed, url: str, **options: Any) -> Response:
        try:
            response = await self._fetch(job, url, options)
        except FetchError as error:
            self._tried.pages.append(TriedPage(url, error.status, 0, self._is_offline))
            raise
        size, is_kept = len(response.body), response.is_from_snapshot
        self._tried.pages.append(TriedPage(url, response.status, size, is_kept))
        return response

    async def _fetch(self, job: Claimed, url: str, options: dict[str, Any]) -> Response:
        bring: Bring | None = options.pop("bring", None)
        for ours in ("hands_over", "is_anew", "is_unkept", "made_with"):
            options.pop(ours, None)
        if not self._is_offline and bring is not None:
            return await bring(None, None)
        if not self._is_offline:
            options.pop("conditional", None)
            about = {"source": self._source.key, **options}
            if self._renderer is not None and "render" in about:
                wanted = msgspec.convert(about.pop("render"), RenderOptions)
                found = await self._renderer.render(url, self._source.fetch, wanted, **about)
                return found.response
            return await self._fetcher.fetch(url, self._source.fetch, **about)
        row = self._snapshot(job, url)
        if row is None:
            raise FetchError("not in the snapshots", url, None, True, "data")
        return self._project.read_page(row)

    def door(self, job: Claimed, host: str, port: int, *, tls: bool, begin: BeforeRequest) -> Door:
        if self._is_offline:
            raise Permanent("an offline dry run opens no connections")
        policy, caller = self._source.fetch, Caller(self._source.key)
        return self._fetcher.door(host, port, policy, caller, tls=tls, begin=begin)

    def _snapshot(self, job: Claimed, url: str) -> SnapshotRow | None:
        """The page that the job itself had, else the newest of this address."""
        pages = self._project.connection.snapshots.at(url)
        mine = [page for page in pages if page.id == job.snapshot]
        return next(iter([*mine, *pages]), None)

    async def flush(self, job: Claimed, effects: Effects) -> None:
        self._flushed.pour(effects)

    def take_flushed(self) -> Effects:
        """What was flushed since it was asked for last."""
        flushed, self._flushed = self._flushed, Effects()
        return flushed

    async def records(
        self, collection: str, after_key: str | None, limit: int
    ) -> list[dict[str, Any]]:
        rows = self._project.connection.records.of(collection, after_key or "", limit)
        return [{"key": row.key, "data": row.data, "score": row.score} for row in rows]

    async def known_pages(self, job: Claimed, urls: Sequence[str]) -> dict[str, KnownPage]:
        return {}

    async def pages_after(self, job: Claimed, after_url: str, limit: int) -> list[KnownPage]:
        return []

    async def last_stored(self, job: Claimed, url: str) -> Response | None:
        return None

    async def own_records(
        self, job: Claimed, collection: str, after_key: str, limit: int
    ) -> list[tuple[str, Any]]:
        return []

    async def cursors(self, job: Claimed) -> dict[str, Any]:
        """Where the source has come to; nowhere, in a dry run that begins at the beginning."""
        if not self._has_cursors:
            return {}
        return self._project.connection.checkpoints.cursors(job.source_id)


def open_fetcher(project: Project, clock: Clock, network: Network | None) -> Fetcher:
    """One that leaves alone the hosts that have asked for it."""
    fetcher = Fetcher(network or AiohttpNetwork(), clock, random.Random(), OpenDoor())
    for host, until in project.connection.hosts.closed().items():
        fetcher.close_host(host, until)
    return fetcher


class OpenDoor:
    """Lets every request out and counts none: a dry run sends one page at a time, and writes nothing."""

    async def ask(self, want: RateRequest) -> RateDecision:
        return RateDecision(0.0)

    def is_late(self, want: RateRequest, verdict: RateDecision, now: float) -> bool:
        return False

    def told(self, want: RateRequest, sent: Sent) -> None:
        pass

    def close(self, host: str, for_s: float) -> None:
        pass
