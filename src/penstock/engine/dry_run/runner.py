"""Performing one page and what follows it, without writing anything."""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from typing import Any

import msgspec

from penstock.clock import SyncedClock
from penstock.connectors.graphs import probe_graph
from penstock.engine.dry_run.record_preview import RecordPreview
from penstock.engine.dry_run.services import DryServices, open_fetcher
from penstock.engine.dry_run.start import Start, known_id, start_of
from penstock.engine.dry_run.tried import Tried, tried_job
from penstock.engine.worker.perform import Performer
from penstock.engine.worker.performance import Work
from penstock.engine.worker.stage_config import SourceConfig, StageConfig, stage_config_of
from penstock.engine.worker.threads import Threads
from penstock.http.browser.browsers import Browsers
from penstock.http.browser.renderer import Renderer
from penstock.http.network import Network
from penstock.jobs.effects import Effects, Rejection
from penstock.jobs.job import Claimed, NewJob
from penstock.jobs.outcome import Outcome, Skipped, Succeeded
from penstock.jobs.run import NO_OPTIONS, RunOptions
from penstock.pipeline.attempt import StepRun
from penstock.pipeline.graph import Graph
from penstock.project import Project
from penstock.settings import SourceSettings

MOST_JOBS = 1000
# So many jobs are performed for each record that a sample shall have.
SAMPLED_JOBS = 5


def try_page(
    project: Project,
    name: str,
    target: str,
    *,
    stage: str | None = None,
    item: Any = None,
    is_offline: bool = False,
    network: Network | None = None,
    has_timeouts: bool = True,
) -> Tried:
    """Perform the steps of one page, and what follows them, without writing anything.

    `target` is the address of a page, or the number of a job. `item` is what the step is given; without it,
    the item of the newest job for this address, or `{"url": address}`. All of it happens in this process.
    """
    source = project.source(name)
    graph = project.graph(source)
    start = start_of(project, source, graph, target, stage, item)

    async def run() -> Tried:
        tried = Tried(source.key, start.stage.name, msgspec.json.decode(start.item))
        clock = SyncedClock(project.clock)
        fetcher, threads = open_fetcher(project, clock, network), Threads(1)
        browsers = Browsers()
        renderer = Renderer(fetcher, browsers, clock)
        services = DryServices(
            project, source, tried, fetcher, is_offline=is_offline, renderer=renderer
        )
        performer = Performer(clock=clock, services=services, threads=threads)
        try:
            dry_run = DryRun(project, source, graph, tried, services, performer, has_timeouts)
            await dry_run.perform_all(start)
        finally:
            browsers.close()
            await fetcher.close()
            threads.close()
        return tried

    return asyncio.run(run())


def probe_source(project: Project, name: str, pages: int, network: Network | None = None) -> Tried:
    """Ask the connector of a source about its place, begin a run, and perform its first pages.

    Nothing is written. What the connector says is in `facts`; if it fails, nothing else is tried.
    """
    source = project.source(name)
    graph = project.graph(source)
    [first, *_] = graph.stages
    options = RunOptions(pages=pages)

    async def run() -> Tried:
        tried = Tried(source.key, first.name, None)
        clock = SyncedClock(project.clock)
        fetcher, threads = open_fetcher(project, clock, network), Threads(1)
        browsers = Browsers()
        renderer = Renderer(fetcher, browsers, clock)
        services = DryServices(
            project, source, tried, fetcher, is_offline=False, has_cursors=False, renderer=renderer
        )
        performer = Performer(clock=clock, services=services, threads=threads)
        parts = (tried, services, performer, True, options)
        try:
            if source.connector:
                asking = probe_graph(source.connector, tried.facts)
                await DryRun(project, source, asking, *parts).perform_root()
            if not tried.failed:
                await DryRun(project, source, graph, *parts).perform_first(pages)
        finally:
            browsers.close()
            await fetcher.close()
            threads.close()
        return tried

    return asyncio.run(run())


