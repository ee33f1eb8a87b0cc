"""Whether pg_cron has the jobs that `penstock export pg-cron` would make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.app.views.exports import CronCheckView, CronDifferenceView
from penstock.counting import count
from penstock.errors import UsageError
from penstock.exporters.cron_check import (
    CronDifference,
    differences,
    lacks_seconds,
    switched_off,
    versions_of,
)

if TYPE_CHECKING:
    from penstock.exporters.cron_script import Script
    from penstock.settings import Settings
    from penstock.store.cron_jobs import CronJobs

NO_SECONDS = (
    "schedules in seconds need pg_cron 1.5 or later, and {version} is there: update pg_cron, or give "
    "these schedules a minute or more in penstock.yaml"
)
NO_VIEWS = "the views that the jobs use are not in the database"
NO_PG_CRON = (
    "pg_cron is not in the database {database}: CREATE EXTENSION pg_cron; or name the one that has it with "
    "--cron-database"
)


def compared(settings: Settings, script: Script, home: str) -> CronCheckView:
    """Look at the jobs in the database, and change nothing."""
    from penstock.store.address import cron_jobs_of

    if not settings.is_on_postgres:
        raise UsageError(
            "this project is on SQLite, which has no pg_cron",
            "say store: postgresql://… in penstock.yaml, or leave --check out",
            code="no_pg_cron",
        )
    known = cron_jobs_of(settings, script.prefix, script.schema, home)
    found = [] if known.version is None else differences(script, known)
    return CronCheckView(
        database=known.database,
        role=known.role,
        pg_cron=known.version,
        version=script.version,
        jobs=len(script.jobs),
        differences=[_view(each) for each in found],
        problems=_problems(script, known),
        notes=[f"{name} is switched off in the database" for name in switched_off(script, known)]
        + _version_notes(script, known, bool(found)),
    )


def _problems(script: Script, known: CronJobs) -> list[str]:
    if known.version is None:
        return [NO_PG_CRON.format(database=known.database)]
    problems = []
    if script.database and script.database != known.database:
        problems.append(
            f"--database is {script.database}, and the store of this project is in {known.database}"
        )
    if lacks_seconds(script, known):
        problems.append(NO_SECONDS.format(version=known.version))
    if known.views is None:
        problems.append(NO_VIEWS)
    return problems


def _version_notes(script: Script, known: CronJobs, is_other: bool) -> list[str]:
    versions = versions_of(known) - {script.version}
    if is_other or not versions:
        return []
    said = ", ".join(sorted(versions))
    return [
        f"made by version {said} of the script, which has the same {count(len(script.jobs), 'job')}"
    ]


def _view(each: CronDifference) -> CronDifferenceView:
    return CronDifferenceView(job=each.job, state=each.state, wanted=each.wanted, found=each.found)
