"""Cells as front ends see them: the databases of a project, and where each source is."""

from __future__ import annotations

import msgspec

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
