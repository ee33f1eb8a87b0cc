"""Auto: how often a source is worth looking at, by what came of its last runs.

Each run that ended well speaks for a quicker class, a slower one, or neither: by how much of what it saw
was new or different. So many in a row that say the same move the source by one class, within its bounds;
between the two shares nothing moves. A degraded source is looked at by probes, returns to its class when
its health does, and is paused when probes fail for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from penstock.counting import count
from penstock.schedules.schedule import Schedule, schedule_from
from penstock.settings import ScheduleSettings

Level = Literal["high", "medium", "low", "probe", "paused"]
LEVELS: tuple[Level, ...] = get_args(Level)
# The classes that a healthy source has, the slowest first.
LADDER: tuple[Level, ...] = ("low", "medium", "high")
FIRST: Level = "medium"

# Of what a run saw, this share or more is new or different: look sooner. Less than that: look later.
QUICKER = 0.2
SLOWER = 0.02
# So many probes in a row that failed: nobody is there any more.
LOST_PROBES = 7


@dataclass(frozen=True, slots=True)
class AutoRule:
    """So many runs in a row move a source, between these classes."""

    runs: int = 3
    slowest: Level = "low"
    fastest: Level = "high"

    def held(self, level: Level) -> Level:
        """The class within the bounds that is nearest to this one."""
        low, high = LADDER.index(self.slowest), LADDER.index(self.fastest)
        return LADDER[min(max(LADDER.index(level), low), high)]


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that ended: of the records and pages that it has `seen`, so many were new or different."""

    run_id: int
    is_probe: bool
    is_good: bool
    changed: int
    seen: int

    @property
    def share(self) -> float:
        return self.changed / self.seen if self.seen else 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a source stands. `steps` counts what was said in a row: above 0 for quicker, below for slower
    (of a source that is probed: probes that failed). `before` is the class it had before this one."""

    level: Level = FIRST
    before: Level | Literal[""] = ""
    steps: int = 0
    last_run_id: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """A source is to have another class, and why."""

    level: Level
    reason: str


def rule_of(settings: ScheduleSettings) -> AutoRule:
    return AutoRule(settings.runs, _level(settings.slowest), _level(settings.fastest))


def first_level(settings: ScheduleSettings) -> Level:
    """The class that a source begins with."""
    return rule_of(settings).held(FIRST)


def is_auto(settings: ScheduleSettings) -> bool:
    return settings.kind == "cadence" and settings.cadence == "auto"


def judge(
    standing: Standing, ended: Sequence[EndedRun], is_degraded: bool, rule: AutoRule
) -> tuple[Standing, Move | None]:
    """What these runs come to, in their order, up to the first that moves the source.

    Where there is a move, the standing is still that of before it: `moved` takes it.
    """
    if standing.level in LADDER:
        # Only with news of it: a person who has undone this is not overruled at once.
        if is_degraded and ended:
            last = max((run.run_id for run in ended), default=standing.last_run_id)
            reason = "its runs fail; probes find out when it is back"
            return replace(standing, steps=0, last_run_id=last), Move("probe", reason)
        held = rule.held(standing.level)
        if held != standing.level:
            return standing, Move(held, f"it may be {rule.slowest} to {rule.fastest}")
    elif not is_degraded:
        back = rule.held(_level(standing.before) if standing.before in LADDER else FIRST)
        last = max((run.run_id for run in ended), default=standing.last_run_id)
        reason = "it is healthy again"
        return replace(standing, steps=0, last_run_id=last), Move(back, reason)
    for run in ended:
        standing = _heard(standing, run)
        move = _move(standing, run, rule)
        if move is not None:
            return standing, move
    return standing, None


def moved(standing: Standing, level: Level) -> Standing:
    """A source with another class; what was said before counts no more."""
    # What is probed or paused returns to the class that it had when it was well.
    is_left = standing.level in LADDER and standing.level != level
    before = standing.level if is_left else standing.before
    return Standing(level, before, 0, standing.last_run_id)


def effective_schedule(
    settings: ScheduleSettings, key: str, cadence_class: str | None = None
) -> Schedule:
    """The schedule that holds for a source whose class is this one at present.

    The class matters to `cadence: auto` alone, and is None while nobody has given it one. What is paused is
    never due.
    """
    if not is_auto(settings):
        return schedule_from(settings, key)
    cadence_class = cadence_class or first_level(settings)
    if cadence_class == "paused":
        return Paused()
    return schedule_from(settings, key, cadence_class)


def auto_words(settings: ScheduleSettings, key: str, standing: Standing, proposed: str = "") -> str:
    """The class that a source has now in words, and where it came from."""
    said = f"auto: {effective_schedule(settings, key, standing.level).words()}"
    if standing.before == standing.level:
        said += ", back from probes"
    elif standing.before:
        said += f", moved from {standing.before}"
    return f"{said}, {proposed} is proposed" if proposed else said


@dataclass(frozen=True, slots=True)
class Paused:
    """Never due: its probes have failed for too long."""

    def next_due(self, after: float) -> float | None:
        return None

    def words(self) -> str:
        return "paused, after probes that failed"


def level_before(text: str) -> Level | Literal[""]:
    """The class that a source had before, as it was remembered."""
    return next((level for level in LADDER if level == text), "")


def _heard(standing: Standing, run: EndedRun) -> Standing:
    last = max(standing.last_run_id, run.run_id)
    if standing.level == "probe" or standing.level == "paused":
        steps = 0 if run.is_good else standing.steps - 1
        return replace(standing, steps=steps if run.is_probe else standing.steps, last_run_id=last)
    if run.is_probe or not run.is_good:
        return replace(standing, last_run_id=last)  # its health is judged elsewhere
    before = standing.steps
    if run.share >= QUICKER:
        return replace(standing, steps=max(before, 0) + 1, last_run_id=last)
    if run.share < SLOWER:
        return replace(standing, steps=min(before, 0) - 1, last_run_id=last)
    return replace(standing, steps=0, last_run_id=last)


def _move(standing: Standing, run: EndedRun, rule: AutoRule) -> Move | None:
    if standing.level == "probe":
        if standing.steps > -LOST_PROBES:
            return None
        return Move(
            "paused",
            f"{count(LOST_PROBES, 'probe')} in a row failed, the last was run {run.run_id}",
        )
    if standing.level not in LADDER or abs(standing.steps) < rule.runs:
        return None
    step = 1 if standing.steps > 0 else -1
    place = LADDER.index(standing.level) + step
    wanted = rule.held(LADDER[min(max(place, 0), len(LADDER) - 1)])
    if wanted == standing.level:
        return None
    said = "new or different" if step > 0 else "as it was"
    share = run.share if step > 0 else 1.0 - run.share
    what = f"{share:.0%} of what it saw was {said}" if run.seen else "it saw nothing"
    return Move(wanted, f"{count(abs(standing.steps), 'run')} in a row; in run {run.run_id} {what}")


def _level(text: str) -> Level:
    return next(level for level in LEVELS if level == text)
