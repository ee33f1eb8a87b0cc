"""What steps may ask of the worker that performs them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from penstock.engine.tracing.attempts import AttemptTracer
from penstock.engine.worker.budget_use import Spending
from penstock.engine.worker.known_runs import KnownRuns
from penstock.engine.worker.lease import Lease, PatientCalls
from penstock.engine.worker.page_fetcher import Errand, PageFetcher
from penstock.engine.worker.page_lookups import PageLookups
from penstock.engine.worker.replay_pages import ReplayPages
from penstock.engine.worker.running_jobs import RunningJobs
from penstock.engine.worker.settler import Settler
from penstock.engine.worker.snapshot_writer import SnapshotWriter
from penstock.http.browser.renderer import Renderer
from penstock.http.door import Door
from penstock.http.fetch import Fetcher
from penstock.http.request_gates import Caller
from penstock.http.response import Response
from penstock.jobs.effects import Effects
from penstock.jobs.effects.pages import KnownPage
from penstock.jobs.failures import Permanent
from penstock.jobs.job import Claimed
from penstock.pipeline.attempt import BeforeRequest
from penstock.store.store import Store


class StepServices:
    """Fetches, flushes and reads for the attempts of one worker. On the event loop."""

    def __init__(
        self,
        *,
        store: Store,
        ask: PatientCalls,
        lease: Lease,
        running: RunningJobs,
        runs: KnownRuns,
        settler: Settler,
        snapshot_writer: SnapshotWriter,
        fetcher: Fetcher,
        spending: Spending,
        replaying: ReplayPages,
        renderer: Renderer | None = None,
        tracer: AttemptTracer | None = None,
    ) -> None:
        self._store = store
        self._ask = ask
        self._lease = lease
        self._running = running
        self._runs = runs
        self._settler = settler
        self._tracer = tracer
        self._fetcher = fetcher
        self._spending = spending
        self._fetching = PageFetcher(
            store,
            snapshot_writer,
            fetcher,
            spending,
            replaying,
            ask,
            PageLookups(store, ask),
            self.flush,
            renderer,
        )

    async def fetch(self, job: Claimed, url: str, **options: Any) -> Response:
        """Fetch a page for an attempt: stored before it is handed over."""
        await self._lease.require()
        running = self._running[job.id, job.attempt]
        idle = partial(self._running.standing_still, running)
        errand = Errand(job, running.work.run, running.config, url, idle)
        fetching = self._fetching.fetch(errand, options)
        if self._tracer is None:
            return await fetching
        return await self._tracer.fetch(job, url, fetching)

    def door(self, job: Claimed, host: str, port: int, *, tls: bool, begin: BeforeRequest) -> Door:
        """The way to a host for other protocols, on the attempt's account."""
        running = self._running[job.id, job.attempt]
        if not running.work.run.policy.fetches:
            raise Permanent("a replay opens no connections: only what ctx.capture stored is there")

        async def begin_leased() -> None:
            await begin()
            await self._lease.require()

        source, idle = running.config.settings, partial(self._running.standing_still, running)
        count = self._spending.counter(job, source.key)
        caller = Caller(source.key, job.run_id, job.tries > 0, count=count, idle=idle)
        return self._fetcher.door(host, port, source.fetch, caller, tls=tls, begin=begin_leased)

    async def flush(self, job: Claimed, effects: Effects) -> None:
        running = self._running.get((job.id, job.attempt))
        is_long = running is not None and running.work.stage.is_long
        await self._settler.flush(job, effects, is_long=is_long)

    async def records(
        self, collection: str, after_key: str | None, limit: int
    ) -> list[dict[str, Any]]:
        rows = await self._ask(lambda: self._store.records.of(collection, after_key or "", limit))
        return [{"key": row.key, "data": row.data, "score": row.score} for row in rows]

    async def known_pages(self, job: Claimed, urls: Sequence[str]) -> dict[str, KnownPage]:
        return await self._ask(lambda: self._store.pages.known(job.source_id, urls))

    async def pages_after(self, job: Claimed, after_url: str, limit: int) -> list[KnownPage]:
        return await self._ask(lambda: self._store.pages.after(job.source_id, after_url, limit))

    async def last_stored(self, job: Claimed, url: str) -> Response | None:
        return await self._fetching.last_stored(job, url)

    async def own_records(
        self, job: Claimed, collection: str, after_key: str, limit: int
    ) -> list[tuple[str, Any]]:
        """Keys and data of the records that the job's source wrote last."""

        def read() -> list[tuple[str, Any]]:
            found = self._store.records.each(
                collection, source_id=job.source_id, after_key=after_key, limit=limit
            )
            return [(row.key, row.data) for row in found]

        return await self._ask(read)

    async def backlog(self, job: Claimed) -> tuple[int, int]:
        return await self._ask(lambda: self._store.runs.backlog(job.run_id, job.stage))

    async def covered(
        self, job: Claimed, partitions: Sequence[str], start_at: float, end_at: float
    ) -> list[tuple[str, float, float]]:
        where = (job.source_id, partitions, start_at, end_at)
        found = await self._ask(lambda: self._store.sources.covered(*where))
        return [(row.partition, row.start_at, row.end_at) for row in found]

    async def cursors(self, job: Claimed) -> dict[str, Any]:
        if self._runs.policy(job.run_id).moves_checkpoints:
            return await self._ask(lambda: self._store.checkpoints.cursors(job.source_id))
        return await self._ask(lambda: self._store.checkpoints.of_run(job.run_id))
