"""Cells as front ends see them: the databases of a project, and where each source is."""

from __future__ import annotations

import msgspec

from penstock.app.views.alerts import AlertView
from penstock.app.views.runs import RunView
from penstock.app.views.search import SearchView
from penstock.app.views.view import View


class CellView(View, frozen=True, kw_only=True):
    """One database of a project, with its counts; `error` says why it did not answer.

    A cell that did not answer has counts of 0. `is_this` is the cell of this process.
    """

    name: str = msgspec.field(name="cell")
    number: int
    store: str
    is_this: bool
    is_reachable: bool
    error: str
    sources: int
    leaving: int
    arriving: int
    active_runs: int
    queued: int
    running: int
    waiting: int
    quarantined: int
    records: int
    workers: int


class CellsStatusView(View, frozen=True, kw_only=True):
    """All cells together. `is_whole` is false if one did not answer: then the sums lack what it has."""

    is_whole: bool
    unreachable: list[str]
    sources: int
    active_runs: int
    queued: int
    running: int
    waiting: int
    quarantined: int
    records: int
    workers: int
    cells: list[CellView]


class CellRunView(View, frozen=True, kw_only=True):
    """A run, and the cell that has it."""

    cell: str
    run: RunView


class CellsRunsView(View, frozen=True, kw_only=True):
    """Runs of all cells, newest first. `is_whole` is false if one did not answer: its runs are missing."""

    is_whole: bool
    unreachable: list[str]
    runs: list[CellRunView]


class CellAlertView(View, frozen=True, kw_only=True):
    """An alert, and the cell that has it."""

    cell: str
    alert: AlertView


class CellsAlertsView(View, frozen=True, kw_only=True):
    """Alerts of all cells, newest first. `is_whole` is false if one did not answer: those are missing."""

    is_whole: bool
    unreachable: list[str]
    alerts: list[CellAlertView]


class CellFoundView(View, frozen=True, kw_only=True):
    """What a search has found in one cell."""

    cell: str
    found: SearchView


class CellsSearchView(View, frozen=True, kw_only=True):
    """What a search has found in all cells. `is_whole` is false if one did not answer."""

    is_whole: bool
    unreachable: list[str]
    text: str
    cells: list[CellFoundView]


class CellsOverviewView(View, frozen=True, kw_only=True):
    """All cells at one look; `status` says which of them did not answer."""

    status: CellsStatusView
    alerts: list[CellAlertView]
    runs: list[CellRunView]


class CellSourceView(View, frozen=True, kw_only=True):
    """Where a source is, and what it is doing there.

    `state` is `here` where nothing is going on, `leaving` while it moves from `cell` to `to`, and `arriving`
    when it is the cell's already, but the move is not finished.
    """

    key: str = msgspec.field(name="source")
    cell: str
    state: str
    to: str
    origin: str = msgspec.field(name="from")
    lifecycle: str
    queued: int
    running: int
    waiting: int
    quarantined: int
    last_state: str | None


class CellsSourcesView(View, frozen=True, kw_only=True):
    """A page of the sources of all cells, by name. `is_whole` is false if a cell did not answer.

    `next` is the cursor of what comes next, null at the end of the list.
    """

    is_whole: bool
    unreachable: list[str]
    items: list[CellSourceView]
    next: str | None


class SourcePlaceView(View, frozen=True, kw_only=True):
    """Which cell has a source. Without an answer of all cells, `cell` may be empty: it is not known.

    `usual` is the cell that `place` chooses for its key.
    """

    key: str = msgspec.field(name="source")
    cell: str
    state: str
    to: str
    origin: str = msgspec.field(name="from")
    usual: str
    unreachable: list[str]


class MoveView(View, frozen=True, kw_only=True):
    """A move that was made, or would be. The counts are what moves with the source."""

    key: str = msgspec.field(name="source")
    origin: str = msgspec.field(name="from")
    to: str
    is_moved: bool
    is_continued: bool
    runs: int
    jobs: int
    running: int
    records: int
    snapshots: int
    checkpoints: int
    schedules: int