class DryRun:
    """The jobs of one dry run, one after the other."""

    def __init__(
        self,
        project: Project,
        source: SourceSettings,
        graph: Graph,
        tried: Tried,
        services: DryServices,
        performer: Performer,
        has_timeouts: bool,
        options: RunOptions = NO_OPTIONS,
    ) -> None:
        self._options = options
        self._project = project
        self._source = source
        self._graph = graph
        self._tried = tried
        self._services = services
        self._performer = performer
        self._has_timeouts = has_timeouts
        self._source_id = known_id(project, source.key)
        self._stage_configs: dict[str, StageConfig] = {}
        self._preview = RecordPreview(project)

    async def perform_all(self, start: Start) -> None:
        """The first job and the candidates that come of it; what they would write goes into the report."""
        await self._perform_each(start)
        changes = self._preview.changes()
        self._tried.contents = self._preview.contents()
        self._tried.changes = [change for change in changes if change.kind != "same"]
        for change in changes:
            self._tried.totals.count(change)

    async def perform_root(self) -> list[NewJob]:
        """What begins a run."""
        return await self._perform(NewJob(self._graph.stages[0].name, "root", b"null"), 1)

    async def perform_first(self, pages: int) -> None:
        """What begins a run, and of what it finds so much that this many records would be saved."""
        queue = deque(await self.perform_root())
        performed = 0
        while queue and performed < pages * SAMPLED_JOBS:
            if self._preview.count >= pages or len(self._tried.failed) >= pages:
                break
            performed += 1
            # What a page leads to comes before the next page: with documents of its own, it has records.
            queue.extendleft(reversed(await self._perform(queue.popleft(), performed + 1)))
        for job in queue:
            self._tried.enqueued.setdefault(job.stage, []).append(job.key)
        self._tried.saved = self._preview.saved()

    async def _perform_each(self, start: Start) -> None:
        queue = deque([NewJob(start.stage.name, start.key, start.item, snapshot=start.snapshot)])
        seen: set[tuple[str, str]] = set()
        while queue:
            job = queue.popleft()
            if (job.stage, job.key) in seen:
                continue
            if len(seen) == MOST_JOBS:
                self._tried.is_cut = True
                return
            seen.add((job.stage, job.key))
            for child in await self._perform(job, len(seen)):
                stage = self._graph.stage(child.stage)
                if stage is not None and stage.unit == "candidate":
                    queue.append(child)
                else:
                    self._tried.enqueued.setdefault(child.stage, []).append(child.key)

    async def _perform(self, job: NewJob, number: int) -> list[NewJob]:
        config = self._stage_config(job.stage)
        claimed = Claimed(
            number, 0, self._source_id, job.stage, job.key, 1, 0, 0, 0, False,
            job.item.decode(), job.snapshot,
        )  # fmt: skip
        work = Work(
            claimed, config.stage, config.graph, config.source,
            StepRun(0, options=self._options, pipeline_version=config.source.version),
            config.timeout_s if self._has_timeouts else inf,
        )  # fmt: skip
        ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._performer.start(work, lambda _, outcome: ended.set_result(outcome))
        outcome = await ended
        self._tried.jobs.append(tried_job(job, outcome))
        flushed = self._services.take_flushed()
        if isinstance(outcome, Succeeded | Skipped) and outcome.effects is not None:
            flushed.pour(outcome.effects)
        if isinstance(outcome, Skipped) and outcome.is_rejection:
            judged = Rejection(outcome.code, outcome.reason, outcome.score)
            flushed.rejections.append(judged)
        return self._take(flushed)

    def _stage_config(self, name: str) -> StageConfig:
        if name not in self._stage_configs:
            [stage] = [stage for stage in self._graph.stages if stage.name == name]
            config = SourceConfig(
                self._source, self._graph, self._project.retries, self._project.settings.root
            )
            self._stage_configs[name] = stage_config_of(config, stage)
        return self._stage_configs[name]

    def _take(self, effects: Effects) -> list[NewJob]:
        for save in effects.saves:
            self._preview.save(save)
        self._tried.rejections += effects.rejections
        self._tried.notes += [note.text for note in effects.notes]
        self._tried.signals += [signal.name for signal in effects.signals]
        return effects.children
