"""store-full: no space is left for the database or the snapshots."""

from __future__ import annotations

from penstock.runbooks import steps
from penstock.runbooks.runbook import Check, Runbook, Step

FULL = Check("disk_free", "<", 0.05)
STORE_FULL = Runbook(
    name="store-full",
    title="The store is full",
    scope="project",
    about="Little or no space is left on the file system of the database and the snapshots. Workers stop"
    " claiming; a reserve lets them write what they have finished.",
    detects=(FULL,),
    shows=("store_size", "store_reachable", "workers"),
    steps=(
        Step(
            name="hold",
            part="mitigate",
            title="Hold the project",
            why="Nothing new starts, so nothing more is fetched and stored.",
            verb="sources.hold",
            when=(FULL, Check("held", "is", False)),
        ),
        Step(
            name="free-space",
            part="root cause",
            title="Free space, or make the file system larger",
            why="Remove what is not Penstock's, shorten `retention:` in penstock.yaml, or move the snapshots"
            " to a bucket. Never delete files of the database or segments of snapshots by hand.",
            kind="person",
            verbs=("store.view",),
            shows=("disk_free", "store_size"),
            when=(FULL,),
            settled=(Check("disk_free", ">", 0.05),),
        ),
        Step(
            name="check",
            part="root cause",
            title="Check the database",
            why="It reads all of it, and says whether something was cut off.",
            verb="store.check",
            when=(Check("store_reachable", "is", True), Check("disk_free", ">", 0.05)),
        ),
        steps.UNHOLD,
        steps.start_workers("Workers that stopped have to be started again."),
        steps.confirm("There is space for more than a few hours."),
    ),
)
