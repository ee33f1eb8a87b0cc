"""The builder: a worker with all that it works with, each part built whole."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

from penstock.clock import SyncedClock
from penstock.engine.tracing.attempts import AttemptTracer
from penstock.engine.worker.attempts import Attempts
from penstock.engine.worker.budget_use import Spending
from penstock.engine.worker.calls import Calls
from penstock.engine.worker.claimed_ahead import ClaimedAhead
from penstock.engine.worker.deadlines import Deadlines
from penstock.engine.worker.ends import Ends
from penstock.engine.worker.exchange import Exchange
from penstock.engine.worker.in_child import ChildPool
from penstock.engine.worker.known_runs import KnownRuns
from penstock.engine.worker.lease import Lease, PatientCalls
from penstock.engine.worker.loop import Worker
from penstock.engine.worker.perform import Performer, ThreadPool
from penstock.engine.worker.replay_pages import ReplayPages
from penstock.engine.worker.request_limiter import StoreRequestLimiter
from penstock.engine.worker.review import Review
from penstock.engine.worker.running_jobs import RunningJobs
from penstock.engine.worker.services import StepServices
from penstock.engine.worker.settler import Settler
from penstock.engine.worker.snapshot_writer import SnapshotWriter
from penstock.engine.worker.stage_config import SourceConfig, StageConfigs
from penstock.engine.worker.step_output import StepOutput
from penstock.engine.worker.store_backoff import StoreBackoff
from penstock.engine.worker.streams import Streams, fill_gap
from penstock.engine.worker.turn_times import TurnTimes
from penstock.gates.capacity import DrainScope
from penstock.gates.lane import LaneLimits
from penstock.gates.loaded import Loaded
from penstock.gates.project_terms import ProjectTerms, rules_of
from penstock.http.browser.browsers import Browsers
from penstock.http.browser.renderer import Renderer
from penstock.http.fetch import Fetcher
from penstock.http.network import Network
from penstock.project import Project
from penstock.settings import SourceSettings
from penstock.snapshots import SnapshotStore
from penstock.store.rows import Admits
from penstock.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a worker gets from its process: connections, threads, the network, the clock.

    `index` is the connection that the snapshot writer finds equal pages with; `writing` and `reading` are
    its threads.
    """

    store: Store
    index: Store
    calls: Calls
    writing: Calls
    reading: Calls
    snapshots: SnapshotStore
    network: Network
    clock: SyncedClock
    rng: random.Random
    threads: ThreadPool
    children: ChildPool | None = None
    browsers: Browsers | None = None


def source_configs(
    project: Project, sources: Mapping[str, SourceSettings]
) -> dict[int, SourceConfig]:
    """What a worker needs to know of these sources, by their ids."""
    return {
        project.source_ids[key]: SourceConfig(
            source, project.graph(source), project.retries, project.data_root
        )
        for key, source in sources.items()
    }


