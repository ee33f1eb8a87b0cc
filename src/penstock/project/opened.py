"""An opened project: its settings, its pipelines and its store, and what is found in them by name."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock, RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from penstock.clock import Clock, SystemClock
from penstock.errors import Refused, Remedy, UsageError, nearest
from penstock.gates.lane import LaneLimits
from penstock.gates.loaded import Loaded, LoadedSource, hash_of
from penstock.gates.onboarding import (
    NOTHING_REQUIRED,
    ComplianceTerms,
    SourceState,
    cell_words,
    is_here,
)
from penstock.jobs.replay import REPLAY_STAGE
from penstock.jobs.run import RunKind
from penstock.jobs.run_policy import policy_of
from penstock.journal.origin import current_origin
from penstock.project.connections import Connections
from penstock.settings import Settings, SourceSettings, load_settings, normalise_source
from penstock.settings.opening_hours import OpeningHours
from penstock.settings.unset import refuse_unset
from penstock.store.address import open_schema, open_store
from penstock.store.health import HealthRow
from penstock.store.onboarding_refusals import in_other_cell, not_active
from penstock.store.onboardings import OnboardingRow
from penstock.store.rows import JobRow, RunRow
from penstock.store.schema import Schema
from penstock.store.store import Store

# Pipelines are loaded by those who work; who only looks does not wait for what loads them.
if TYPE_CHECKING:
    from penstock.jobs.retry import RetryClass
    from penstock.pipeline.graph import Graph
    from penstock.store.reject_rows import RejectRow

# Who somebody was before `sudo`, and who the environment says he is.
CLAIMS = ("SUDO_USER", "LOGNAME", "USER")
LONGEST_CLAIM = 64


class Opened:
    """What the verbs of a project are given."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        # All that stands in penstock.yaml: who works for a cell has fewer in its settings.
        self._configured = settings.sources
        # What the paths of sources are relative to: for a release, the folder of the project at home.
        self.data_root = settings.root
        self.connections = Connections(self.open_store)
        self._stores: WeakSet[Store] = WeakSet()
        self._opening = Lock()
        self._graphs: dict[str, Graph] = {}
        # A module is imported by one thread; the others wait for what it becomes.
        self._loading = RLock()
        # Sources whose pipeline could not be loaded; None before it was tried.
        self._broken: dict[str, UsageError] | None = None
        self._settings_files = _hashes(settings)
        self._limits: tuple[Settings | None, Mapping[str, LaneLimits]] = (None, {})

    @classmethod
    def load(cls, directory: str | Path = ".", environment: str | None = None) -> Self:
        """Read the project in a folder and validate every pipeline that its sources name."""
        project = cls.open(directory, environment)
        project.validate()
        return project

    @classmethod
    def open(cls, directory: str | Path = ".", environment: str | None = None) -> Self:
        """Read the project's settings only: enough to look, quick, and runs none of its code."""
        return cls(load_settings(Path(directory), environment))

    def validate(self) -> None:
        """Import and check the pipelines of all sources that can run here."""
        self._refuse_unset()
        for source in self.ready_sources().values():
            self.graph(source)

    def validate_what_loads(self) -> dict[str, UsageError]:
        """As `validate`, for who works for all sources: the code of one must not keep the others from it.

        Answers with the sources that can't be loaded, and why; raises if that is all of them.
        """
        self._refuse_unset()
        ready, broken = self.ready_sources(), {}
        for key, source in ready.items():
            try:
                self.graph(source)
            except UsageError as error:
                broken[key] = error
        if broken and len(broken) == len(ready):
            raise next(iter(broken.values()))
        self._broken = broken
        return broken

    def broken_sources(self) -> dict[str, UsageError]:
        """Those that could not be loaded when that was tried last, and why."""
        return self.validate_what_loads() if self._broken is None else self._broken

    def loadable_sources(self) -> dict[str, SourceSettings]:
        """Of those that are ready, the others."""
        broken = self.broken_sources()
        return {key: s for key, s in self.ready_sources().items() if key not in broken}

    def _refuse_unset(self) -> None:
        """Refuse to work where nothing could be done for want of variables."""
        self.settings.refuse_unset()
        if not self.ready_sources():
            for source in self.settings.sources.values():
                refuse_unset(source.unset)

    def ready_sources(self) -> dict[str, SourceSettings]:
        """The sources that lack no variable: the others can be looked at, and can't run."""
        sources = self.settings.sources
        return {key: source for key, source in sources.items() if not source.unset}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of all threads; the project opens new ones if it is used again."""
        self.connections.close()

    @property
    def connection(self) -> Store:
        """The store, through a connection that belongs to the calling thread."""
        store = self.connections.of_this_thread()
        store.acts_from(current_origin())
        return store

    def open_store(self) -> Store:
        """A connection of its own, for a thread of its own.

        Refused while another is open to a file that was taken away: it would make an empty one there.
        """
        with self._opening:
            for other in self._stores:
                other.refuse_if_replaced()
        store = open_store(self.settings, self.clock)
        with self._opening:
            self._stores.add(store)
        return store

    def open_schema(self) -> Schema:
        """The database's schema, to look at or to bring up to date."""
        return open_schema(self.settings, self.clock)

    @cached_property
    def source_ids(self) -> dict[str, int]:
        return self.connection.sources.ensure(list(self.settings.sources))

    def read_settings_again(self) -> None:
        """Go by the file as it is now: a source was written into it."""
        cell = self.settings.cell_name if self.settings.cell else None
        self.settings = load_settings(self.settings.file, self.settings.environment, cell=cell)
        self._configured = self.settings.sources
        self._settings_files = _hashes(self.settings)
        self.__dict__.pop("source_ids", None)

    def limits(self) -> dict[int, LaneLimits]:
        """What the configuration allows each lane."""
        return {self.source_ids[key]: limits for key, limits in self.limits_by_key().items()}

    def limits_by_key(self) -> Mapping[str, LaneLimits]:
        """The same by the keys of sources; made once of the settings, and no source is made known for it."""
        made_of, limits = self._limits
        if made_of is not self.settings:
            terms = self.compliance
            limits = {key: lane_limits(source) for key, source in self.settings.sources.items()}
            if terms != NOTHING_REQUIRED:
                limits = {key: replace(each, compliance=terms) for key, each in limits.items()}
            self._limits = (self.settings, limits)
        return limits

    @property
    def compliance(self) -> ComplianceTerms:
        """What this project asks of every source before it is fetched."""
        asked = self.settings.onboarding
        return ComplianceTerms(
            asked.required,
            asked.robots_max_age_s,
            asked.terms_max_age_s,
            is_placed_only=self.settings.is_placed_only,
        )

    @cached_property
    def retries(self) -> dict[str, RetryClass]:
        """The retry classes that there are, by name."""
        from penstock.jobs.retry import retry_classes

        return retry_classes(self.settings.retries)

    def source(self, name: str) -> SourceSettings:
        """The source that is meant by a name in any spelling."""
        found = self.settings.sources.get(normalise_source(name))
        if found is None:
            raise UsageError(
                f"{self.settings.file.name} has no source {name!r}",
                nearest(name, self.settings.sources),
                code="no_source",
            )
        return found

    def source_key(self, name: str | None) -> str | None:
        """The key of a source that is configured, or was once and left its history."""
        if name is None:
            return None
        key = normalise_source(name)
        if key in self.settings.sources:
            _ = self.source_ids  # a source that is new in the file becomes known to the store
            return key
        former = {*self.connection.sources.ids()}
        if key not in former:
            raise UsageError(
                f"{self.settings.file.name} has no source {name!r}",
                nearest(name, former | set(self.settings.sources)),
                code="no_source",
            )
        return key

    def graph(self, source: SourceSettings) -> Graph:
        """The source's pipeline, imported from beside penstock.yaml and validated; or its connector's."""
        self.settings.refuse_unset()
        refuse_unset(source.unset)
        with self._loading:
            # What a connector reads is bounded by keys of its source.
            is_of_source = source.connector or source.profile
            name = f"{source.code} of {source.key}" if is_of_source else source.pipeline
            if name not in self._graphs:
                self._graphs[name] = self._load_graph(source)
            return self._graphs[name]

    def _load_graph(self, source: SourceSettings) -> Graph:
        from penstock.connectors.graphs import graph_of
        from penstock.pipeline.loader import (
            refuse_bad_schemas,
            refuse_unknown_retries,
            refuse_what_never_fits,
        )

        refuse_bad_schemas(self.settings)
        where = f"{self.settings.file.name}: sources.{source.key}.pipeline"
        graph = graph_of(source, self.settings.root, where)
        refuse_what_never_fits(graph, self.settings.worker, where)
        refuse_unknown_retries(graph, self.retries, where)
        return graph

    def version(self, name: str) -> str:
        """The version of a source's pipeline as it is today: its code and its configuration."""
        return self._version(self.source(name))

    def _version(self, source: SourceSettings, params: Mapping[str, Any] | None = None) -> str:
        """The same, with a run's own params over those of the source."""
        from penstock.pipeline.version import version_of, with_params

        return version_of(self.graph(source), with_params(source, params or {}))

    def loaded(self) -> Loaded:
        """What a worker of this project would load now: its sources' stages and versions, and its files."""
        sources = {}
        for key, source in self.loadable_sources().items():
            graph = self.graph(source)
            stages = (*graph.stage_names, REPLAY_STAGE)
            sources[self.source_ids[key]] = LoadedSource(self._version(source), stages)
        from penstock.project.running_release import runs_of

        root, on_trial = self.settings.root, self.data_root != self.settings.root
        return Loaded(str(root), self.files(), sources, runs_of(self), on_trial)

    def files(self) -> dict[str, str]:
        """Hashes of the files in the project's folder that it was loaded from, by their paths there."""
        files = dict(self._settings_files)
        for key in self.broken_sources():
            files |= self._file_of_module(self.settings.sources[key].pipeline)
        for source in self.loadable_sources().values():
            graph = self.graph(source)
            files |= {name: graph.files[file] for name, file in _below(self.settings.root, graph)}
        return files

    def _file_of_module(self, pipeline: str) -> dict[str, str]:
        """Of a module that can't be loaded: when it is mended, that is a change."""
        name = pipeline.partition(":")[0].replace(".", "/") + ".py"
        try:
            return {name: hash_of((self.settings.root / name).read_bytes())}
        except OSError:
            return {}

    def require_run(self, run_id: int) -> RunRow:
        [run] = self.require_runs([run_id])
        return run

    def require_runs(self, run_ids: Sequence[int]) -> list[RunRow]:
        """These runs, in this order, with one query."""
        found = {run.id: run for run in self.connection.runs.by_id(run_ids)}
        for run_id in run_ids:
            if run_id not in found:
                raise UsageError(
                    f"there is no run {run_id}", code="no_run", remedy=Remedy("runs.list")
                )
        return [found[run_id] for run_id in run_ids]

    def require_reject(self, reject_id: int) -> RejectRow:
        from penstock.store.reject_rows import RejectFilter

        found = self.connection.rejects.newest(RejectFilter(ids=(reject_id,)), 1)
        if not found:
            raise UsageError(
                f"there is no reject {reject_id}", code="no_reject", remedy=Remedy("rejects.list")
            )
        return found[0]

    def require_job(self, job_id: int) -> JobRow:
        job = self.connection.jobs.get(job_id)
        if job is None:
            raise UsageError(f"there is no job {job_id}", code="no_job", remedy=Remedy("jobs.list"))
        return job

    def _id_of(self, name: str) -> int:
        return self.source_ids[self.source(name).key]

    def source_state(
        self, key: str, known: OnboardingRow | None = None, *, is_known: bool = False
    ) -> SourceState:
        """Where a source stands; with `is_known`, `known` is all that the store knows of it."""
        row = known if known is not None or is_known else self.connection.onboardings.get(key)
        if row is not None:
            return row.state
        is_asked = self.settings.onboarding.required and key in self.settings.sources
        return SourceState.PROPOSED if is_asked else SourceState.ACTIVE

    def why_not_started(self, source: SourceSettings, kind: str) -> str:
        """Why a run of this kind would never begin: its source is not active; empty if it would."""
        try:
            self.refuse_inactive(source.key, kind)
        except Refused as error:
            return error.message
        return ""

    def refuse_inactive(
        self, key: str, kind: str, known: Mapping[str, OnboardingRow] | None = None
    ) -> None:
        """Refuse what no gate would let start: a source in trial has probes only, another that is not
        active has nothing. `known` is what the store knows of all sources, if it was asked already."""
        row = self.connection.onboardings.get(key) if known is None else known.get(key)
        self.refuse_elsewhere(key, row)
        state = self.source_state(key, row, is_known=True)
        is_trial = state is SourceState.TRIAL and policy_of(kind).is_probe
        if state is not SourceState.ACTIVE and not is_trial:
            raise not_active(key, state)

    def refuse_elsewhere(self, key: str, known: OnboardingRow | None) -> None:
        """Refuse what another cell has to do, or none before the source has moved."""
        state = None if known is None else known.cell_state
        if not is_here(state, is_placed_only=self.settings.is_placed_only):
            raise in_other_cell(key, cell_words(state or "", "" if known is None else known.cell))

    def keep_to_cell(self, store: Store) -> frozenset[str]:
        """Go by the sources that this cell performs, as its database says now; answers with their keys.

        For who works: the others' schedules, alerts and promises are the business of other cells.
        """
        here = self.sources_here(store)
        self._go_by({key: each for key, each in self._configured.items() if key in here})
        return here

    def know_all_sources(self) -> None:
        """Go by all sources of penstock.yaml again, whichever cell has them."""
        self._go_by(self._configured)

    def _go_by(self, sources: dict[str, SourceSettings]) -> None:
        if len(sources) != len(self.settings.sources):
            self.settings = replace(self.settings, sources=sources)
            self._broken = None
            self.__dict__.pop("source_ids", None)

    def sources_here(self, store: Store) -> frozenset[str]:
        """The keys of the configured sources that this cell performs."""
        states = store.cells.states()
        only = self.settings.is_placed_only
        return frozenset(
            key
            for key in self._configured
            if is_here(states[key].state if key in states else None, is_placed_only=only)
        )

    def refuse_degraded_end(self, run: RunRow) -> None:
        """An ended run of a degraded source stays so; one that has not ended goes on anyway."""
        if run.is_ended:
            self.refuse_degraded_run(run)

    def refuse_degraded(self, source: SourceSettings) -> None:
        """Refuse anything but a probe of a source that is degraded, or not active at all."""
        self.refuse_inactive(source.key, RunKind.FULL)
        self._refuse_ill(source)

    def _refuse_ill(self, source: SourceSettings) -> None:
        health = self.connection.sources.health(self.source_ids[source.key])
        if health.degraded_at is not None and not self._has_new_version(source, health):
            raise Refused(
                f"{source.key} is degraded: {health.degraded_reason}",
                f"penstock run {source.key} --kind probe tries one item; "
                f"penstock resume {source.key} takes it for healthy",
                code="source_degraded",
                remedy=Remedy("sources.resume", source.key),
            )

    def _has_new_version(self, source: SourceSettings, health: HealthRow) -> bool:
        """Whether its pipeline was changed since it was degraded; then it is taken for healthy again."""
        bad = self.connection.runs.get(health.bad_run_id) if health.bad_run_id is not None else None
        if bad is None or bad.pipeline_version == self._version(source):
            return False
        reason = "its pipeline has a new version"
        self.connection.sources.recover(self.source_ids[source.key], default_actor(), reason)
        return True

    def refuse_degraded_run(self, run: RunRow) -> None:
        self.refuse_inactive(run.source, run.kind)
        is_refused = not policy_of(run.kind).runs_when_degraded
        if is_refused and run.source in self.settings.sources:
            self.refuse_degraded(self.source(run.source))


def _below(root: Path, graph: Graph) -> list[tuple[str, Path]]:
    """The files of a pipeline that lie in the project's folder, by their paths in it."""
    return [
        (str(file.relative_to(root)), file) for file in graph.files if file.is_relative_to(root)
    ]


def _hashes(settings: Settings) -> dict[str, str]:
    try:
        return {settings.file.name: hash_of(settings.file.read_bytes())}
    except OSError:
        return {}


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


def _windows(source: SourceSettings) -> OpeningHours | None:
    limits = source.limits
    return OpeningHours(limits.windows, limits.timezone) if limits.windows else None


def default_actor() -> str:
    """Who is asking, for the journal: the user that the system knows, and whom the environment claims to be.

    Anybody can set LOGNAME; `root (says alice)` tells the two apart.
    """
    uid = os.getuid()
    try:
        known = pwd.getpwuid(uid).pw_name
    except KeyError:
        known = f"uid {uid}"
    said = next((os.environ[name] for name in CLAIMS if os.environ.get(name)), known)
    claim = "".join(char for char in said if char.isprintable())[:LONGEST_CLAIM]
    return known if claim in ("", known) else f"{known} (says {claim})"
