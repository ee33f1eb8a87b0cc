"""Forecast: the next days in virtual time, by the project's own rules and runs like those of its history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from penstock.app.views.forecast import Figures, ForecastNote, ForecastView
from penstock.counting import count
from penstock.engine.simulation import InitialState, simulate
from penstock.engine.simulation.assumptions import Assumptions, read_assumptions
from penstock.engine.simulation.initial_state import read_beginning
from penstock.engine.simulation.samples import words
from penstock.errors import Remedy, UsageError
from penstock.settings import load_settings

if TYPE_CHECKING:
    from penstock.project import Project

DAY_S = 86_400
LONGEST_DAYS = 400
# So many sources are named in one note.
NAMED = 5
Side = Literal["now", "changed"]
Sides = Mapping[Side, Figures]


def forecast(
    project: Project,
    days: float,
    changes: Sequence[str],
    assume: Sequence[str],
    seed: int,
    on_progress: Callable[[int, int], None] | None,
) -> ForecastView:
    """Simulate the project as it is, and if there are changes, as it would be."""
    if not 0 < days <= LONGEST_DAYS:
        raise UsageError(
            f"a forecast is of at most {LONGEST_DAYS} days, not {days:g}", code="bad_days"
        )
    now = project.settings
    ways = {"now": now}
    if changes:
        ways["changed"] = load_settings(now.file, now.environment, changes=changes)
    last = ways.get("changed", now)
    assumed = read_assumptions(assume, last) if assume else Assumptions()
    beginning = read_beginning(project, assumed)
    progress = _Progress(len(ways) * days, on_progress)
    figures = {
        side: simulate(each, beginning, days, seed, progress.day) for side, each in ways.items()
    }
    sides: dict[Side, Figures] = {"now": figures["now"]}
    if changes:
        sides["changed"] = figures["changed"]
    return ForecastView(
        changes=list(changes),
        notes=list(_notes(sides, beginning, assumed)),
        now=figures["now"],
        changed=figures.get("changed", msgspec.UNSET),
        secrets=now.secrets | last.secrets,
    )


class _Progress:
    """How many days of all ways are simulated."""

    def __init__(self, total: float, tell: Callable[[int, int], None] | None) -> None:
        self._done = 0
        self._total = round(total)
        self._tell = tell

    def day(self, _: int) -> None:
        self._done += 1
        if self._tell is not None:
            self._tell(self._done, self._total)


def _notes(sides: Sides, beginning: InitialState, assumed: Assumptions) -> Iterator[ForecastNote]:
    yield from _idle(sides)
    yield from standing_still(beginning)
    yield from _basis(sides, words(assumed.sample))
    for (key, coming), per_s in assumed.coming_per_s.items():
        often = count(per_s * DAY_S, "time")
        yield ForecastNote(code="assumed", text=f"{key}: {coming} assumed to come {often} a day")
    yield from _hosts(sides)
    yield from _left_out(sides)


def _idle(sides: Sides) -> Iterator[ForecastNote]:
    """Why there is nothing to see."""
    if any(side.starts or side.skipped or side.denied for side in sides.values()):
        return
    if not sides["now"].sources:
        nothing = "there is nothing to simulate: this project has no sources"
        yield ForecastNote(code="no_sources", text=nothing)
    else:
        yield ForecastNote(code="nothing_starts", text="nothing starts by itself in this time")


def standing_still(beginning: InitialState) -> list[ForecastNote]:
    """What nobody but a person starts again, and is taken to stand still to the end."""
    found = []
    if beginning.is_held:
        everything = "everything is held now, and is taken to be held to the end"
        remedy = Remedy("sources.unhold")
        found.append(ForecastNote(code="project_held", text=everything, remedy=remedy))
    held = [key for key, each in beginning.present.items() if each.is_held]
    paused = [key for key, each in beginning.present.items() if each.is_paused]
    for word, verb, keys in (("held", "unhold", held), ("paused", "resume", paused)):
        if keys:
            who = f"{_named(keys)} {'is' if len(keys) == 1 else 'are'}"
            text = f"{who} {word} now, and taken to be {word} to the end"
            remedy = Remedy(f"sources.{verb}", keys[0] if len(keys) == 1 else None)
            found.append(ForecastNote(code=f"sources_{word}", text=text, remedy=remedy))
    return found


def _basis(sides: Sides, assumed: str) -> Iterator[ForecastNote]:
    """What the figures rest on."""
    figures = sides["now"]
    without = [source.source for source in figures.sources if source.is_assumed]
    if without:
        text = f"no history of {_named(without)}, whose runs are assumed to have {assumed}"
        yield ForecastNote(code="no_history", text=text)
    yield ForecastNote(
        code="one_host",
        text=f"one host with {count(figures.slots, 'slot')}; work after a page is fetched takes no time; "
        "no runs by hand, backfills, replays or streams",
    )
    for side, each in sides.items():
        if each.is_cut_short:
            text = f"stopped early, after {count(each.events, 'step')}"
            yield ForecastNote(code="stopped_early", text=text, side=side)


def _hosts(sides: Sides) -> Iterator[ForecastNote]:
    """Whose requests are taken to go to which host, of either side, each once."""
    told = [
        f"{host.host} is taken to get all requests of {_named(host.sources)}"
        for side in sides.values()
        for host in side.hosts
    ]
    for text in dict.fromkeys(told):
        yield ForecastNote(code="host_requests", text=text)


def _left_out(sides: Sides) -> Iterator[ForecastNote]:
    """What is not simulated: each once, and with its side where the other has none of it."""
    found: dict[str, list[Side]] = {}
    for side, figures in sides.items():
        for each in figures.left_out:
            found.setdefault(each.words, []).append(side)
    for text, where in found.items():
        only = None if len(where) == len(sides) else where[0]
        yield ForecastNote(code="not_simulated", text=text, side=only)


def _named(sources: Sequence[str]) -> str:
    more = f" and {len(sources) - NAMED} more" if len(sources) > NAMED else ""
    return ", ".join(sources[:NAMED]) + more
