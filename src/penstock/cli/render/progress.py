"""What a foreground run shows: progress while it goes on, a summary when it has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.app.views.progress import RunReport
from penstock.cli.render.tables import fitted
from penstock.cli.render.wording import count, cut_inside
from penstock.clock import Clock, SystemClock

# Beside the counts of a run, in the order in which a page passes them.
ROWS = {
    "pages": "pages",
    "candidates": "candidates",
    "saved": "saved",
    "inserted": "  inserted",
    "updated": "  updated",
    "unchanged": "  unchanged",
    "rejected": "rejected",
    "skipped": "skipped",
    "retried": "retried",
    "throttled": "throttled",
    "quarantined": "quarantined",
}
LINE_EVERY_S = 2.0
# A person reads no faster, and drawing costs more than looking.
REDRAW_EVERY_S = 0.25
# With more sources than this a log gets a line of sums now and then, and one for each source that ends.
MANY_SOURCES = 20
# A terminal at least this wide has room for long bars.
ROOMY = 100
WELL, BAD = "completed", ("failed", "cancelled")
# Those that move come first; then those that want to be looked at, then those that are done.
ORDER = {
    name: at
    for at, name in enumerate(
        ("running", "paused", "queued", "failed", "partial", "cancelled", "completed")
    )
}
ACTIVE = ("running", "paused")
OPEN = (*ACTIVE, "draft", "queued")
LONGEST_NAME, LONGEST_CURSOR = 20, 40
Which = tuple[str, int]
# Of the source, the bar, the pages, the state and what else there is to say.
MIN_WIDTHS = (8, 0, 0, 9, 0)


@dataclass(frozen=True, slots=True)
class Summary:
    """What one demo came to: its runs, and how many records each collection held before and after."""

    reports: Sequence[RunReport]
    before: Mapping[str, int]
    after: Mapping[str, int]

    @property
    def totals(self) -> dict[str, int]:
        return {name: sum(each.counts[name] for each in self.reports) for name in ROWS}

    @property
    def is_repeat(self) -> bool:
        return bool(self.before)

    def as_json(self) -> dict[str, Any]:
        return {
            "sources": {each.source: _report_as_json(each) for each in self.reports},
            "totals": self.totals,
            "records": {"before": dict(self.before), "after": dict(self.after)},
        }

    def sentences(self) -> list[str]:
        """What the numbers mean, in words."""
        return [*self._about_runs(), self._about_records()]

    def _about_runs(self) -> list[str]:
        well = [each.source for each in self.reports if each.state == WELL]
        told = [f"{' and '.join(well)}: complete, every page settled."] if well else []
        for each in self.reports:
            if each.state != WELL:
                stuck = each.counts["quarantined"]
                told.append(
                    f"{each.source}: {each.state}. {stuck} of its pages never came right and are in "
                    "quarantine with their errors; the other sources did not notice."
                )
        return told

    def _about_records(self) -> str:
        totals, held = self.totals, sum(self.after.values())
        if not self.is_repeat:
            return f"{count(held, 'record')}: {_listed(self.after)}."
        if self.after == self.before and not totals["updated"]:
            return (
                f"Nothing was doubled: each of the {totals['saved']} saves found its record "
                f"unchanged, {count(held, 'record')} as before: {_listed(self.after)}."
            )
        former = sum(self.before.values())
        return (
            f"{count(held - former, 'new record')}, {totals['updated']} changed, the rest is "
            f"unchanged; {held} in all now, {former} before."
        )


def summary_table(reports: Sequence[RunReport], totals: Mapping[str, int]) -> Table:
    """A column per source: many narrow rows fit a terminal that as many columns would not."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    for each in reports:
        table.add_column(each.source, justify="right")
    table.add_column("in all", justify="right")
    table.add_row("state", *(_painted(each.state) for each in reports), "")
    for name, label in ROWS.items():
        cells = [str(each.counts[name]) for each in reports]
        table.add_row(label, *cells, str(totals[name]), style="dim" if label != name else "")
    seconds = [f"{each.seconds:.1f}" for each in reports]
    longest = max((each.seconds for each in reports), default=0.0)
    table.add_row("seconds", *seconds, f"{longest:.1f}")
    return table


