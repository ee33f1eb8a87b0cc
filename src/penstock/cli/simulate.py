"""`penstock simulate`: forecast the next days, as the project is and as it would be."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.parser import Commands, add_command, add_json, whole_number
from penstock.cli.tables import text
from penstock.cli.wording import count, local_time
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.cli.output import Output
    from penstock.engine.simulation.assumptions import Assumptions
    from penstock.engine.simulation.figures import BudgetFigures, Figures

DESCRIPTION = """\
Simulate the project's schedules, gates, budgets, retries and breakers in virtual time, with runs like those
of its history, and print what would happen. --set changes a key of penstock.yaml for this simulation only and
compares the two. What can't be predicted (external signals, files, manual runs) is listed and left out,
unless --assume says how often it happens. Nothing is fetched, and nothing is written to the database."""
EXAMPLES = """\
  penstock simulate --days 30
  penstock simulate --set acme.com.schedule.cadence=high --set worker.slots=16
  penstock simulate --assume pages=500,seconds=0.8,failures=0.02 --html plan.html
  penstock simulate --assume acme.com.signals=3/d --assume inbox.files=1/h
  penstock simulate --days 7 --seed 3 --json"""
DAY_S = 86_400
LONGEST_DAYS = 400
SHOWN = 12
NAMED = 5
TELL_EVERY_S = 2.0


def register(commands: Commands) -> None:
    parser = add_command(commands, "simulate", "forecast the next days", DESCRIPTION, EXAMPLES)
    parser.add_argument("--days", type=_days, default=30, metavar="N", help="number of days (30)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change this key of penstock.yaml in the simulation; repeatable",
    )
    parser.add_argument("--seed", type=_seed, default=1, metavar="N", help="random seed (1)")
    parser.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="WHAT=HOW",
        help="what runs are like where there is no history (pages, requests, seconds, bytes, failures, "
        "changed), and how often what comes from outside (SOURCE.signals=3/d, .files, .moments); "
        "may be said again",
    )
    parser.add_argument("--html", metavar="FILE", help="write a page with plots")
    add_json(parser)
    parser.set_defaults(run=run)


def _days(text: str) -> int:
    days = whole_number(text)
    if days > LONGEST_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {LONGEST_DAYS} days")
    return days


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a whole number") from None


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened
    from penstock.engine.simulation import simulate
    from penstock.engine.simulation.assumptions import Assumptions, read_assumptions
    from penstock.engine.simulation.beginning import read_beginning, standing_still
    from penstock.engine.simulation.samples import words
    from penstock.settings import load_settings

    if args.html and not Path(args.html).absolute().parent.is_dir():
        # Before all the work, and not after it.
        raise UsageError(f"{args.html} can't be written: there is no such folder")
    with opened(args) as project:
        now = project.settings
        changed = None
        if args.set:
            changed = load_settings(now.file, now.environment, changes=args.set)
            args.out.secrets = now.secrets | changed.secrets
        assumed = read_assumptions(args.assume, changed or now) if args.assume else Assumptions()
        beginning = read_beginning(project, assumed)
    ways = {"now": now} if changed is None else {"now": now, "with --set": changed}
    progress = Progress(args.out, args.days, len(ways))
    sides = {
        name: simulate(each, beginning, args.days, args.seed, progress.day)
        for name, each in ways.items()
    }
    still = standing_still(beginning)
    notes = [*_idle(sides), _when(sides["now"]), *still]
    notes += [*_notes(sides, words(assumed.sample)), *_comings(assumed), *_hosts(sides)]
    missing = _left_out(sides)
    if args.html:
        _write_html(args, sides, [*notes, *missing])
    if args.json:
        args.out.json(_json(sides, args.set, [*notes, *missing]))
        return 0
    _table(args, sides)
    for note in (*notes, *missing[:SHOWN]):
        args.out.note(note)
    if len(missing) > SHOWN:
        args.out.note(f"{len(missing) - SHOWN} more that is not simulated: --json has all of it")
    return 0


class Progress:
    """A line every two seconds, so that a long simulation is not taken for one that hangs."""

    def __init__(
        self, out: Output, days: int, ways: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._out = out
        self._all = days * ways
        self._done = 0
        self._monotonic = monotonic
        self._told_at = monotonic()

    def day(self, _: int) -> None:
        self._done += 1
        now = self._monotonic()
        if now - self._told_at >= TELL_EVERY_S and self._done < self._all:
            self._told_at = now
            self._out.note(f"simulated {self._done} of {count(self._all, 'day')}")


def _when(figures: Figures) -> str:
    begins = local_time(figures.began_at)[:-3]
    return f"{count(figures.days, 'day')} from {begins}, seed {figures.seed}"


def _notes(sides: dict[str, Figures], assumed: str) -> list[str]:
    """What the figures rest on."""
    figures = sides["now"]
    without = [source.source for source in figures.sources if source.is_assumed]
    notes = []
    if without:
        which = _named(without)
        notes.append(f"no history of {which}, whose runs are assumed to have {assumed}")
    notes.append(
        f"one host with {count(figures.slots, 'slot')}; work after a page is fetched takes no time; "
        "no runs by hand, backfills, replays or streams"
    )
    for name, each in sides.items():
        if each.is_cut_short:
            notes.append(
                f"{name}: stopped early, after {count(each.events, 'step')}; try fewer --days"
            )
    return notes


def _comings(assumed: Assumptions) -> list[str]:
    return [
        f"{key}: {coming} assumed to come {count(per_s * DAY_S, 'time')} a day"
        for (key, coming), per_s in assumed.coming_per_s.items()
    ]


def _hosts(sides: dict[str, Figures]) -> list[str]:
    """Whose requests are taken to go to which host, of either side, each once."""
    told = [
        f"{host.host} is taken to get all requests of {_named(host.sources)}"
        for side in sides.values()
        for host in side.hosts
    ]
    return list(dict.fromkeys(told))


def _named(sources: list[str]) -> str:
    if len(sources) > NAMED:
        return f"{', '.join(sources[:NAMED])} and {len(sources) - NAMED} more"
    return ", ".join(sources)


def _left_out(sides: dict[str, Figures]) -> list[str]:
    """What is not simulated: each once, and with its side where the other has none of it."""
    found: dict[str, list[str]] = {}
    for name, side in sides.items():
        for each in side.left_out:
            found.setdefault(each.words, []).append(name)
    return [
        words if len(where) == len(sides) else f"{where[0]}: {words}"
        for words, where in found.items()
    ]


def _idle(sides: dict[str, Figures]) -> list[str]:
    """Why there is nothing to see."""
    figures = sides["now"]
    if any(side.starts or side.skipped or side.denied for side in sides.values()):
        return []
    if not figures.sources:
        return ["there is nothing to simulate: this project has no sources"]
    example = f"--set {figures.sources[0].source}.schedule.every=6h"
    return [f"nothing starts by itself in this time: penstock simulate {example} shows what would"]


def lines(figures: Figures) -> list[tuple[str, str]]:
    """What a person would want to know, each with its name."""
    f = figures
    told = [
        ("starts", f"{f.starts:,}"),
        ("of them probes", f"{f.probes:,}"),
        ("skipped, the run before had not ended", f"{f.skipped:,}"),
        ("denied, outside their hours", f"{f.denied:,}"),
        ("missed", f"{f.missed:,}"),
        ("runs completed", f"{f.completed:,}"),
        ("runs partial", f"{f.partial:,}"),
        ("runs failed", f"{f.failed:,}"),
        ("requests", f"{f.requests:,}"),
        ("retries", f"{f.retries:,}"),
        ("quarantined", f"{f.quarantined:,}"),
        ("times a breaker opened", f"{f.trips + sum(host.trips for host in f.hosts):,}"),
        ("freshness breaches", f"{f.freshness_breaches:,}"),
        ("deadline breaches", f"{f.deadline_breaches:,}"),
        ("backlog at its highest, jobs", f"{f.backlog_peak:,}"),
        ("backlog at the end, jobs", f"{f.backlog_at_end:,}"),
        ("worker slots in use, mean", f"{f.worker_use:.1%}"),
        ("worker slots in use, most", f"{f.worker_use_peak:.1%}"),
    ]
    return [*told, *((budget.name, _budget_use(budget)) for budget in f.budgets)]


def _budget_use(budget: BudgetFigures) -> str:
    if budget.exhausted_at:
        times = count(len(budget.exhausted_at), "time")
        # To the minute: the seconds are chance.
        return f"{budget.amount}: used up {times}, first {local_time(budget.exhausted_at[0])[:-3]}"
    share = budget.most_used / budget.bound if budget.bound else 0.0
    return f"{budget.amount}: {share:.0%} at the most"


def _table(args: argparse.Namespace, sides: dict[str, Figures]) -> None:
    columns: list[dict[str, str]] = [dict(lines(each)) for each in sides.values()]
    names = list(dict.fromkeys(name for column in columns for name in column))
    # Budgets are many where sources are; those that are used up come first, and the rest is in --json.
    plain = [name for name in names if name not in _budgets(sides)]
    tight = sorted(
        _budgets(sides), key=lambda name: not any("used up" in c.get(name, "") for c in columns)
    )
    rows = [(name, *(c.get(name, "") for c in columns)) for name in (*plain, *tight[:SHOWN])]
    args.out.table((text("figure", 0, 24), *(text(side, 0, 16) for side in sides)), rows)
    if len(tight) > SHOWN:
        args.out.note(f"{len(tight) - SHOWN} more budgets: --json has all of them")


def _budgets(sides: dict[str, Figures]) -> list[str]:
    return list(dict.fromkeys(b.name for f in sides.values() for b in f.budgets))


def _json(sides: dict[str, Figures], changes: list[str], notes: list[str]) -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = {"set": changes, "notes": notes}
    for name, figures in sides.items():
        told["now" if name == "now" else "changed"] = msgspec.to_builtins(figures)
    return told


def _write_html(args: argparse.Namespace, sides: dict[str, Figures], notes: list[str]) -> None:
    from penstock.cli.simulate_html import page
    from penstock.private_files import open_report

    text = "".join(page(sides, args.set, notes, lines, args.out.tidy))
    try:
        with open_report(args.html) as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{args.html} can't be written ({error.strerror})") from None
