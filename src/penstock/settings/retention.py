"""`retention:` how long what is finished is kept."""

from typing import Annotated

from msgspec import field

from penstock.settings.declaration import Keys, about, names_of, no_less
from penstock.settings.kinds import Duration

DAY_S = 86400.0
Kept = Annotated[Duration, no_less(1.0)]


class Retention(Keys, frozen=True):
    """How long what is finished is kept."""

    jobs_s: Annotated[Kept, about("finished jobs of ended runs")] = field(
        default=30 * DAY_S, name="jobs"
    )
    events_s: Annotated[Kept, about("the journal")] = field(default=90 * DAY_S, name="events")
    versions_s: Annotated[Kept, about("earlier versions of records")] = field(
        default=365 * DAY_S, name="versions"
    )
    snapshots_s: Annotated[
        Kept,
        about(
            "raw payloads, and the history of pages that no run has seen for this long; payloads of "
            "unfinished and quarantined jobs are kept"
        ),
    ] = field(default=90 * DAY_S, name="snapshots")
    quarantine_s: Annotated[
        Kept,
        about("jobs in quarantine; after that they are discarded, and the journal records it"),
    ] = field(default=90 * DAY_S, name="quarantine")
    rejects_s: Annotated[Kept, about("rejected items, even after their job is gone")] = field(
        default=90 * DAY_S, name="rejects"
    )
    staged_s: Annotated[
        Kept,
        about("changes of a replay that was neither committed nor dropped, with their snapshots"),
    ] = field(default=30 * DAY_S, name="staged")
    logs_s: Annotated[
        Kept,
        about(
            "what steps print and log; see [`penstock "
            "logs`](cli.md#logs-what-steps-printed-and-logged)"
        ),
    ] = field(default=14 * DAY_S, name="logs")
    runs_s: Annotated[
        Kept,
        about(
            "ended runs with their counters, at least as long as `jobs` and `snapshots`. A "
            "source's last run and last good run are kept, and so are runs with anything in "
            "quarantine, rejected or staged, runs that another run was made from, and covered "
            "backfills. A record outlives the run that saved it, but `undo` needs the run"
        ),
    ] = field(default=365 * DAY_S, name="runs")


RETENTION_KEYS = names_of(Retention)
