"""The cause that a finding probably has. What has the same cause is one incident."""

from __future__ import annotations

from penstock.alerts.history import Cause, History
from penstock.alerts.words import duration

# What a broken source raises; which of them it is depends on how its pipeline was written.
BROKEN = (
    "zero-yield",
    "extraction-failures",
    "rejection-rise",
    "failures-in-an-hour",
    "quality-drop",
    "duplicate-explosion",
    "stale-source",
    "breaker-open",
    "schema-drift",
    "orchestrator-failed",
)
# What else a host raises that does not answer.
HELD_UP = ("backlog-growth", "schedule-missed")
# What a host raises that asks to wait: jobs are late or given up; what is read is as good as before.
KEPT_WAITING = ("extraction-failures", "failures-in-an-hour", "stale-source", *HELD_UP)
# A change of our own that is older than this, or than two runs, did not cause it.
OWN_CHANGE_S = 86400.0


def suspected(rule: str, history: History, since: float) -> Cause:
    """The cause as far as the history of the source shows it."""
    if history.failing_hosts and rule in (*BROKEN, *HELD_UP):
        host = history.failing_hosts[0]
        return Cause(kind="host", key=host, words=f"requests to {host} fail")
    if history.closed_hosts and rule in KEPT_WAITING:
        host = history.closed_hosts[0]
        words = f"{host} asks to wait (429 or 503), so its jobs wait"
        return Cause(kind="host", key=host, words=words)
    changed_at = history.changed_at
    if rule in BROKEN and changed_at is not None and 0.0 <= since - changed_at <= _window(history):
        ago = duration(since - changed_at)
        words = f"its configuration or code changed {ago} before"
        return Cause(kind="own-change", key=history.source, words=words)
    if rule in BROKEN:
        return _of_site(history)
    return _OTHER[rule](history)


def _window(history: History) -> float:
    """How long before the first bad run a change may lie: it takes effect with the run after it."""
    starts = [run.started_at for run in history.runs[-3:]]
    return max(OWN_CHANGE_S, starts[-1] - starts[0] if len(starts) == 3 else 0.0)


def _of_site(history: History) -> Cause:
    last = history.runs[-1] if history.runs else None
    if last is not None and last.outcome != "failed":
        words = "runs succeed but find less, or worse, than before: the site has probably changed"
        return Cause(kind="site-change", key=history.source, words=words)
    return Cause(
        kind="unknown", key=history.source, words="its runs fail; see the errors of the examples"
    )


def _of_workers(history: History) -> Cause:
    words = "the workers do not keep up"
    return Cause(kind="workers", key=history.source, words=words)


def _of_budget(history: History) -> Cause:
    words = "it uses its budget faster than planned"
    return Cause(kind="budget", key=history.source, words=words)


def _of_schedule(history: History) -> Cause:
    words = "its runs do not start; explain shows what blocks them"
    return Cause(kind="schedule", key=history.source, words=words)


def _of_schema(history: History) -> Cause:
    words = "selectors of the schema do not fit the site; look at its proposals and notes"
    return Cause(kind="site-schema", key=history.source, words=words)


def _of_decision(history: History) -> Cause:
    return Cause(kind="decision", key=history.source, words="nobody has decided them")


def _of_compliance(history: History) -> Cause:
    words = "nobody has checked its robots.txt or terms in time, or they do not allow it any more"
    return Cause(kind="decision", key=history.source, words=words)


_OTHER = {
    "mapper-confidence": _of_schema,
    "image-pollution": _of_schema,
    "references-waiting": _of_decision,
    "compliance-stale": _of_compliance,
    "backlog-growth": _of_workers,
    "budget-running-out": _of_budget,
    "schedule-missed": _of_schedule,
}
