"""`penstock export`: schedules for another scheduler, dashboards, rules for Prometheus."""

from __future__ import annotations

import argparse
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_verb
from penstock.cli.render.output import Output
from penstock.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.app.exports import Exports
    from penstock.app.views.exports import CronCheckView, CronDifferenceView, ExportView

DESCRIPTION = """\
Write the schedules of penstock.yaml for GitHub Actions, cron or systemd (each start is a `penstock run`), or
as SQL for pg_cron or Supabase. What the target can't express (sessions, files, signals, hours, ...) is left
out and named in a comment and on stderr, and the exit code is 3. Secrets are written by name only.

With `timers: external` in penstock.yaml, `penstock up` leaves these schedules to the other scheduler.

For metrics (docs/metrics.md): dashboards for Grafana, alert and recording rules for Prometheus. For the SQL
views (docs/sql.md): a dashboard for Grafana, questions for Metabase. To deploy (docs/deploying.md): Docker
and systemd."""
EXAMPLES = """\
  penstock export github-actions --output .github/workflows/penstock.yml
  penstock export crontab | crontab -
  penstock export systemd --dir /etc/systemd/system
  penstock export pg-cron | psql -v ON_ERROR_STOP=1 "$DATABASE_URL"
  penstock export supabase --dir . --edge-function
  penstock export grafana --datasource postgres --dir dashboards
  penstock export prometheus --dir /etc/prometheus
  penstock export deploy --dir ."""
GITHUB = """\
A workflow that runs the sources by schedule and by hand, one run at a time, with the least permissions
and with every action pinned."""
CRONTAB = """\
A line for each schedule, for a host without systemd. Its times are by one clock, the host's:
--timezone says which that is. With --user it is a table for /etc/cron.d."""
SYSTEMD = """\
A service and a timer for each schedule. A timer missed while the host was off
fires once. Without --dir they are all printed."""

DEPLOY = """\
A Dockerfile and a compose file (Postgres, two workers, the dashboard), and systemd units of `penstock up` and
`penstock web` for this host. penstock.compose.yaml lays the compose file's Postgres over penstock.yaml; with
--env, your overlay says `store:`. See docs/deploying.md. Without --dir they are printed."""
PG_CRON = """\
SQL that has pg_cron start the schedules inside the database, retry what failed, and watch whether anybody
works. Run it with psql as often as you like: each entry is one job, what left penstock.yaml is unscheduled.
The jobs use the views of `penstock db sql install`; `penstock up` does what they ask for. See docs/sql.md.

--check runs nothing and writes nothing. It ends with 0 if the jobs in the database (and FILE, with --output)
are as penstock.yaml has them, and with 4 if one is missing, changed or no longer in it."""
SUPABASE = """\
SQL that has Supabase's pg_cron raise signals at this project's trigger (`penstock web` or `penstock trigger
serve`) by pg_net, with address and token from the vault. What was not accepted is sent again, and nothing
starts twice. With --edge-function calls go by an Edge Function, which is written, too. See docs/sql.md."""
GRAFANA = """\
Dashboards as JSON. On Prometheus three: overview, source and engine. On Postgres one, of the SQL views (see
docs/sql.md). Import them, or have Grafana provision them from a folder. Without --dir they are printed."""
METABASE = """\
Questions on the SQL views (see docs/sql.md), each as a .sql file to paste, and README.md, which says how they
make a dashboard. Without --dir they are printed."""
PROMETHEUS = """\
Alert and recording rules (penstock-rules.yml), and what scrapes this project (penstock-scrape.yml), to be
put into prometheus.yml. Without --dir both are printed."""


def register(commands: Commands) -> None:
    parser = add_command(commands, "export", DESCRIPTION, EXAMPLES)
    targets = parser.add_subparsers(dest="target", metavar="TARGET", title="targets", required=True)
    github = add_verb(
        targets,
        "github-actions",
        "a workflow",
        GITHUB,
        "  penstock export github-actions --output .github/workflows/penstock.yml",
    )
    github.add_argument("--output", type=Path, metavar="FILE", help="write it there (stdout)")
    github.set_defaults(run=_github)
    cron = add_verb(
        targets, "crontab", "a crontab", CRONTAB, "  penstock export crontab | crontab -"
    )
    cron.add_argument("--output", type=Path, metavar="FILE", help="write it there (stdout)")
    cron.add_argument(
        "--timezone", default="UTC", metavar="ZONE", help="the zone of the host's clock (UTC)"
    )
    cron.set_defaults(run=_crontab)
    units = add_verb(
        targets,
        "systemd",
        "services and timers",
        SYSTEMD,
        "  penstock export systemd --dir /etc/systemd/system",
    )
    units.add_argument("--dir", type=Path, metavar="DIR", help="write them there (stdout)")
    units.set_defaults(run=_systemd)
    cron.add_argument("--user", default="", help="the user it runs as: a table for /etc/cron.d")
    units.add_argument("--user", default="", help="the user it runs as (you)")
    deployed = _register_deploy(targets)
    for each in (cron, units, deployed):
        each.add_argument(
            "--env-file",
            type=Path,
            metavar="FILE",
            help="sets the variables that penstock.yaml uses (penstock.env beside it)",
        )
    _register_databases(targets)
    _register_metrics(targets)
    for each in (github, cron, units):
        each.add_argument(
            "--source", action="append", metavar="SOURCE", help="only this source; repeatable"
        )


