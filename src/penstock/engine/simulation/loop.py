"""The loop of a simulation: its parts put together, run to the end, and asked what it came to."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from math import ceil

from penstock.engine.leader.signals import wants_of
from penstock.engine.simulation.assumptions import coming_to
from penstock.engine.simulation.budgets import SimulatedBudgets
from penstock.engine.simulation.figures import Figures, HostFigures, SourceFigures, add_up
from penstock.engine.simulation.guards import Guard
from penstock.engine.simulation.hosts import SimulatedHost, hosts_of
from penstock.engine.simulation.initial_state import InitialState, SourceState
from penstock.engine.simulation.left_out import left_out, unknown_signals
from penstock.engine.simulation.runs import SimulatedRuns
from penstock.engine.simulation.sla import SimulatedSla
from penstock.engine.simulation.sources import SimulatedSchedule, SimulatedSource
from penstock.engine.simulation.starts import Starts
from penstock.engine.simulation.timeline import Timeline
from penstock.engine.simulation.work import SimulatedWork
from penstock.engine.simulation.worker_load import DAY_S, WorkerLoad
from penstock.gates.adaptive import AdaptiveLevel
from penstock.gates.breaker import Breaker
from penstock.gates.budget import BudgetUsage
from penstock.gates.project_terms import HostLimit, rules_of
from penstock.jobs.retry import RetryClass, choose_retry, retry_classes
from penstock.jobs.signals import FILE_LANDED
from penstock.project import lane_limits
from penstock.schedules.auto import Standing, is_auto
from penstock.schedules.definition import definition_of
from penstock.settings import Settings, SourceSettings


def simulate(
    settings: Settings,
    beginning: InitialState,
    days: float,
    seed: int,
    on_day: Callable[[int], None] | None = None,
) -> Figures:
    """What this configuration would come to; the same seed gives the same figures.

    `on_day` is called with the number of days that are simulated, after each.
    """
    simulation = _Simulation(settings, beginning, days, seed)
    simulation.on_day = on_day
    return simulation.run()


class _Simulation:
    def __init__(self, settings: Settings, beginning: InitialState, days: float, seed: int) -> None:
        slots = settings.worker.count * settings.worker.slots
        self._settings = settings
        self._timeline = Timeline(beginning.at, beginning.at + days * DAY_S)
        self._figures = Figures(beginning.at, ceil(days), seed, slots)
        self._load = WorkerLoad(self._timeline, self._figures)
        self._budgets = SimulatedBudgets(rules_of(settings), beginning.accounts, beginning.at)
        self._work = SimulatedWork(self._timeline, self._load, self._budgets, self._figures)
        self._promises = SimulatedSla(self._timeline)
        parts = (self._load, self._budgets, self._work, self._promises)
        self._runs = SimulatedRuns(self._timeline, *parts, seed)
        self._hosts = self._hosts_made(beginning)
        self._sources = self._made(beginning)
        self._starts = Starts(self._timeline, self._runs, self._sources.values())
        self._runs.on_signal = self._starts.signal_end
        self._promises.on_signal = self._starts.signal_promise
        self._runs.on_end = self._starts.go_on
        self._runs.on_move = self._plan_auto
        self._starts_before = 0
        self._ended_days = 0
        self.on_day: Callable[[int], None] | None = None
        self._begin(beginning)
        self._figures.left_out = list(left_out(settings, beginning.coming_per_s))

    def run(self) -> Figures:
        self._timeline.run(self._work.claim)
        return self._told()

    # Beginning.

    def _made(self, beginning: InitialState) -> dict[str, SimulatedSource]:
        classes = retry_classes(self._settings.retries)
        return {
            key: self._source(number, settings, beginning, choose_retry(classes, settings.retry))
            for number, (key, settings) in enumerate(self._settings.sources.items(), 1)
        }

    def _source(
        self, number: int, settings: SourceSettings, beginning: InitialState, retry: RetryClass
    ) -> SimulatedSource:
        key = settings.key
        past, present = beginning.past[key], beginning.present.get(key, SourceState())
        limits = lane_limits(settings)
        moments = (*present.moments, *self._assumed_moments(key, beginning))
        source = SimulatedSource(
            number,
            settings,
            limits,
            retry,
            past,
            SourceFigures(key, is_assumed=past.is_assumed),
            [SimulatedSchedule(each, key, wants_of(each), moments) for each in settings.schedules],
            past.good_at or beginning.at,
            guard=Guard(present.breaker),
            host=next((each for each in self._hosts.values() if key in each.figures.sources), None),
            health=present.health,
            is_paused=present.is_paused,
            is_held=present.is_held or beginning.is_held,
            pulse=AdaptiveLevel(float(limits.concurrency)) if limits.adaptive else None,
        )
        if source.auto_rule is not None:
            source.standing = present.standing or Standing()
        return source

    def _assumed_moments(self, key: str, beginning: InitialState) -> Iterator[float]:
        per_s = beginning.coming_per_s.get((key, "moments"))
        rng, at = self._chance(key, "moments"), beginning.at
        while per_s and (at := at + rng.expovariate(per_s)) < self._timeline.ends_at:
            yield at

    def _chance(self, *about: str) -> random.Random:
        return random.Random("/".join((str(self._figures.seed), *about)))

    def _hosts_made(self, beginning: InitialState) -> dict[str, SimulatedHost]:
        """Those that a source is known to ask."""
        asked = {}
        rules = rules_of(self._settings)
        for key, source in self._settings.sources.items():
            for name in hosts_of(source, self._settings.hosts)[:1]:
                if name not in asked:
                    limit = rules.hosts.get(name, HostLimit(name))
                    guard = Guard(beginning.hosts.get(name, Breaker()))
                    asked[name] = SimulatedHost(
                        limit, rules.breakers[name], guard, HostFigures(name)
                    )
                asked[name].figures.sources.append(key)
        return asked

    def _begin(self, beginning: InitialState) -> None:
        now = beginning.at
        for key, source in self._sources.items():
            present = beginning.present.get(key, SourceState())
            for planned in source.schedules:
                definition, due = present.next_due.get(planned.settings.name, ("", None))
                if due is None or definition != definition_of(planned.settings):
                    due = planned.rule(source.level).next_due(now)
                self._starts.plan(source, planned, due)
                self._expect(source, planned, beginning)
            self._promises.begin(source, present.stale_since)
            if present.backlog:
                self._runs.go_on(source, present.backlog)
        for day in range(1, self._figures.days + 1):
            self._timeline.at(min(now + day * DAY_S, self._timeline.ends_at), self._end_day)
        for account in self._budgets.lasting():
            self._await_reset(account)

    def _expect(
        self, source: SimulatedSource, planned: SimulatedSchedule, beginning: InitialState
    ) -> None:
        settings = planned.settings
        coming = coming_to(settings)
        if coming is None or coming == "moments":
            return
        per_s = beginning.coming_per_s.get((source.key, coming))
        # What is raised in the simulation itself is not to come twice.
        names = [FILE_LANDED] if coming == "files" else unknown_signals(settings)
        if per_s and names:
            rng = self._chance(source.key, settings.name, coming)
            self._starts.expect(source, planned, names[0], per_s, rng)

    # By and by.

    def _plan_auto(self, source: SimulatedSource) -> None:
        for planned in source.schedules:
            if is_auto(planned.settings):
                due = planned.rule(source.level).next_due(self._timeline.now)
                self._starts.plan(source, planned, due)

    def _await_reset(self, account: BudgetUsage) -> None:
        if account.resets_at is not None and account.resets_at < self._timeline.ends_at:
            # Who leads looks at schedules first.
            self._timeline.at(account.resets_at, lambda: self._reset(account), rank=1)

    def _reset(self, account: BudgetUsage) -> None:
        own = self._sources.get(account.bound.scope.removeprefix("source:"))
        if account.used > 0:
            self._starts.signal("budget.reset", own)
        self._budgets.begin_anew(account, self._timeline.now)
        for source in self._sources.values() if own is None else (own,):
            self._runs.reopen(source)
        self._await_reset(account)

    def _end_day(self) -> None:
        starts = sum(source.figures.starts for source in self._sources.values())
        self._figures.starts_by_day.append(starts - self._starts_before)
        self._starts_before = starts
        self._load.end_day()
        self._budgets.end_day()
        self._ended_days += 1
        if self.on_day is not None:
            self.on_day(self._ended_days)

    # The end.

    def _told(self) -> Figures:
        figures, timeline = self._figures, self._timeline
        timeline.now = timeline.ends_at
        self._load.tell()
        for source in self._sources.values():
            self._promises.count_staleness(source)
            source.figures.requests = round(self._budgets.requests.get(source.key, 0.0))
            source.figures.cadence = source.level or ""
            figures.sources.append(source.figures)
        figures.bytes = self._budgets.bytes
        figures.budgets = self._budgets.told()
        figures.hosts = [host.figures for host in self._hosts.values()]
        figures.events, figures.is_cut_short = timeline.events, timeline.is_cut_short
        add_up(figures)
        return figures
