"""source-broke: extraction broke after a site change."""

from __future__ import annotations

from penstock.runbooks import steps
from penstock.runbooks.runbook import Check, Runbook, Step

BAD = (
    Check("failed_share", ">", 0.2),
    Check("yield_share", "<", 0.5),
    Check("rejected_rise", ">", 0.2),
)
SOURCE_BROKE = Runbook(
    name="source-broke",
    title="Extraction broke after a site change",
    scope="source",
    about="Pages are fetched, but the pipeline no longer finds what it looks for: pages fail, items are"
    " rejected, or nothing is saved at all.",
    detects=(*BAD, Check("degraded", "is", True)),
    bad_run=BAD,
    shows=("failures", "quarantined", "bad_runs", "first_bad_run", "last_good_run", "breaker_open"),
    steps=(
        steps.stop_requests("More pages would only fail, and each failure costs a request."),
        steps.CANCEL_RUN,
        Step(
            name="compare",
            part="root cause",
            title="Look at the failures",
            why="Open a failing page and compare it with what the pipeline expects. One cause with many"
            " failures is a changed layout; many causes are rather a blocked or broken site.",
            kind="look",
            verbs=("quarantine.list", "pages.list"),
            shows=("failures", "last_good_run", "first_bad_run"),
            while_raised=True,
        ),
        steps.FIX,
        steps.UNDO,
        steps.REPLAY,
        steps.COMMIT,
        steps.DROP,
        Step(
            name="rewind",
            part="roll back and replay",
            title="Rewind the checkpoints that the bad runs moved",
            why="Nothing failed, so nothing is in quarantine: what lies behind the checkpoints was not seen."
            " The next run fetches it again.",
            verb="checkpoints.rewind",
            takes="last_good_run",
            when=(
                Check("moved_checkpoints", ">", 0),
                Check("last_good_run", "is not", None),
                Check("failed_share", "<", 0.05),
                steps.FIXED,
            ),
        ),
        steps.ALLOW_REQUESTS,
        Step(
            name="probe",
            part="roll back and replay",
            title="Probe the degraded source",
            why="A degraded source runs probes only: one item through the whole pipeline. Good probes make it"
            " healthy again.",
            verb="runs.probe",
            when=(Check("degraded", "is", True),),
        ),
        Step(
            name="recover",
            part="roll back and replay",
            title="Mark the source healthy",
            why="Full runs are allowed again.",
            verb="sources.resume",
            when=(Check("degraded", "is", True),),
        ),
        steps.RELEASE,
        steps.RUN,
        steps.confirm("The newest run yields what it should, and few pages fail."),
    ),
)