def _register_databases(targets: Commands) -> None:
    cron = add_verb(
        targets,
        "pg-cron",
        "SQL for pg_cron",
        PG_CRON,
        '  penstock export pg-cron | psql -v ON_ERROR_STOP=1 "$DATABASE_URL"\n'
        "  penstock export pg-cron --check",
    )
    cron.add_argument("--output", type=Path, metavar="FILE", help="write it there (stdout)")
    _add_upkeep(cron, "17 * * * *", 3, "*/5 * * * *", "5m")
    cron.add_argument(
        "--schema", default="", metavar="NAME", help="the schema of the views (found by the script)"
    )
    cron.add_argument(
        "--database",
        default="",
        metavar="NAME",
        help="the database of this project, where pg_cron is in another, and the script is run there",
    )
    cron.add_argument(
        "--check",
        action="store_true",
        help="change nothing: compare the jobs in the database, and FILE, with penstock.yaml",
    )
    cron.add_argument(
        "--cron-database",
        default="",
        metavar="NAME",
        help="for --check: the database that has pg_cron (found by itself where the user may)",
    )
    cron.add_argument("--json", action="store_true", help="print what --check finds as JSON")
    cron.set_defaults(run=_pg_cron)
    supabase = add_verb(
        targets,
        "supabase",
        "SQL for Supabase",
        SUPABASE,
        "  penstock export supabase --dir . --edge-function",
    )
    supabase.add_argument("--dir", type=Path, metavar="DIR", help="write it there (stdout)")
    _add_upkeep(supabase, "*/10 * * * *", 20, "*/15 * * * *", "10m")
    supabase.add_argument(
        "--edge-function", action="store_true", help="call by an Edge Function, and write it"
    )
    supabase.set_defaults(run=_supabase)


def _register_deploy(targets: Commands) -> argparse.ArgumentParser:
    parser = add_verb(
        targets, "deploy", "Docker, systemd services", DEPLOY, "  penstock export deploy --dir ."
    )
    parser.add_argument("--dir", type=Path, metavar="DIR", help="write them there (stdout)")
    parser.add_argument("--user", default="", help="the user that the units run as (you)")
    parser.set_defaults(run=_deploy)
    return parser


def _add_upkeep(
    parser: argparse.ArgumentParser, retries: str, attempts: int, watchdog: str, patience: str
) -> None:
    shown = retries.replace("%", "%%")
    parser.add_argument(
        "--retries", default=retries, metavar="CRON", help=f"when, by UTC; or off ({shown})"
    )
    parser.add_argument(
        "--attempts", type=int, default=attempts, metavar="N", help=f"at most ({attempts})"
    )
    parser.add_argument(
        "--watchdog", default=watchdog, metavar="CRON", help=f"when, by UTC; or off ({watchdog})"
    )
    parser.add_argument(
        "--patience",
        default=patience,
        metavar="TIME",
        help=f"how long something may wait before the watchdog tells it ({patience})",
    )


def _register_metrics(targets: Commands) -> None:
    for name, summary, description, run in (
        ("grafana", "dashboards", GRAFANA, _grafana),
        ("metabase", "questions in SQL", METABASE, _metabase),
        ("prometheus", "alert rules", PROMETHEUS, _prometheus),
    ):
        example = f"  penstock export {name} --dir monitoring"
        parser = add_verb(targets, name, summary, description, example)
        parser.add_argument("--dir", type=Path, metavar="DIR", help="write them there (stdout)")
        parser.set_defaults(run=run)
        if name == "grafana":
            parser.add_argument(
                "--datasource",
                choices=("prometheus", "postgres"),
                default="prometheus",
                help="what they query (prometheus)",
            )


def _github(args: argparse.Namespace) -> int:
    with _exports(args) as exports:
        found = exports.github_actions(args.source or ())
    return _tell(args.out, found, file=args.output)


def _crontab(args: argparse.Namespace) -> int:
    with _exports(args) as exports:
        found = exports.crontab(
            args.source or (), timezone=args.timezone, user=args.user, env_file=args.env_file
        )
    return _tell(args.out, found, file=args.output)


def _systemd(args: argparse.Namespace) -> int:
    with _exports(args) as exports:
        found = exports.systemd(args.source or (), user=args.user, env_file=args.env_file)
    return _tell(args.out, found, folder=args.dir)


