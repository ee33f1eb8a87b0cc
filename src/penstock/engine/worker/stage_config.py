"""What every job of one source, and of one stage of it, is performed with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.http.reach import reach_of
from penstock.jobs.job import Claimed
from penstock.jobs.replay import REPLAY_STAGE
from penstock.jobs.retry import RETRY_CLASSES, RetryClass, choose_retry
from penstock.jobs.run import PlannedStage
from penstock.pipeline.attempt import StepSource
from penstock.pipeline.graph import Graph, Stage
from penstock.pipeline.version import params_of, version_of
from penstock.settings import SourceSettings

DEFAULT_TIMEOUT_S = 60.0
DEFAULT_RUN_TIMEOUT_S = 3600.0
ENDLESS_S = 10 * 365 * 86_400.0


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """What a worker needs to know of one source to perform its jobs."""

    settings: SourceSettings
    graph: Graph
    retries: Mapping[str, RetryClass] = field(default_factory=lambda: RETRY_CLASSES)
    # The folder of penstock.yaml, which the patterns of files are relative to.
    root: Path = Path()


@dataclass(frozen=True, slots=True)
class StageConfig:
    """One stage of one source, every choice made."""

    stage: Stage
    graph: Graph
    settings: SourceSettings
    source: StepSource
    timeout_s: float
    retry: RetryClass
    useful_for_s: float | None = None


class StageConfigs:
    """The stages of all sources that a worker knows, each made when its first job comes."""

    def __init__(
        self, sources: Mapping[int, SourceConfig], replay_stage: Callable[[Graph], Stage]
    ) -> None:
        self._sources = sources
        self._replay_stage = replay_stage
        self._known: dict[tuple[int, str], StageConfig | None] = {}

    def of(self, job: Claimed) -> StageConfig | None:
        """None if the project has no such stage for this source any more."""
        where = (job.source_id, job.stage)
        try:
            return self._known[where]
        except KeyError:
            known = self._known[where] = self._make(*where)
            return known

    def _make(self, source_id: int, name: str) -> StageConfig | None:
        source = self._sources.get(source_id)
        if source is None:
            return None
        graph = source.graph
        stage = self._replay_stage(graph) if name == REPLAY_STAGE else graph.stage(name)
        return stage_config_of(source, stage) if stage is not None else None


def timeout_of(stage: Stage | PlannedStage, settings: SourceSettings) -> float:
    """How long one attempt at a job of this stage may take."""
    # A source's timeout is meant for a page; discovering a whole site takes as long as it takes.
    own_s, fallback_s = settings.timeout_s, DEFAULT_TIMEOUT_S
    if stage.unit == "run":
        own_s, fallback_s = None, DEFAULT_RUN_TIMEOUT_S
    if stage.is_stream:
        fallback_s = ENDLESS_S
    return stage.timeout_s or own_s or fallback_s


def stage_config_of(config: SourceConfig, stage: Stage) -> StageConfig:
    settings = config.settings
    timeout_s = timeout_of(stage, settings)
    source = StepSource(
        settings.key,
        params_of(config.graph, settings),
        timeout_s,
        settings.priority,
        settings.code,
        settings.threshold,
        version_of(config.graph, settings),
        reach_of(settings.fetch.addresses, settings.fetch.hosts),
        settings.fetch.missing,
        settings.schemas,
        tuple(str(config.root / s.watch.pattern) for s in settings.schedules if s.watch),
        settings.options,
        str(config.root),
    )
    graph = config.graph
    retry = choose_retry(config.retries, graph.retry, settings.retry, stage.retry)
    useful_for_s = stage.useful_for_s or (None if stage.is_long else settings.useful_for_s)
    return StageConfig(stage, graph, settings, source, timeout_s, retry, useful_for_s)
