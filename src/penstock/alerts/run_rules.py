"""Rules about what runs bring: yield, failures, rejects, duplicates, quality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from penstock.alerts.baseline import DAY_S, longest_streak
from penstock.alerts.history import Finding, Number, RunFigures, Silence
from penstock.alerts.look import Look
from penstock.alerts.measures import DUPLICATES, FAILURES, QUALITY, REJECTS, YIELD, Measure
from penstock.alerts.series import HYSTERESIS, WEEKDAYS_SEEN_S, Deviation, Limits, Series, is_calm
from penstock.alerts.words import amount, duration, share
from penstock.counting import count
from penstock.settings.alert_rules import (
    DuplicateExplosion,
    ExtractionFailures,
    QualityDrop,
    RejectionRise,
    ZeroYield,
)

# Of fewer records per run, half as many are chance; only that none come says something.
LEAST_YIELD = 10
# How likely so many runs without yield may be by chance, given how often single runs have none.
DRY_CHANCE = 1e-4
# While it is young, a source that yields nothing on one weekend is not known to yield on weekends.
LONGER_THAN_A_WEEKEND_S = 3 * DAY_S


def zero_yield(look: Look) -> Finding | Silence | None:
    by, runs = look.by(ZeroYield), _ended(look)
    dry = _dry_streak(runs)
    if _is_dry(runs, dry, by, is_sampled=look.history.whole_from > 0.0):
        return _dry_finding(look, runs, dry)
    limits = Limits(
        lambda value, centre, strictness: (
            YIELD.shown(centre) >= LEAST_YIELD
            and YIELD.shown(value) < YIELD.shown(centre) * (1.0 - (1.0 - by.below) * strictness)
        ),
        by.runs,
        by.deviations,
        by.history,
    )
    found = _judged(look, "zero-yield", YIELD, limits)
    is_empty = isinstance(found, Finding) and dry >= by.runs
    return _dry_finding(look, runs, dry) if is_empty else found


def _ended(look: Look) -> tuple[RunFigures, ...]:
    runs = look.history.runs
    return tuple([run for run in runs if run.outcome != "cancelled"])


def _dry_streak(runs: tuple[RunFigures, ...]) -> int:
    """How many runs at the end yielded nothing."""
    for dry, run in enumerate(reversed(runs)):
        if run.yielded:
            return dry
    return len(runs)


def _is_dry(runs: tuple[RunFigures, ...], dry: int, by: ZeroYield, *, is_sampled: bool) -> bool:
    """Nothing for longer than ever before, by far: also a source that often yields nothing has its limit."""
    before = runs[: len(runs) - dry]
    if dry < by.runs or len(before) < by.history:
        return False
    empty = [not run.yielded for run in before]
    if dry <= 2 * longest_streak(empty) or not _is_unlikely(sum(empty), len(empty), dry):
        return False
    if is_sampled and not _is_longest_gap(runs, before):
        return False
    young = runs[-1].started_at - runs[0].started_at < WEEKDAYS_SEEN_S
    return not young or runs[-1].started_at - runs[-dry].started_at > LONGER_THAN_A_WEEKEND_S


def _is_longest_gap(runs: Sequence[RunFigures], before: Sequence[RunFigures]) -> bool:
    """Of a sample no streak can be counted: what is compared is the time between two yields."""
    yields = [run.started_at for run in before if run.yielded]
    longest = max((later - earlier for earlier, later in pairwise(yields)), default=0.0)
    return bool(yields) and runs[-1].started_at - yields[-1] > 2 * longest


def _is_unlikely(empty: int, runs: int, dry: int) -> bool:
    share_of_empty = (empty + 1) / (runs + 2)
    return share_of_empty**dry <= DRY_CHANCE


def _dry_finding(look: Look, runs: tuple[RunFigures, ...], dry: int) -> Finding:
    before = runs[: len(runs) - dry]
    first = runs[-dry]
    usual = sorted(run.yielded for run in before)[len(before) // 2]
    longest = longest_streak(not run.yielded for run in before)
    age = duration(look.now - before[-1].ended_at)
    numbers = (
        Number(name="yield", value=0, baseline=usual, counted=len(before), unit="records"),
        Number(name="runs without yield", value=dry, baseline=longest, unit="runs"),
    )
    words = f"{count(dry, 'run')} in a row yielded nothing, the first {age} after the last yield"
    if usual:
        records = count(usual, "record")
        words = f"{count(dry, 'run')} in a row yielded nothing; usually {records} per run"
    return look.finding("zero-yield", words, numbers, first.started_at, run=first.run)


def extraction_failures(look: Look) -> Finding | Silence | None:
    by = look.by(ExtractionFailures)
    limits = Limits(_risen(by.rise), by.runs, by.deviations, by.history, by.at_least)
    return _judged(look, "extraction-failures", FAILURES, limits)


def rejection_rise(look: Look) -> Finding | Silence | None:
    by = look.by(RejectionRise)
    limits = Limits(_risen(by.rise), by.runs, by.deviations, by.history, by.at_least)
    return _judged(look, "rejection-rise", REJECTS, limits)


def duplicate_explosion(look: Look) -> Finding | Silence | None:
    by = look.by(DuplicateExplosion)
    limits = Limits(_risen(by.rise), by.runs, by.deviations, by.history, by.at_least)
    return _judged(look, "duplicate-explosion", DUPLICATES, limits)


def quality_drop(look: Look) -> Finding | Silence | None:
    by = look.by(QualityDrop)
    limits = Limits(
        lambda value, centre, strictness: centre - value >= by.drop * strictness * abs(centre),
        by.runs,
        by.deviations,
        by.history,
        by.at_least,
    )
    return _judged(look, "quality-drop", QUALITY, limits)


def _risen(rise: float) -> Callable[[float, float, float], bool]:
    return lambda value, centre, strictness: value - centre >= rise * strictness


def _judged(look: Look, rule: str, measure: Measure, limits: Limits) -> Finding | Silence | None:
    runs = _ended(look)
    if is_calm(measure, runs, limits, HYSTERESIS if look.is_standing else 1.0):
        return None
    series = Series.of(measure, runs, look.history.timezone)
    if not series.runs and look.is_standing:
        return None  # what it measured is gone
    why = series.why_silent(limits)
    if why:
        return look.silence(rule, why)
    found = series.deviation(limits, look.standing_since)
    return None if found is None else _finding(look, rule, measure, found)


def _finding(look: Look, rule: str, measure: Measure, found: Deviation) -> Finding:
    value, usual = measure.shown(found.value), measure.shown(found.expected.centre)
    number = Number(
        name=measure.name,
        value=value,
        baseline=usual,
        spread=found.expected.spread if measure.unit != "records" else None,
        counted=found.expected.counted,
        unit=measure.unit,
    )
    write = _WRITTEN.get(measure.unit, amount)
    span = "last run" if found.kind == "sharp" else "slowly, over the last days"
    words = f"{_SUBJECT[rule]} {write(value)} ({span}); usually {write(usual)}"
    return look.finding(rule, words, (number,), found.first.started_at, run=found.first.run)


_WRITTEN: dict[str, Callable[[float], str]] = {"share": share, "score": "{:.2f}".format}
_SUBJECT = {
    "zero-yield": "records per run fell to",
    "extraction-failures": "failed jobs rose to",
    "rejection-rise": "rejected records rose to",
    "duplicate-explosion": "duplicates rose to",
    "quality-drop": "the mean score fell to",
}
RULES: dict[str, Callable[[Look], Finding | Silence | None]] = {
    "zero-yield": zero_yield,
    "extraction-failures": extraction_failures,
    "rejection-rise": rejection_rise,
    "quality-drop": quality_drop,
    "duplicate-explosion": duplicate_explosion,
}
