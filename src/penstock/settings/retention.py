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
            "raw payloads, and what is known of pages that no run has met for so long; what a job that has "
            "not ended well refers to stays"
        ),
    ] = field(default=90 * DAY_S, name="snapshots")
    quarantine_s: Annotated[
        Kept,
        about("what is in quarantine; after that it is discarded, and the journal says so"),
    ] = field(default=90 * DAY_S, name="quarantine")
    rejects_s: Annotated[
        Kept, about("what was rejected, with its items; also when its job is gone")
    ] = field(default=90 * DAY_S, name="rejects")
    staged_s: Annotated[
        Kept,
        about(
            "what a replay would change and nobody has committed or dropped; its snapshots stay with it"
        ),
    ] = field(default=30 * DAY_S, name="staged")
    logs_s: Annotated[
        Kept,
        about(
            "what steps print and log; see [`penstock logs`](cli.md#logs-what-steps-printed-and-logged)"
        ),
    ] = field(default=14 * DAY_S, name="logs")
    runs_s: Annotated[
        Kept,
        about(
            "runs that have ended, with their counters; at least as long as `jobs` and `snapshots`. The last "
            "run of a source and its last good one stay, and so does a run that has something in quarantine, "
            "rejected or staged, that another run was made from, or whose backfill is covered. A record "
            "outlives the run that saved it; an undo needs the run"
        ),
    ] = field(default=365 * DAY_S, name="runs")


RETENTION_KEYS = names_of(Retention)
