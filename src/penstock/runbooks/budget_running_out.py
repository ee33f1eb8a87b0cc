"""budget-running-out: a budget is exhausted, or will be before it resets."""

from __future__ import annotations

from penstock.runbooks import steps
from penstock.runbooks.runbook import Check, Runbook, Step

SHORT = Check("budget_short", ">", 0)
BUDGET_RUNNING_OUT = Runbook(
    name="budget-running-out",
    title="A budget runs out",
    scope="any",
    about="Requests, bytes, seconds or money of a period run out before the period ends; then jobs wait"
    " for the reset.",
    detects=(SHORT,),
    shows=("budget_used", "active_run", "queued"),
    steps=(
        Step(
            name="pause",
            part="mitigate",
            title="Pause the source",
            why="What is left of a shared budget is for the others; of its own, for what you start by hand.",
            verb="sources.pause",
            when=(Check("paused", "is", False),),
            while_raised=True,
        ),
        Step(
            name="find-consumer",
            part="root cause",
            title="Look at what uses it",
            why="A run that needs many more requests than before has found more pages, or retries a lot.",
            kind="look",
            verbs=("budgets.list", "runs.list"),
            shows=("budget_short", "pages_growth", "active_run"),
            while_raised=True,
        ),
        Step(
            name="cancel-run",
            part="mitigate",
            title="Cancel the active run",
            why="If this run uses too much, it would continue after the reset.",
            verb="runs.cancel",
            takes="active_run",
            when=(Check("active_run", "is not", None),),
            while_raised=True,
        ),
        Step(
            name="raise-budget",
            part="root cause",
            title="Raise the budget, run less often, or wait for the reset",
            why="The amount and its period stand under `budget:` in penstock.yaml. Workers read it when they"
            " start.",
            kind="person",
            verbs=("budgets.list",),
            shows=("budget_short",),
            while_raised=True,
            settled=(Check("budget_short", "is", 0),),
        ),
        steps.RESUME,
        steps.RELEASE,
        steps.confirm("No budget runs out before it resets."),
    ),
)
