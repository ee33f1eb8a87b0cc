"""A simulation: what a project would do in the next days, by its own rules, on a clock that only jumps.

The schedules, gates, budgets, breakers, retries, healths and cadences are those that work is done by; what
work would bring is drawn from the runs there were. Jobs are counted and not performed: those that are alike
and start together are one step. Nothing is written anywhere.

Testing a pipeline is another matter: `penstock.testing.Simulation` runs the engine itself.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil, inf

from penstock.engine.figures import BudgetFigures, Figures, SourceFigures, add_up
from penstock.engine.samples import Past, Sample
from penstock.engine.simulated import (
    FIND,
    PAGES,
    PLAN,
    UNITS,
    Again,
    Planned,
    Run,
    Source,
    Stage,
)
from penstock.gates.adaptive import Pulse, Seen, feel
from penstock.gates.breaker import Breaker, Tally, follow, is_excused, part_of
from penstock.gates.budget import COUNTED, Account, Bound, open_account, words
from penstock.gates.decide import decide
from penstock.gates.lane import Closed
from penstock.gates.rates import LONGEST_WAIT_S
from penstock.gates.sharing import Grant, Room, Sharing
from penstock.gates.terms import Rules, rules_of
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Failed
from penstock.jobs.retry import choose_retry, retry_classes, settle
from penstock.jobs.run import RunKind, RunState, advance
from penstock.project import lane_limits
from penstock.schedules.auto import Ended, Standing, judge, moved
from penstock.schedules.definition import definition_of
from penstock.schedules.due import is_late, what_is_due
from penstock.schedules.slots import slot_opens_at
from penstock.settings import Settings
from penstock.store.breakers import EXCUSES
from penstock.store.health import HealthRow, RunEnd, judged

DAY_S = 86_400.0
HOUR_S = 3600.0
# Lanes that are offered what is free at one time; the others come next.
OFFERED = 32
# A job of the same kind takes more or less long, by about so much.
SPREAD = 0.25
# More steps than this, and the rest of the time is left out.
MOST_EVENTS = 20_000_000
_FAILURE = Failed("it failed", kind="transient")
_GOOD = (RunState.COMPLETED, RunState.PARTIAL)


@dataclass(frozen=True, slots=True)
class Present:
    """How a source stands when the simulation begins, where that is known."""

    is_paused: bool = False
    health: HealthRow = field(default_factory=HealthRow)
    breaker: Breaker = field(default_factory=Breaker)
    standing: Standing | None = None
    # What it has to do already.
    backlog: int = 0
    # By schedule: its definition, and its next tick; that of another definition is planned anew.
    next_due: dict[str, tuple[str, float | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the simulation goes by: the moment, what the past was like, and how things stand."""

    at: float
    past: dict[str, Past]
    present: dict[str, Present] = field(default_factory=dict)
    accounts: tuple[Account, ...] = ()


def simulate(settings: Settings, beginning: Beginning, days: float, seed: int) -> Figures:
    """What this configuration would come to; the same seed gives the same figures."""
    return _Simulation(settings, beginning, days, seed).run()


