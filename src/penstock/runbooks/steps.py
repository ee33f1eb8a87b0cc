"""Steps that several runbooks share."""

from __future__ import annotations

from penstock.runbooks.runbook import Check, Step

YES, NO = True, False
DAY = "24h"
BROKEN_RUN = Check("first_bad_run", "is not", None)
FIXED = Check("pipeline_changed", "is", YES)
NOTHING_STAGED = Check("staged_replay", "is", None)


def stop_requests(why: str) -> Step:
    return Step(
        name="stop-requests",
        part="mitigate",
        title="Stop requests to the source",
        why=f"{why} The breaker stays open for a day; replays from stored pages still run.",
        verb="breakers.open",
        options=(("for", DAY),),
        while_raised=True,
        settled=(Check("breaker_open", "is", YES),),
    )


CANCEL_RUN = Step(
    name="cancel-run",
    part="mitigate",
    title="Cancel the active run",
    why="The rest of the run would show the same fault. What it has saved stays, and can be undone.",
    verb="runs.cancel",
    takes="active_run",
    while_raised=True,
    when=(Check("active_run", "is not", None), NOTHING_STAGED, Check("pipeline_changed", "is", NO)),
)
FIX = Step(
    name="fix",
    part="root cause",
    title="Change the pipeline",
    why="Change the code or the parameters of the source. The step is settled as soon as the version of the"
    " pipeline differs from the one of the newest run.",
    kind="person",
    verbs=("pages.try_",),
    shows=("pipeline_changed",),
    when=(BROKEN_RUN,),
    settled=(FIXED,),
)
UNDO = Step(
    name="undo",
    part="roll back and replay",
    title="Undo the bad runs",
    why="The newest first: their records return to what they were before. Records that other runs changed"
    " later stay as they are.",
    verb="runs.undo",
    takes="first_bad_run",
    when=(Check("bad_records", ">", 0), NOTHING_STAGED),
)
REPLAY = Step(
    name="replay",
    part="roll back and replay",
    title="Replay the stored pages with the new pipeline",
    why="It runs today's pipeline on the pages of the bad runs and stages what would change. Nothing is"
    " fetched, and no record changes.",
    verb="replays.start",
    takes="first_bad_run",
    when=(BROKEN_RUN, FIXED, NOTHING_STAGED),
)
COMMIT = Step(
    name="commit",
    part="roll back and replay",
    title="Commit the replay",
    why="The dry run is the difference, record by record. Skip this step if the difference is wrong, and drop"
    " the replay.",
    verb="replays.commit",
    takes="staged_replay",
    shows=("staged_replay",),
    when=(Check("staged_replay", "is not", None),),
)
DROP = Step(
    name="drop",
    part="roll back and replay",
    title="Drop the replay",
    why="Use it when the difference is wrong: nothing is written, and you can change the pipeline and replay"
    " again.",
    verb="replays.drop",
    takes="staged_replay",
    when=(Check("staged_replay", "is not", None),),
)
RELEASE = Step(
    name="release",
    part="roll back and replay",
    title="Release the quarantined jobs",
    why="They run again with the new pipeline and all their tries; pages that changed meanwhile are fetched.",
    verb="quarantine.release",
    when=(Check("quarantined", ">", 0),),
)
ALLOW_REQUESTS = Step(
    name="allow-requests",
    part="roll back and replay",
    title="Allow requests again",
    why="Close the breaker that this runbook, or the failures themselves, opened.",
    verb="breakers.close",
    when=(Check("breaker_open", "is", YES),),
)
RUN = Step(
    name="run",
    part="roll back and replay",
    title="Run the source",
    why="Only a new run shows whether the fault is gone.",
    verb="runs.start",
    when=(Check("run_wanted", "is", YES),),
)
RESUME = Step(
    name="resume",
    part="roll back and replay",
    title="Resume the source",
    why="Its jobs start again.",
    verb="sources.resume",
    when=(Check("paused", "is", YES),),
)
UNHOLD = Step(
    name="unhold",
    part="roll back and replay",
    title="End the maintenance",
    why="Jobs start again.",
    verb="sources.unhold",
    when=(Check("held", "is", YES),),
)


def start_workers(why: str) -> Step:
    return Step(
        name="start-workers",
        part="mitigate",
        title="Start workers",
        why=why,
        kind="person",
        verbs=("service.up",),
        shows=("workers",),
        when=(Check("workers", "is", 0),),
        settled=(Check("workers", ">", 0),),
    )


def confirm(why: str) -> Step:
    return Step(
        name="confirm",
        part="confirm",
        title="Confirm the recovery",
        why=f"{why} This ends the runbook.",
        kind="look",
    )