class LiveProgress:
    """A line per source that moves in place; for a terminal.

    Where there are more sources than lines, the active ones are shown and the rest is counted by state.
    """

    def __init__(self, console: Console, clock: Clock | None = None) -> None:
        self._console = console
        self._clock = clock or SystemClock()
        self._redraw_at = float("-inf")
        self._bar_width = 24 if console.width >= ROOMY else 10
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> LiveProgress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, reports: list[RunReport]) -> None:
        """Draw them, unless that was done a moment ago."""
        now = self._clock.monotonic()
        if now >= self._redraw_at:
            self._live.update(self.view(reports), refresh=True)
            self._redraw_at = now + REDRAW_EVERY_S

    def view(self, reports: Sequence[RunReport]) -> RenderableType:
        """What fits the terminal: a total, the active ones first, and a count of the rest."""
        total = Text(_total(reports))
        shown, rest = _fitting(reports, self._console.height - self._lines_beside(reports, total))
        table = Table.grid(padding=(0, 2, 0, 0))
        for at in range(5):
            table.add_column(no_wrap=True, overflow="ellipsis", min_width=MIN_WIDTHS[at])
        for each in shown:
            table.add_row(*self._line(each))
        lines: list[RenderableType] = [total] if len(reports) > 1 else []
        lines.append(table)
        if rest:
            lines.append(_rest(rest))
        return Group(*lines)

    def _lines_beside(self, reports: Sequence[RunReport], total: Text) -> int:
        """For the total, the count of the rest, which may be all of them, and the terminal's cursor."""
        width = self._console.width
        return sum(len(each.wrap(self._console, width)) for each in (total, _rest(reports))) + 1

    def _line(self, report: RunReport) -> tuple[RenderableType, ...]:
        name = fitted(report.source, max(LONGEST_NAME, self._console.width // 4), True)
        done, pages = report.counts["pages_done"], _pages(report)
        state, asides = _painted(report.state), _asides(report)
        if not pages:
            return (name, "", "", state, ", ".join(filter(None, (_figures(report), asides))))
        bar = ProgressBar(total=pages, completed=done, width=self._bar_width)
        return (name, bar, f"{done:,}/{pages:,}", state, asides)


class LineProgress:
    """A line now and then; for a log, a pipe or a file."""

    def __init__(self, console: Console, clock: Clock | None = None) -> None:
        self._console = console
        self._clock = clock or SystemClock()
        # By source and run: a shadow is a second run of its source.
        self._told: dict[Which, tuple[str, object, float]] = {}
        self._ended: dict[Which, str] = {}
        self._total, self._total_at = "", float("-inf")

    def __enter__(self) -> LineProgress:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, reports: list[RunReport]) -> None:
        if len(reports) > MANY_SOURCES:
            self._show_many(reports)
        else:
            self._show_each(reports)

    def _show_many(self, reports: list[RunReport]) -> None:
        ended = {_which(each): each for each in reports if each.state not in OPEN}
        for which, each in ended.items():
            if self._ended.get(which) != each.state:
                self._console.print(_line(each))
        self._ended = {which: each.state for which, each in ended.items()}
        total, now = _total(reports), self._clock.monotonic()
        is_last = len(ended) == len(reports)
        if total != self._total and (is_last or now >= self._total_at + LINE_EVERY_S):
            self._console.print(total)
            self._total, self._total_at = total, now

    def _show_each(self, reports: list[RunReport]) -> None:
        for each in reports:
            at = (each.counts["pages_done"], each.counts["saved"], each.requests, each.cursor)
            state, before, seconds = self._told.get(_which(each), ("", None, 0.0))
            has_moved = at != before and each.seconds - seconds >= LINE_EVERY_S
            if each.state != state or has_moved:
                self._told[_which(each)] = (each.state, at, each.seconds)
                self._console.print(_line(each))


def _which(report: RunReport) -> Which:
    return (report.source, report.run)


def _line(report: RunReport) -> str:
    pages = _pages(report)
    done = f"{report.counts['pages_done']} of {count(pages, 'page')}"
    told = (f"{report.source}: {report.state}", done if pages else _figures(report))
    return ", ".join(part for part in (*told, _asides(report)) if part)


def _figures(report: RunReport) -> str:
    """How far a run without pages has come: an API that is pulled has requests, records and a cursor."""
    records = report.counts["saved"]
    told = [count(records, "record")] if records or report.requests else []
    told += [count(report.requests, "request")] if report.requests else []
    told += [f"at {cut_inside(report.cursor, LONGEST_CURSOR)}"] if report.cursor else []
    return ", ".join(told)


def _fitting(
    reports: Sequence[RunReport], lines: int
) -> tuple[Sequence[RunReport], Sequence[RunReport]]:
    if len(reports) <= max(lines, 1):
        return reports, ()
    # Stable: a source does not change its line while its state stays.
    ordered = sorted(reports, key=lambda each: ORDER.get(each.state, len(ORDER)))
    active = [each for each in ordered if each.state in ACTIVE]
    shown = active[: max(lines, 1)]
    return shown, [each for each in ordered if each not in shown]


def _total(reports: Sequence[RunReport]) -> str:
    done = sum(each.counts["pages_done"] for each in reports)
    pages = sum(_pages(each) for each in reports)
    records = sum(each.counts["saved"] for each in reports)
    told = [f"{done:,} of {count(pages, 'page')}"] if pages else []
    told += [count(records, "record"), _by_state(reports)]
    return f"{count(len(reports), 'source')}: {', '.join(told)}"


def _rest(reports: Sequence[RunReport]) -> Text:
    return Text(f"and {len(reports)} more: {_by_state(reports)}")


def _by_state(reports: Sequence[RunReport]) -> str:
    states = Counter(each.state for each in reports)
    known = sorted(states, key=lambda state: ORDER.get(state, len(ORDER)))
    return ", ".join(f"{states[state]} {state}" for state in known)


def _pages(report: RunReport) -> int:
    """Of a backfill, also those that are not planned yet."""
    return max(report.counts["pages"], report.expected)


def _asides(report: RunReport) -> str:
    names = ("waiting", "retried", "quarantined")
    told = [f"{report.counts[name]} {name}" for name in names if report.counts[name]]
    return ", ".join(told)


def _painted(state: str) -> Text:
    return Text(state, "green" if state == WELL else "red" if state in BAD else "yellow")


def _listed(records: Mapping[str, int]) -> str:
    return ", ".join(f"{held} {collection}" for collection, held in records.items())


def _report_as_json(report: RunReport) -> dict[str, Any]:
    return {
        "run": report.run,
        "source": report.source,
        "kind": report.kind,
        "state": report.state,
        "seconds": round(report.seconds, 3),
        "counts": dict(report.counts),
    }
