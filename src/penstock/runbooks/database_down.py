"""database-down: the database can't be reached."""

from __future__ import annotations

from penstock.runbooks import steps
from penstock.runbooks.runbook import Check, Runbook, Step

REACHABLE = Check("store_reachable", "is", True)
DATABASE_DOWN = Runbook(
    name="database-down",
    title="The database can't be reached",
    scope="project",
    about="Commands and workers can't open the database. Workers keep finished work in memory, try again, and"
    " stop what they can no longer own; nothing that was acknowledged is lost.",
    detects=(Check("store_reachable", "is", False), Check("store_sound", "is", False)),
    shows=("disk_free", "workers", "quarantined"),
    steps=(
        Step(
            name="leave-workers",
            part="mitigate",
            title="Leave the workers running",
            why="They reconnect by themselves, and write what they have finished. Restarting them loses that"
            " work, and it is done again.",
            kind="look",
            shows=("store_reachable",),
            when=(Check("store_reachable", "is", False),),
            finds=(("store_was_away", True),),
        ),
        Step(
            name="restore-access",
            part="root cause",
            title="Bring the database back",
            why="The error names the place: a server that does not answer, a password, a certificate, a lock,"
            " a full disk, or a file that is gone.",
            kind="person",
            shows=("store_reachable", "disk_free"),
            when=(Check("store_reachable", "is", False),),
            settled=(REACHABLE,),
        ),
        Step(
            name="hold",
            part="mitigate",
            title="Hold the project until the database is checked",
            why="After a crash of the server or a full disk, nothing starts until you know that all"
            " is well.",
            verb="sources.hold",
            when=(
                REACHABLE,
                Check("store_was_away", "is", True),
                Check("store_sound", "is", None),
                Check("held", "is", False),
            ),
        ),
        Step(
            name="check",
            part="root cause",
            title="Check the database",
            why="It reads all of it and compares what must agree.",
            verb="store.check",
            when=(REACHABLE,),
        ),
        Step(
            name="restore-backup",
            part="roll back and replay",
            title="Restore a backup",
            why="The check found damage. A file is replaced by a backup, the old one is kept beside it; a"
            " server has its own tools. Then check again.",
            kind="person",
            verbs=("store.restore", "store.check"),
            when=(Check("store_sound", "is", False),),
        ),
        Step(
            name="unhold",
            part="roll back and replay",
            title="End the maintenance",
            why="Jobs start again.",
            verb="sources.unhold",
            when=(REACHABLE, Check("held", "is", True), Check("store_sound", "is", True)),
        ),
        steps.start_workers("Workers that gave up during the outage have to be started again."),
        Step(
            name="release",
            part="roll back and replay",
            title="Release what was quarantined",
            why="Jobs whose tries ran out because of the outage run again.",
            verb="quarantine.release",
            when=(REACHABLE, Check("quarantined", ">", 0)),
        ),
        steps.confirm("The database answers, and its check found nothing."),
    ),
)
