"""A dry run of one page: its steps are performed as a worker would, and nothing is written.

In:    a source, and the address of a page or the job that failed.
Out:   what came of each job, and what would be saved beside the records that are there.
Never: a row, a snapshot, a place in a rate or a budget. Pages that would be enqueued are named only.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec

from penstock.clock import SyncedClock
from penstock.engine.worker.perform import Performer
from penstock.engine.worker.performance import Work
from penstock.engine.worker.stage_config import SourceConfig, StageConfig, stage_config_of
from penstock.engine.worker.threads import Threads
from penstock.errors import Refused, Remedy, UsageError, nearest
from penstock.gates.rates import Sent, Verdict, Want
from penstock.http.failures import FetchError
from penstock.http.fetch import Fetcher
from penstock.http.network import AiohttpNetwork, Network
from penstock.http.response import Response
from penstock.jobs.effects import Effects, Rejection, Save
from penstock.jobs.job import Claimed, NewJob
from penstock.jobs.outcome import Cancelled, Failed, Outcome, Skipped, Snoozed, Succeeded, Throttled
from penstock.jobs.record_changes import RecordChange, Totals, change_by_save
from penstock.pipeline.attempt import RunView
from penstock.pipeline.graph import Graph, Stage
from penstock.project import Project
from penstock.settings import SourceSettings
from penstock.store.record_rows import Where, combined, where_of
from penstock.store.rows import SnapshotRow

MOST_JOBS = 1000
# The data of a record as JSON, and its score.
_Content = tuple[str, float | None]
_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class TriedPage:
    """A page that a step asked for; a status of None is an error that came without one."""

    url: str
    status: int | None
    bytes: int
    is_from_snapshot: bool


@dataclass(frozen=True, slots=True)
class TriedJob:
    """One job and what it came to, in the words that its run would have for it."""

    stage: str
    key: str
    state: str
    reason: str = ""
    kind: str = ""
    traceback: str = ""


@dataclass(slots=True)
class Tried:
    """What a dry run came to."""

    source: str
    stage: str
    item: Any
    pages: list[TriedPage] = field(default_factory=list)
    jobs: list[TriedJob] = field(default_factory=list)
    changes: list[RecordChange] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    rejections: list[Rejection] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    signals: list[str] = field(default_factory=list)
    # Pages that would be enqueued, by stage.
    enqueued: dict[str, list[str]] = field(default_factory=dict)
    is_cut: bool = False

    @property
    def failed(self) -> list[TriedJob]:
        return [job for job in self.jobs if job.state == "failed"]


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a dry run begins: a stage, and the job whose item it is given."""

    stage: Stage
    key: str
    item: bytes
    snapshot: int | None = None


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
    start = _start(project, source, graph, target, stage, item)
    runner = _DryRun(project, source, graph, is_offline, network)
    runner.has_timeouts = has_timeouts
    return asyncio.run(runner.run(start))


def _start(
    project: Project, source: SourceSettings, graph: Graph, target: str, name: str | None, item: Any
) -> _Start:
    if target.isdecimal():
        return _start_at_job(project, source, graph, int(target))
    stage = _stage(graph, name)
    if item is not None:
        return _Start(stage, target, _encode(item))
    job_id = project.connection.jobs.last_of(_known_id(project, source.key), stage.name, target)
    known = None if job_id is None else project.connection.jobs.detail(job_id).item
    return _Start(stage, target, known.encode() if known else _encode({"url": target}))


def _start_at_job(project: Project, source: SourceSettings, graph: Graph, job_id: int) -> _Start:
    job = project.require_job(job_id)
    if job.source != source.key:
        raise UsageError(f"job {job_id} belongs to {job.source}, not to {source.key}")
    stage = graph.stage(job.stage)
    if stage is None or stage.unit == "run":
        raise Refused(
            f"job {job_id} is of stage {job.stage}, which is no page or candidate step now",
            code="job_not_of_a_page",
            remedy=Remedy("pages.try_", source.key),
        )
    pages = project.connection.snapshots.of_job(job_id, 1)
    found = project.connection.jobs.detail(job_id).item
    return _Start(stage, job.key, (found or "null").encode(), pages[0].id if pages else None)


def _stage(graph: Graph, name: str | None) -> Stage:
    pages = [
        s for s in graph.stages if s.unit == "page" and not s.is_gather and not s.takes_windows
    ]
    if name is not None:
        found = next((s for s in graph.stages if name in s.steps and s.unit != "run"), None)
        if found is None:
            known = [s.name for s in graph.stages if s.unit != "run"]
            raise UsageError(f"the pipeline has no page step {name!r}", nearest(name, known))
        return found
    if not pages:
        raise Refused(
            f"pipeline {graph.name!r} has no page step to try",
            "a run of kind probe takes one item through the whole pipeline",
            code="no_page_step",
        )
    return pages[0]


def _known_id(project: Project, key: str) -> int:
    """The source's number; 0 where it never ran, because a dry run does not make it known."""
    return next((row.id for row in project.connection.sources.all() if row.key == key), 0)


class _OpenDoor:
    """Lets every request out and counts none: a dry run sends one page at a time, and writes nothing."""

    async def ask(self, want: Want) -> Verdict:
        return Verdict(0.0)

    def is_late(self, want: Want, verdict: Verdict, now: float) -> bool:
        return False

    def told(self, want: Want, sent: Sent) -> None:
        pass

    def close(self, host: str, for_s: float) -> None:
        pass


