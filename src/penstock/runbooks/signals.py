"""The registry of signals: every figure that a runbook reads, with its meaning and unit."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.runbooks.runbook import Value

Unit = Literal["", "share", "times", "bytes", "yes or no", "run"]


class Signal(msgspec.Struct, frozen=True):
    """What a signal is called, what it means, and how its value is written."""

    title: str
    means: str
    unit: Unit = ""


_NEWEST = "of the newest ended run"
SIGNALS: dict[str, Signal] = {
    # Of the newest run of a source, against the runs before it.
    "failed_share": Signal(
        "Failed pages", f"Share of the pages {_NEWEST} that are in quarantine.", "share"
    ),
    "yield_share": Signal(
        "Yield",
        "Records that the newest ended run saved, as a share of the median of the runs before it.",
        "share",
    ),
    "rejected_rise": Signal(
        "Rise of rejects",
        f"Share of rejected items {_NEWEST}, minus the median of the runs before it.",
        "share",
    ),
    "duplicate_rise": Signal(
        "Rise of duplicates",
        f"Share of items {_NEWEST} that changed nothing, minus the median of the runs before it.",
        "share",
    ),
    "pages_growth": Signal(
        "Pages", f"Pages {_NEWEST}, as a multiple of the median of the runs before it.", "times"
    ),
    "new_keys_share": Signal(
        "New keys",
        f"New records {_NEWEST}, as a share of what a run usually saves.",
        "share",
    ),
    "quality_drop": Signal(
        "Drop of quality",
        f"Median score of the runs before it, minus the mean score {_NEWEST}.",
        "share",
    ),
    "failures": Signal("Failures", "The most frequent causes of failures, with examples."),
    "rejects": Signal("Open rejects", "Rejected items that were not redriven, by code."),
    "bad_runs": Signal("Bad runs", "Runs in a row, up to the newest, that show the fault."),
    "first_bad_run": Signal("First bad run", "The first of these runs.", "run"),
    "last_good_run": Signal("Last good run", "The run before them.", "run"),
    "bad_records": Signal(
        "Records of bad runs",
        "Records that the bad runs added or changed, and that no undo took back.",
    ),
    "moved_checkpoints": Signal(
        "Moved checkpoints", "Checkpoints that a bad run moved past work that failed."
    ),
    "pipeline_changed": Signal(
        "Pipeline changed",
        "Whether the pipeline differs from the one of the newest run.",
        "yes or no",
    ),
    "run_wanted": Signal(
        "Run wanted",
        "Whether the newest run shows the fault, or had another pipeline than today's.",
        "yes or no",
    ),
    "staged_replay": Signal(
        "Staged replay", "A replay of this source that waits for a decision.", "run"
    ),
    "active_run": Signal("Active run", "The oldest run of this source that has not ended.", "run"),
    # Of a source, or of all of them.
    "quarantined": Signal("Quarantined jobs", "Jobs that are no longer retried."),
    "poison": Signal("Jobs that kill workers", "Quarantined jobs under which workers died."),
    "paused": Signal("Paused", "Whether the source is paused.", "yes or no"),
    "held": Signal(
        "Held",
        "Whether the source is held for maintenance; without a source, the whole project.",
        "yes or no",
    ),
    "degraded": Signal("Degraded", "Whether only probes of the source run.", "yes or no"),
    "breaker_open": Signal(
        "Breaker open",
        "Whether the breaker of the source, or of a host, lets nothing through.",
        "yes or no",
    ),
    "queued": Signal("Queued jobs", "Jobs that are ready to start, by source."),
    "backlog_hours": Signal(
        "Time to drain",
        "Hours until the queue is empty at the rate of the last hour; 999 if nothing ends.",
    ),
    "active_runs": Signal("Active runs", "Runs that have not ended."),
    "stopped": Signal("Stopped sources", "Sources that a gate stops, with the gate."),
    # Of what does the work.
    "workers": Signal("Workers", "Workers that hold a lease."),
    "dead_workers": Signal(
        "Lapsed leases", "Workers whose lease has expired and that were not reaped."
    ),
    "stale_workers": Signal("Outdated workers", "Workers on this host that run older code."),
    "scheduler": Signal("Scheduler", "Whether a process schedules now.", "yes or no"),
    "overdue": Signal("Overdue schedules", "Ticks that are due and have not started anything."),
    "missed": Signal("Missed ticks", "Schedules whose last tick was missed, skipped or denied."),
    "budget_used": Signal("Budget used", "The largest used share of a budget.", "share"),
    "budget_short": Signal(
        "Budgets that run out", "Budgets that are exhausted, or will be before they reset."
    ),
    "given_up": Signal("Deliveries given up", "Deliveries that are not tried again by themselves."),
    "failing": Signal("Failing deliveries", "Deliveries that failed and will be tried again."),
    # Of the database.
    "store_reachable": Signal(
        "Database", "Whether the database can be opened and read.", "yes or no"
    ),
    "store_was_away": Signal(
        "Database was away", "Whether this runbook was begun while it was away.", "yes or no"
    ),
    "store_sound": Signal(
        "Soundness", "What the last check of the database in this runbook found.", "yes or no"
    ),
    "store_size": Signal("Database size", "Bytes that the database takes.", "bytes"),
    "disk_free": Signal(
        "Free space",
        "Free share of the file system that holds the database and the snapshots.",
        "share",
    ),
}


def words_of(name: str, value: Value) -> str:
    """A value as a person reads it."""
    unit = SIGNALS[name].unit
    if value is None:
        return "none" if unit == "run" else "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) or unit == "run":
        return str(value)
    if unit == "share":
        return f"{100 * value:.0f} %"
    if unit == "times":
        return f"{value:.1f} ×"
    return _bytes(value) if unit == "bytes" else f"{value:,.10g}"


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"
