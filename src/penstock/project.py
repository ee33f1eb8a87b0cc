"""A project: its settings, its pipelines and its store, and the verbs an operator or a program has.

The command line, the demo and user code all go through this class; none of them reaches the store
by another way.
"""

from __future__ import annotations

import getpass
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.clock import Clock, SystemClock
from penstock.errors import Refused, UsageError, nearest
from penstock.gates.lane import LaneLimits
from penstock.gates.terms import hours_of
from penstock.gates.windows import Windows
from penstock.jobs.redrive import redrive_plan
from penstock.jobs.replay import replay_plan
from penstock.jobs.retry import RetryClass, retry_classes
from penstock.jobs.run import RunKind, RunOptions
from penstock.jobs.signals import is_name, is_reserved, wanted
from penstock.jobs.windows import moment
from penstock.pipeline.graph import Graph
from penstock.pipeline.loading import (
    load_graph,
    refuse_unknown_retries,
    refuse_what_never_fits,
)
from penstock.pipeline.version import version_of
from penstock.settings import (
    Settings,
    SourceSettings,
    load_settings,
    normalise_source,
)
from penstock.store import rehearsal
from penstock.store.backfills import (
    Moment,
    backfill_options,
    require_settings,
    start_backfill,
)
from penstock.store.database import to_json
from penstock.store.diffs import Diff, RecordChange, Totals, read_diff, record_changes
from penstock.store.entries import EntryFilter
from penstock.store.explaining import Outlook
from penstock.store.opening import open_schema, open_store
from penstock.store.rejected import Redriven, RejectFilter, RejectRow
from penstock.store.replays import Committed
from penstock.store.schema import Schema
from penstock.store.store import Capacity, JobRow, RunRow, Store

KINDS = tuple(
    kind.value for kind in (RunKind.FULL, RunKind.INCREMENTAL, RunKind.PROBE, RunKind.STREAM)
)
# Kinds of runs that need to be told more, and the commands that ask for it.
COMMANDS = {
    RunKind.BACKFILL.value: "penstock backfill SOURCE --from DAY --to DAY",
    RunKind.REPLAY.value: "penstock replay RUN",
}


# What a run can be told by a signal; more belongs into a place that the signal names.
LARGEST_DATA = 1_000_000


@dataclass(frozen=True, slots=True)
class Raised:
    """A signal as it was raised; not new if it had been, under the same key."""

    id: int
    name: str
    source: str | None
    key: str | None
    is_new: bool


