"""Spending: what each attempt of a worker has used, and whose budget has nothing left."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.gates.budget import used_up
from penstock.gates.project_terms import ProjectTerms
from penstock.gates.rates import Sent
from penstock.jobs.effects import Effects
from penstock.jobs.job import Claimed
from penstock.jobs.run_policy import slot_of
from penstock.metrics.buckets import bucket
from penstock.pipeline.graph import Stage
from penstock.store.rows import BudgetRow


class Spending:
    """Counts requests by the attempt that sent them, and puts them down with what it commits."""

    def __init__(self, rules: ProjectTerms) -> None:
        self._rules = rules
        # Asked for each job, and found by looking at every source.
        self._has_budgets = rules.has_budgets
        self._meters: dict[tuple[int, int], dict[str, float]] = {}
        # How many requests of an attempt took how long, by the bound of their bucket; their sum is under "".
        self._latencies: dict[tuple[int, int], dict[str, float]] = {}
        # By what they are in, until that is written: for which run, and how many requests.
        self._loaded: dict[int, tuple[int, float]] = {}
        # What the steps of a stage were seen to spend.
        self._spenders: dict[tuple[str, str], set[str]] = {}
        # Sources by whether a budget counts that, as far as it is known.
        self._paid: dict[str, bool] = {}
        # The budgets that are used up, as the last claim found them.
        self._exhausted: dict[tuple[str, str, str], BudgetRow] = {}

    @property
    def has_budgets(self) -> bool:
        return self._has_budgets or bool(self._rules.trials)

    @property
    def has_loaded(self) -> bool:
        """Whether something that is on its way to the store has used requests."""
        return bool(self._loaded)

    def learn(self, exhausted: Iterable[BudgetRow]) -> None:
        self._exhausted = {(row.scope, row.measure, row.period): row for row in exhausted}

    def counter(self, job: Claimed, source: str) -> Callable[[Sent], None]:
        """For the requests of this attempt."""
        cost = self._rules.cost(source)

        def count(sent: Sent) -> None:
            meter = self._meters.setdefault((job.id, job.attempt), {})
            amounts = {
                "requests": 1,
                "bytes": sent.bytes,
                "seconds": sent.seconds,
                "money": cost + sent.money,
            }
            for measure, amount in amounts.items():
                if amount:
                    meter[measure] = meter.get(measure, 0) + amount
            latencies = self._latencies.setdefault((job.id, job.attempt), {})
            for label, by in ((bucket("fetch_seconds", sent.seconds), 1), ("", sent.seconds)):
                latencies[label] = latencies.get(label, 0) + by

        return count

    def load(self, job: Claimed, source: str, effects: Effects) -> None:
        """Put what this attempt has used so far into what it commits now.

        What its requests used was counted against the budgets before they went out; what its steps say
        they have spent is charged with the commit.
        """
        if effects and effects.spent:
            known = self._spenders.setdefault((source, job.stage), set())
            if not known.issuperset(effects.spent):
                known.update(effects.spent)
                self._paid.clear()
            effects.charges = [
                (bound, effects.spent[bound.measure])
                for bound in self._rules.bounds(source, job.run_id)
                if bound.measure in effects.spent
            ]
        meter = self._meters.pop((job.id, job.attempt), None) if self._meters else None
        if meter:
            self._loaded[id(effects)] = (job.run_id, meter.get("requests", 0.0))
            latencies = self._latencies.pop((job.id, job.attempt), {})
            effects.pour(Effects(spent=meter, latencies=latencies))

    def settled(self, effects: Effects) -> tuple[int, float]:
        """The run and the requests that were put into these effects, which are written now."""
        return self._loaded.pop(id(effects), (0, 0.0))

    def is_paid(self, source: str, stages: Iterable[Stage]) -> bool:
        """Whether a budget of the source counts what its steps spend, which is known once they have."""
        if not self._has_budgets:
            return False
        if source not in self._paid:
            spent = {
                measure for stage in stages for measure in self._spent_by(source, stage.name, stage)
            }
            bounds = self._rules.bounds_of(source)
            self._paid[source] = any(bound.measure in spent for bound in bounds)
        return self._paid[source]

    def _spent_by(self, source: str, name: str, stage: Stage) -> frozenset[str]:
        return stage.spends | self._spenders.get((source, name), set())

    def stops(self, job: Claimed, source: str, stage: Stage, kind: str) -> str:
        """Why this job is set aside without being begun; empty if it may begin.

        What was fetched already is worked on, and what was gathered is reported, with no budget at all,
        unless a candidate spends by itself what is used up. Attempts that have begun go on, so a budget is
        passed by what those spend that run at once.
        """
        if not self._exhausted or stage.is_gather:
            return ""
        needs_all = slot_of(stage.unit, kind) != "candidate"
        spends = self._spent_by(source, job.stage, stage)
        for bound in self._rules.bounds(source, job.run_id):
            if not needs_all and bound.measure not in spends:
                continue
            row = self._exhausted.get(bound.key)
            # A bound that was raised since has more to give.
            if row is not None and (bound.amount <= row.bound or bound.amount <= row.used):
                return used_up(bound)
        return ""
