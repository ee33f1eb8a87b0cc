"""low-quality: records with low scores, or many more rejects."""

from __future__ import annotations

from penstock.runbooks import steps
from penstock.runbooks.runbook import Check, Runbook, Step

BAD = (Check("quality_drop", ">", 0.2), Check("rejected_rise", ">", 0.2))
LOW_QUALITY = Runbook(
    name="low-quality",
    title="Quality drops",
    scope="source",
    about="Pages are extracted, but what comes out is worse than before: scores fall, fields are empty, or"
    " more items are rejected.",
    detects=BAD,
    bad_run=BAD,
    shows=("rejects", "bad_runs", "first_bad_run", "last_good_run", "bad_records"),
    steps=(
        steps.stop_requests("Bad records would replace good ones."),
        steps.CANCEL_RUN,
        Step(
            name="compare",
            part="root cause",
            title="Look at rejects and low scores",
            why="One reject code that grows is a field that vanished. Low scores without rejects are values"
            " that are there and wrong.",
            kind="look",
            verbs=("rejects.list", "records.list"),
            shows=("rejects", "quality_drop", "rejected_rise"),
            while_raised=True,
        ),
        steps.UNDO,
        steps.FIX,
        steps.REPLAY,
        steps.COMMIT,
        steps.DROP,
        Step(
            name="redrive",
            part="roll back and replay",
            title="Redrive the rejected items",
            why="They pass through the new pipeline in a run of their own. Items that the replay accepted are"
            " no longer among them.",
            verb="rejects.redrive",
            when=(Check("rejects", ">", 0), steps.FIXED),
        ),
        steps.ALLOW_REQUESTS,
        steps.RUN,
        steps.confirm("Scores and rejects of the newest run are as they were."),
    ),
)
