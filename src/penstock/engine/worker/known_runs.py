"""What a worker knows of the runs whose jobs it performs; it never changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.engine.worker.stage_config import SourceConfig
from penstock.gates.loaded import Loaded
from penstock.jobs.run import RunFacts, RunOptions
from penstock.jobs.run_policy import FULL, RunPolicy, policy_of
from penstock.pipeline.attempt import StepRun
from penstock.pipeline.version import version_of, with_params
from penstock.store.store import Store

KNOWN_RUNS = 10_000


@dataclass(eq=False, slots=True)
class KnownRuns:
    worker: str
    store: Store
    sources: Mapping[int, SourceConfig]
    loaded: Loaded | None = None
    # Of the worker's terms: what trial runs may send.
    trials: dict[int, float] = field(default_factory=dict)
    _views: dict[int, StepRun] = field(default_factory=dict, init=False)
    # Of each of them: it is asked several times for each job.
    _policies: dict[int, RunPolicy] = field(default_factory=dict, init=False)

    def __getitem__(self, run_id: int) -> StepRun:
        return self._views[run_id]

    def policy(self, run_id: int) -> RunPolicy:
        return self._policies.get(run_id, FULL)

    def is_measured(self, run_id: int) -> bool:
        """Whether the guardrails of a canary look at what comes of its pages."""
        view = self._views.get(run_id)
        return view is not None and view.options.canary is not None

    def learn(self, source_of: Mapping[int, int]) -> None:
        """In the store's thread: what the steps of these runs must know of them, by run and source."""
        run_ids = source_of.keys()
        unknown = sorted(run_ids - self._views.keys())
        if not unknown:
            return
        if len(self._views) > KNOWN_RUNS:
            self._views = {run_id: self._views[run_id] for run_id in run_ids & self._views.keys()}
            self._policies = {run_id: view.policy for run_id, view in self._views.items()}
        for facts in self.store.runs.facts(unknown).values():
            view = StepRun(
                facts.id,
                facts.kind,
                facts.options,
                facts.of_run_id,
                self._stamped(facts, source_of[facts.id]),
            )
            self._views[facts.id] = view
            self._policies[facts.id] = view.policy
            if facts.options.trial_requests is not None:
                self.trials[facts.id] = facts.options.trial_requests

    def _stamped(self, facts: RunFacts, source_id: int) -> str:
        """The version that a run is performed with here; the run says so from now on.

        What a replay has staged is of the version that it was asked for, or it is not performed.
        """
        own = self.loaded.sources.get(source_id) if self.loaded is not None else None
        known = facts.pipeline_version
        if own is None or policy_of(facts.kind, facts.options).pins_version:
            return known
        version = self._version(source_id, facts.options) or own.version
        if version != known:
            self.store.runs.restamp(facts.id, known, version, self.worker)
        return version

    def _version(self, source_id: int, options: RunOptions) -> str:
        """Of a run that has params of its own."""
        config = self.sources.get(source_id)
        if not options.params or config is None:
            return ""
        return version_of(config.graph, with_params(config.settings, options.params))
