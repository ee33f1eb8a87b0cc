"""`penstock export`: schedules for another scheduler, dashboards for Grafana, rules for Prometheus."""

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
    from penstock.app.views.exports import ExportView

DESCRIPTION = """\
Write the schedules of penstock.yaml for GitHub Actions, cron or systemd: each start is a `penstock run`. What
the target can't express (sessions, files, signals, hours, ...) is left out and named in a comment and on
stderr, and the exit code is 3. Secrets are written by name only.

For metrics (docs/metrics.md): dashboards for Grafana, alert and recording rules for Prometheus."""
EXAMPLES = """\
  penstock export github-actions --output .github/workflows/penstock.yml
  penstock export crontab | crontab -
  penstock export systemd --dir /etc/systemd/system
  penstock export prometheus --dir /etc/prometheus"""
GITHUB = """\
A workflow that runs the sources by schedule and by hand, one run at a time, with the least permissions
and with every action pinned."""
CRONTAB = """\
A line for each schedule, for a host without systemd. Its times are by one clock, the host's:
--timezone says which that is. With --user it is a table for /etc/cron.d."""
SYSTEMD = """\
A service and a timer for each schedule. A timer missed while the host was off
fires once. Without --dir they are all printed."""

GRAFANA = """\
Three dashboards as JSON: overview, source and engine. Import them, or put them into a folder that Grafana
provisions. Without --dir they are all printed."""
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
    for each in (cron, units):
        each.add_argument(
            "--env-file",
            type=Path,
            metavar="FILE",
            help="sets the variables that penstock.yaml uses (penstock.env beside it)",
        )
    _register_metrics(targets)
    for each in (github, cron, units):
        each.add_argument(
            "--source", action="append", metavar="SOURCE", help="only this source; repeatable"
        )


def _register_metrics(targets: Commands) -> None:
    for name, summary, description, run in (
        ("grafana", "dashboards", GRAFANA, _grafana),
        ("prometheus", "alert rules", PROMETHEUS, _prometheus),
    ):
        example = f"  penstock export {name} --dir monitoring"
        parser = add_verb(targets, name, summary, description, example)
        parser.add_argument("--dir", type=Path, metavar="DIR", help="write them there (stdout)")
        parser.set_defaults(run=run)


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


def _grafana(args: argparse.Namespace) -> int:
    with _exports(args) as exports:
        found = exports.grafana()
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