class _Simulation:
    def __init__(self, settings: Settings, beginning: Beginning, days: float, seed: int) -> None:
        self._settings = settings
        self._now = beginning.at
        self._ends_at = beginning.at + days * DAY_S
        self._seed = seed
        self._slots = settings.worker.count * settings.worker.slots
        self._free = self._slots
        self._sharing = Sharing()
        self._heap: list[tuple[float, int, int, Callable[[], None]]] = []
        self._order = 0
        self._ready: dict[int, Source] = {}
        self._runs: dict[int, Run] = {}
        self._run_number = 0
        self._figures = Figures(beginning.at, ceil(days), seed, self._slots)
        self._backlog = 0
        self._backlog_peak = 0
        self._busy_s = 0.0
        self._busy_before = 0.0
        self._changed_at = beginning.at
        self._starts_before = 0
        self._budgets = _Budgets(rules_of(settings), beginning)
        self._sources = self._made(beginning)
        self._after: dict[str, list[tuple[Source, Planned]]] = {}
        for source in self._sources.values():
            for planned in source.schedules:
                for name in planned.settings.after:
                    self._after.setdefault(name, []).append((source, planned))
        self._begin(beginning)

    def run(self) -> Figures:
        figures = self._figures
        while self._heap and figures.events < MOST_EVENTS:
            at, _, _, act = heapq.heappop(self._heap)
            if at > self._ends_at:
                break
            self._now = max(self._now, at)
            figures.events += 1
            act()
            if self._ready and self._free > 0:
                self._claim()
        figures.is_cut_short = figures.events >= MOST_EVENTS
        return self._told()

    # Beginning.

    def _made(self, beginning: Beginning) -> dict[str, Source]:
        classes = retry_classes(self._settings.retries)
        found = {}
        for number, (key, settings) in enumerate(self._settings.sources.items(), 1):
            past, present = beginning.past[key], beginning.present.get(key, Present())
            limits = lane_limits(settings)
            host = self._settings.hosts.get(key)
            if host is not None:
                # What is called as a host is taken to send its requests there.
                rates = [rate for rate in (limits.rate_per_s, host.rate_per_s) if rate]
                width = min(limits.concurrency, host.concurrency or limits.concurrency)
                limits = replace(limits, rate_per_s=min(rates, default=None), concurrency=width)
            source = Source(
                number,
                settings,
                limits,
                choose_retry(classes, settings.retry),
                past,
                SourceFigures(key, is_assumed=past.is_assumed),
                [Planned(each, key) for each in settings.schedules],
                past.good_at or beginning.at,
                breaker=present.breaker,
                health=present.health,
                is_paused=present.is_paused,
                pulse=Pulse(float(limits.concurrency)) if limits.adaptive else None,
            )
            if source.auto_rule is not None:
                source.standing = present.standing or Standing()
            found[key] = source
        return found

    def _begin(self, beginning: Beginning) -> None:
        for key, source in self._sources.items():
            present = beginning.present.get(key, Present())
            for planned in source.schedules:
                definition, due = present.next_due.get(planned.settings.name, ("", None))
                if due is None or definition != definition_of(planned.settings):
                    due = planned.rule(source.level).next_due(self._now)
                self._plan(source, planned, due)
            if present.backlog:
                run = self._new_run(source, RunKind.FULL)
                run.stages[FIND] = Stage(succeeded=1)
                run.stages[PAGES].fresh = present.backlog
                self._grow(present.backlog - 1)
        for day in range(1, self._figures.days + 1):
            self._at(min(beginning.at + day * DAY_S, self._ends_at), self._end_day)
        for account in self._budgets.lasting():
            self._await_reset(account)

    def _at(self, when: float, act: Callable[[], None], rank: int = 0) -> None:
        """Do this then; of what is done at the same moment, what has a higher rank comes later."""
        self._order += 1
        heapq.heappush(self._heap, (when, rank, self._order, act))

    # Schedules.

    def _plan(self, source: Source, planned: Planned, due: float | None) -> None:
        planned.next_due = due
        if due is not None and due < self._ends_at:
            self._at(max(due, self._now), lambda: self._tick(source, planned, due))

    def _tick(self, source: Source, planned: Planned, due_at: float) -> None:
        if planned.next_due != due_at or planned.is_waiting:
            return  # it was planned anew meanwhile
        settings, rule = planned.settings, planned.rule(source.level)
        due = what_is_due(rule, settings.missed, due_at, self._now)
        source.figures.missed += len(due.passed)
        if due.fires is None:
            self._plan(source, planned, due.next_due_at)
            return
        is_patient = settings.missed == "all" and is_late(due_at, self._now)
        if self._fire(source, planned, is_patient):
            later = due.next_due_at
            if is_patient and later is not None and later <= self._now:
                planned.next_due = later
                wait_s = 60.0 / settings.catch_up_per_min
                self._at(self._now + wait_s, lambda: self._tick(source, planned, later))
            else:
                self._plan(source, planned, later)

    def _fire(self, source: Source, planned: Planned, is_patient: bool) -> bool:
        """Start a run for a tick, if it may have one; False if it waits for the run before it."""
        settings, figures = planned.settings, source.figures
        if slot_opens_at(settings, self._now) is not None:
            figures.denied += 1
            return True
        if source.runs and settings.overlap != "replace":
            if is_patient or settings.overlap == "queue":
                planned.is_waiting = True
                return False
            figures.skipped += 1
            return True
        for run in list(source.runs.values()):
            self._cancel(run)
        self._start(source, RunKind(settings.run_kind))
        return True

    def _go_on_waiting(self, source: Source) -> None:
        """The run before it has ended: a tick that waited has its turn, with those that came meanwhile."""
        for planned in source.schedules:
            if planned.is_waiting and not source.runs and planned.next_due is not None:
                planned.is_waiting = False
                rule = planned.rule(source.level)
                due = what_is_due(rule, "once", planned.next_due, self._now)
                if planned.settings.missed == "all":
                    due = what_is_due(rule, "all", planned.next_due, self._now)
                self._fire(source, planned, False)
                self._plan(source, planned, due.next_due_at)

    # Runs.

    def _start(self, source: Source, kind: RunKind) -> None:
        if source.health.degraded_at is not None:
            kind = RunKind.PROBE
        source.figures.starts += 1
        source.figures.probes += kind is RunKind.PROBE
        self._new_run(source, kind)

    def _new_run(self, source: Source, kind: RunKind) -> Run:
        self._run_number += 1
        # Each run has chance of its own, so that a change elsewhere leaves it as it was.
        rng = random.Random(f"{self._seed}/{source.key}/{source.figures.starts}")
        sample = rng.choice(source.past.samples)
        run = Run(self._run_number, source, kind, sample, rng, self._now)
        self._runs[run.number] = source.runs[run.number] = run
        self._grow(1)
        self._ready[source.number] = source
        return run

    def _cancel(self, run: Run) -> None:
        left = sum(stage.queued + stage.waiting + stage.stopped for stage in run.stages.values())
        self._grow(-left)
        for stage in run.stages.values():
            stage.fresh, stage.waiting, stage.stopped = 0, 0, 0
            stage.again.clear()
        self._end_run(run, RunState.CANCELLED, "")

    def _look_whether_ended(self, run: Run) -> None:
        if run.is_ended or run.is_open:
            return
        counts = {name: stage.counts() for name, stage in run.stages.items()}
        verdict = advance(PLAN, counts, run.stopped)
        if verdict.ends_as is not None:
            self._end_run(run, verdict.ends_as, verdict.reason)

    def _end_run(self, run: Run, state: RunState, reason: str) -> None:
        source, figures = run.source, run.source.figures
        run.is_ended = True
        del source.runs[run.number]
        if run.stopped:
            source.set_aside[run.number] = run
        else:
            del self._runs[run.number]
            self._budgets.forget(source.key, run.number)
        setattr(figures, state.value, getattr(figures, state.value) + 1)
        deadline_s = source.settings.deadline_s
        if deadline_s is not None and self._now - run.created_at > deadline_s:
            figures.deadline_breaches += 1
        if state is not RunState.CANCELLED:
            self._judge_health(run, state, reason)
        if state in _GOOD and run.kind in (RunKind.FULL, RunKind.INCREMENTAL):
            self._be_fresh(source)
            self._tell_those_after(source)
        self._go_on_waiting(source)

    def _judge_health(self, run: Run, state: RunState, reason: str) -> None:
        source = run.source
        is_good = state is RunState.COMPLETED
        end = RunEnd(source.number, run.number, run.kind, source.options, state, reason, is_good)
        source.health = judged(source.health, end, self._now)
        rule = source.auto_rule
        if rule is None or source.standing is None:
            return
        seen = 1000
        ended = Ended(
            run.number,
            run.kind is RunKind.PROBE,
            state in _GOOD,
            round(run.sample.changed * seen),
            seen,
        )
        is_degraded = source.health.degraded_at is not None
        source.standing, move = judge(source.standing, [ended], is_degraded, rule)
        if move is None or not any(each.settings.mode == "apply" for each in source.schedules):
            return
        source.standing = moved(source.standing, move.level)
        source.figures.moves.append(f"{move.level}: {move.reason}")
        for planned in source.schedules:
            if planned.settings.cadence == "auto":
                self._plan(source, planned, planned.rule(source.level).next_due(self._now))

    def _be_fresh(self, source: Source) -> None:
        self._count_staleness(source)
        source.good_at = self._now

    def _count_staleness(self, source: Source) -> None:
        allowed_s = source.settings.freshness_s
        if allowed_s is None:
            return
        late_s = self._now - source.good_at - allowed_s
        if late_s > 0:
            source.figures.freshness_breaches += 1
            source.figures.stale_hours += late_s / HOUR_S

    def _tell_those_after(self, ended: Source) -> None:
        for source, planned in self._after.get(ended.key, ()):
            planned.ran.add(ended.key)
            if planned.ran >= set(planned.settings.after):
                planned.ran.clear()
                self._fire(source, planned, False)
                planned.is_waiting = False

    # Jobs.

    def _claim(self) -> None:
        """Share what is free among the lanes that may have it, as a worker would."""
        now = self._now
        while self._free > 0 and self._ready:
            offered = list(islice(self._ready.values(), min(OFFERED, 4 + 2 * self._free)))
            for source in offered:
                del self._ready[source.number]
            lanes = [source.lane(now) for source in offered if not self._is_full(source)]
            lanes = [lane for lane in lanes if lane.heads]
            room = Room(self._free, inf, inf)
            grants = self._sharing.share(lanes, room, now) if lanes else []
            for grant in grants:
                self._begin_jobs(grant)
            if self._free == 0:
                # Whoever is closed is found to be so when it is offered something again.
                self._ready |= {each.number: each for each in offered if each.runs}
                return
            for source in offered:
                self._await_opening(source, has_started=bool(grants))

    def _is_full(self, source: Source) -> bool:
        if source.full_until <= self._now:
            return False
        self._wake_at(source, source.full_until)
        return True

    def _await_opening(self, source: Source, has_started: bool) -> None:
        """See to it that a lane with work is looked at again when it may start some."""
        if source.full_until > self._now:
            self._wake_at(source, source.full_until)
            return
        lane = source.lane(self._now)
        if not lane.heads:
            return
        verdict = decide(lane, self._now)
        if not isinstance(verdict, Closed):
            self._wake_at(source, self._now + (0.0 if has_started else 1.0))
        elif verdict.opens_at is not None and verdict.opens_at < inf:
            self._wake_at(source, max(verdict.opens_at, self._now + 0.001))

    def _wake_at(self, source: Source, at: float) -> None:
        if source.wakes_at <= at and source.wakes_at > self._now:
            return
        source.wakes_at = at
        self._at(at, lambda: self._wake(source, at))

    def _wake(self, source: Source, at: float) -> None:
        if source.wakes_at == at:
            source.wakes_at = inf
        self._ready[source.number] = source

    def _begin_jobs(self, grant: Grant) -> None:
        run = self._runs[grant.run_id]
        source, stage = run.source, run.stages[grant.stage]
        if source.breaker.state != "closed":
            source.is_tried(self._now)
        may_stride = source.breaker.state == "closed" and source.limits.windows is None
        stride = run.stride if may_stride else 1
        wanted = min(grant.count * stride, stage.queued)
        if not wanted:
            return  # what was granted with it had no budget left
        allowed = self._budgets.spend(source.key, run.number, run.sample, wanted, self._now)
        if allowed < wanted:
            # The others would each be turned away, one after the other, and at once.
            self._set_aside(run, stage, stage.queued - allowed)
        if not allowed:
            self._look_whether_ended(run)
            return
        again = [stage.again.pop() for _ in range(min(allowed, len(stage.again)))]
        fresh = allowed - len(again)
        stage.fresh -= fresh
        stage.running += allowed
        self._grow(-allowed)
        places = min(grant.count, allowed)
        took_s = self._took_s(run, allowed, places)
        self._hold(places)
        source.running += places
        self._at(
            self._now + took_s,
            lambda: self._end_jobs(run, grant.stage, fresh, again, places, took_s),
        )

    def _took_s(self, run: Run, jobs: int, places: int) -> float:
        source, sample = run.source, run.sample
        spread = run.rng.lognormvariate(-SPREAD * SPREAD / 2, SPREAD)
        work_s = ceil(jobs / places) * sample.seconds * spread
        rate_per_s, requests = source.limits.rate_per_s, jobs * sample.requests
        if not rate_per_s or not requests:
            return work_s
        first_at = max(self._now, source.next_place_at)
        source.next_place_at = first_at + requests / rate_per_s
        source.full_until = source.next_place_at - LONGEST_WAIT_S
        last_at = first_at + max(0.0, requests - 1) / rate_per_s
        return max(work_s, last_at - self._now + sample.seconds * spread)

    def _end_jobs(
        self, run: Run, name: str, fresh: int, again: list[Again], places: int, took_s: float
    ) -> None:
        self._hold(-places)
        source, stage = run.source, run.stages[name]
        source.running -= places
        self._ready[source.number] = source
        stage.running -= fresh + len(again)
        failed = _chosen(run.rng, fresh, run.sample.failures)
        failed_again = [job for job in again if run.rng.random() < run.sample.failures]
        ok = fresh + len(again) - failed - len(failed_again)
        self._learn(run, ok, failed, len(failed_again), took_s)
        if run.is_ended:  # replaced by the next one meanwhile
            return
        stage.succeeded += ok
        for job in (*(Again() for _ in range(failed)), *failed_again):
            self._fail(run, name, job)
        if failed + len(failed_again) > 0.1 * (fresh + len(again)):
            run.stride = 1
        elif name == PAGES:
            run.longer_stride(places)
        if name == FIND and ok:
            run.stages[PAGES].fresh += run.pages
            self._grow(run.pages)
        self._look_whether_ended(run)

    def _fail(self, run: Run, name: str, job: Again) -> None:
        """Where the rules of retries lead a job that has failed."""
        stage, source = run.stages[name], run.source
        if run.kind is RunKind.PROBE:
            stage.quarantined += 1
            self._figures.quarantined += 1
            return
        if self._is_excused(source) and job.excuses < EXCUSES:
            job.excuses += 1
            stage.again.insert(0, job)
            self._grow(1)
            return
        claimed = Claimed(0, run.number, source.number, name, "", 1, job.tries, 0, 0, False, "")
        end = settle(claimed, _FAILURE, source.retry, run.rng, UNITS[name])
        if end.state is JobState.QUARANTINED:
            stage.quarantined += 1
            self._figures.quarantined += 1
            return
        job.tries += 1
        stage.waiting += 1
        self._figures.retries += 1
        self._grow(1)
        self._at(self._now + end.delay_s, lambda: self._again(run, stage, job))

    def _again(self, run: Run, stage: Stage, job: Again) -> None:
        if not run.is_ended:
            stage.waiting -= 1
            stage.again.append(job)
            self._ready[run.source.number] = run.source

    def _is_excused(self, source: Source) -> bool:
        return source.limits.breaker is not None and is_excused(source.breaker)

    def _learn(self, run: Run, ok: int, failed: int, again: int, took_s: float) -> None:
        """What these ends say of their source, to its breaker and to how much it bears at once."""
        source, now = run.source, self._now
        rule = source.limits.breaker
        if rule is not None and (failed or again or source.breaker.state != "closed" or ok):
            part = part_of(rule, now)
            tally = Tally(
                buckets=((part, ok, failed),),
                reason="it failed",
                is_well=ok > 0,
                again=again,
            )
            before = source.breaker.trips
            chance = run.rng.random() if failed or again else 0.0
            cap = source.limits.concurrency
            source.breaker = follow(source.breaker, tally, rule, cap, now, chance)
            source.figures.trips += max(0, source.breaker.trips - before)
        if source.pulse is not None:
            seen = Seen(ok=ok, failed=failed + again)
            if not source.limits.rate_per_s and ok:
                seen.took(PAGES, ok, ok * run.sample.seconds)
            feel(source.pulse, seen, source.limits.concurrency, now)

    # Budgets.

    def _set_aside(self, run: Run, stage: Stage, jobs: int) -> None:
        kept = stage.queued - jobs
        del stage.again[kept:]
        stage.fresh = kept - len(stage.again)
        stage.stopped += jobs

    def _await_reset(self, account: Account) -> None:
        if account.resets_at is not None and account.resets_at < self._ends_at:
            # Who leads looks at schedules first.
            self._at(account.resets_at, lambda: self._reset(account), rank=1)

    def _reset(self, account: Account) -> None:
        self._budgets.begin_anew(account, self._now)
        own = self._sources.get(account.bound.scope.removeprefix("source:"))
        for source in self._sources.values() if own is None else (own,):
            for run in list(source.set_aside.values()):
                if not self._budgets.is_stopped(source.key, run.number):
                    self._release(run)
        self._await_reset(account)

    def _release(self, run: Run) -> None:
        """Reopen what a budget has stopped."""
        source = run.source
        del source.set_aside[run.number]
        run.is_ended = False
        source.runs[run.number] = run
        source.figures.partial -= 1
        for stage in run.stages.values():
            stage.fresh += stage.stopped
            stage.stopped = 0
        self._ready[source.number] = source

    # Counting.

    def _grow(self, jobs: int) -> None:
        self._backlog += jobs
        self._backlog_peak = max(self._backlog_peak, self._backlog)

    def _hold(self, places: int) -> None:
        self._count_use()
        self._free -= places
        use = (self._slots - self._free) / self._slots
        self._figures.worker_use_peak = max(self._figures.worker_use_peak, use)

    def _count_use(self) -> None:
        self._busy_s += (self._slots - self._free) * (self._now - self._changed_at)
        self._changed_at = self._now

    def _end_day(self) -> None:
        self._count_use()
        figures = self._figures
        starts = sum(source.figures.starts for source in self._sources.values())
        figures.starts_by_day.append(starts - self._starts_before)
        figures.backlog_by_day.append(self._backlog_peak)
        figures.use_by_day.append((self._busy_s - self._busy_before) / (self._slots * DAY_S))
        figures.backlog_peak = max(figures.backlog_peak, self._backlog_peak)
        self._starts_before, self._busy_before = starts, self._busy_s
        self._backlog_peak = self._backlog
        self._budgets.end_day()

    def _told(self) -> Figures:
        figures = self._figures
        self._now = self._ends_at
        self._count_use()
        figures.worker_use = self._busy_s / (self._slots * (self._ends_at - figures.began_at))
        figures.backlog_at_end = self._backlog
        for source in self._sources.values():
            self._count_staleness(source)
            source.figures.requests = round(self._budgets.requests.get(source.key, 0.0))
            source.figures.cadence = source.level or ""
            figures.sources.append(source.figures)
        figures.bytes = self._budgets.bytes
        figures.budgets = self._budgets.told()
        add_up(figures)
        return figures


