"""The runs of a simulation: how they begin and end, and what their ends say of their sources."""

from __future__ import annotations

import random
from collections.abc import Callable

from penstock.engine.simulation.budgets import SimulatedBudgets
from penstock.engine.simulation.sla import SimulatedSla
from penstock.engine.simulation.sources import (
    FIND,
    PAGES,
    PLAN,
    SimulatedRun,
    SimulatedSource,
    SimulatedStage,
)
from penstock.engine.simulation.timeline import Timeline
from penstock.engine.simulation.work import SimulatedWork
from penstock.engine.simulation.worker_load import WorkerLoad
from penstock.jobs.run import RunKind, RunState, advance
from penstock.jobs.run_policy import kind_to_run, policy_of
from penstock.schedules.auto import EndedRun, judge, moved
from penstock.store.health import RunEnd, judged

_GOOD = (RunState.COMPLETED, RunState.PARTIAL)
# How much a run has seen, for the share of it that has changed.
_SEEN = 1000


class SimulatedRuns:
    """Begins and ends them."""

    def __init__(
        self,
        timeline: Timeline,
        load: WorkerLoad,
        budgets: SimulatedBudgets,
        work: SimulatedWork,
        promises: SimulatedSla,
        seed: int,
    ) -> None:
        self._timeline = timeline
        self._load = load
        self._budgets = budgets
        self._work = work
        self._promises = promises
        self._seed = seed
        self._number = 0
        # What is to be done when something has happened to a run, when one has ended, and when its
        # source is to be looked at more or less often.
        self.on_signal: Callable[[SimulatedRun, str], None] = lambda run, name: None
        self.on_end: Callable[[SimulatedSource], None] = lambda source: None
        self.on_move: Callable[[SimulatedSource], None] = lambda source: None
        work.on_progress = self._look_whether_ended
        work.on_closed = lambda run: self.on_signal(run, "breaker.closed")

    def start(self, source: SimulatedSource, kind: RunKind, signal: str = "") -> None:
        kind = self.kind_of(source, kind)
        source.figures.starts += 1
        source.figures.probes += policy_of(kind).is_probe
        self._begin(source, kind).signal = signal

    def kind_of(self, source: SimulatedSource, kind: RunKind) -> RunKind:
        """What a run of this kind really is: a degraded source is only probed."""
        return kind_to_run(kind, is_degraded=source.health.degraded_at is not None)

    def go_on(self, source: SimulatedSource, jobs: int) -> None:
        """Go on with so many jobs that were there already."""
        run = self._begin(source, RunKind.FULL)
        run.is_resumed = True
        run.stages[FIND] = SimulatedStage(run.created_at, succeeded=1)
        run.stages[PAGES].fresh = jobs
        source.queue(run, PAGES)
        self._load.grow(jobs - 1)

    def _begin(self, source: SimulatedSource, kind: RunKind) -> SimulatedRun:
        self._number += 1
        # Each run has chance of its own, so that a change elsewhere leaves it as it was.
        rng = random.Random(f"{self._seed}/{source.key}/{source.figures.starts}")
        sample = rng.choice(source.past.samples)
        run = SimulatedRun(self._number, source, kind, sample, rng, self._timeline.now)
        self._work.runs[run.number] = source.runs[run.number] = run
        self._load.grow(1)
        source.queue(run, FIND)
        self._work.look_at(source)
        self._promises.expect_end(run)
        return run

    def cancel(self, run: SimulatedRun) -> None:
        left = sum(stage.queued + stage.waiting + stage.stopped for stage in run.stages.values())
        self._load.grow(-left - run.finishing)
        run.finishing = 0
        for stage in run.stages.values():
            stage.fresh, stage.waiting, stage.stopped = 0, 0, 0
            stage.again.clear()
        run.source.changed()
        self._end(run, RunState.CANCELLED, "")

    def _look_whether_ended(self, run: SimulatedRun) -> None:
        if run.is_ended or run.is_open:
            return
        counts = {name: stage.counts() for name, stage in run.stages.items()}
        verdict = advance(PLAN, counts, run.stopped)
        if verdict.ends_as is not None:
            self._end(run, verdict.ends_as, verdict.reason)

    def _end(self, run: SimulatedRun, state: RunState, reason: str) -> None:
        source, figures = run.source, run.source.figures
        run.is_ended = True
        if state in _GOOD and policy_of(run.kind).keeps_fresh:
            self._promises.be_fresh(source, is_stopped=bool(run.stopped))
        del source.runs[run.number]
        if state is not RunState.CANCELLED and not policy_of(run.kind).is_probe:
            self._answer_older(run)
        if run.stopped:
            source.set_aside[run.number] = run
        else:
            del self._work.runs[run.number]
            self._budgets.forget(source.key, run.number)
        setattr(figures, state.value, getattr(figures, state.value) + 1)
        self._promises.end(run)
        if state is not RunState.CANCELLED:
            self._judge_health(run, state, reason)
        if policy_of(run.kind).signals_end:
            self.on_signal(run, f"run.{state.value}")
        self.on_end(source)

    # What a budget has stopped.

    def _answer_older(self, run: SimulatedRun) -> None:
        """Each run asks for the same pages: what became of them in this one is what counts of them now."""
        for older in list(run.source.set_aside.values()):
            for name in (FIND, PAGES) if run.stages[FIND].succeeded else (FIND,):
                self._load.grow(-older.stages[name].stopped)
                older.stages[name].stopped = 0
            if not older.stopped:
                del run.source.set_aside[older.number], self._work.runs[older.number]
                self._budgets.forget(run.source.key, older.number)

    def reopen(self, source: SimulatedSource) -> None:
        """A budget begins anew: what was stopped by it goes on, unless another one stops it."""
        self._promises.count_staleness(source)
        for run in list(source.set_aside.values()):
            if not self._budgets.is_stopped(source.key, run.number, self._timeline.now):
                self._release(run)
        if not source.set_aside:
            self._promises.go_on(source)

    def _release(self, run: SimulatedRun) -> None:
        source = run.source
        del source.set_aside[run.number]
        run.is_ended = False
        run.queued_at = self._timeline.now
        source.runs[run.number] = run
        self._promises.expect_end(run)
        source.figures.partial -= 1
        for name, stage in run.stages.items():
            stage.fresh += stage.stopped
            stage.stopped = 0
            source.queue(run, name)
        self._work.look_at(source)

    # What an end says of its source.

    def _judge_health(self, run: SimulatedRun, state: RunState, reason: str) -> None:
        source, before = run.source, run.source.health
        is_good = state is RunState.COMPLETED
        end = RunEnd(source.number, run.number, run.kind, source.options, state, reason, is_good)
        source.health = judged(before, end, self._timeline.now)
        if (source.health.degraded_at is None) != (before.degraded_at is None):
            is_well = source.health.degraded_at is None
            self.on_signal(run, "source.recovered" if is_well else "source.degraded")
        self._judge_cadence(run, state)

    def _judge_cadence(self, run: SimulatedRun, state: RunState) -> None:
        source = run.source
        rule = source.auto_rule
        if rule is None or source.standing is None:
            return
        changed = round(run.sample.changed * _SEEN)
        is_probe = policy_of(run.kind).is_probe
        ended = EndedRun(run.number, is_probe, state in _GOOD, changed, _SEEN)
        is_degraded = source.health.degraded_at is not None
        source.standing, move = judge(source.standing, [ended], is_degraded, rule)
        if move is None or not any(each.settings.mode == "apply" for each in source.schedules):
            return
        source.standing = moved(source.standing, move.level)
        source.figures.moves.append(f"{move.level}: {move.reason}")
        self.on_move(source)
