"""`penstock simulate`: forecast the next days, as the project is and as it would be."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.parser import Commands, add_command, add_json, whole_number
from penstock.cli.remedies import command_of
from penstock.cli.render.tables import text
from penstock.cli.render.wording import count, local_time
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.views.forecast import BudgetFigures, Figures, ForecastNote, ForecastView
    from penstock.cli.render.output import Output

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
LONGEST_DAYS = 400
SHOWN = 12
SIDES = {"now": "now", "changed": "with --set"}
TELL_EVERY_S = 2.0


def register(commands: Commands) -> None:
    parser = add_command(commands, "simulate", DESCRIPTION, EXAMPLES)
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
        "changed), and how often external events arrive (SOURCE.signals=3/d, .files, .moments); "
        "repeatable",
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
    from penstock.cli.lookup import opened

    if args.html and not Path(args.html).absolute().parent.is_dir():
        # Before all the work, and not after it.
        raise UsageError(f"{args.html} can't be written: there is no such folder")
    with opened(args) as project:
        found = project.forecast(
            args.days,
            changes=args.set,
            assume=args.assume,
            seed=args.seed,
            on_progress=Progress(args.out).day,
        )
    args.out.secrets = found.secrets
    sides = {SIDES[side]: figures for side, figures in found.sides.items()}
    notes = _notes(found)
    if args.html:
        _write_html(args, sides, notes)
    if args.json:
        args.out.json({**found.as_json(), "notes": notes})
        return 0
    _table(args, sides)
    missing = sum(note.code == "not_simulated" for note in found.notes)
    for note in notes[: len(notes) - max(0, missing - SHOWN)]:
        args.out.note(note)
    if missing > SHOWN:
        args.out.note(f"{missing - SHOWN} more notes on what is not simulated: --json has them all")
    return 0


class Progress:
    """A line every two seconds, so that a long simulation is not taken for one that hangs."""

    def __init__(self, out: Output, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._monotonic = monotonic
        self._told_at = monotonic()

    def day(self, done: int, total: int) -> None:
        now = self._monotonic()
        if now - self._told_at >= TELL_EVERY_S and done < total:
            self._told_at = now
            self._out.note(f"simulated {done} of {count(total, 'day')}")


def _notes(found: ForecastView) -> list[str]:
    """What the figures rest on, a line each: after why there is nothing to see, which days they are of."""
    phrased = [note_words(note, found.now) for note in found.notes]
    idle = sum(note.code in ("no_sources", "nothing_starts") for note in found.notes)
    return [*phrased[:idle], _when(found.now), *phrased[idle:]]


def note_words(note: ForecastNote, figures: Figures | None = None) -> str:
    """A note with the command or option that would change it."""
    said = note.text if note.side is None else f"{SIDES[note.side]}: {note.text}"
    if note.code == "nothing_starts" and figures is not None:
        example = f"--set {figures.sources[0].source}.schedule.every=6h"
        return f"{said}: penstock simulate {example} shows what would"
    if note.code == "stopped_early":
        return f"{said}; try fewer --days"
    if note.remedy is None:
        return said
    which = " SOURCE" if note.remedy.target is None and note.code != "project_held" else ""
    return f"{said}: {command_of(note.remedy)}{which}"


def _when(figures: Figures) -> str:
    begins = local_time(figures.began_at)[:-3]
    return f"{count(figures.days, 'day')} from {begins}, seed {figures.seed}"


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
        return (
            f"{budget.amount}: exhausted {times}, first {local_time(budget.exhausted_at[0])[:-3]}"
        )
    share = budget.most_used / budget.bound if budget.bound else 0.0
    return f"{budget.amount}: {share:.0%} at the most"


def _table(args: argparse.Namespace, sides: dict[str, Figures]) -> None:
    columns: list[dict[str, str]] = [dict(lines(each)) for each in sides.values()]
    names = list(dict.fromkeys(name for column in columns for name in column))
    # Many sources have many budgets: those that are exhausted come first, and --json has the rest.
    plain = [name for name in names if name not in _budgets(sides)]
    exhausted = {b.name for f in sides.values() for b in f.budgets if b.exhausted_at}
    tight = sorted(_budgets(sides), key=lambda name: name not in exhausted)
    rows = [(name, *(c.get(name, "") for c in columns)) for name in (*plain, *tight[:SHOWN])]
    args.out.table((text("figure", 0, 24), *(text(side, 0, 16) for side in sides)), rows)
    if len(tight) > SHOWN:
        args.out.note(f"{len(tight) - SHOWN} more budgets: --json has them all")


def _budgets(sides: dict[str, Figures]) -> list[str]:
    return list(dict.fromkeys(b.name for f in sides.values() for b in f.budgets))


def _write_html(args: argparse.Namespace, sides: dict[str, Figures], notes: list[str]) -> None:
    from penstock.cli.render.simulate_html import page
    from penstock.private_files import open_report

    text = "".join(page(sides, args.set, notes, lines, args.out.tidy))
    try:
        with open_report(args.html) as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{args.html} can't be written ({error.strerror})") from None
