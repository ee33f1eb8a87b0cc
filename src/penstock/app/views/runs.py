"""Runs as front ends see them: one in a list, one whole, and what became of starting some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.views.view import Content, Hidden, Time, View
from penstock.errors import PenstockError, Refused
from penstock.jobs.run import RunOptions
from penstock.jobs.run_sums import CandidateSum, PageSum, RunSums

if TYPE_CHECKING:
    from penstock.store.replays import ReplayRow
    from penstock.store.rows import CauseOfRun, RunRow

__all__ = [
    "AccountView",
    "CandidatesView",
    "LeftOut",
    "LinkView",
    "NoneCanRun",
    "PagesView",
    "RunCauseView",
    "RunDetail",
    "RunOptions",
    "RunView",
    "StageView",
    "StagedView",
    "Started",
    "StartedMany",
    "UsageView",
    "cause_view",
    "run_detail",
    "run_view",
    "seconds_of",
]

COUNTS = (
    "pages",
    "pages_done",
    "candidates",
    "saved",
    # The same as `saved`, under its old name: candidates are accepted, records are saved.
    "accepted",
    "inserted",
    "updated",
    "unchanged",
    "rejected",
    "dropped",
    "skipped",
    "pages_unchanged",
    "disallowed",
    "pages_missing",
    "retried",
    "throttled",
    "quarantined",
    "queued",
    "running",
    "waiting",
)


class RunView(View, frozen=True, kw_only=True):
    """A run, with its counts so far."""

    id: int = msgspec.field(name="run")
    source: str
    kind: str
    state: str
    is_reconciliation: bool
    reconciled_windows: int | None
    is_undo: bool
    of_run_id: int | None = msgspec.field(name="of_run")
    seconds: float
    counts: dict[str, int]
    end_reason: Content[str]
    actor: str
    reason: str
    pipeline_version: str
    # Drains perform it, and workers leave it alone.
    for_drains: bool
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    # What it was asked for beyond its kind, and how many of its jobs have not ended.
    options: Hidden[RunOptions]
    open_jobs: Hidden[int]

    @property
    def is_ended(self) -> bool:
        return self.finished_at is not None

    @property
    def quarantined(self) -> int:
        return self.counts["quarantined"]


class UsageView(View, frozen=True, kw_only=True):
    """What a run has cost."""

    requests: int
    bytes: int
    seconds: float
    money: float


class StagedView(View, frozen=True, kw_only=True):
    """The staged changes of a replay, or the changes of an undo."""

    state: str
    is_staged: bool
    added: int
    changed: int
    removed: int


class PagesView(View, frozen=True, kw_only=True):
    """What became of a run's pages; `unaccounted` is 0 unless something was lost."""

    discovered: int
    extracted: int
    skipped: int
    failed: int
    cancelled: int
    open: int
    unaccounted: int


class CandidatesView(View, frozen=True, kw_only=True):
    """What became of a run's candidates; `unaccounted` is 0 unless something was lost."""

    candidates: int
    accepted: int
    rejected: int
    duplicate: int
    dropped: int
    failed: int
    passed: int
    cancelled: int
    open: int
    unaccounted: int


class AccountView(View, frozen=True, kw_only=True):
    """The page and candidate counts of a run. `is_kept`: every worker of the run counted."""

    pages: PagesView
    candidates: CandidatesView
    is_kept: bool


class StageView(View, frozen=True, kw_only=True):
    """How many jobs one stage of a run has, by state; stages stand in the order of the pipeline."""

    stage: str
    unit: str
    queued: int
    running: int
    waiting: int
    held: int
    succeeded: int
    skipped: int
    quarantined: int
    cancelled: int

    @property
    def jobs(self) -> int:
        return self.open + self.succeeded + self.skipped + self.quarantined + self.cancelled

    @property
    def open(self) -> int:
        return self.queued + self.running + self.waiting + self.held


class RunCauseView(View, frozen=True, kw_only=True):
    """One cause for which jobs of a run are in quarantine, and the first of them."""

    cause: Content[str]
    jobs: int
    job_id: int
    kind: str
    error: Content[str]


class LinkView(View, frozen=True, kw_only=True):
    """A run that another was made from, or that was made from it."""

    id: int = msgspec.field(name="run")
    kind: str
    is_undo: bool
    state: str
    options: Hidden[RunOptions]
    of_run_id: Hidden[int | None]


