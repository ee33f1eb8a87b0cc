"""Rules about how a source stands now: late, behind, out of budget, cut off."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import median

from penstock.alerts.history import (
    BreakerFacts,
    BudgetFacts,
    Finding,
    GivenUpTask,
    Number,
    RunFigures,
    ScheduleFacts,
    Silence,
)
from penstock.alerts.look import Look
from penstock.alerts.series import HYSTERESIS
from penstock.alerts.words import amount, duration, share
from penstock.counting import count
from penstock.settings.alert_rules import (
    BacklogGrowth,
    BreakerOpen,
    BudgetRunningOut,
    ComplianceStale,
    FailuresInAnHour,
    ImagePollution,
    MapperConfidence,
    OrchestratorFailed,
    ReferencesWaiting,
    ScheduleMissed,
    SchemaDrift,
    StaleSource,
)

HOUR_S = 3600.0
# The gap between two good runs may be this much longer than the longest one so far.
LONGEST_GAP_FACTOR = 1.5
MOST_FIELDS = 3


def schedule_missed(look: Look) -> Finding | None:
    by = look.by(ScheduleMissed)
    if look.history.is_waiting_on_purpose:
        return None
    late = [(missed_starts(each, look.now), each) for each in look.history.schedules]
    late = [
        (missed, each)
        for missed, each in late
        if missed >= by.starts and look.now - _overdue(each, look.now) >= by.grace_s
    ]
    if not late:
        return None
    missed, worst = max(late, key=lambda each: each[0])
    since = _overdue(worst, look.now)
    numbers = (
        Number(name="missed starts", value=missed, baseline=0, limit=by.starts, unit="starts"),
        Number(name="interval", value=worst.interval_s, unit="s"),
    )
    name = f" of schedule {worst.name}" if worst.name else ""
    words = f"{count(missed, 'start')}{name} missed in a row, the first {duration(look.now - since)} ago"
    return look.finding("schedule-missed", words, numbers, since)


def missed_starts(schedule: ScheduleFacts, now: float) -> int:
    """How many starts were due and not made, up to now."""
    overdue = 0
    if schedule.overdue_since is not None and now > schedule.overdue_since:
        overdue = 1 + int((now - schedule.overdue_since) / max(schedule.interval_s, 1.0))
    return max(schedule.misses_in_a_row, overdue)


def _overdue(schedule: ScheduleFacts, now: float) -> float:
    if schedule.overdue_since is not None:
        return schedule.overdue_since
    return now - schedule.misses_in_a_row * schedule.interval_s


def failures_in_an_hour(look: Look) -> Finding | None:
    by, hours = look.by(FailuresInAnHour), look.history.hours
    recent = [hour for hour in hours if hour.at > look.now - 2 * HOUR_S]
    if not recent:
        return None
    worst = max(recent, key=lambda hour: hour.failed)
    usual = max((hour.failed for hour in hours if hour.at <= look.now - 2 * HOUR_S), default=0)
    limit = max(by.failures, by.rise * usual)
    if worst.failed < limit * (HYSTERESIS if look.is_standing else 1.0):
        return None
    failed = Number(
        name="failed jobs", value=worst.failed, baseline=usual, limit=limit, unit="jobs"
    )
    words = f"{count(worst.failed, 'job')} failed for good within one hour; the most so far were {usual}"
    return look.finding("failures-in-an-hour", words, (failed,), worst.at)


def backlog_growth(look: Look) -> Finding | None:
    """Arrival against service rate, and how long it will take."""
    by, history = look.by(BacklogGrowth), look.history
    # The hour that is not over yet says little.
    whole = [hour for hour in history.hours if hour.at <= look.now - HOUR_S][-by.hours :]
    if history.is_waiting_on_purpose or history.waiting < by.jobs or len(whole) < by.hours:
        return None
    arrived = sum(hour.arrived for hour in whole) / len(whole)
    ended = sum(hour.ended for hour in whole) / len(whole)
    grew = [hour.arrived > hour.ended for hour in whole]
    is_growing = arrived > ended if look.is_standing else all(grew)
    clears_in = history.waiting / ended * HOUR_S if ended else float("inf")
    if not is_growing or clears_in <= by.clears_in_s:
        return None
    numbers = (
        Number(name="waiting", value=history.waiting, limit=by.jobs, unit="jobs"),
        Number(name="arrival rate", value=arrived, baseline=ended, unit="jobs/h"),
        Number(name="service rate", value=ended, unit="jobs/h"),
        *((Number(name="time to clear", value=clears_in, limit=by.clears_in_s, unit="s"),) if ended else ()),
    )  # fmt: skip
    return look.finding(
        "backlog-growth", _backlog_words(look, arrived, ended), numbers, whole[0].at
    )


def _backlog_words(look: Look, arrived: float, ended: float) -> str:
    waiting = look.history.waiting
    rates = f"{amount(arrived)} arrive and {amount(ended)} are done per hour"
    if not ended:
        return f"{count(waiting, 'job')} wait and none are done; {amount(arrived)} arrive per hour"
    alone = duration(waiting / ended * HOUR_S)
    doubles = duration(waiting / (arrived - ended) * HOUR_S)
    return (
        f"{count(waiting, 'job')} wait; {rates}: the queue doubles in {doubles}, "
        f"and takes {alone} to empty once nothing more arrives"
    )


def stale_source(look: Look) -> Finding | Silence | None:
    by, history = look.by(StaleSource), look.history
    if history.is_waiting_on_purpose or history.last_good_at is None:
        return None
    if history.freshness_s is not None:
        return _stale(look, history.freshness_s, None, 0)
    if not history.schedules:
        return None  # nothing says when it should run
    good = [run.ended_at for run in history.runs if _is_good(run, history.whole_from)]
    gaps = [later - earlier for earlier, later in pairwise(good)]
    if len(gaps) < by.history - 1:
        return look.silence("stale-source", f"{len(good)} of {by.history} good runs for a baseline")
    usual = median(gaps)
    limit = max(by.at_least_s, by.intervals * usual, LONGEST_GAP_FACTOR * max(gaps))
    return _stale(look, limit, usual, len(gaps))


def _is_good(run: RunFigures, whole_from: float) -> bool:
    return run.outcome in ("completed", "partial") and run.started_at >= whole_from


def _stale(look: Look, limit: float, usual: float | None, counted: int) -> Finding | None:
    last = look.history.last_good_at or 0.0
    age = look.now - last
    if age <= limit:
        return None
    number = Number(
        name="age of the last good run",
        value=age,
        baseline=usual,
        counted=counted or None,
        limit=limit,
        unit="s",
    )
    expected = f"usually {duration(usual)}" if usual else f"freshness is {duration(limit)}"
    words = f"the last good run ended {duration(age)} ago; {expected}"
    return look.finding("stale-source", words, (number,), last + limit)


def budget_running_out(look: Look) -> Finding | None:
    by = look.by(BudgetRunningOut)
    forecasts = [(runs_out_at(each, look.now), each) for each in look.history.budgets]
    short = [
        (at, each)
        for at, each in forecasts
        if each.used >= by.used * each.amount
        and at < each.resets_at - by.early_s * (HYSTERESIS if look.is_standing else 1.0)
    ]
    if not short:
        return None
    at, worst = min(short, key=lambda each: each[0])
    is_gone = worst.used >= worst.amount
    numbers = (
        Number(name=f"{worst.measure} used", value=worst.used, limit=worst.amount, unit=worst.measure),
        Number(name="runs out in", value=max(0.0, at - look.now), unit="s"),
        Number(name="resets in", value=worst.resets_at - look.now, unit="s"),
    )  # fmt: skip
    return look.finding(
        "budget-running-out",
        _budget_words(worst, at, look.now),
        numbers,
        look.now,
        severity="medium" if is_gone else None,
    )


def runs_out_at(budget: BudgetFacts, now: float) -> float:
    """When it is exhausted at its present rate; now where it is already."""
    left = budget.amount - budget.used
    rate = budget.recent_rate_per_s
    if rate is None:
        rate = budget.used / max(now - budget.began_at, 1.0)
    if left <= 0:
        return now
    return now + left / rate if rate > 0 else float("inf")


def _budget_words(budget: BudgetFacts, at: float, now: float) -> str:
    name = f"the budget of {budget.measure} per {budget.period}"
    reset = f"resets in {duration(budget.resets_at - now)}"
    if at <= now:
        return f"{name} is exhausted and {reset}"
    used = share(budget.used / budget.amount)
    return f"{name} is used to {used} and runs out in {duration(at - now)}, but {reset}"


def breaker_open(look: Look) -> Finding | None:
    by = look.by(BreakerOpen)
    long = [each for each in look.history.breakers if look.now - each.opened_at >= by.open_for_s]
    if not long:
        return None
    worst = min(long, key=lambda each: each.opened_at)
    number = Number(
        name="open for", value=look.now - worst.opened_at, limit=by.open_for_s, unit="s"
    )
    return look.finding("breaker-open", _breaker_words(worst, look.now), (number,), worst.opened_at)


def _breaker_words(breaker: BreakerFacts, now: float) -> str:
    words = f"the breaker of {breaker.name} has been open for {duration(now - breaker.opened_at)}"
    return f"{words}: {breaker.reason}" if breaker.reason else words


def schema_drift(look: Look) -> Finding | None:
    by = look.by(SchemaDrift)
    recent = [each for each in look.history.drifts if look.now - each.at < by.within_s]
    told = [(each, each.changed + (each.new if by.new_fields else ())) for each in recent]
    told = [(each, fields) for each, fields in told if fields]
    if not told:
        return None
    newest, fields = max(told, key=lambda each: each[0].at)
    number = Number(name="changed fields", value=len(fields), baseline=0, unit="fields")
    rest = f" and {len(fields) - MOST_FIELDS} more" if len(fields) > MOST_FIELDS else ""
    words = f"{newest.collection}, run {newest.run}: {', '.join(fields[:MOST_FIELDS])}{rest}"
    return look.finding("schema-drift", words, (number,), newest.at)


def orchestrator_failed(look: Look) -> Finding | None:
    by, good_at = look.by(OrchestratorFailed), look.history.last_good_at or 0.0
    open_ones = [
        each for each in look.history.given_up if max(good_at, look.now - by.within_s) < each.at
    ]
    if not open_ones:
        return None
    newest = max(open_ones, key=lambda each: each.at)
    rest = f", and {count(len(open_ones) - 1, 'time')} before" if len(open_ones) > 1 else ""
    number = Number(name="given up", value=len(open_ones), baseline=0, unit="tasks")
    since = min(each.at for each in open_ones)
    return look.finding("orchestrator-failed", f"{_given_up_words(newest)}{rest}", (number,), since)


def _given_up_words(task: GivenUpTask) -> str:
    run = " ".join(filter(None, (task.graph, task.run)))
    if task.is_deadline:
        return f"{task.engine}: {run or 'a run'} has missed its deadline"
    return f"{task.engine}: {task.task or 'a task'} of {run or 'a run'} has failed for good"


def mapper_confidence(look: Look) -> Finding | None:
    by = look.by(MapperConfidence)
    unsure = {
        site.domain: [
            (at, confidence)
            for at, confidence in site.confidences
            if confidence < by.below and look.now - at < by.within_s
        ]
        for site in look.history.sites
    }
    often = {domain: each for domain, each in unsure.items() if len(each) > by.times}
    if not often:
        return None
    worst = max(often, key=lambda domain: len(often[domain]))
    found = often[worst]
    numbers = (
        Number(name="learned unsure", value=len(found), limit=by.times, unit="times"),
        Number(name="last confidence", value=found[-1][1], limit=by.below, unit="share"),
    )
    words = (
        f"{worst} was learned {count(len(found), 'time')} with a confidence below {by.below:g}, "
        f"the last time {found[-1][1]:.2f}{_and_others(len(often) - 1)}"
    )
    return look.finding("mapper-confidence", words, numbers, found[by.times][0])


def image_pollution(look: Look) -> Finding | None:
    by = look.by(ImagePollution)
    polluted = [site for site in look.history.sites if site.notes > by.notes]
    if not polluted:
        return None
    worst = max(polluted, key=lambda site: site.notes)
    number = Number(name="notes", value=worst.notes, limit=by.notes, unit="notes")
    words = f"{count(worst.notes, 'note')} about images of {worst.domain} are not solved"
    words += _and_others(len(polluted) - 1)
    return look.finding("image-pollution", words, (number,), worst.noted_at or look.now)


def _and_others(number: int) -> str:
    return f"; and {count(number, 'other site')}" if number else ""


def references_waiting(look: Look) -> Finding | None:
    by = look.by(ReferencesWaiting)
    old = [at for at in look.history.new_references if look.now - at > by.waits_s]
    if not old:
        return None
    age = look.now - min(old)
    numbers = (
        Number(name="references", value=len(old), unit="references"),
        Number(name="the oldest", value=age, limit=by.waits_s, unit="s"),
    )
    words = f"{count(len(old), 'supplier reference')} new for {duration(by.waits_s)} or longer, "
    words += f"the oldest for {duration(age)}"
    return look.finding("references-waiting", words, numbers, min(old) + by.waits_s)


def compliance_stale(look: Look) -> Finding | None:
    by, facts = look.by(ComplianceStale), look.history.compliance
    if facts is None:
        return None
    if facts.problems:
        number = Number(name="stopped for", value=max(0.0, look.now - facts.since), unit="s")
        words = f"it may not be fetched: {', '.join(facts.problems)}"
        return look.finding("compliance-stale", words, (number,), facts.since)
    if facts.stale_at is None or facts.stale_at - look.now > by.ahead_s:
        return None
    left_s = max(0.0, facts.stale_at - look.now)
    number = Number(name="left", value=left_s, limit=by.ahead_s, unit="s")
    words = f"a check of its compliance goes stale in {duration(left_s)}; then it is not fetched any more"
    return look.finding("compliance-stale", words, (number,), look.now)


RULES: dict[str, Callable[[Look], Finding | Silence | None]] = {
    "schedule-missed": schedule_missed,
    "failures-in-an-hour": failures_in_an_hour,
    "backlog-growth": backlog_growth,
    "stale-source": stale_source,
    "budget-running-out": budget_running_out,
    "breaker-open": breaker_open,
    "schema-drift": schema_drift,
    "orchestrator-failed": orchestrator_failed,
    "mapper-confidence": mapper_confidence,
    "image-pollution": image_pollution,
    "references-waiting": references_waiting,
    "compliance-stale": compliance_stale,
}
