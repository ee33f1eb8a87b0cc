"""Backfills: what one would do, and starting it, by an operator or for a run that has missed something."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from penstock.counting import count
from penstock.errors import ConfigError, UsageError
from penstock.gates.onboarding import SourceState
from penstock.jobs.run import RunKind, RunOptions
from penstock.jobs.windows import SLACK_S, Window, Windows, gaps, moment, windows_of
from penstock.pipeline.version import version_of
from penstock.settings import BackfillSettings, SourceSettings

if TYPE_CHECKING:
    from penstock.pipeline.graph import Graph
    from penstock.store.store import Store

Moment = float | str | date
EXAMPLE = "backfill: {window: 1d, partitions: [AAPL, MSFT]}"
PENSTOCK = "penstock"
CHUNK = 1000
MOST_UNITS = 20_000_000
MOST_STRETCHES = 1000


@dataclass(frozen=True, slots=True)
class Ingested:
    """How many windows `of` all are ingested, and the newest run that has a part in it."""

    run_id: int
    windows: int
    of: int


@dataclass(frozen=True, slots=True)
class Missing:
    """What is not ingested: how many units, and the first of the stretches that they make."""

    units: int
    stretches: list[Window]


def backfill_options(
    source: SourceSettings,
    start: Moment,
    end: Moment,
    now: float,
    *,
    partitions: Sequence[str] = (),
    window_s: float | None = None,
    is_missing_only: bool = False,
) -> RunOptions:
    """What a backfill of this source is asked for, complete: it stays so when the settings change."""
    settings = require_settings(source)
    start_at, end_at = (
        _moment(value, settings, name == "end") for name, value in (("start", start), ("end", end))
    )
    # What has not happened yet can't be fetched.
    end_at = min(end_at, now)
    if start_at >= end_at:
        raise UsageError("a backfill begins before it ends, and before now", code="bad_range")
    options = RunOptions(
        start_at=start_at,
        end_at=end_at,
        window_s=window_s or settings.window_s,
        partitions=tuple(dict.fromkeys(partitions)) or settings.partitions,
        timezone=settings.timezone,
        calendar=settings.calendar,
        holidays=settings.holidays,
        is_missing_only=is_missing_only,
    )
    total = windows_of(options).total
    if total > MOST_UNITS:
        raise UsageError(
            f"that would be {count(total, 'unit')}, and {MOST_UNITS:,} is the most",
            "make the window longer, or backfill a part at a time",
            code="too_many_units",
        )
    return options


def require_settings(source: SourceSettings) -> BackfillSettings:
    if source.backfill is None:
        raise ConfigError(
            f"{source.key} can't be backfilled: it has no backfill settings",
            f"add to it in penstock.yaml: {EXAMPLE}",
            code="no_backfill_settings",
        )
    return source.backfill


def _moment(value: Moment, settings: BackfillSettings, is_end: bool) -> float:
    try:
        return moment(value, settings.timezone, is_end=is_end)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{value!r} is not a day or a time",
            "write it as 2024-01-31 or 2024-01-31T12:00Z",
            code="bad_moment",
        ) from None


def start_backfill(
    store: Store,
    source_id: int,
    source: SourceSettings,
    graph: Graph,
    options: RunOptions,
    *,
    key: str,
    actor: str,
    reason: str = "",
    linked_to: int | None = None,
    is_draft: bool = False,
    for_drains: bool = False,
) -> tuple[int, bool]:
    """Start a backfill, or answer with the one that this key has started: (run, is_new).

    One over what is ingested already is a reconciliation, and says of which run, and if not all of it is, of
    how many windows.
    """
    plan = graph.plan(source.priority, RunKind.BACKFILL)
    if not options.is_missing_only:
        options = _reconciling(options, ingested(store, source_id, windows_of(options)))
    return store.runs.start(
        source_id,
        RunKind.BACKFILL,
        plan,
        version_of(graph, source),
        key=key,
        actor=actor,
        reason=reason,
        options=options,
        of_run_id=linked_to,
        is_draft=is_draft,
        for_drains=for_drains,
    )


def start_linked_backfill(
    store: Store,
    source_id: int,
    source: SourceSettings,
    graph: Graph,
    *,
    start_at: float,
    end_at: float,
    linked_to: int | None,
    reason: str,
    partitions: Sequence[str] = (),
    key: str = "",
    actor: str = PENSTOCK,
    is_missing_only: bool = False,
    params: dict[str, Any] | None = None,
) -> int | None:
    """Have a stretch of time that was missed fetched by a run of its own; answers with its number.

    However often it is asked for with the same key, there is one. None where it can't be done: the
    source has no backfill settings, its pipeline has no step that takes windows, or it is over already.
    A source that is degraded runs probes only: what it missed waits as a draft until it has recovered.
    With `params`, which go over the source's own, it is one window, so that they are about all of it.
    """
    if source.backfill is None or graph.windows is None or end_at <= start_at:
        return None
    onboarding = store.onboardings.get(source.key)
    if onboarding is not None and onboarding.state is not SourceState.ACTIVE:
        return None
    options = backfill_options(
        source,
        start_at,
        end_at,
        end_at,
        partitions=partitions,
        window_s=end_at - start_at if params else None,
        is_missing_only=is_missing_only,
    )
    if params:
        options = replace(options, params=params)
    is_degraded = store.sources.health(source_id).degraded_at is not None
    if is_degraded:
        options = replace(options, waits_for_recovery=True)
        reason = f"{reason}; waits until {source.key} has recovered"
    wanted = key or f"gap:{linked_to or 0}:{start_at:.3f}:{end_at:.3f}"
    run_id, _ = start_backfill(
        store, source_id, source, graph, options,
        key=wanted, actor=actor, reason=reason, linked_to=linked_to, is_draft=is_degraded,
    )  # fmt: skip
    return run_id


def ingested(store: Store, source_id: int, windows: Windows) -> Ingested:
    """How many of these windows are ingested already, and the newest of the runs that did so."""
    latest, whole, total = 0, 0, 0
    for first in range(0, windows.total, CHUNK):
        units = list(windows.units(first, min(first + CHUNK, windows.total)))
        covered, runs = _covered(store, source_id, units)
        whole += sum(not gaps(unit, covered[unit.partition]) for unit in units)
        total += len(units)
        latest = max(latest, *runs, 0)
    return Ingested(latest, whole, total)


def missing(store: Store, source_id: int, windows: Windows) -> Missing:
    """What a backfill of what is missing would fetch: the same as it does when it runs."""
    units = 0
    stretches: list[Window] = []
    last: dict[str, int] = {}
    for first in range(0, windows.total, CHUNK):
        expected = list(windows.units(first, min(first + CHUNK, windows.total)))
        covered, _ = _covered(store, source_id, expected)
        for unit in expected:
            for gap in gaps(unit, covered[unit.partition]):
                units += 1
                _join(stretches, last, gap)
    return Missing(units, sorted(stretches, key=lambda each: (each.partition, each.start_at)))


def _join(stretches: list[Window], last: dict[str, int], gap: Window) -> None:
    """Gaps that meet are one stretch, up to as many as anybody wants to read."""
    at = last.get(gap.partition)
    if at is not None and gap.start_at - stretches[at].end_at < SLACK_S:
        stretches[at] = Window(gap.partition, stretches[at].start_at, gap.end_at)
    elif len(stretches) < MOST_STRETCHES:
        last[gap.partition] = len(stretches)
        stretches.append(gap)
    else:
        last.pop(gap.partition, None)


def _covered(
    store: Store, source_id: int, units: Sequence[Window]
) -> tuple[dict[str, list[tuple[float, float]]], set[int]]:
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    runs: set[int] = set()
    if units:
        names = list(dict.fromkeys(unit.partition for unit in units))
        for row in store.sources.covered(source_id, names, units[0].start_at, units[-1].end_at):
            found[row.partition].append((row.start_at, row.end_at))
            runs.add(row.run_id)
    return found, runs


def _reconciling(options: RunOptions, before: Ingested) -> RunOptions:
    if not before.windows:
        return options
    part = before.windows if before.windows < before.of else None
    return replace(options, reconciles=before.run_id, reconciled_windows=part)
