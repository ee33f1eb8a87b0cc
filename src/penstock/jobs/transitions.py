"""The two state machines as data: every legal move of a job and of a run, and what causes it.

This table, the enums, the SQL `CHECK`s and the pictures in `docs/states.md` are held equal by a test.
"""

from __future__ import annotations

from penstock.jobs.job import JobState as J
from penstock.jobs.run import RunState as R

JOB_MOVES: dict[tuple[J, J], str] = {
    (J.QUEUED, J.RUNNING): "claimed",
    (J.QUEUED, J.SKIPPED): "done already in the run that its run continues",
    (J.QUEUED, J.QUARANTINED): "a budget has no room for it",
    (J.QUEUED, J.HELD): "held",
    (J.QUEUED, J.CANCELLED): "cancelled",
    (J.RUNNING, J.SUCCEEDED): "succeeded",
    (J.RUNNING, J.SKIPPED): "skipped",
    (J.RUNNING, J.WAITING): "failed, throttled or snoozed, due later",
    (J.RUNNING, J.QUEUED): "released by a drain, or its worker was reaped",
    (J.RUNNING, J.QUARANTINED): "out of tries, beyond help, too late, or poison",
    (J.RUNNING, J.CANCELLED): "cancelled",
    (J.WAITING, J.QUEUED): "due, or retried by an operator",
    (J.WAITING, J.HELD): "held",
    (J.WAITING, J.CANCELLED): "cancelled",
    (J.HELD, J.QUEUED): "unheld",
    (J.HELD, J.WAITING): "unheld",
    (J.HELD, J.CANCELLED): "cancelled",
    (J.QUARANTINED, J.QUEUED): "released or retried by an operator, or its budget reset",
    (J.QUARANTINED, J.CANCELLED): "discarded, expired, cancelled, or done by a later run",
}

RUN_MOVES: dict[tuple[R, R], str] = {
    (R.DRAFT, R.QUEUED): "started",
    (R.DRAFT, R.CANCELLED): "cancelled",
    (R.QUEUED, R.RUNNING): "first job claimed",
    (R.QUEUED, R.PAUSED): "paused",
    (R.QUEUED, R.CANCELLED): "cancelled",
    (R.RUNNING, R.PAUSED): "paused",
    (R.PAUSED, R.QUEUED): "resumed before its first job",
    (R.PAUSED, R.RUNNING): "resumed",
    (R.RUNNING, R.COMPLETED): "every job ended well",
    (R.RUNNING, R.PARTIAL): "some pages or candidates failed",
    (R.RUNNING, R.FAILED): "a required step failed, or every page did",
    (R.RUNNING, R.CANCELLED): "cancelled",
    (R.PAUSED, R.COMPLETED): "the last running job ended well",
    (R.PAUSED, R.PARTIAL): "the last running job ended, some had failed",
    (R.PAUSED, R.FAILED): "the last running job ended, a required step had failed",
    (R.PAUSED, R.CANCELLED): "cancelled",
    (R.PARTIAL, R.RUNNING): "failed jobs retried",
    (R.FAILED, R.RUNNING): "failed jobs retried",
}

OPEN_JOB_STATES = (J.QUEUED, J.RUNNING, J.WAITING, J.HELD)
CLOSED_JOB_STATES = (J.SUCCEEDED, J.SKIPPED, J.QUARANTINED, J.CANCELLED)


def job_may_move(leaves: J, enters: J) -> bool:
    return (leaves, enters) in JOB_MOVES


def run_may_move(leaves: R, enters: R) -> bool:
    return (leaves, enters) in RUN_MOVES
