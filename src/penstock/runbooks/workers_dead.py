"""workers-dead: nobody works, or workers die."""

from __future__ import annotations

from penstock.runbooks import steps
from penstock.runbooks.runbook import Check, Runbook, Step

WORKERS_DEAD = Runbook(
    name="workers-dead",
    title="Workers are dead",
    scope="project",
    about="No worker holds a lease, leases lapse, or the same job kills one worker after the other.",
    detects=(
        Check("workers", "is", 0),
        Check("dead_workers", ">", 0),
        Check("stale_workers", ">", 0),
        Check("poison", ">", 0),
    ),
    shows=("queued", "scheduler"),
    steps=(
        Step(
            name="hold",
            part="mitigate",
            title="Hold the project",
            why="A job kills workers: nothing starts until you know which one.",
            verb="sources.hold",
            when=(Check("poison", ">", 0), Check("held", "is", False)),
        ),
        Step(
            name="find-killer",
            part="root cause",
            title="Look at the jobs under which workers died",
            why="Memory that the step uses, a library that crashes, or a host that was lost. A job that"
            " killed several workers is in quarantine already.",
            kind="look",
            verbs=("quarantine.list", "logs.list"),
            shows=("poison", "dead_workers", "stale_workers"),
            when=(Check("poison", ">", 0),),
        ),
        Step(
            name="discard",
            part="mitigate",
            title="Discard the jobs that kill workers",
            why="They would kill the next worker too. Skip this step if the code is fixed, and release them.",
            verb="quarantine.discard",
            options=(("kind", "poison"),),
            when=(Check("poison", ">", 0),),
        ),
        Step(
            name="release",
            part="roll back and replay",
            title="Release the jobs that killed workers",
            why="Use it when the code is fixed: they run again, with all their tries.",
            verb="quarantine.release",
            options=(("kind", "poison"),),
            when=(Check("poison", ">", 0),),
        ),
        Step(
            name="restart",
            part="root cause",
            title="Restart outdated workers",
            why="They work with older files than the project has now. A stop drains: running jobs finish.",
            kind="person",
            verbs=("workers.list", "service.up"),
            shows=("stale_workers",),
            when=(Check("stale_workers", ">", 0),),
            settled=(Check("stale_workers", "is", 0),),
        ),
        steps.UNHOLD,
        steps.start_workers(
            "Nothing is lost: the jobs of dead workers are queued again, and their attempts count."
        ),
        steps.confirm("Workers hold their leases, and no job kills them."),
    ),
)
