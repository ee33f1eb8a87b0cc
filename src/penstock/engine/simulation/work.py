"""The work of a simulation: lanes are offered what is free, and jobs begin, end, fail and come again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice
from math import ceil, inf, log

from penstock.engine.simulation.budgets import SimulatedBudgets
from penstock.engine.simulation.figures import Figures
from penstock.engine.simulation.guards import JobEnds
from penstock.engine.simulation.hosts import SimulatedHost
from penstock.engine.simulation.sources import (
    FEW_SLOTS,
    FIND,
    LONGEST_STEP_S,
    PAGES,
    UNITS,
    Again,
    SimulatedRun,
    SimulatedSource,
    SimulatedStage,
)
from penstock.engine.simulation.timeline import Timeline
from penstock.engine.simulation.turns import Turns
from penstock.engine.simulation.worker_load import WorkerLoad
from penstock.gates.adaptive import RoundResults, feel
from penstock.gates.breaker import is_excused
from penstock.gates.decide import decide
from penstock.gates.lane import Closed, Head
from penstock.gates.rates import LONGEST_WAIT_S
from penstock.jobs.job import Claimed, JobState
from penstock.jobs.outcome import Failed
from penstock.jobs.retry import settle
from penstock.jobs.run_policy import policy_of
from penstock.settings.opening_hours import window_opens_at
from penstock.settings.values import BreakerSettings
from penstock.store.turn.breaker_watch import EXCUSES

# So many of those who wait for a host are looked at together.
LET_IN = 4
# A job of the same kind takes more or less long, by about so much.
SPREAD = 0.25
_FAILURE = Failed("it failed", kind="transient")


class SimulatedWork:
    """Who has work that may start, and what becomes of it."""

    def __init__(
        self, timeline: Timeline, load: WorkerLoad, budgets: SimulatedBudgets, figures: Figures
    ) -> None:
        self._timeline = timeline
        self._load = load
        self._budgets = budgets
        self._figures = figures
        self._turns = Turns()
        self._is_crowded = False
        # With many slots many steps are under way at once: each may take longer, and there are no more.
        self._longest_s = LONGEST_STEP_S * max(1.0, figures.slots / FEW_SLOTS)
        self.runs: dict[int, SimulatedRun] = {}
        # What is to be done when jobs of a run have ended, and when a source's breaker has closed.
        self.on_progress: Callable[[SimulatedRun], None] = lambda run: None
        self.on_closed: Callable[[SimulatedRun], None] = lambda run: None

    def look_at(self, source: SimulatedSource) -> None:
        """It may have something to start that it had not before."""
        source.changed()
        self._turns.add(source)

    def claim(self) -> None:
        """Share what is free among the lanes that may have it, as a worker would."""
        load, turns = self._load, self._turns
        while load.free > 0 and turns:
            source = turns.next()
            places = self._places(source)
            if source.finishing and (not places or source.is_older_fetched):
                self._finish(source)
                turns.add(source)
            elif places:
                self._serve(source, min(places, max(1, load.free // (1 + len(turns)))))
                if source.running < source.limits.concurrency or source.finishing:
                    turns.add(source)
        self._is_crowded = bool(turns)

    def _places(self, source: SimulatedSource) -> int:
        """How much of a lane may start now; where nothing may, it is looked at again when something may."""
        now = self._timeline.now
        if source.running >= source.limits.concurrency:
            return 0  # it is looked at again when one of these ends
        if source.full_until > now:
            self._wake_at(source, source.full_until)
            return 0
        lane = source.lane()
        if not lane.heads:
            return 0
        if source.host is not None:
            places = self._places_at(source.host, source)
            if not places:
                return 0
            # It may have just been told that its host is away.
            lane = source.lane()
        verdict = decide(lane, now)
        if not isinstance(verdict, Closed):
            return verdict.pages if source.host is None else min(places, verdict.pages)
        if verdict.opens_at is not None and verdict.opens_at < inf:
            self._wake_at(source, max(verdict.opens_at, now + 0.001))
        return 0

    def _places_at(self, host: SimulatedHost, source: SimulatedSource) -> int:
        """How much may start as far as the host goes that a source asks."""
        now, own = self._timeline.now, source.limits.breaker
        away_until = host.away_until(now)
        if own is not None and away_until > now and source.told_of != host.guard.breaker.since:
            # Each of its jobs would find that out for itself, and be none the worse for it.
            source.told_of = host.guard.breaker.since
            queued = sum(head.depth for head in source.lane().heads)
            source.guard.turn_away(own, source.limits.concurrency, queued, away_until, now)
            source.changed()
        opens_at = host.opens_at(now)
        if opens_at > now:
            if opens_at < inf:
                self._wake_at(source, opens_at)
            return 0
        places = host.places(now)
        if not places:
            host.waiting[source.number] = source
            self._let_in(host)
        return places

    def _serve(self, source: SimulatedSource, places: int) -> None:
        """Start what was queued first."""
        for head in sorted(source.lane().heads, key=_rank):
            count = min(places, head.depth)
            self._begin(self.runs[head.run_id], head.stage, count)
            places -= count
            if not places:
                return

    def _wake_at(self, source: SimulatedSource, at: float) -> None:
        if source.wakes_at <= at and source.wakes_at > self._timeline.now:
            return
        source.wakes_at = at
        self._timeline.at(at, lambda: self._wake(source, at))

    def _wake(self, source: SimulatedSource, at: float) -> None:
        if source.wakes_at == at:
            source.wakes_at = inf
        self._turns.add(source)

    def _finish(self, source: SimulatedSource) -> None:
        """Do what is to be done with pages that were fetched: in no time, but in its lane's turn."""
        first = source.finishing[0]
        run, count = first.run, min(first.run.stride, first.count)
        first.count -= count
        source.had += count / source.limits.weight
        if not first.count:
            source.finishing.popleft()
        if not run.is_ended:
            run.finishing -= count
            self._load.grow(-count)
            if not run.is_open:
                self.on_progress(run)

    # Jobs.

    def _begin(self, run: SimulatedRun, name: str, places: int) -> None:
        now = self._timeline.now
        source, stage = run.source, run.stages[name]
        source.guard.is_tried(now)
        if source.host is not None:
            source.host.guard.is_tried(now)
        wanted = min(places * self._stride(run, places), stage.queued)
        if not wanted:
            return  # what was to start with it had no budget left
        source.changed()
        allowed = self._budgets.spend(source.key, run.number, run.sample, wanted, now)
        if allowed < wanted:
            # The others would each be turned away, one after the other, and at once.
            _set_aside(stage, stage.queued - allowed)
        if not allowed:
            self.on_progress(run)
            self._turn_away(source)
            return
        again = [stage.again.pop() for _ in range(min(allowed, len(stage.again)))]
        fresh = allowed - len(again)
        stage.fresh -= fresh
        stage.running += allowed
        self._load.grow(-allowed)
        places = min(places, allowed)
        took_s = self._took_s(run, allowed, places)
        self._load.hold(places)
        source.running += places
        if source.host is not None:
            source.host.running += places
        source.had += allowed / source.limits.weight
        self._timeline.at(now + took_s, lambda: self._end(run, name, fresh, again, places))

    def _turn_away(self, source: SimulatedSource) -> None:
        """A budget stops all of it: each run would be offered something only to be turned away."""
        for run in list(source.runs.values()):
            is_stopped = self._budgets.is_stopped(source.key, run.number, self._timeline.now)
            if is_stopped and run.sample.requests:
                for stage in run.stages.values():
                    _set_aside(stage, stage.queued)
                self.on_progress(run)

    def _stride(self, run: SimulatedRun, places: int) -> int:
        """How many jobs in a row each place is given: none after a breaker or a window may have closed."""
        source, now = run.source, self._timeline.now
        host = source.host
        if source.guard.breaker.state != "closed":
            return 1
        if host is not None and host.guard.breaker.state != "closed":
            return 1
        windows = [source.limits.windows, host.limit.windows if host is not None else None]
        known = [each for each in windows if each is not None]
        if not known:
            return run.stride
        if any(window_opens_at(each, now + LONGEST_STEP_S) is not None for each in known):
            return 1
        takes_s = max(run.sample.seconds, 0.001)
        for _, rate_per_s in _paced(source):
            if rate_per_s:
                takes_s = max(takes_s, places * run.sample.requests / rate_per_s)
        return max(1, min(run.stride, int(LONGEST_STEP_S / takes_s)))

    def _took_s(self, run: SimulatedRun, jobs: int, places: int) -> float:
        source, sample, now = run.source, run.sample, self._timeline.now
        spread = run.rng.lognormvariate(-SPREAD * SPREAD / 2, SPREAD)
        work_s = ceil(jobs / places) * sample.seconds * spread
        ends_at = now + work_s
        requests = jobs * sample.requests
        for paced, rate_per_s in _paced(source):
            if rate_per_s and requests:
                first_at = max(now, paced.next_place_at)
                paced.next_place_at = first_at + requests / rate_per_s
                paced.full_until = paced.next_place_at - LONGEST_WAIT_S
                last_at = first_at + max(0.0, requests - 1) / rate_per_s
                ends_at = max(ends_at, last_at + sample.seconds * spread)
        return ends_at - now

    def _end(
        self, run: SimulatedRun, name: str, fresh: int, again: list[Again], places: int
    ) -> None:
        self._load.hold(-places)
        source, stage = run.source, run.stages[name]
        source.running -= places
        if source.host is not None:
            source.host.running -= places
            self._let_in(source.host)
        self.look_at(source)
        stage.running -= fresh + len(again)
        failed = chosen(run.rng, fresh, run.sample.failures)
        failed_again = [job for job in again if run.rng.random() < run.sample.failures]
        ok = fresh + len(again) - failed - len(failed_again)
        self._learn(run, JobEnds(ok, failed, len(failed_again)))
        if run.is_ended:  # replaced by the next one meanwhile
            return
        stage.succeeded += ok
        for job in (*(Again() for _ in range(failed)), *failed_again):
            self._fail(run, name, job)
        if failed + len(failed_again) > max(1.0, 0.1 * (fresh + len(again))):
            run.stride = 1
        elif name == PAGES:
            run.longer_stride(places, self._is_crowded, self._longest_s)
        if name == FIND and ok:
            self._find(run)
        if name == PAGES and self._is_crowded:
            self._load.grow(source.finish_later(run, ok, self._timeline.now))
        if not run.is_open:
            self.on_progress(run)

    def _find(self, run: SimulatedRun) -> None:
        """Queue the pages of a run."""
        places = 1 if self._is_crowded else run.source.limits.concurrency
        run.longer_stride(places, self._is_crowded, self._longest_s)
        pages = run.stages[PAGES]
        pages.since = self._timeline.now
        pages.fresh += run.pages
        run.source.queue(run, PAGES)
        self._load.grow(run.pages)

    def _let_in(self, host: SimulatedHost) -> None:
        """Look at those who wait for a place at a host, few at a time, as long as it has any."""
        now = self._timeline.now
        if not host.waiting:
            return
        if host.full_until > now:
            self._let_in_at(host, host.full_until)
        elif host.places(now):
            for number in list(islice(host.waiting, LET_IN)):
                self._turns.add(host.waiting.pop(number), has_waited=True)
            # The others after these have had their turn.
            self._let_in_at(host, now)

    def _let_in_at(self, host: SimulatedHost, at: float) -> None:
        def let_in() -> None:
            if host.lets_in_at == at:
                host.lets_in_at = inf
                self._let_in(host)

        if at < host.lets_in_at:
            host.lets_in_at = at
            self._timeline.at(at, let_in)

    def _fail(self, run: SimulatedRun, name: str, job: Again) -> None:
        """Where the rules of retries lead a job that has failed."""
        stage, source = run.stages[name], run.source
        if not policy_of(run.kind).retries:
            stage.quarantined += 1
            self._figures.quarantined += 1
            return
        if _is_excused(source) and job.excuses < EXCUSES:
            job.excuses += 1
            stage.again.insert(0, job)
            source.queue(run, name)
            self._load.grow(1)
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
        self._load.grow(1)
        self._timeline.at(self._timeline.now + end.delay_s, lambda: self._again(run, name, job))

    def _again(self, run: SimulatedRun, name: str, job: Again) -> None:
        if not run.is_ended:
            stage = run.stages[name]
            stage.waiting -= 1
            stage.again.append(job)
            run.source.queue(run, name)
            self.look_at(run.source)

    # What ends say of their source.

    def _learn(self, run: SimulatedRun, ends: JobEnds) -> None:
        """Tell its breaker and that of its host, and how much it bears at once."""
        source, now = run.source, self._timeline.now
        if source.limits.breaker is not None:
            chance = run.rng.random() if ends.failed or ends.again else 0.0
            self._follow(run, source.limits.breaker, ends, chance)
            if source.host is not None and run.sample.requests:
                source.host.learn(ends, now, chance)
        if source.pulse is not None:
            seen = RoundResults(ok=ends.ok, failed=ends.failed + ends.again)
            if not source.limits.rate_per_s and ends.ok:
                seen.took(PAGES, ends.ok, ends.ok * run.sample.seconds)
            feel(source.pulse, seen, source.limits.concurrency, now)

    def _follow(
        self, run: SimulatedRun, rule: BreakerSettings, ends: JobEnds, chance: float
    ) -> None:
        source, before = run.source, run.source.guard.breaker
        source.guard.follow(rule, source.limits.concurrency, ends, self._timeline.now, chance)
        after = source.guard.breaker
        source.figures.trips += max(0, after.trips - before.trips)
        if after.state == "closed" and before.state != "closed":
            self.on_closed(run)


def _paced(
    source: SimulatedSource,
) -> Iterator[tuple[SimulatedSource | SimulatedHost, float | None]]:
    """Whose rates a request needs a place in."""
    yield source, source.limits.rate_per_s
    if source.host is not None:
        yield source.host, source.host.limit.rate_per_s


def _rank(head: Head) -> float:
    return head.rank


def _is_excused(source: SimulatedSource) -> bool:
    return source.limits.breaker is not None and is_excused(source.guard.breaker)


def _set_aside(stage: SimulatedStage, jobs: int) -> None:
    kept = stage.queued - jobs
    del stage.again[kept:]
    stage.fresh = kept - len(stage.again)
    stage.stopped += jobs


def chosen(rng: random.Random, number: int, share: float) -> int:
    """How many of so many it hits, each with this chance."""
    if share <= 0.0:
        return 0
    if share >= 1.0:
        return number
    # From one that is hit to the next: few are, of many.
    passed, hit = log(1.0 - share), 0
    at = int(log(1.0 - rng.random()) / passed)
    while at < number:
        hit += 1
        at += 1 + int(log(1.0 - rng.random()) / passed)
    return hit
