"""The newest runs of a source compared with those before them: shares and their usual values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from penstock.counting import count
from penstock.jobs.run import RunState
from penstock.jobs.run_policy import policy_of
from penstock.runbooks.runbook import Check, Reading, Readings

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.rows import RunRow
    from penstock.store.store import Store

# How far back runs are compared, and how many before a run say what is usual.
COMPARED, LEAST = 30, 3
# Beside the runs that are compared there are replays, probes and undos in the list.
READ = 4 * COMPARED


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One ended run as shares. `quality` is the mean score of what it saved, if it is known."""

    row: RunRow
    quality: float | None = None

    @property
    def saved(self) -> int:
        return self.row.inserted + self.row.updated + self.row.unchanged

    @property
    def failed_share(self) -> float:
        failed = self.row.quarantined
        return failed / max(self.row.pages, failed, 1)

    @property
    def rejected_share(self) -> float:
        return self.row.rejected / max(self.saved + self.row.rejected, 1)

    @property
    def duplicate_share(self) -> float:
        return self.row.unchanged / max(self.saved, 1)


def ended_runs(store: Store, source: str, quality: dict[int, float | None]) -> Sequence[RunFigures]:
    """The newest ended runs of a source that fetch, newest first; all of the kind of the newest."""
    rows = [row for row in store.runs.newest(source, limit=READ) if _is_compared(row)]
    same = [row for row in rows if row.kind == rows[0].kind]
    return [RunFigures(row, quality.get(row.id)) for row in same[:COMPARED]]


def _is_compared(row: RunRow) -> bool:
    return row.is_ended and policy_of(row.kind).is_compared


def readings_of(runs: Sequence[RunFigures]) -> dict[str, Reading]:
    """The newest of these runs against the others."""
    if not runs:
        return {}
    newest, before = runs[0], runs[1:]
    which, row = f"run {newest.row.id}", newest.row
    found = {
        "failed_share": Reading(
            newest.failed_share,
            f"{row.quarantined:,} of {count(row.pages, 'page')} of {which} failed",
        )
    }
    if len(before) >= LEAST:
        found |= _against(newest, before, which)
    return found


def _against(newest: RunFigures, before: Sequence[RunFigures], which: str) -> dict[str, Reading]:
    row = newest.row
    saved, pages = _usual(run.saved for run in before), _usual(run.row.pages for run in before)
    rejected = _usual(run.rejected_share for run in before)
    repeated = _usual(run.duplicate_share for run in before)
    found = {
        "rejected_rise": Reading(
            newest.rejected_share - rejected,
            f"{which} rejected {_percent(newest.rejected_share)}, usual is {_percent(rejected)}",
        ),
        "duplicate_rise": Reading(
            newest.duplicate_share - repeated,
            f"{_percent(newest.duplicate_share)} of {which} changed nothing, usual is"
            f" {_percent(repeated)}",
        ),
    }
    # What somebody has cancelled could not save what it should.
    if saved > 0 and row.state != RunState.CANCELLED:
        found["yield_share"] = Reading(
            newest.saved / saved,
            f"{which} saved {count(newest.saved, 'record')}, usual is {saved:,.0f}",
        )
    if saved > 0:
        found["new_keys_share"] = Reading(
            row.inserted / saved,
            f"{which} added {count(row.inserted, 'record')}, of usually {saved:,.0f}",
        )
    if pages > 0:
        found["pages_growth"] = Reading(
            row.pages / pages, f"{which} had {count(row.pages, 'page')}, usual is {pages:,.0f}"
        )
    scores = [run.quality for run in before if run.quality is not None]
    if newest.quality is not None and len(scores) >= LEAST:
        usual = median(scores)
        found["quality_drop"] = Reading(
            usual - newest.quality,
            f"the mean score of {which} is {newest.quality:.2f}, usual is {usual:.2f}",
        )
    return found


def bad_runs(runs: Sequence[RunFigures], checks: Sequence[Check]) -> Sequence[RunFigures]:
    """The newest runs in a row that show a fault, newest first."""
    found = []
    for place, run in enumerate(runs):
        readings: Readings = readings_of(runs[place:])
        if not any(check.holds(readings) for check in checks):
            break
        found.append(run)
    return found


def is_undone(project: Nouns, run_id: int) -> bool:
    """Whether somebody has undone this run."""
    return any(each.is_undo for each in project.runs.detail(run_id).led_to)


def _usual(values: Iterable[float]) -> float:
    return float(median(list(values)))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
