"""What a run is and was asked for, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo

from penstock.cli.render.wording import count, duration, local_time

if TYPE_CHECKING:
    from penstock.app.views.runs import RunOptions

SHOWN_PARTITIONS = 5


class AnyRun(Protocol):
    """A run in a list, one that another is linked to, or one whole."""

    @property
    def kind(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def of_run_id(self) -> int | None: ...

    @property
    def options(self) -> RunOptions: ...


class KnownRun(AnyRun, Protocol):
    """One of which more is known."""

    @property
    def id(self) -> int: ...

    @property
    def source(self) -> str: ...

    @property
    def is_ended(self) -> bool: ...


class Staged(Protocol):
    """What became of what a replay has staged."""

    @property
    def state(self) -> str: ...

    @property
    def added(self) -> int: ...

    @property
    def changed(self) -> int: ...

    @property
    def removed(self) -> int: ...


def kind_of(row: AnyRun) -> str:
    """`undo of run 5`, `replay of run 1`, `replay of rejects`, `backfill (reconciliation)`, or its kind."""
    options = row.options
    if options.is_undo:
        return f"undo of run {row.of_run_id}"
    if options.is_redrive:
        return f"{row.kind} of rejects"
    if row.kind == "replay" and row.of_run_id is not None:
        return f"{row.kind} of run {row.of_run_id}"
    if options.reconciles is not None:
        part = " in part" if options.reconciled_windows is not None else ""
        return f"{row.kind} (reconciliation{part})"
    return row.kind


def asked_for(row: KnownRun) -> list[tuple[str, str]]:
    """What a run was asked for beyond its kind, a line for each."""
    options = row.options
    told = _backfilled(options) if options.start_at is not None else []
    if options.waits_for_recovery and row.state == "draft":
        told.append(("begins", f"when {row.source} has recovered"))
    if options.is_staged:
        told.append(("replays", _replayed(row)))
    if options.continues is not None:
        told.append(("continues", f"run {options.continues}: what it has done is not done again"))
    if options.signal is not None:
        told.append(("signal", f"{options.signal.name}, number {options.signal.id}"))
    return told


def _backfilled(options: RunOptions) -> list[tuple[str, str]]:
    names = options.partitions
    more = len(names) - SHOWN_PARTITIONS
    shown = ", ".join(names[:SHOWN_PARTITIONS]) + (f" and {more:,} more" if more > 0 else "")
    told = [
        ("range", range_of(options)),
        ("partitions", f"{len(names):,}: {shown}" if names else ""),
    ]
    if options.window_s is not None:
        windows = [f"{duration(options.window_s)} each"]
        windows += ["weekdays only"] if options.calendar == "weekdays" else []
        if options.holidays:
            windows.append(f"without {count(len(options.holidays), 'holiday')}")
        told.append(("windows", ", ".join(windows)))
    only = "only what was not ingested before" if options.is_missing_only else "everything in it"
    told.append(("fetches", only))
    if options.reconciles is not None:
        known = options.reconciled_windows
        part = "all of it" if known is None else f"{count(known, 'window')} of it"
        told.append(("reconciles", f"run {options.reconciles}, which has ingested {part} before"))
    return told


def range_of(options: RunOptions) -> str:
    """As it was said, and whose clock that is by."""
    start_at, end_at = options.start_at or 0.0, options.end_at or 0.0
    return f"{stretch(start_at, end_at, options.timezone)}, {options.timezone}"


def stretch(start_at: float, end_at: float, timezone: str) -> str:
    """Whole days with the last one in it, or times."""
    zone = UTC if timezone == "UTC" else ZoneInfo(timezone)
    start, end = (datetime.fromtimestamp(at, zone) for at in (start_at, end_at))
    if start.time() == end.time() == datetime.min.time():
        last = end.date() - timedelta(days=1)
        return f"{start:%Y-%m-%d} to {last:%Y-%m-%d}" if last > start.date() else f"{last:%Y-%m-%d}"
    return f"{start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S}"


def _replayed(row: KnownRun) -> str:
    since = row.options.since_at
    what = (
        f"run {row.of_run_id}"
        if since is None
        else f"all that was fetched since {local_time(since)}"
    )
    return f"{what}, only the pages in quarantine" if row.options.is_quarantined_only else what


def result_of(row: KnownRun, replay: Staged, is_staged: bool) -> str:
    """What became of what a replay has staged, or what an undo did; empty for other runs."""
    options = row.options
    if options.is_undo:
        done = f"{replay.changed} brought back, {replay.added} returned, {replay.removed} removed"
        return done if replay.state == "committed" else f"interrupted; so far {done}"
    if not options.is_staged or not row.is_ended:
        return ""
    done = f"{replay.added} added, {replay.changed} changed, {replay.removed} removed"
    if replay.state == "committing":
        return f"its commit was interrupted; so far {done}"
    if not is_staged:
        return f"committed: {done}" if replay.state == "committed" else replay.state
    if replay.added or replay.changed or replay.removed:
        return f"committed: {done}; what was left alone is staged, and waits for you"
    return "staged, and waits for you"


def next_of(row: KnownRun, replay: Staged, is_staged: bool) -> list[tuple[str, str]]:
    """The commands that a replay or undo waits for."""
    if row.options.is_undo:
        again = [("continue it", f"penstock undo {row.of_run_id}")]
        back = [("undo it", f"penstock undo {row.id}")]
        return again if replay.state == "committing" else back
    if not row.options.is_staged or not row.is_ended:
        return []
    if replay.state == "committing":
        return [("continue it", f"penstock replay {row.id} --commit")]
    told = []
    if is_staged:
        told = [
            ("its difference", f"penstock replay {row.id} --diff"),
            ("apply it", f"penstock replay {row.id} --commit"),
            ("drop it", f"penstock replay {row.id} --drop"),
        ]
    if replay.added or replay.changed or replay.removed:
        told.append(("undo it", f"penstock undo {row.id}"))
    return told
