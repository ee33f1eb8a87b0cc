"""duplicate-explosion: one thing is saved again and again, or under many keys."""

from __future__ import annotations

from penstock.runbooks import steps
from penstock.runbooks.runbook import Check, Runbook, Step

BAD = (
    Check("duplicate_rise", ">", 0.3),
    Check("new_keys_share", ">", 0.5),
    Check("pages_growth", ">", 3.0),
)
DUPLICATE_EXPLOSION = Runbook(
    name="duplicate-explosion",
    title="Duplicates explode",
    scope="source",
    about="A run saves the same things many times: pages that repeat under new addresses (a session id, an"
    " endless calendar), or records whose key has changed, so that each is new again.",
    detects=BAD,
    bad_run=BAD,
    shows=("bad_runs", "first_bad_run", "last_good_run", "bad_records", "active_run"),
    steps=(
        steps.stop_requests("Each request makes more duplicates, and costs budget."),
        steps.CANCEL_RUN,
        Step(
            name="compare",
            part="root cause",
            title="Compare keys and addresses",
            why="Many more pages: look at the addresses that discovery found. As many pages but new keys:"
            " look at what the key is made of.",
            kind="look",
            verbs=("jobs.list", "records.list"),
            shows=("pages_growth", "new_keys_share", "duplicate_rise"),
            while_raised=True,
        ),
        steps.FIX,
        steps.UNDO,
        steps.REPLAY,
        steps.COMMIT,
        steps.DROP,
        steps.ALLOW_REQUESTS,
        steps.RUN,
        steps.confirm("The newest run adds no more than it should."),
    ),
)
