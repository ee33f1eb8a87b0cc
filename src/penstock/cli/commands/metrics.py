"""`penstock metrics`: metrics for Prometheus, on stdout or in a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.parser import Commands, add_command, add_json
from penstock.cli.render.tables import text

if TYPE_CHECKING:
    from penstock.app import Project

DESCRIPTION = """\
Print the metrics of the project for Prometheus. `penstock web` serves the same text at /metrics. With
--output, write a file for the textfile collector of the node exporter; the file is replaced at once, so
the collector never reads half of it. docs/metrics.md describes every family."""
EXAMPLES = """\
  penstock metrics
  penstock metrics --output /var/lib/prometheus/node-exporter/penstock.prom
  penstock metrics --list"""
FORMATS = ("prometheus", "openmetrics")
COLUMNS = (text("name", 0, 44), text("type", 0), text("labels", 1), text("meaning", 2))


def register(commands: Commands) -> None:
    parser = add_command(commands, "metrics", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--format", choices=FORMATS, default=FORMATS[0], help="prometheus (default) or openmetrics"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write it there, atomically (stdout)"
    )
    parser.add_argument("--list", action="store_true", help="list the families instead")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        if args.list or args.json:
            return _list(args, project)
        if args.output is not None:
            project.metrics.write(args.output, args.format)
            args.out.note(f"wrote {args.output}")
            return 0
        for line in project.metrics.text(args.format).splitlines():
            args.out.line(line)
    return 0


def _list(args: argparse.Namespace, project: Project) -> int:
    families = project.metrics.families()
    if args.json:
        args.out.json([each.as_json() for each in families])
        return 0
    rows = ((each.name, each.kind, ", ".join(each.labels), each.about) for each in families)
    args.out.table(COLUMNS, rows)
    return 0