class _Budgets:
    """What is used of every budget, by the rules of the accounts."""

    def __init__(self, rules: Rules, beginning: Beginning) -> None:
        self._rules = rules
        self._accounts: dict[tuple[str, str, str], Account] = {}
        self._figures: dict[tuple[str, str, str], BudgetFigures] = {}
        self._peak: dict[tuple[str, str, str], float] = {}
        self._bounds: dict[tuple[str, int], tuple[Bound, ...]] = {}
        self.requests: dict[str, float] = {}
        self.bytes = 0.0
        known = {account.bound.key: account for account in beginning.accounts}
        for bound in rules.lasting():
            account = open_account(bound, beginning.at)
            before = known.get(bound.key)
            if before is not None and not before.is_over(beginning.at):
                account.used = before.used
            self._accounts[bound.key] = account
            self._figures[bound.key] = BudgetFigures(
                words(bound), bound.scope, bound.measure, bound.period, bound.amount
            )
            self._peak[bound.key] = account.used

    def lasting(self) -> list[Account]:
        return [each for each in self._accounts.values() if each.resets_at is not None]

    def spend(self, source: str, run: int, sample: Sample, jobs: int, now: float) -> int:
        """Take what so many jobs need of every budget; answers how many of them there is enough for."""
        accounts = [self._account(bound, now) for bound in self._bounds_of(source, run)]
        cost = self._rules.cost(source)
        allowed, block = 0, jobs
        while allowed < jobs:
            block = min(block, jobs - allowed)
            refusing = self._refusing(accounts, sample, cost, block) if accounts else None
            if refusing is None:
                allowed += block
                for account in accounts:
                    account.used += _takes(account.bound, sample, cost, block)
                    self._note_peak(account)
            elif block > 1:
                block //= 2
            else:
                self._refuse(refusing, now)
                break
        self.requests[source] = self.requests.get(source, 0.0) + allowed * sample.requests
        self.bytes += allowed * sample.requests * sample.bytes
        return allowed

    def is_stopped(self, source: str, run: int) -> bool:
        bounds = self._bounds_of(source, run)
        accounts = (self._accounts.get(bound.key) for bound in bounds)
        return any(account is not None and account.has_refused for account in accounts)

    def begin_anew(self, account: Account, now: float) -> None:
        account.begin_anew(now)
        account.has_refused = False

    def forget(self, source: str, run: int) -> None:
        for bound in self._bounds.pop((source, run), ()):
            if bound.period == "run":
                self._accounts.pop(bound.key, None)

    def end_day(self) -> None:
        for key, figures in self._figures.items():
            figures.by_day.append(self._peak[key])
            figures.most_used = max(figures.most_used, self._peak[key])
            self._peak[key] = self._accounts[key].used

    def told(self) -> list[BudgetFigures]:
        return list(self._figures.values())

    def _bounds_of(self, source: str, run: int) -> tuple[Bound, ...]:
        terms = self._rules.sources.get(source)
        where = (source, run if terms is not None and terms.of_each_run else 0)
        if where not in self._bounds:
            self._bounds[where] = self._rules.bounds(source, where[1])
        return self._bounds[where]

    def _account(self, bound: Bound, now: float) -> Account:
        if bound.key not in self._accounts:
            self._accounts[bound.key] = open_account(bound, now)
        return self._accounts[bound.key]

    def _refusing(
        self, accounts: Iterable[Account], sample: Sample, cost: float, jobs: int
    ) -> Account | None:
        for account in accounts:
            takes = _takes(account.bound, sample, cost, jobs)
            if takes and account.verdict(takes):
                return account
            # What is only known afterwards is passed by one at the most.
            is_counted = account.bound.measure in COUNTED
            if not is_counted and jobs > 1 and account.used + takes > account.bound.amount:
                return account
        return None

    def _refuse(self, account: Account, now: float) -> None:
        figures = self._figures.get(account.bound.key)
        if not account.has_refused and figures is not None:
            figures.exhausted_at.append(now)
        account.has_refused = True

    def _note_peak(self, account: Account) -> None:
        key = account.bound.key
        if key in self._peak:
            self._peak[key] = max(self._peak[key], account.used)


def _takes(bound: Bound, sample: Sample, cost: float, jobs: int) -> float:
    requests = jobs * sample.requests
    amounts = {
        "requests": requests,
        "money": requests * cost,
        "bytes": requests * sample.bytes,
        "seconds": jobs * sample.seconds if sample.requests else 0.0,
    }
    return amounts[bound.measure]


def _chosen(rng: random.Random, number: int, share: float) -> int:
    """How many of so many it hits, each with this chance."""
    if share <= 0.0:
        return 0
    return number if share >= 1.0 else sum(rng.random() < share for _ in range(number))
