"""schedule-missed: a tick was due and started nothing."""

from __future__ import annotations

from penstock.runbooks import steps
from penstock.runbooks.runbook import Check, Runbook, Step

SCHEDULE_MISSED = Runbook(
    name="schedule-missed",
    title="A scheduled run did not start",
    scope="any",
    about="A source was due and did not run: no scheduler was running, the run before it had not ended, or"
    " the source was not allowed to start.",
    detects=(Check("overdue", ">", 0), Check("missed", ">", 0)),
    shows=("scheduler", "stopped", "active_run"),
    steps=(
        Step(
            name="start-scheduler",
            part="mitigate",
            title="Start the scheduler",
            why="Ticks start nothing while no process schedules.",
            kind="person",
            verbs=("service.up",),
            shows=("scheduler",),
            when=(Check("scheduler", "is", False),),
            settled=(Check("scheduler", "is", True),),
        ),
        Step(
            name="explain",
            part="root cause",
            title="Look at the ticks",
            why="Each tick has an outcome: missed (no scheduler), skipped (a run had not ended), or"
            " denied (the source may not run).",
            kind="look",
            verbs=("schedules.explain",),
            shows=("missed", "overdue", "stopped"),
            while_raised=True,
        ),
        Step(
            name="resume",
            part="mitigate",
            title="Resume the source",
            why="A paused or degraded source does not run by its schedule.",
            verb="sources.resume",
            when=(Check("paused", "is", True),),
        ),
        steps.UNHOLD,
        steps.ALLOW_REQUESTS,
        Step(
            name="run",
            part="roll back and replay",
            title="Run the source now",
            why="It replaces the tick that was missed. What lies in a window of time needs a backfill.",
            verb="runs.start",
            when=(Check("missed", ">", 0), Check("active_run", "is", None)),
        ),
        steps.confirm("Nothing is overdue, and the last tick of each schedule started a run."),
    ),
)