class RunDetail(RunView, frozen=True, kw_only=True):
    """A run in full: its counts, cost, failures, rejects and linked runs."""

    options: RunOptions
    replay: StagedView | None
    account: AccountView
    usage: UsageView
    failures: dict[str, int]
    first_errors: list[RunCauseView]
    rejects: dict[str, int]
    made_from: LinkView | None
    led_to: list[LinkView]


class Started(View, frozen=True, kw_only=True):
    """A run that was started. It is not new if one like it had not ended: that one continues.

    A dry run has no `run`.
    """

    source: str
    run: RunView | None
    is_new: bool


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A source that can't have a run now, and why; the others were started."""

    source: str
    error: PenstockError


class NoneCanRun(Refused):
    """Of all sources that were asked for none can have a run now; each is left out for its own reason."""

    code = "no_source_can_run"

    def __init__(self, kind: str, left_out: list[LeftOut]) -> None:
        super().__init__(
            f"no source can have a run of kind {kind} now",
            "a run of kind 'probe' tries a source with one item",
        )
        self.left_out = left_out


@dataclass(frozen=True, slots=True)
class StartedMany:
    """The runs that were started, and the sources that were left out."""

    runs: list[Started]
    left_out: list[LeftOut]


def run_view(row: RunRow, now: float) -> RunView:
    return RunView(**_known(row, now))


def _known(row: RunRow, now: float) -> dict[str, Any]:
    same = ("id", "source", "kind", "state", "of_run_id", "end_reason", "actor", "reason")
    times = ("created_at", "started_at", "finished_at")
    return {
        **{
            name: getattr(row, name)
            for name in (*same, "pipeline_version", "for_drains", *times, "options")
        },
        "is_reconciliation": row.options.reconciles is not None,
        "reconciled_windows": row.options.reconciled_windows,
        "is_undo": row.options.is_undo,
        "seconds": seconds_of(row, now),
        "counts": counts_of(row),
        "open_jobs": row.queued + row.running + row.waiting + row.held,
    }


def run_detail(
    row: RunRow,
    now: float,
    *,
    replay: tuple[ReplayRow, bool] | None,
    account: RunSums,
    failures: dict[str, int],
    causes: list[CauseOfRun],
    rejects: dict[str, int],
    made_from: RunRow | None,
    led_to: list[RunRow],
) -> RunDetail:
    return RunDetail(
        **_known(row, now),
        replay=None if replay is None else _staged(*replay),
        account=_account(account),
        usage=UsageView(
            requests=row.requests, bytes=row.bytes, seconds=row.seconds, money=row.money
        ),
        failures=failures,
        first_errors=[cause_view(each) for each in causes],
        rejects=rejects,
        made_from=None if made_from is None else _link(made_from),
        led_to=[_link(each) for each in led_to],
    )


def cause_view(row: CauseOfRun) -> RunCauseView:
    return RunCauseView(**msgspec.structs.asdict(row))


def counts_of(row: RunRow) -> dict[str, int]:
    saved = row.inserted + row.updated + row.unchanged
    return {name: saved if name in ("saved", "accepted") else getattr(row, name) for name in COUNTS}


def seconds_of(row: RunRow, now: float) -> float:
    """How long a run took, or has taken until now."""
    return round(max(0.0, (row.finished_at or now) - (row.started_at or row.created_at)), 3)


def _staged(row: ReplayRow, is_staged: bool) -> StagedView:
    return StagedView(
        state=row.state,
        is_staged=is_staged,
        added=row.added,
        changed=row.changed,
        removed=row.removed,
    )


def _account(account: RunSums) -> AccountView:
    return AccountView(
        pages=PagesView(**_sum(account.pages)),
        candidates=CandidatesView(**_sum(account.candidates)),
        is_kept=account.is_kept,
    )


def _sum(found: PageSum | CandidateSum) -> dict[str, int]:
    return {**msgspec.structs.asdict(found), "unaccounted": found.unaccounted}


def _link(row: RunRow) -> LinkView:
    return LinkView(
        id=row.id,
        kind=row.kind,
        is_undo=row.options.is_undo,
        state=row.state,
        options=row.options,
        of_run_id=row.of_run_id,
    )
