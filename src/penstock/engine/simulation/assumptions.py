"""Assumptions: what is said on the command line of things that no history and no schedule tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, get_args

from penstock.engine.simulation.samples import ASSUMED, MOST, Sample
from penstock.errors import ConfigError, UsageError, nearest
from penstock.settings import ScheduleSettings, Settings
from penstock.settings.units import normalise_source, parse_rate

# What comes from outside: signals that nothing here raises, files that land, moments that steps announce.
Coming = Literal["signals", "files", "moments"]
COMINGS: tuple[Coming, ...] = get_args(Coming)
# Each is a start, or many of them.
MOST_COMING_PER_S = 1 / 60


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What runs are like where there is no history, and how often what comes to a source."""

    sample: Sample = ASSUMED
    coming_per_s: Mapping[tuple[str, Coming], float] = field(default_factory=dict)


def coming_to(schedule: ScheduleSettings) -> Coming | None:
    """What a schedule waits for that comes from outside."""
    match schedule.kind:
        case "signal":
            return "signals"
        case "watch":
            return "files"
    return "moments" if schedule.near is not None else None


def read_assumptions(texts: Sequence[str], settings: Settings) -> Assumptions:
    """`pages=100,seconds=0.5`, each of which replaces what is assumed as usual, and `KEY.signals=3/d`."""
    sample: dict[str, float] = {}
    coming: dict[tuple[str, Coming], float] = {}
    for part in ",".join(texts).split(","):
        if "=" not in part:
            said = f"--assume {part.strip()!r} is not NAME=VALUE"
            raise UsageError(said, "write it as pages=500")
        name, _, value = (each.strip() for each in part.partition("="))
        key, dot, last = name.rpartition(".")
        if dot:
            where = _place(key, last, settings)
            coming[where] = _often(name, value)
        else:
            sample[name] = _number(name, value)
    return Assumptions(replace(ASSUMED, **sample), coming)


def _number(name: str, text: str) -> float:
    known = [each.name for each in fields(Sample)]
    if name not in known:
        raise UsageError(f"--assume knows no {name!r}", nearest(name, known))
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= MOST[name]:
        raise UsageError(f"--assume {name} must be a number from 0 to {MOST[name]:,.0f}")
    return number


def _place(text: str, last: str, settings: Settings) -> tuple[str, Coming]:
    coming = next((each for each in COMINGS if each == last), None)
    if coming is None:
        raise UsageError(f"--assume knows no {last!r} of a source", nearest(last, COMINGS))
    try:
        key = normalise_source(text)
    except ConfigError:
        key = text
    if key not in settings.sources:
        raise UsageError(
            f"--assume names {text!r}, which is no source", nearest(key, settings.sources)
        )
    found = {coming_to(each) for each in settings.sources[key].schedules} - {None}
    if coming not in found:
        known = ", ".join(f"{key}.{each}" for each in sorted(each for each in found if each))
        raise UsageError(
            f"no schedule of {key} waits for {coming}",
            f"of this source there is {known}"
            if known
            else "it starts by time, by after or by hand",
        )
    return key, coming


def _often(name: str, text: str) -> float:
    try:
        per_s = parse_rate(text)
    except ConfigError as error:
        raise UsageError(f"--assume {name}: {error.message}") from None
    if per_s > MOST_COMING_PER_S:
        raise UsageError(f"--assume {name} can't be more than one a minute (1440/d)")
    return per_s