class _DryRun:
    """The services of the attempts of one dry run; what they flush is kept in a list."""

    has_timeouts = True

    def __init__(
        self,
        project: Project,
        source: SourceSettings,
        graph: Graph,
        is_offline: bool,
        network: Network | None,
    ) -> None:
        self._project = project
        self._source = source
        self._graph = graph
        self._is_offline = is_offline
        self._network = network
        self._clock = SyncedClock(project.clock)
        self._source_id = _known_id(project, source.key)
        self._stage_configs: dict[str, StageConfig] = {}
        # Records as they are in the store, as they would be, and the difference.
        self._present: dict[Where, _Content | None] = {}
        self._saved: dict[Where, _Content] = {}
        self._changed: dict[Where, RecordChange] = {}

    async def run(self, start: _Start) -> Tried:
        self._tried = Tried(self._source.key, start.stage.name, msgspec.json.decode(start.item))
        self._fetcher = self._open_fetcher()
        self._threads = Threads(1)
        self._performer = Performer(clock=self._clock, services=self, threads=self._threads)
        try:
            await self._perform_all(start)
        finally:
            await self._fetcher.close()
            self._threads.close()
        self._tried.changes = [c for c in self._changed.values() if c.kind != "same"]
        for change in self._changed.values():
            self._tried.totals.count(change)
        return self._tried

    def _open_fetcher(self) -> Fetcher:
        network = self._network or AiohttpNetwork()
        fetcher = Fetcher(network, self._clock, random.Random(), _OpenDoor())
        for host, until in self._project.connection.hosts.closed().items():
            fetcher.close_host(host, until)
        return fetcher

    async def _perform_all(self, start: _Start) -> None:
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
            RunView(0, pipeline_version=config.source.version),
            config.timeout_s if self.has_timeouts else inf,
        )  # fmt: skip
        self._flushed = Effects()
        ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._performer.start(work, lambda _, outcome: ended.set_result(outcome))
        outcome = await ended
        self._tried.jobs.append(_told(job, outcome))
        if isinstance(outcome, Succeeded | Skipped) and outcome.effects is not None:
            self._flushed.pour(outcome.effects)
        if isinstance(outcome, Skipped) and outcome.is_rejection:
            judged = Rejection(outcome.code, outcome.reason, outcome.score)
            self._flushed.rejections.append(judged)
        return self._take(self._flushed)

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
            self._save(save)
        self._tried.rejections += effects.rejections
        self._tried.notes += [note.text for note in effects.notes]
        self._tried.signals += [signal.name for signal in effects.signals]
        return effects.children

    def _save(self, save: Save) -> None:
        """As a turn would: over what is there, and over what was saved before it."""
        where = where_of(save)
        if where not in self._present:
            self._present[where] = self._record(*where)
        now = self._saved.get(where, self._present[where])
        data, score = save.data.decode(), save.score
        if now is not None:
            data, score = combined(save, *now)
        self._saved[where] = (data, score)
        self._changed[where] = change_by_save(where, self._present[where], data, score)

    def _record(self, collection: str, key: str) -> _Content | None:
        versions = self._project.connection.records.versions(collection, key)
        if not versions or versions[-1].is_removed:
            return None
        return _encode(versions[-1].data).decode(), versions[-1].score

    # What steps may ask for.

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
        if not self._is_offline:
            options.pop("conditional", None)
            return await self._fetcher.fetch(
                url, self._source.fetch, source=self._source.key, **options
            )
        found = self._snapshot(job, url)
        if found is None:
            raise FetchError("not in the snapshots", url, None, True, "data")
        return self._project.read_page(found)

    def _snapshot(self, job: Claimed, url: str) -> SnapshotRow | None:
        """The page that the job itself had, else the newest of this address."""
        pages = self._project.connection.snapshots.at(url)
        mine = [page for page in pages if page.id == job.snapshot]
        return next(iter([*mine, *pages]), None)

    async def flush(self, job: Claimed, effects: Effects) -> None:
        self._flushed.pour(effects)

    async def records(
        self, collection: str, after_key: str | None, limit: int
    ) -> list[dict[str, Any]]:
        rows = self._project.connection.records.of(collection, after_key or "", limit)
        return [{"key": row.key, "data": row.data, "score": row.score} for row in rows]

    async def cursors(self, job: Claimed) -> dict[str, Any]:
        return self._project.connection.checkpoints.cursors(job.source_id)


def _told(job: NewJob, outcome: Outcome) -> TriedJob:
    about = (job.stage, job.key)
    match outcome:
        case Succeeded():
            return TriedJob(*about, "succeeded")
        case Skipped():
            return TriedJob(
                *about, "rejected" if outcome.is_rejection else "skipped", outcome.reason
            )
        case Failed():
            return TriedJob(*about, "failed", outcome.error, outcome.kind, outcome.traceback)
        case Throttled():
            reason = f"{outcome.host or 'the provider'} asked to wait {outcome.delay_s:.0f} s"
            return TriedJob(*about, "failed", reason, "throttled")
        case Snoozed():
            return TriedJob(*about, "snoozed", outcome.reason or f"for {outcome.delay_s:g} s")
        case Cancelled():
            return TriedJob(*about, "failed", outcome.reason)