class Project:
    """One penstock.yaml and everything that belongs to it."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self._graphs: dict[str, Graph] = {}

    @classmethod
    def load(cls, directory: str | Path = ".", environment: str | None = None) -> Project:
        """Read the project in a folder and validate every pipeline that its sources name."""
        project = cls.open(directory, environment)
        for source in project.settings.sources.values():
            project.graph(source)
        return project

    @classmethod
    def open(cls, directory: str | Path = ".", environment: str | None = None) -> Project:
        """Read the project's settings only: enough to look, quick, and runs none of its code."""
        return cls(load_settings(Path(directory), environment))

    def __enter__(self) -> Project:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        store = self.__dict__.pop("store", None)
        if store is not None:
            store.close()

    @cached_property
    def store(self) -> Store:
        return self.open_store()

    def open_store(self) -> Store:
        """A connection of its own, for a thread of its own."""
        return open_store(self.settings, self.clock)

    def open_schema(self) -> Schema:
        """The database's schema, to look at or to bring up to date."""
        return open_schema(self.settings, self.clock)

    @cached_property
    def source_ids(self) -> dict[str, int]:
        return self.store.ensure_sources(list(self.settings.sources))

    def limits(self) -> dict[int, LaneLimits]:
        """What the configuration allows each lane."""
        return {
            self.source_ids[key]: lane_limits(source)
            for key, source in self.settings.sources.items()
        }

    @cached_property
    def retries(self) -> dict[str, RetryClass]:
        """The retry classes that there are, by name."""
        return retry_classes(self.settings.retries)

    def source(self, name: str) -> SourceSettings:
        """The source that is meant by a name in any spelling."""
        found = self.settings.sources.get(normalise_source(name))
        if found is None:
            raise UsageError(
                f"{self.settings.file.name} has no source {name!r}",
                nearest(name, self.settings.sources),
            )
        return found

    def graph(self, source: SourceSettings) -> Graph:
        """The source's pipeline, imported from beside penstock.yaml and validated."""
        if source.pipeline not in self._graphs:
            where = f"{self.settings.file.name}: sources.{source.key}.pipeline"
            graph = load_graph(source.pipeline, self.settings.root, where)
            refuse_what_never_fits(graph, self.settings.worker, where)
            refuse_unknown_retries(graph, self.retries, where)
            self._graphs[source.pipeline] = graph
        return self._graphs[source.pipeline]

    def version(self, name: str) -> str:
        """The version of a source's pipeline as it is today: its code and its configuration."""
        source = self.source(name)
        return version_of(self.graph(source), source)

    # Verbs.

    def run(self, name: str, kind: str = "full", actor: str | None = None, reason: str = "") -> int:
        """Queue a run of a source and answer with its number; it survives whatever comes next."""
        return self.start_run(name, kind, actor, reason).id

    def start_run(
        self,
        name: str,
        kind: str = "full",
        actor: str | None = None,
        reason: str = "",
        is_draft: bool = False,
    ) -> RunRow:
        """The same, answering with its row; a draft waits for `start`."""
        source = self.source(name)
        self.refuse_run(name, kind)
        graph = self.graph(source)
        run_id, _ = self.store.start_run(
            self.source_ids[source.key],
            RunKind(kind),
            graph.plan(source.priority, RunKind(kind)),
            version_of(graph, source),
            key=f"manual:{uuid.uuid4().hex}",
            actor=actor or default_actor(),
            reason=reason,
            options=run_options(source),
            is_draft=is_draft,
        )
        return self.require_run(run_id)

    def refuse_run(self, name: str, kind: str) -> None:
        """Say why a source can't have a run of this kind now, if it can't.

        A degraded source runs probes only, until they go well or somebody resumes it.
        """
        refuse_kind(kind)
        if kind != RunKind.PROBE:
            self._refuse_degraded(self.source(name))

    def _refuse_degraded(self, source: SourceSettings) -> None:
        health = self.store.health(self.source_ids[source.key])
        if health.degraded_at is not None:
            raise Refused(
                f"{source.key} is degraded: {health.degraded_reason}",
                f"penstock run {source.key} --kind probe tries one item; "
                f"penstock resume {source.key} takes it for healthy",
            )

    def signal(
        self,
        name: str,
        data: Any = None,
        *,
        key: str | None = None,
        source: str | None = None,
        actor: str | None = None,
    ) -> Raised:
        """Raise a signal, or find the one that was raised under this key; it survives whatever comes next."""
        refuse_signal(name)
        if len(to_json(data)) > LARGEST_DATA:
            raise UsageError(f"a signal's data has at most {LARGEST_DATA} characters")
        about = None if source is None else self.source(source).key
        signal_id, is_new = self.store.raise_signal(
            name,
            data,
            actor=actor or default_actor(),
            source_id=0 if about is None else self.source_ids[about],
            key=key,
        )
        return Raised(signal_id, name, about, key, is_new)

    def waiting_for(self, name: str, source: str | None) -> list[tuple[str, str]]:
        """The schedules that a signal would start: each source's key, and the schedule's name."""
        return [
            (key, schedule.name)
            for key, each in self.settings.sources.items()
            for schedule in each.schedules
            if any(wanted(text).means(name, source, key) for text in schedule.signals)
        ]

    def backfill(
        self,
        name: str,
        start: Moment,
        end: Moment,
        partitions: Sequence[str] = (),
        *,
        missing: bool = False,
        window_s: float | None = None,
        linked_to: int | None = None,
        actor: str | None = None,
        reason: str = "",
    ) -> int:
        """Queue a backfill of a source and answer with its number.

        `start` and `end` are days or times; the day that it ends with belongs to it. `missing` fills
        only what is not ingested yet, `linked_to` is the run that this is for.
        """
        options = self.backfill_options(
            name, start, end, partitions, missing=missing, window_s=window_s
        )
        return self.start_backfill(name, options, linked_to, actor, reason).id

    def backfill_options(
        self,
        name: str,
        start: Moment,
        end: Moment,
        partitions: Sequence[str] = (),
        *,
        missing: bool = False,
        window_s: float | None = None,
    ) -> RunOptions:
        """What such a backfill would be asked for; changes nothing."""
        source = self.source(name)
        require_settings(source)
        self.graph(source).plan(source.priority, RunKind.BACKFILL)
        return backfill_options(
            source,
            start,
            end,
            self.clock.now(),
            partitions=partitions,
            window_s=window_s,
            is_missing_only=missing,
        )

    def start_backfill(
        self,
        name: str,
        options: RunOptions,
        linked_to: int | None = None,
        actor: str | None = None,
        reason: str = "",
    ) -> RunRow:
        source = self.source(name)
        self._refuse_degraded(source)
        run_id, _ = start_backfill(
            self.store,
            self.source_ids[source.key],
            source,
            self.graph(source),
            options,
            key=f"manual:{uuid.uuid4().hex}",
            actor=actor or default_actor(),
            reason=reason,
            linked_to=linked_to,
        )
        return self.require_run(run_id)

    def replay(
        self,
        run_id: int | None = None,
        *,
        source: str | None = None,
        since: Moment | None = None,
        quarantined: bool = False,
        actor: str | None = None,
        reason: str = "",
    ) -> int:
        """Queue a replay of a run, or of all that a source has fetched since then; answers with its number.

        What it saves is staged: `diff` shows it, `commit_replay` applies it, `drop_replay` forgets it.
        """
        found, since_at = self._replayed(run_id, source, since)
        self.replayable(run_id, source=source, since=since, quarantined=quarantined)
        graph = self.graph(found)
        return rehearsal.start_replay(
            self.store,
            self.source_ids[found.key],
            graph.plan(found.priority),
            version_of(graph, found),
            of_run_id=run_id,
            since_at=since_at,
            quarantined_only=quarantined,
            actor=actor or default_actor(),
            reason=reason,
        )

    def replayable(
        self,
        run_id: int | None = None,
        *,
        source: str | None = None,
        since: Moment | None = None,
        quarantined: bool = False,
    ) -> rehearsal.Pages:
        """What such a replay would bring; refuses where that is nothing."""
        found, since_at = self._replayed(run_id, source, since)
        what, runs = f"run {run_id}", [] if run_id is None else [run_id]
        if since_at is not None:
            runs = self.store.runs_since(self.source_ids[found.key], since_at)
            what = f"{found.key} since then"
        plan = self.graph(found).plan(found.priority)
        return rehearsal.pages_of(self.store, runs, plan, what, quarantined_only=quarantined)

    def _replayed(
        self, run_id: int | None, source: str | None, since: Moment | None
    ) -> tuple[SourceSettings, float | None]:
        if (run_id is None) == (source is None) or (source is None) != (since is None):
            raise UsageError("replay what? A run, or a source and since when")
        if run_id is None:
            return self.source(source or ""), moment(since or 0.0, "UTC")
        run = self.require_run(run_id)
        if run.options.is_undo or run.options.is_redrive:
            what = "an undo" if run.options.is_undo else "a replay of rejects"
            raise Refused(f"run {run_id} is {what}; it has no pages to replay")
        if run.kind is RunKind.REPLAY:
            raise Refused(f"run {run_id} is a replay itself; replay what it replayed")
        if not run.is_ended:
            raise Refused(f"run {run_id} is {run.state}; a run can be replayed when it has ended")
        return self.source(run.source), None

    def diff(self, run_id: int, limit: int = 20) -> Diff:
        """What a replay would change: all of it in numbers, and the first records of it."""
        run = self._staged(run_id)
        return read_diff(self.store, run, limit)

    def changes(self, run_id: int, totals: Totals | None = None) -> Iterator[RecordChange]:
        """Every record that a replay would change, one by one; `totals` counts along."""
        run = self._staged(run_id)
        return record_changes(self.store, run.id, totals or Totals())

    def commit_replay(
        self, run_id: int, *, force: bool = False, actor: str | None = None, reason: str = ""
    ) -> Committed:
        """Apply what a replay has staged. `force` overwrites what others have changed since, too."""
        run = self._staged(run_id)
        who = actor or default_actor()
        return rehearsal.commit(self.store, run.id, is_forced=force, actor=who, reason=reason)

    def drop_replay(self, run_id: int, actor: str | None = None, reason: str = "") -> int:
        """Forget what a replay has staged; answers how many records that was about."""
        run = self.require_run(run_id)
        rehearsal.require_staged(self.store, run)
        return self.store.drop_replay(run_id, actor or default_actor(), reason)

    def _staged(self, run_id: int) -> RunRow:
        run = self.require_run(run_id)
        rehearsal.require_staged(self.store, run)
        rehearsal.seal(self.store, run_id)
        return run

    def undo(
        self,
        run_id: int,
        *,
        dry_run: bool = False,
        limit: int = 20,
        actor: str | None = None,
        reason: str = "",
    ) -> rehearsal.UndoReport:
        """Bring records back to what they were before a run; with `dry_run`, only say what that would do.

        What later runs have changed is left alone.
        """
        run = self.require_run(run_id)
        if not run.is_ended:
            raise Refused(f"run {run_id} is {run.state}; only a run that has ended can be undone")
        if dry_run:
            return rehearsal.preview_undo(self.store, run_id, limit)
        who = actor or default_actor()
        return rehearsal.undo(self.store, run_id, limit, actor=who, reason=reason)

    def redrive(
        self, name: str, wanted: RejectFilter, actor: str | None = None, reason: str = ""
    ) -> Redriven:
        """Judge rejected items of a source again, with today's pipeline, in a run of their own."""
        source = self.source(name)
        graph = self.graph(source)
        wanted = replace(wanted, source_id=self.source_ids[source.key], open_only=True)
        rejecting = set(self.store.stages_of_rejects(wanted))
        plan = redrive_plan(graph.plan(source.priority), rejecting)
        redriven = plan.stages and self.store.redrive(
            self.source_ids[source.key],
            plan,
            version_of(graph, source),
            wanted,
            key=f"redrive:{uuid.uuid4().hex}",
            actor=actor or default_actor(),
            reason=reason,
        )
        if not redriven:
            known = ", ".join(stage.name for stage in graph.stages)
            raise Refused(
                f"nothing to judge again: {source.key} has no reject of a stage that there is today",
                f"its pipeline has {known}" + _rejected_by(rejecting),
            )
        return redriven

    def start(self, run_id: int, actor: str | None = None, reason: str = "") -> None:
        """Let a draft begin."""
        run = self.require_run(run_id)
        self._refuse_degraded_run(run)
        if not self.store.start_draft(run_id, actor or default_actor(), reason):
            raise Refused(f"run {run_id} is {run.state}; only a draft can be started")

    def continue_run(
        self, run_id: int, actor: str | None = None, reason: str = ""
    ) -> tuple[RunRow, bool]:
        """A run that does what an ended one has left undone, and whether it is new."""
        run = self.require_run(run_id)
        self._refuse_degraded_run(run)
        source = self.source(run.source)
        graph = self.graph(source)
        plan = graph.plan(source.priority, run.kind)
        new_id, is_new = self.store.continue_run(
            run_id,
            replay_plan(plan) if run.options.is_staged else plan,
            version_of(graph, source),
            actor or default_actor(),
            reason,
        )
        return self.require_run(new_id), is_new

    def explain(
        self, name: str | None = None, *, run: int | None = None, job: int | None = None
    ) -> Outlook:
        """What stands between a source, a run or a job and its next start, and whether it would start now."""
        limits, worker = self.limits(), self.settings.worker
        source = None if name is None else normalise_source(name)
        if name is not None and all(row.key != source for row in self.store.sources()):
            raise UsageError(
                f"{self.settings.file.name} has no source {name!r}",
                nearest(name, self.settings.sources),
            )
        whole = Capacity(worker.slots, worker.cpu, float(worker.memory_mb))
        hours = hours_of(self.settings)
        return self.store.explain(limits, whole, source=source, run_id=run, job_id=job, hours=hours)

    def hold(self, name: str | None = None, actor: str | None = None, reason: str = "") -> bool:
        """Maintenance: start nothing of a source, or of the whole project; False if it is held."""
        return self.store.hold(self._scope(name), actor or default_actor(), reason)

    def unhold(self, name: str | None = None, actor: str | None = None, reason: str = "") -> bool:
        """End it: all is as it was. False if it was not held."""
        return self.store.unhold(self._scope(name), actor or default_actor(), reason)

    def hold_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        """Set one queued or waiting job aside; False if it is held."""
        job = self.require_job(job_id)
        if self.store.hold_job(job_id, actor or default_actor(), reason):
            return True
        if job.state != "held":
            raise Refused(f"job {job_id} is {job.state}; only a queued or waiting job can be held")
        return False

    def unhold_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        """Put it back to where it was; False if it was not held."""
        self.require_job(job_id)
        return self.store.unhold_job(job_id, actor or default_actor(), reason)

    def breaker_key(self, name: str) -> str:
        """The key of the breaker that is meant by a source's name in any spelling, or by a host."""
        _ = self.source_ids
        return self.store.breaker_key(name, normalise_source(name))

    def open_breaker(
        self, name: str, for_s: float, actor: str | None = None, reason: str = ""
    ) -> bool:
        """Ask nothing of a source or host for so long, then try it with care; False if it was open."""
        key = self.breaker_key(name)
        return self.store.open_breaker(key, for_s, actor or default_actor(), reason)

    def close_breaker(self, name: str, actor: str | None = None, reason: str = "") -> bool:
        """Ask a source or host as usual again; False if its breaker is closed."""
        return self.store.close_breaker(self.breaker_key(name), actor or default_actor(), reason)

    def pause(self, target: str | int, actor: str | None = None, reason: str = "") -> bool:
        """Pause a source (by name) or a run (by number); False if it is paused already."""
        if isinstance(target, int):
            run = self.require_run(target)
            if run.is_ended or run.state == "draft":
                raise Refused(f"run {target} is {run.state}; only an active run can be paused")
            return self.store.pause_run(target, actor or default_actor(), reason)
        return self.store.pause_source(self._id_of(target), actor or default_actor(), reason)

    def resume(self, target: str | int, actor: str | None = None, reason: str = "") -> bool:
        """Resume a source or a run; False if it is not paused. A degraded source is taken for healthy."""
        if isinstance(target, int):
            run = self.require_run(target)
            if run.state in ("partial", "failed", "cancelled"):
                raise Refused(
                    f"run {target} has ended: it is {run.state}",
                    f"what is left of it: penstock resume {target} --from-checkpoint",
                )
            return self.store.resume_run(target, actor or default_actor(), reason)
        source_id, who = self._id_of(target), actor or default_actor()
        is_recovered = self.store.recover_source(source_id, who, reason)
        if is_recovered:
            self.store.start_recovered(who)
        return self.store.resume_source(source_id, who, reason) or is_recovered

    def cancel(self, run_id: int, actor: str | None = None, reason: str = "") -> Iterator[int]:
        """Cancel a run now, then sweep its queued jobs, yielding how many each batch swept."""
        run = self.require_run(run_id)
        if not self.store.cancel_run(run_id, actor or default_actor(), reason):
            raise Refused(f"run {run_id} is {run.state} already")
        while swept := self.store.sweep_cancelled():
            yield swept

    def cancel_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        job = self.require_job(job_id)
        if job.unit == "run" and job.key == "root":
            raise Refused(
                f"job {job_id} is the first job of run {job.run_id}",
                f"cancel the run: penstock cancel {job.run_id}",
            )
        return self.store.cancel_job(job_id, actor or default_actor(), reason)

    def retry_job(self, job_id: int, actor: str | None = None, reason: str = "") -> bool:
        """Queue a quarantined or waiting job again, with fresh tries."""
        job = self.require_job(job_id)
        self._refuse_cancelled(job.run_id)
        return self.store.retry_job(job_id, actor or default_actor(), reason)

    def retry_failed(self, run_id: int, actor: str | None = None, reason: str = "") -> int:
        """Queue a run's quarantined jobs again, and only those."""
        self._refuse_cancelled(run_id)
        return self.store.retry_failed(run_id, actor or default_actor(), reason)

    def release(
        self, wanted: EntryFilter, actor: str | None = None, reason: str = ""
    ) -> Iterator[int]:
        """Queue what is in quarantine again, with fresh tries; yields how many each batch released."""
        return self.store.release_entries(wanted, actor or default_actor(), reason)

    def discard(
        self, wanted: EntryFilter, actor: str | None = None, reason: str = ""
    ) -> Iterator[int]:
        """Give up what is in quarantine; yields how many each batch discarded."""
        return self.store.discard_entries(wanted, actor or default_actor(), reason)

    def note(self, job_id: int, text: str, actor: str | None = None) -> None:
        """Write something about a quarantined job."""
        self.store.note_entry(job_id, text, actor or default_actor())

    def require_run(self, run_id: int) -> RunRow:
        run = self.store.run(run_id)
        if run is None:
            raise UsageError(f"there is no run {run_id}", "penstock runs lists them")
        return run

    def require_reject(self, reject_id: int) -> RejectRow:
        found = self.store.rejects(RejectFilter(ids=(reject_id,)), 1)
        if not found:
            raise UsageError(f"there is no reject {reject_id}", "penstock rejects list has them")
        return found[0]

    def require_job(self, job_id: int) -> JobRow:
        job = self.store.job(job_id)
        if job is None:
            raise UsageError(f"there is no job {job_id}", "penstock jobs lists them")
        return job

    def _refuse_cancelled(self, run_id: int) -> None:
        if self.require_run(run_id).state == "cancelled":
            raise Refused(f"run {run_id} was cancelled; start a new run instead")

    def _refuse_degraded_run(self, run: RunRow) -> None:
        if run.kind not in (RunKind.PROBE, RunKind.REPLAY) and run.source in self.settings.sources:
            self._refuse_degraded(self.source(run.source))

    def _scope(self, name: str | None) -> str:
        """The scope of a hold: '' for everything, else a source's key."""
        if name is None:
            return ""
        key = self.source(name).key
        _ = self.source_ids  # a source that is new in the file becomes known to the store
        return key

    def _id_of(self, name: str) -> int:
        return self.source_ids[self.source(name).key]


