"""What is safe to do about an alert, by its rule: look, try, stop a source; nothing that deletes."""

from __future__ import annotations

# `{}` is the source.
LOOK_AT_SOURCE = "penstock explain {}"
PROBE = "penstock run {} --kind probe"
STOP = "penstock pause {}"
FAILURES = "penstock quarantine list --source {}"
REJECTS = "penstock rejects list --source {}"
RUNS = "penstock runs --source {}"

SAFE: dict[str, tuple[str, ...]] = {
    "zero-yield": (RUNS, PROBE, STOP),
    "extraction-failures": (FAILURES, PROBE, STOP),
    "rejection-rise": (REJECTS, PROBE, STOP),
    "schedule-missed": (LOOK_AT_SOURCE, "penstock schedules explain {}", "penstock run {}"),
    "failures-in-an-hour": (FAILURES, PROBE, STOP),
    "quality-drop": (REJECTS, PROBE, STOP),
    "duplicate-explosion": (RUNS, PROBE, STOP),
    "backlog-growth": ("penstock workers", LOOK_AT_SOURCE, "penstock up"),
    "stale-source": (LOOK_AT_SOURCE, RUNS, "penstock run {}"),
    "budget-running-out": ("penstock budget", "penstock simulate"),
    "breaker-open": ("penstock breakers", LOOK_AT_SOURCE),
    "schema-drift": ("penstock events --source {} --kind schema.drifted", PROBE, STOP),
    "orchestrator-failed": ("penstock signals", LOOK_AT_SOURCE, RUNS),
    "mapper-confidence": ("penstock sites", "penstock sites proposals"),
    "image-pollution": ("penstock sites", "penstock sites proposals"),
    "references-waiting": ("penstock records supplier_references",),
    "compliance-stale": ("penstock sources report {}", "penstock sources check {}"),
    "dead-workers": ("penstock workers", "penstock up"),
    "store-full": ("penstock db check",),
    "hook-given-up": ("penstock hooks --undelivered",),
    "route-dead": ("penstock hooks --undelivered",),
}


def safe_commands(rule: str, source: str) -> list[str]:
    """Commands that are safe now, the one that says the most first."""
    found = (command.replace(" {}", f" {source}" if source else "") for command in SAFE[rule])
    return list(found)


def runbook_command(runbook: str, source: str) -> str:
    """The command that walks through a runbook on live data."""
    return f"penstock runbook {runbook} {source}".rstrip()
