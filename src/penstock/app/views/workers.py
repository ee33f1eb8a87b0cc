"""Workers as front ends see them, and what their code does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.app.views.drains import scope_words
from penstock.app.views.view import Time, View

if TYPE_CHECKING:
    from penstock.project.stale_code import StaleWorker, UnknownWork
    from penstock.store.rows import LeaderRow, WorkerRow

# What only one host does at a time; a leader is named after it.
SCHEDULER = "scheduler"


class WorkerView(View, frozen=True, kw_only=True):
    """A worker: where it runs, how much it has to do, and how long its lease lasts.

    `admits` is `all`, `sound` (jobs under which nobody died) or `suspect` (only the others). `drains` is what
    a drain's worker is for (`run 5 extract 1/4`), and empty for all others.
    """

    id: str = msgspec.field(name="worker")
    host: str
    pid: int
    version: str
    started_at: Time
    lease_expires_at: Time
    running: int
    slots: int
    admits: str
    drains: str
    is_alive: bool
    lease_left_s: float


class LeaderView(View, frozen=True, kw_only=True):
    """Who acts for all hosts in one matter (`scheduler`), in which term, and until when."""

    name: str
    holder: str
    term: int
    expires_at: Time


class StaleWorkerView(View, frozen=True, kw_only=True):
    """A `penstock up` on this host that works with older versions of these files."""

    pid: int
    files: tuple[str, ...]


class NotLoadedView(View, frozen=True, kw_only=True):
    """Queued work that no live worker has loaded: a whole source, or one stage of it."""

    source: str
    stage: str | None


def worker_view(row: WorkerRow, now: float) -> WorkerView:
    left_s = row.lease_expires_at - now
    known = msgspec.structs.asdict(row)
    known["drains"] = scope_words(known.pop("scope"))
    return WorkerView(**known, is_alive=left_s > 0, lease_left_s=round(left_s, 3))


def leader_view(row: LeaderRow) -> LeaderView:
    return LeaderView(**msgspec.structs.asdict(row))


def stale_worker_view(found: StaleWorker) -> StaleWorkerView:
    return StaleWorkerView(pid=found.pid, files=found.files)


def not_loaded_view(found: UnknownWork) -> NotLoadedView:
    return NotLoadedView(source=found.source, stage=found.stage)
