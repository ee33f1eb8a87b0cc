"""pg_cron: starts, retries and the watchdog as jobs inside the database that has the project.

They ask by the views of the SQL interface, and so by the verbs of the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from penstock.counting import count
from penstock.exporters.cron_script import VIEWS, CronJob, Script
from penstock.exporters.sql_times import SqlTime, literal, skipped_by_clocks, times_of
from penstock.exporters.starts import Export, Inexpressible, Start, not_carried_over

FILE = "penstock-cron.sql"
TARGET = "penstock"
CommandOf = Callable[[Start, SqlTime], str]
# What pg_cron remembers of the jobs that it ran; nothing else deletes it.
HISTORY = "23 3 * * *"


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Jobs beside the starts: schedules of cron, empty for none."""

    retries: str = "17 * * * *"
    attempts: int = 3
    watchdog: str = "*/5 * * * *"
    patience_s: float = 300.0
    history_days: int = 7


@dataclass(frozen=True, slots=True)
class Collected:
    """Jobs that start sources, what was left out, and what they do otherwise."""

    jobs: tuple[CronJob, ...]
    left_out: tuple[str, ...]
    otherwise: tuple[str, ...]


def pg_cron(
    starts: Sequence[Start],
    project: str,
    upkeep: Upkeep,
    year: int,
    schema: str = "",
    database: str = "",
) -> Export:
    """The script to be run by psql, by the role that the jobs are to run as."""
    script, found = cron_script(starts, project, upkeep, year, schema, database)
    return Export({FILE: script.text}, found.left_out, found.otherwise)


def cron_script(
    starts: Sequence[Start],
    project: str,
    upkeep: Upkeep,
    year: int,
    schema: str = "",
    database: str = "",
) -> tuple[Script, Collected]:
    """The same, and what could not be said in it."""
    found = collected(starts, year, _insert)
    jobs = (*found.jobs, *_upkeep_jobs(upkeep))
    script = Script(
        project,
        TARGET,
        jobs,
        head=[],
        finds_views=not (schema or database),
        schema=schema or ("penstock_sql" if database else ""),
        database=database,
    )
    head = [
        f"The schedules of {project} for pg_cron, by `penstock export pg-cron`. Version {script.version}",
        f"psql -v ON_ERROR_STOP=1 -f {FILE} DATABASE: as often as you like. Each entry is one job; what has",
        "left penstock.yaml is unscheduled. Run it as the role that the jobs run as: the user in `store:`",
        "or a member of penstock_operator. pg_cron goes by UTC, and makes up for nothing that it misses.",
        "A job only asks, by INSERT and UPDATE; `penstock up` performs it. Say `timers: external` in",
        "penstock.yaml, or it starts these schedules, too.",
        *remarks(found),
    ]
    return replace(script, head=head), found


def remarks(found: Collected) -> list[str]:
    lines = []
    for title, said in (("Left out", found.left_out), ("Not the same", found.otherwise)):
        if said:
            lines += ["", f"{title}:", *(f"  {each}" for each in said)]
    return lines


def collected(
    starts: Sequence[Start], year: int, command: CommandOf, *, has_jitter: bool = True
) -> Collected:
    """A job for each time of each schedule."""
    jobs: list[CronJob] = []
    names: set[str] = set()
    left_out, otherwise = [], []
    for start in starts:
        try:
            times = times_of(start)
            made = [command(start, time) for time in times]
        except Inexpressible as error:
            left_out.append(f"{start.title}: pg_cron {error}")
            continue
        if dropped := not_carried_over(start.settings, has_jitter=has_jitter):
            otherwise.append(
                f"{start.title}: pg_cron has no {', '.join(dropped)}; it starts without"
            )
        if skipped_by_clocks(start, year):
            otherwise.append(
                f"{start.title}: a start in the hour that is skipped when the clocks of "
                f"{start.settings.timezone} go forward is left out"
            )
        for number, (time, text) in enumerate(zip(times, made, strict=True), 1):
            more = f" ({number})" if len(times) > 1 else ""
            name = f"{start.source}/{start.settings.name}{more}"
            if name in names:  # a/b of c, and b of a/c
                name = f"{start.source} / {start.settings.name}{more}"
            names.add(name)
            jobs.append(CronJob(name, time.schedule, text, start.title))
    return Collected(tuple(jobs), tuple(left_out), tuple(otherwise))


def _insert(start: Start, time: SqlTime) -> str:
    columns, values = ["source", "kind", "reason"], [start.source, start.settings.run_kind]
    values.append(f"schedule {start.settings.name}, by pg_cron")
    said = [literal(each) for each in values]
    if start.settings.jitter_s:
        columns.append("scheduled_for")
        said.append(f"now() + random() * interval '{start.settings.jitter_s:g} seconds'")
    if time.wall_time:
        columns.append("idempotency_key")
        said.append(f"{literal(f'pg_cron {start.settings.name} ')} || {time.wall_time}")
    into = f"INSERT INTO {VIEWS}.ingestion_jobs ({', '.join(columns)})"
    return f"{into} SELECT {', '.join(said)} {time.source_rows}".rstrip()


def _upkeep_jobs(upkeep: Upkeep) -> list[CronJob]:
    jobs = []
    if upkeep.retries:
        lately = literal("1 day")
        command = f"SELECT {VIEWS}.penstock_retry_failed({upkeep.attempts}, {lately})"
        title = (
            f"Retries what failed within a day, until it was tried {count(upkeep.attempts, 'time')}"
        )
        jobs.append(CronJob("(retries)", upkeep.retries, command, title))
    if upkeep.watchdog:
        patience = literal(f"{upkeep.patience_s:g} seconds")
        command = f"SELECT {VIEWS}.penstock_watchdog({patience})"
        title = "Fails, and says why in cron.job_run_details, while nobody does what is asked for"
        jobs.append(CronJob("(watchdog)", upkeep.watchdog, command, title))
    if jobs and upkeep.history_days:
        jobs.append(history_job(upkeep.history_days))
    return jobs


def history_job(days: int) -> CronJob:
    command = (
        f"DELETE FROM cron.job_run_details WHERE end_time < now() - make_interval(days => {days}) "  # noqa: S608
        "AND username = current_user AND command LIKE '/* penstock%'"
    )
    title = f"Deletes what pg_cron remembers of these jobs after {count(days, 'day')}"
    return CronJob("(history)", HISTORY, command, title, is_about_cron=True)
