"""Exit codes: what a script learns without reading a word. docs/cli.md has the same table."""

from __future__ import annotations

from penstock.errors import AlreadyRunning, Refused, StoreError, UsageError

DONE = 0
BUG = 1
USAGE = UsageError.exit_code
PARTIAL = 3
FAILED = 4
STORE = StoreError.exit_code
ALREADY_RUNNING = AlreadyRunning.exit_code
REFUSED = Refused.exit_code
BUDGET_EXCEEDED = 8
KPI_MISSED = 9
NOT_YET = 75
INTERRUPTED = 130

MEANINGS = {
    DONE: "done; every run completed",
    BUG: "something unexpected: a bug, or the machine (no permission, no memory)",
    USAGE: "the command, the configuration or a pipeline is wrong; nothing was started",
    PARTIAL: (
        "a run ended partial: some of its pages are in quarantine; an export or a golden corpus left "
        "something out; or `prove` tested too little"
    ),
    FAILED: (
        "a run failed or was cancelled; a route did not accept a test; `doctor` found a problem, "
        "`golden check` or `export pg-cron --check` a difference, or `prove` a broken promise"
    ),
    STORE: "the database can't be opened, read or written, or `db check` found problems",
    ALREADY_RUNNING: "another Penstock works on this project",
    REFUSED: "possible, but not in the present state, or not without `--yes`",
    BUDGET_EXCEEDED: "`builder`: a budget had no room for all of it; nothing is lost",
    KPI_MISSED: "`builder`: the package is made, and a target of the dataset is missed",
    NOT_YET: "`drain` ended before its step was done; run it again",
    INTERRUPTED: "interrupted; what was queued stays queued",
}


def of_runs(states: list[str]) -> int:
    """The exit code for runs that ended in these states: the worst of them decides."""
    if any(state in ("failed", "cancelled") for state in states):
        return FAILED
    return PARTIAL if "partial" in states else DONE
