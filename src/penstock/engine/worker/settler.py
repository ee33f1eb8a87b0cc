"""What attempts have come to, made ready to be written: redacted, settled, keyed, with what they cost."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from penstock.engine.worker.budget_use import Spending
from penstock.engine.worker.ends import Ends
from penstock.engine.worker.known_runs import KnownRuns
from penstock.engine.worker.private_words import PrivateMasker
from penstock.engine.worker.redaction import redact_notes, redacted
from penstock.engine.worker.stage_config import SourceConfig, StageConfigs
from penstock.jobs.effects import Effects
from penstock.jobs.effects.fields import with_hashed_names
from penstock.jobs.effects.samples import sample_of
from penstock.jobs.job import Claimed, Unit
from penstock.jobs.outcome import Flush, Outcome, Succeeded
from penstock.jobs.probe import without_retries
from penstock.jobs.repeats import Sayings
from penstock.jobs.retry import RetryClass, settle
from penstock.private_words import hashed
from penstock.settings.secrets import Masker, masker_for

Where = tuple[int, int]


@dataclass(eq=False, slots=True, kw_only=True)
class Settler:
    ends: Ends
    runs: KnownRuns
    sources: Mapping[int, SourceConfig]
    stages: StageConfigs
    spending: Spending
    secrets: frozenset[str]
    rng: random.Random
    _flush_counts: dict[Where, int] = field(default_factory=dict, init=False)
    _renewed: set[Where] = field(default_factory=set, init=False)
    _sayings: dict[Where, Sayings] = field(default_factory=dict, init=False)

    def end(
        self,
        job: Claimed,
        outcome: Outcome,
        retry: RetryClass,
        unit: Unit | None = None,
        took_s: float = 0.0,
        useful_for_s: float | None = None,
    ) -> None:
        """An attempt has ended; it is written with the next turn."""
        # Most end well and have nothing to say: nothing of that is to be masked.
        if not isinstance(outcome, Succeeded) or outcome.effects:
            outcome = redacted(outcome, self._masker(job))
        end = settle(job, outcome, retry, self.rng, unit, took_s, useful_for_s)
        self._hide_fields(job, end.effects)
        if job.attempt > 1 and end.effects:
            self._key(job, end.effects)
        if self._sayings:
            self._sayings.pop((job.id, job.attempt), None)
        self._sample(job, end.effects)
        policy = self.runs.policy(job.run_id)
        if policy.retries:
            policy.committed(end.effects)
        else:
            config = self.stages.of(job)
            end = without_retries(end, config.timeout_s if config else took_s)
        self._load(job, end.effects)
        self.ends.add(end)

    async def flush(self, job: Claimed, effects: Effects, *, is_long: bool) -> None:
        """Make a part of a long attempt's effects durable; AttemptLost when the fence is gone."""
        self._sample(job, effects)
        effects = self.runs.policy(job.run_id).committed(effects)
        redact_notes(effects, self._masker(job))
        self._hide_fields(job, effects)
        where = (job.id, job.attempt)
        self._flush_counts[where] = number = self._flush_counts.get(where, 0) + 1
        self._key(job, effects)
        flush = Flush(job.id, job.attempt, effects, number, is_long and bool(effects))
        if flush.is_progress:
            self._renewed.add(where)
        self._load(job, effects)
        await self.ends.add_and_wait(flush)

    def forget(self, job: Claimed) -> bool:
        """Its attempt is over; True if what it brought has made up for what failed before."""
        where = (job.id, job.attempt)
        self._flush_counts.pop(where, None)
        is_renewed = where in self._renewed
        self._renewed.discard(where)
        return is_renewed

    def _masker(self, job: Claimed) -> Masker:
        """What is written of a private source is hashed, too."""
        masker = masker_for(self.secrets)
        source = self.sources.get(job.source_id)
        if source is None or not source.settings.private:
            return masker
        return PrivateMasker(masker, source.settings.key, job.key)

    def _hide_fields(self, job: Claimed, effects: Effects) -> None:
        """Of a private source, the names of fields are hashed before drift tells of them."""
        source = self.sources.get(job.source_id) if effects.fields else None
        if source is not None and source.settings.private:
            hide = partial(hashed, source=source.settings.key)
            effects.fields = with_hashed_names(effects.fields, hide)

    def _sample(self, job: Claimed, effects: Effects) -> None:
        """For the guardrails of a canary, if it is one of its runs."""
        if self.runs.is_measured(job.run_id) and (sample := sample_of(effects)) is not None:
            effects.samples = [sample]

    def _load(self, job: Claimed, effects: Effects) -> None:
        source = self.sources.get(job.source_id)
        if source is not None:
            self.spending.load(job, source.settings.key, effects)

    def _key(self, job: Claimed, effects: Effects) -> None:
        """Let what is said again be known. A stream goes on where it was, so what it says is new."""
        config = self.stages.of(job)
        if config is not None and not config.stage.is_stream:
            self._sayings.setdefault((job.id, job.attempt), Sayings()).key(effects)
