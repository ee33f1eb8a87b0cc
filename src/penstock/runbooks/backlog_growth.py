"""backlog-growth: more jobs arrive than end."""

from __future__ import annotations

from penstock.runbooks import steps
from penstock.runbooks.runbook import Check, Runbook, Step

WAITS = Check("queued", ">", 0)
BACKLOG_GROWTH = Runbook(
    name="backlog-growth",
    title="The backlog grows",
    scope="any",
    about="Jobs wait longer and longer: no workers run, a gate is closed, one source floods the queue, or"
    " there are too few workers for what arrives.",
    detects=(Check("backlog_hours", ">", 6.0),),
    shows=("queued", "workers", "stopped", "active_runs"),
    steps=(
        steps.start_workers("Nothing ends while no worker runs."),
        Step(
            name="unblock",
            part="mitigate",
            title="Look at what is stopped",
            why="A source that a gate stops fills the queue and no worker can help. Each gate is shown with"
            " what opens it.",
            kind="look",
            verbs=("explain",),
            shows=("stopped", "queued"),
            when=(Check("stopped", ">", 0), WAITS),
        ),
        Step(
            name="allow-requests",
            part="mitigate",
            title="Close the breaker",
            why="The jobs of the source wait for its breaker. Close it once the site answers.",
            verb="breakers.close",
            when=(Check("breaker_open", "is", True), WAITS),
        ),
        Step(
            name="resume",
            part="mitigate",
            title="Resume the source",
            why="The jobs of a paused source wait.",
            verb="sources.resume",
            when=(Check("paused", "is", True), WAITS),
        ),
        Step(
            name="unhold",
            part="mitigate",
            title="End the maintenance",
            why="Nothing that is held starts.",
            verb="sources.unhold",
            when=(Check("held", "is", True), WAITS),
        ),
        Step(
            name="cancel-run",
            part="mitigate",
            title="Cancel the oldest active run of the source",
            why="Several runs of one source wait behind each other; the newest will fetch the same pages."
            " Continue the cancelled run later if it is needed.",
            verb="runs.cancel",
            takes="active_run",
            when=(Check("active_runs", ">", 1), Check("active_run", "is not", None), WAITS),
            while_raised=True,
        ),
        Step(
            name="raise-capacity",
            part="root cause",
            title="Add workers, or raise the limits of the source",
            why="Everything is open and work ends too slowly: start workers on more hosts, or raise the"
            " concurrency and rate of the source as far as the site allows.",
            kind="person",
            verbs=("service.up",),
            shows=("backlog_hours", "workers"),
            while_raised=True,
        ),
        Step(
            name="continue-run",
            part="roll back and replay",
            title="Retry what failed meanwhile",
            why="Jobs that ran out of tries while the queue was blocked run again.",
            verb="quarantine.release",
            when=(Check("quarantined", ">", 0),),
        ),
        steps.confirm("The queue is empty within six hours at the present rate."),
    ),
)