def _pg_cron(args: argparse.Namespace) -> int:
    if args.json and not args.check:
        raise UsageError("--json is for --check: without it, the script itself is printed")
    options = {
        "retries": args.retries,
        "attempts": args.attempts,
        "watchdog": args.watchdog,
        "patience": args.patience,
        "schema": args.schema,
        "database": args.database,
    }
    with _exports(args) as exports:
        found = exports.pg_cron(**options)
        if args.check:
            checked = exports.check_pg_cron(**options, cron_database=args.cron_database)
            return _check(args, found, checked)
    return _tell(args.out, found, file=args.output)


def _check(args: argparse.Namespace, script: ExportView, found: CronCheckView) -> int:
    """Print what differs; exit code 4 if something does."""
    out, problems = args.out, [*_problems(found), *_file_problems(args.output, script)]
    if args.json:
        out.json({**found.as_json(), "problems": problems})
    else:
        for each in found.differences:
            for line in _difference(each):
                out.line(line)
        for problem in problems:
            out.line(problem)
        if found.pg_cron is not None:
            out.line(_summary(found))
        for note in found.notes:
            out.note(note)
    return exits.DONE if found.is_current and not problems else exits.FAILED


def _problems(found: CronCheckView) -> list[str]:
    from penstock.app.cron_check import NO_VIEWS

    return [
        f"{each}: penstock db sql install" if each == NO_VIEWS else each for each in found.problems
    ]


def _file_problems(file: Path | None, script: ExportView) -> list[str]:
    if file is None:
        return []
    again = f"penstock export pg-cron --output {file} writes it again"
    try:
        kept = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return [f"{file} can't be read; {again}"]
    return (
        [] if kept in script.files.values() else [f"{file} is not of this penstock.yaml; {again}"]
    )


def _difference(each: CronDifferenceView) -> list[str]:
    match each.state:
        case "missing":
            return [f"{each.job}: missing ({each.wanted})"]
        case "gone":
            return [f"{each.job}: no longer in penstock.yaml"]
        case _:
            return [f"{each.job}: changed", f"  - {each.found}", f"  + {each.wanted}"]


def _summary(found: CronCheckView) -> str:
    from penstock.cli.render.wording import count

    where = f"{found.database} (pg_cron {found.pg_cron}, as {found.role})"
    if not found.differences:
        jobs = count(found.jobs, "job")
        return f"{where}: {jobs}, version {found.version}{'' if found.problems else ': as in penstock.yaml'}"
    names = len({each.job for each in found.differences})
    return f"{where}: {count(names, 'job')} not as in penstock.yaml; run the script again"


def _supabase(args: argparse.Namespace) -> int:
    with _exports(args) as exports:
        found = exports.supabase(
            retries=args.retries,
            attempts=args.attempts,
            watchdog=args.watchdog,
            patience=args.patience,
            edge_function=args.edge_function,
        )
    return _tell(args.out, found, folder=args.dir)


def _deploy(args: argparse.Namespace) -> int:
    with _exports(args) as exports:
        found = exports.deploy(user=args.user, env_file=args.env_file)
    return _tell(args.out, found, folder=args.dir)


def _grafana(args: argparse.Namespace) -> int:
    with _exports(args) as exports:
        found = exports.grafana(args.datasource)
    return _tell(args.out, found, folder=args.dir)


def _metabase(args: argparse.Namespace) -> int:
    with _exports(args) as exports:
        found = exports.metabase()
    return _tell(args.out, found, folder=args.dir)


def _prometheus(args: argparse.Namespace) -> int:
    with _exports(args) as exports:
        found = exports.prometheus()
    return _tell(args.out, found, folder=args.dir)


@contextmanager
def _exports(args: argparse.Namespace) -> Iterator[Exports]:
    """Of the project the command line means; no database is opened, and no warning goes beside the text."""
    from penstock.app import Project
    from penstock.app.config import find

    with Project.open(find(args.project), args.env) as project:
        args.out.secrets = project.settings.secrets
        yield project.exports


def _tell(
    out: Output, found: ExportView, file: Path | None = None, folder: Path | None = None
) -> int:
    if not found.has_schedules:
        out.note("no schedules: every source runs manually")
    if file is not None:
        _write(file, "".join(found.files.values()), out)
    elif folder is not None:
        for name, text in found.files.items():
            _write(folder / name, text, out)
    else:
        _print(found, out)
    for each in found.left_out:
        out.note(f"left out: {each}")
    for each in found.otherwise:
        out.note(f"not the same: {each}")
    for each in found.notes:
        out.note(each)
    return exits.DONE if found.is_whole else exits.PARTIAL


def _print(found: ExportView, out: Output) -> None:
    for name, text in found.files.items():
        if len(found.files) > 1:
            out.line(f"# ---- {name}")
        for line in text.splitlines():
            out.line(line)


def _write(file: Path, text: str, out: Output) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} can't be written ({error.strerror})") from None
    out.note(f"wrote {file}")
