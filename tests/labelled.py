"""Synthetic histories of sources, labelled: healthy ones, and ones with a fault at a known time.

Made from what sources do, not from what the rules look for: counts are drawn from overdispersed
distributions, some runs fail or are late on healthy sources too, there are holidays, bulk imports and quiet
nights, and a fault shows in one of several ways.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from penstock.alerts.history import RunFigures

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
# A Thursday.
START = 1_767_225_600.0
HEALTHY = ("steady", "weekly season", "growth", "noisy", "sparse")
FAULTY = ("outage", "redesign", "slow decay")
KINDS = (*HEALTHY, *FAULTY)
EACH = 25
# How often sources run: mostly daily.
INTERVALS_H = (1, 6, 12, 12, 12, 48, 48, 168, 168, 168, *[24] * 12)
SUNDAY, NIGHT_ENDS_H = 6, 6
Half = Literal["development", "held out"]
# The half that checks the rules is drawn again whenever they have been changed after a look at it.
DRAWN: dict[Half, str] = {"development": "development", "held out": "held out 2"}


@dataclass(frozen=True)
class Fault:
    """What was wrong, from when to when, and how it showed."""

    began_at: float
    ended_at: float
    shows_as: str


@dataclass(frozen=True)
class Labelled:
    """One source over some months. `interval_s` is that of its schedule."""

    name: str
    kind: str
    half: Half
    interval_s: float
    ends_at: float
    runs: tuple[RunFigures, ...]
    fault: Fault | None = None
    begins_at: float = START


@dataclass
class Source:
    """How a source behaves; a fault is a change of it."""

    interval_s: float
    days: int
    level: float
    sigma: float
    growth: Callable[[float], float] = lambda day: 1.0
    weekdays: tuple[float, ...] = (1.0,) * 7
    failing: float = 0.01
    bad_run: float = 0.02
    lost_run: float = 0.005
    missing_run: float = 0.01
    rejected: float = 0.03
    duplicates: float = 0.05
    quality: float = 0.9
    quality_sigma: float = 0.01
    share_sigma: float = 0.3
    # How often a run finds several times as much as usual, and the days that are like Sundays.
    bulk_run: float = 0.0
    holidays: tuple[int, ...] = ()
    # How much there is to find from midnight to six, for sources that run more often than daily.
    night: float = 1.0
    is_down: bool = False
    is_idle: bool = False


def labelled(half: Half) -> Iterator[Labelled]:
    """The hundred histories of this half: every other one of each kind."""
    first = 0 if half == "development" else 1
    for kind in KINDS:
        for number in range(EACH):
            if number % 2 == (first + KINDS.index(kind)) % 2:
                yield _labelled(kind, number, half)


def _labelled(kind: str, number: int, half: Half) -> Labelled:
    chance = random.Random(f"{DRAWN[half]}/{kind}/{number}")
    healthy = kind if kind in HEALTHY else chance.choice(HEALTHY[:4])
    source = _SOURCES[healthy](chance)
    fault = _FAULTS[kind](chance, source) if kind in FAULTY else None
    runs = tuple(_runs(chance, source, fault))
    ends_at = START + source.days * DAY_S
    label = fault.fault if fault is not None else None
    return Labelled(f"{kind} {number}", kind, half, source.interval_s, ends_at, runs, label)


# Healthy sources.


def _usual(chance: random.Random, sigma: float, level: float) -> Source:
    hours = chance.choice(INTERVALS_H)
    return Source(
        interval_s=hours * HOUR_S,
        days=280 if hours == 168 else 100 if hours < 6 else 120,
        level=level,
        sigma=sigma,
        failing=chance.uniform(0.0, 0.04),
        bad_run=chance.uniform(0.0, 0.03),
        lost_run=chance.uniform(0.0, 0.01),
        missing_run=chance.uniform(0.0, 0.02),
        rejected=chance.uniform(0.0, 0.1),
        duplicates=chance.uniform(0.0, 0.2),
        quality=chance.uniform(0.6, 0.97),
        quality_sigma=chance.uniform(0.002, 0.03),
        share_sigma=chance.uniform(0.1, 0.5),
        bulk_run=chance.choice((0.0, 0.0, 0.005, 0.02)),
        night=chance.uniform(0.1, 1.0),
    )


def _holidays(chance: random.Random, days: int) -> tuple[int, ...]:
    """Some sources have one or two of them, each a day or two long."""
    firsts = [chance.randrange(days) for _ in range(chance.choice((0, 1, 2)))]
    return tuple(first + more for first in firsts for more in range(chance.choice((1, 1, 2))))


def _between(chance: random.Random, low: float, high: float) -> float:
    """Between these, by magnitude: as many below as above their geometric mean."""
    return float(math.exp(chance.uniform(math.log(low), math.log(high))))


def _steady(chance: random.Random) -> Source:
    return _usual(chance, chance.uniform(0.01, 0.1), _between(chance, 20, 5000))


def _weekly(chance: random.Random) -> Source:
    source = _usual(chance, chance.uniform(0.05, 0.25), _between(chance, 20, 2000))
    weekend = chance.uniform(0.0, 0.4)
    week = [chance.uniform(0.8, 1.2) for _ in range(5)]
    weekdays = (*week, weekend, weekend * chance.uniform(0.3, 1.5))
    return replace(source, weekdays=weekdays, holidays=_holidays(chance, source.days))


def _growing(chance: random.Random) -> Source:
    source = _usual(chance, chance.uniform(0.02, 0.2), _between(chance, 20, 1000))
    factor, jumps_at = chance.uniform(1.5, 5.0), chance.uniform(0, source.days)
    jump = chance.choice((1.0, 1.0, 1.3, 2.0))

    def growth(day: float) -> float:
        return float(factor ** (day / source.days) * (jump if day > jumps_at else 1.0))

    return replace(source, growth=growth)


def _noisy(chance: random.Random) -> Source:
    source = _usual(chance, chance.uniform(0.4, 0.8), _between(chance, 20, 1000))
    return replace(
        source,
        failing=chance.uniform(0.02, 0.12),
        bad_run=chance.uniform(0.02, 0.08),
        quality_sigma=chance.uniform(0.02, 0.06),
        share_sigma=chance.uniform(0.4, 0.8),
    )


def _sparse(chance: random.Random) -> Source:
    source = _usual(chance, chance.uniform(0.0, 0.5), _between(chance, 0.2, 3.0))
    return replace(source, quality_sigma=0.05)


_SOURCES = {
    "steady": _steady,
    "weekly season": _weekly,
    "growth": _growing,
    "noisy": _noisy,
    "sparse": _sparse,
}


# Faults.


@dataclass(frozen=True)
class Change:
    """How a source behaves at a time: the fault at its full strength, or on its way there."""

    fault: Fault
    at: Callable[[Source, float], Source] = field(repr=False)


def _outage(chance: random.Random, source: Source) -> Change:
    began = _onset(chance, source)
    length = max(3.2 * source.interval_s, chance.uniform(1.0, 6.0) * DAY_S)
    how = chance.choice(("host down", "every page fails", "no run starts"))

    def at(usual: Source, _: float) -> Source:
        if how == "host down":
            return replace(usual, is_down=True)
        if how == "every page fails":
            return replace(usual, failing=chance.uniform(0.9, 1.0))
        return replace(usual, is_idle=True)

    return Change(Fault(began, began + length, how), at)


def _redesign(chance: random.Random, source: Source) -> Change:
    began = _onset(chance, source)
    length = max(5 * source.interval_s, chance.uniform(5.0, 20.0) * DAY_S)
    how = chance.choice(("nothing matches", "steps fail", "rejects", "lower scores", "duplicates"))
    worst = chance.uniform(0.0, 1.0)

    def at(usual: Source, _: float) -> Source:
        if how == "nothing matches":
            return replace(usual, level=usual.level * 0.1 * (worst > 0.7) * worst)
        if how == "steps fail":
            return replace(usual, failing=0.6 + 0.4 * worst)
        if how == "rejects":
            return replace(usual, rejected=0.4 + 0.6 * worst)
        if how == "lower scores":
            return replace(usual, quality=usual.quality * (0.8 - 0.4 * worst))
        return replace(usual, duplicates=0.65 + 0.3 * worst)

    return Change(Fault(began, began + length, how), at)


def _decay(chance: random.Random, source: Source) -> Change:
    """Something gets worse by a little with each run, over one to two months."""
    share = source.days / 120
    began = START + chance.uniform(35.0, 50.0) * DAY_S * share
    length = chance.uniform(30.0, 60.0) * DAY_S * share
    how = chance.choice(("less yield", "more failures", "more rejects", "lower scores"))
    worst = chance.uniform(0.0, 1.0)

    def at(usual: Source, now: float) -> Source:
        part = min(1.0, (now - began) / length)
        if how == "less yield":
            return replace(usual, level=usual.level * (1.0 - part * (0.65 + 0.3 * worst)))
        if how == "more failures":
            return replace(usual, failing=usual.failing + part * (0.3 + 0.5 * worst))
        if how == "more rejects":
            return replace(usual, rejected=usual.rejected + part * (0.3 + 0.5 * worst))
        return replace(usual, quality=usual.quality * (1.0 - part * (0.2 + 0.3 * worst)))

    return Change(Fault(began, START + source.days * DAY_S, how), at)


def _onset(chance: random.Random, source: Source) -> float:
    return START + chance.uniform(0.35, 0.75) * source.days * DAY_S


_FAULTS = {"outage": _outage, "redesign": _redesign, "slow decay": _decay}


# Runs.


def _runs(chance: random.Random, source: Source, change: Change | None) -> Iterator[RunFigures]:
    due, end = START + chance.uniform(0, 1) * source.interval_s, START + source.days * DAY_S
    number = 0
    while due < end:
        is_faulty = change is not None and change.fault.began_at <= due < change.fault.ended_at
        now = change.at(source, due) if change is not None and is_faulty else source
        if not now.is_idle and chance.random() >= now.missing_run:
            number += 1
            yield _run(chance, now, number, due + chance.expovariate(1 / 300))
        due += source.interval_s


def _run(chance: random.Random, source: Source, number: int, at: float) -> RunFigures:
    took = chance.uniform(0.01, 0.05) * source.interval_s
    times = {"run": number, "started_at": at, "ended_at": at + took}
    if source.is_down or chance.random() < source.lost_run:
        return RunFigures(**times, outcome="failed", jobs=1, failed=1)  # type: ignore[arg-type]
    weekday = int((at // DAY_S + 3) % 7)
    weekday = SUNDAY if int((at - START) // DAY_S) in source.holidays else weekday
    level = source.level * source.growth((at - START) / DAY_S) * source.weekdays[weekday]
    level *= _of_the_day(chance, source, at)
    found = _poisson(chance, level * chance.lognormvariate(0.0, source.sigma))
    failing = source.failing
    if chance.random() < source.bad_run:
        failing = max(failing, chance.uniform(0.05, 0.5))
    failed = _binomial(chance, found, _wobbling(chance, failing, source))
    left = found - failed
    rejected = _binomial(chance, left, _wobbling(chance, source.rejected, source))
    duplicates = _binomial(chance, left - rejected, _wobbling(chance, source.duplicates, source))
    saved = left - rejected - duplicates
    new = _binomial(chance, saved, 0.1)
    score = min(1.0, chance.gauss(source.quality, source.quality_sigma))
    return RunFigures(
        **times,  # type: ignore[arg-type]
        outcome="failed" if found and failed == found else "partial" if failed else "completed",
        jobs=found + 1,
        failed=failed,
        new=new,
        unchanged=saved - new,
        rejected=rejected,
        duplicates=duplicates,
        quality=score if saved else None,
    )


def _of_the_day(chance: random.Random, source: Source, at: float) -> float:
    """Nights, and the days on which everything is imported at once."""
    is_night = source.interval_s < DAY_S and at % DAY_S < NIGHT_ENDS_H * HOUR_S
    factor = source.night if is_night else 1.0
    return factor * chance.uniform(3.0, 10.0) if chance.random() < source.bulk_run else factor


def _wobbling(chance: random.Random, share: float, source: Source) -> float:
    return (
        min(1.0, share * chance.lognormvariate(0.0, source.share_sigma)) if share < 0.5 else share
    )


def _poisson(chance: random.Random, mean: float) -> int:
    if mean > 50:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    limit, product, count = math.exp(-mean), chance.random(), 0
    while product > limit:
        product *= chance.random()
        count += 1
    return count


def _binomial(chance: random.Random, size: int, share: float) -> int:
    if share > 0.5:
        return size - _binomial(chance, size, 1.0 - share)
    mean = size * share
    if mean > 10:
        return min(size, max(0, round(chance.gauss(mean, math.sqrt(mean * (1 - share))))))
    if size > 50:
        return min(size, _poisson(chance, mean))
    return sum(chance.random() < share for _ in range(size))