@dataclass(kw_only=True)
class WorkerBuilder:
    """Makes each part of a worker once, when another one needs it.

    `is_announced`: others may know which code it has loaded. `news` wakes it when it is set;
    `has_changed` is asked while it is idle.
    """

    name: str
    project: Project
    sources: Mapping[int, SourceConfig]
    resources: Resources
    tell: Callable[[str], None]
    admits: Admits = "all"
    scope: DrainScope | None = None
    deadlines: Deadlines = field(default_factory=Deadlines)
    output: StepOutput | None = None
    tracer: AttemptTracer | None = None
    is_announced: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)
    has_changed: Callable[[], bool] | None = None

    def build(self) -> Worker:
        return Worker(
            name=self.name,
            clock=self.resources.clock,
            lease=self.lease,
            news=self.news,
            exchange=self.exchange,
            ends=self.ends,
            running=self.running,
            attempts=self.attempts,
            review=self.review,
            snapshot_writer=self.snapshot_writer,
            limiter=self.limiter,
            backoff=self.backoff,
            grace_s=self.project.settings.worker.grace_s,
            admits=self.admits,
            scope=self.scope,
            has_changed=self.has_changed,
        )

    @cached_property
    def rules(self) -> ProjectTerms:
        return rules_of(self.project.settings)

    @cached_property
    def loaded(self) -> Loaded | None:
        return self.project.loaded() if self.is_announced else None

    @cached_property
    def lease(self) -> Lease:
        return Lease(self.resources.clock)

    @cached_property
    def backoff(self) -> StoreBackoff:
        around = self.resources
        return StoreBackoff(around.store, around.clock, self.tell, around.rng)

    @cached_property
    def ask(self) -> PatientCalls:
        return PatientCalls(self.resources.calls, self.backoff, self.lease)

    @cached_property
    def snapshot_writer(self) -> SnapshotWriter:
        around, secrets = self.resources, self.project.settings.secrets
        return SnapshotWriter(
            self.name,
            around.snapshots,
            around.index,
            around.writing,
            around.clock,
            around.reading,
            secrets,
            self.backoff,
            self.news.set,
        )

    @cached_property
    def limiter(self) -> StoreRequestLimiter:
        around = self.resources
        return StoreRequestLimiter(around.store, around.calls, self.rules, self.name, self.backoff)

    @cached_property
    def fetcher(self) -> Fetcher:
        around = self.resources
        return Fetcher(around.network, around.clock, around.rng, self.limiter)

    @cached_property
    def renderer(self) -> Renderer | None:
        around = self.resources
        if around.browsers is None:
            return None
        return Renderer(self.fetcher, around.browsers, around.clock)

    @cached_property
    def spending(self) -> Spending:
        return Spending(self.rules)

    @cached_property
    def replaying(self) -> ReplayPages:
        return ReplayPages(self.resources.store, self.ask, self.snapshot_writer)

    @cached_property
    def runs(self) -> KnownRuns:
        known = (self.sources, self.loaded, self.rules.trials)
        return KnownRuns(self.name, self.resources.store, *known)

    @cached_property
    def stages(self) -> StageConfigs:
        return StageConfigs(self.sources, self.replaying.stage)

    @cached_property
    def running(self) -> RunningJobs:
        return RunningJobs(self.resources.clock, self.project.settings.worker, self.deadlines)

    @cached_property
    def ends(self) -> Ends:
        return Ends(self.news, self.spending, self.limiter, self.tracer)

    @cached_property
    def settler(self) -> Settler:
        return Settler(
            ends=self.ends,
            runs=self.runs,
            sources=self.sources,
            stages=self.stages,
            spending=self.spending,
            secrets=self.project.settings.secrets,
            rng=self.resources.rng,
        )

    @cached_property
    def services(self) -> StepServices:
        return StepServices(
            store=self.resources.store,
            ask=self.ask,
            lease=self.lease,
            running=self.running,
            runs=self.runs,
            settler=self.settler,
            snapshot_writer=self.snapshot_writer,
            fetcher=self.fetcher,
            spending=self.spending,
            replaying=self.replaying,
            renderer=self.renderer,
            tracer=self.tracer,
        )

    @cached_property
    def performer(self) -> Performer:
        around = self.resources
        return Performer(
            clock=around.clock,
            services=self.services,
            threads=around.threads,
            children=around.children,
        )

    @cached_property
    def limits(self) -> Mapping[int, LaneLimits]:
        return self.project.limits()

    def is_paid(self, source_id: int) -> bool:
        """Whether the source has a budget that its steps use up by themselves."""
        config = self.sources.get(source_id)
        return config is not None and self.spending.is_paid(
            config.settings.key, config.graph.stages
        )

    @cached_property
    def attempts(self) -> Attempts:
        store = self.resources.store
        return Attempts(
            running=self.running,
            performer=self.performer,
            settler=self.settler,
            runs=self.runs,
            stages=self.stages,
            spending=self.spending,
            streams=Streams(self.name, store, self.ask, partial(fill_gap, store, self.sources)),
            snapshot_writer=self.snapshot_writer,
            ahead=ClaimedAhead(self.resources.clock, self.limits, self.is_paid),
            output=self.output,
            tracer=self.tracer,
        )

    @cached_property
    def exchange(self) -> Exchange:
        return Exchange(
            worker=self.name,
            store=self.resources.store,
            calls=self.resources.calls,
            clock=self.resources.clock,
            backoff=self.backoff,
            limits=self.limits,
            attempts=self.attempts,
            runs=self.runs,
            hosts=self.limiter.hosts,
            spending=self.spending,
            times=TurnTimes(self.resources.clock),
            loaded=self.loaded,
            output=self.output,
        )

    @cached_property
    def review(self) -> Review:
        return Review(
            worker=self.name,
            store=self.resources.store,
            calls=self.resources.calls,
            running=self.running,
            attempts=self.attempts,
            ends=self.ends,
            hosts=self.limiter.hosts,
            fetcher=self.fetcher,
        )
