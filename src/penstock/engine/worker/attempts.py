"""Attempts: claimed jobs are begun here, and seen to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from penstock.engine.tracing.attempts import AttemptTracer
from penstock.engine.worker.budget_use import Spending
from penstock.engine.worker.claimed_ahead import ClaimedAhead
from penstock.engine.worker.known_runs import KnownRuns
from penstock.engine.worker.perform import Performer
from penstock.engine.worker.performance import Work
from penstock.engine.worker.replay_pages import another_version
from penstock.engine.worker.running_jobs import RunningJobs
from penstock.engine.worker.settler import Settler
from penstock.engine.worker.snapshot_writer import SnapshotWriter
from penstock.engine.worker.stage_config import StageConfig, StageConfigs
from penstock.engine.worker.step_output import StepOutput
from penstock.engine.worker.streams import Streams
from penstock.errors import StoreError
from penstock.jobs.canary.share import is_in_share
from penstock.jobs.effects.effects import saved_bytes
from penstock.jobs.job import Claimed
from penstock.jobs.outcome import AttemptLost, Cancelled, Failed, Outcome, Skipped, Succeeded
from penstock.jobs.retry import DEFAULT_RETRY, RETRY_CLASSES
from penstock.jobs.run import RunOptions, Share
from penstock.pipeline.attempt import StepRun, StepSource
from penstock.pipeline.error_outcome import outcome_of
from penstock.pipeline.version import version_of, with_params

LEFT = "left to the release of a canary"
NOT_BEGUN = "claimed ahead, and not begun"
NO_BOUNDS: Mapping[int, int] = {}


@dataclass(eq=False, slots=True, kw_only=True)
class Attempts:
    running: RunningJobs
    performer: Performer
    settler: Settler
    runs: KnownRuns
    stages: StageConfigs
    spending: Spending
    streams: Streams
    snapshot_writer: SnapshotWriter
    ahead: ClaimedAhead
    output: StepOutput | None = None
    tracer: AttemptTracer | None = None
    # Stages of runs for which a budget has nothing left, and why.
    stopped: dict[tuple[int, str], str] = field(default_factory=dict, init=False)
    _is_beginning: bool = field(default=False, init=False)
    _openings: set[asyncio.Task[None] | None] = field(default_factory=set, init=False)

    @property
    def lost_threads(self) -> int:
        return self.performer.lost_threads

    def begin(self, claimed: Sequence[Claimed], bounds: Mapping[int, int] = NO_BOUNDS) -> None:
        """Begin these, or keep them until they may: of a source with a bound no more are under way."""
        ahead = self.ahead
        ahead.bound(bounds)
        for job in claimed:
            config = self.stages.of(job)
            if config is None:
                self._refuse(job)
            elif ahead.may_begin(job.source_id) or not self._takes_slot(job, config):
                self._try(job, config)
            else:
                ahead.add(job)
        for source_id in ahead.sources:
            self._begin_waiting(source_id)

    def _takes_slot(self, job: Claimed, config: StageConfig) -> bool:
        """Whether it counts against the concurrency of its source."""
        is_candidate = config.stage.unit == "candidate"
        return not is_candidate and self.runs.policy(job.run_id).slot != "candidate"

    def _begin_waiting(self, source_id: int) -> None:
        """Begin what has waited for a slot. Not once more from within: a job may end before it has begun."""
        if self._is_beginning:
            return
        self._is_beginning = True
        try:
            for job in self.ahead.ready(source_id):
                config = self.stages.of(job)
                if config is None:
                    self._refuse(job)
                else:
                    self._try(job, config)
        finally:
            self._is_beginning = False

    def _try(self, job: Claimed, config: StageConfig) -> None:
        """Begin a job, unless something is known that ends it at once."""
        run = self.runs[job.run_id]
        if self.runs.policy(run.id).pins_version and run.pipeline_version != config.source.version:
            self.settler.end(job, another_version(), config.retry, config.stage.unit)
        elif run.options.leaves is not None and _is_left(config, run.options.leaves, job.key):
            self.settler.end(job, Skipped(LEFT), config.retry, config.stage.unit)
        elif not (self.spending.has_budgets and self._set_aside(job, config, run)):
            self._begin(job, config, run)

    def _begin(self, job: Claimed, config: StageConfig, run: StepRun) -> None:
        if self._takes_slot(job, config):
            self.ahead.begun(job.source_id)
        source = _with_params(config, run.options)
        work = Work(job, config.stage, config.graph, source, run, config.timeout_s)
        if self.tracer is not None:
            self.tracer.begin(job, source.key)
        if self.output is not None and config.settings.private:
            self.output.conceal(job.source_id)
        self.running.begin(work, config, self.performer.postpone)
        if config.stage.is_stream:
            self._openings.add(asyncio.ensure_future(self._open_stream(work, config)))
        else:
            self.performer.start(work, self.done)

    def done(self, job: Claimed, outcome: Outcome) -> None:
        """An attempt has come to this."""
        running, took_s = self.running.end(job)
        if self.output is not None:
            self.output.end(job)
        if self.tracer is not None:
            self.tracer.end(job)
        if self.settler.forget(job):
            # What failed before does not count any more, in the store too.
            job = structs.replace(job, tries=0, deaths=0)
        self.streams.close(job)
        outcome = self.snapshot_writer.excuse(job, outcome)
        work, config = running.work, running.config
        # What is past does not get stale.
        useful_for_s = None if self.runs.policy(job.run_id).is_background else config.useful_for_s
        self.settler.end(job, outcome, config.retry, work.stage.unit, took_s, useful_for_s)
        if self._takes_slot(job, config):
            is_page = work.stage.unit == "page"
            saved = saved_bytes(outcome.effects) if isinstance(outcome, Succeeded) else 0
            self.ahead.has_ended(job.source_id, took_s if is_page else None, saved)
            self._begin_waiting(job.source_id)

    def cancel(self, job_id: int, reason: str) -> None:
        self.performer.cancel(job_id, reason)

    def halt(self, reasons: Mapping[int, str]) -> None:
        """Have the attempts of these jobs stop at their next pause point, and let all others go on."""
        self.performer.halt(reasons)

    def release_waiting(self, *, only_late: bool = False) -> None:
        """Hand back what was claimed ahead and has not begun: all of it, or what waits for too long."""
        for job in self.ahead.late() if only_late else self.ahead.all():
            config = self.stages.of(job)
            retry = RETRY_CLASSES[DEFAULT_RETRY] if config is None else config.retry
            self.settler.end(job, Cancelled(NOT_BEGUN), retry)

    def release_all(self) -> None:
        self.release_waiting()
        for job_id, _ in list(self.running):
            self.cancel(job_id, "released by a drain")

    def release_streams(self) -> None:
        """They would not end by themselves."""
        for (job_id, _), running in list(self.running.items()):
            if running.work.stage.is_stream:
                self.cancel(job_id, "released by a drain")

    def _refuse(self, job: Claimed) -> None:
        error = f"the project has no stage {job.stage!r} for this source any more"
        failed = Failed(error, is_permanent=True, kind="data", cause=error)
        self.settler.end(job, failed, RETRY_CLASSES[DEFAULT_RETRY])

    def _set_aside(self, job: Claimed, config: StageConfig, run: StepRun) -> bool:
        """End a job that needs what a budget has no more of, before it begins; no try is spent."""
        stage = config.stage
        stops = self.spending.stops(job, config.source.key, stage, run.kind)
        if stops:
            failed = Failed(stops, is_permanent=True, kind="budget")
            self.settler.end(job, failed, config.retry, stage.unit)
            self.stopped[job.run_id, job.stage] = stops
        return bool(stops)

    async def _open_stream(self, work: Work, config: StageConfig) -> None:
        """What a stream missed is seen to before it goes on."""
        try:
            await self.streams.open(work.job, config.settings.stream.gap_s)
        except (StoreError, AttemptLost) as error:
            self.done(work.job, outcome_of(error))
        else:
            self.performer.start(work, self.done)
        finally:
            self._openings.discard(asyncio.current_task())


def _with_params(config: StageConfig, options: RunOptions) -> StepSource:
    """The source as the steps of this run see it."""
    if not options.params:
        return config.source
    params = {**config.source.params, **options.params}
    version = version_of(config.graph, with_params(config.settings, options.params))
    return replace(config.source, params=params, version=version)


def _is_left(config: StageConfig, share: Share, key: str) -> bool:
    """Whether the release of a canary performs this page, in a run of its own."""
    is_page = config.stage.unit == "page" and not config.stage.is_gather
    return is_page and is_in_share(key, share.percent, share.salt)