def lane_limits(source: SourceSettings) -> LaneLimits:
    """What the configuration allows a source's lane."""
    return LaneLimits(
        source.limits.concurrency,
        source.limits.candidates,
        source.weight,
        source.limits.rate_per_s,
        source.backfill.share if source.backfill else LaneLimits().background,
        adaptive=source.limits.adaptive,
        windows=_windows(source),
        breaker=source.breaker,
    )


def _windows(source: SourceSettings) -> Windows | None:
    limits = source.limits
    return Windows(limits.windows, limits.timezone) if limits.windows else None


def refuse_kind(kind: str) -> None:
    """Not every kind of run can be started by its name alone."""
    if kind in COMMANDS:
        raise UsageError(f"a {kind} needs more than a source", COMMANDS[kind])
    if kind not in KINDS:
        raise UsageError(f"there is no kind of run {kind!r}", nearest(kind, [*KINDS, *COMMANDS]))


def refuse_signal(name: str) -> None:
    """Say why nobody but the engine can raise a signal of this name, if that is so."""
    if not is_name(name):
        raise UsageError(
            f"{name!r:.60} can't be the name of a signal",
            "letters, digits and _.:- only, such as prices.stale",
        )
    if is_reserved(name):
        raise UsageError(f"{name} is raised by Penstock alone", "choose another name")


def run_options(source: SourceSettings) -> RunOptions:
    """What its configuration says of a run, remembered with it."""
    return RunOptions(
        degrade_after=source.degrade_after,
        good_probes=source.good_probes,
        deadline_s=source.deadline_s,
    )


def _rejected_by(stages: Collection[str]) -> str:
    return f"; it was rejected by {', '.join(sorted(stages))}" if stages else ""


def default_actor() -> str:
    """Who is asking, for the journal."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
