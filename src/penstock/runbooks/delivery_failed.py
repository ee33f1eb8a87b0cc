"""delivery-failed: a webhook or an alert route does not accept what it is sent."""

from __future__ import annotations

from penstock.runbooks import steps
from penstock.runbooks.runbook import Check, Runbook, Step

DELIVERY_FAILED = Runbook(
    name="delivery-failed",
    title="Deliveries fail",
    scope="project",
    about="A webhook or a route of alerts refuses what it is sent, or does not answer. Deliveries are"
    " retried, then given up until a person sends them again.",
    detects=(Check("given_up", ">", 0), Check("failing", ">", 2)),
    steps=(
        Step(
            name="look",
            part="root cause",
            title="Look at the answers",
            why="A 401 or 403 is a secret, a 404 an address, a 5xx or a timeout the receiver itself.",
            kind="look",
            verbs=("hooks.list",),
            shows=("given_up", "failing"),
            while_raised=True,
        ),
        Step(
            name="fix-receiver",
            part="root cause",
            title="Mend the receiver, its address or its secret",
            why="Addresses and secrets stand under `hooks:` and `alerts:` in penstock.yaml, or in the"
            " environment. Workers read them when they start.",
            kind="person",
            shows=("failing", "given_up"),
            while_raised=True,
        ),
        Step(
            name="redeliver",
            part="roll back and replay",
            title="Send again what was given up",
            why="Each delivery is sent with all its attempts; the receiver gets the same body and id.",
            verb="hooks.redeliver",
            when=(Check("given_up", ">", 0),),
        ),
        steps.start_workers("Deliveries are sent by whoever schedules."),
        steps.confirm("Nothing is given up, and what failed was accepted."),
    ),
)
