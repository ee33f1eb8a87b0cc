"""`penstock doctor`: can this machine work on this project, and what to do where it can't."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_json
from penstock.cli.render.output import Output
from penstock.cli.render.wording import count

if TYPE_CHECKING:
    from penstock.app.views.doctor import CheckupFindingView

DESCRIPTION = """\
Check the configuration, its variables, permissions, the disk, the database, clocks, time zone data, the
network and versions. Each finding has its remedy. Nothing is repaired or migrated, no page is fetched, and
of a secret only the name of its variable is shown.

The whole database is read; --quick leaves that out. Names of hosts are looked up; --offline leaves that out.

Exit codes: 0 no problem was found, 4 there are problems (with --strict, or warnings)."""
EXAMPLES = """\
  penstock doctor
  penstock doctor --quick --offline
  penstock doctor --env prod --strict --json"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "doctor", DESCRIPTION, EXAMPLES)
    parser.add_argument("--quick", action="store_true", help="do not read the whole database")
    parser.add_argument("--offline", action="store_true", help="look up no names of hosts")
    parser.add_argument("--strict", action="store_true", help="treat warnings as problems")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.app.doctor import check_up

    out: Output = args.out
    found = check_up(args.project, args.env, is_quick=args.quick, is_offline=args.offline)
    out.secrets = found.secrets
    is_sound = found.sound and not (args.strict and found.warnings)
    if args.json:
        out.json({**found.as_json(), "sound": is_sound})
        return exits.DONE if is_sound else exits.FAILED
    for each in found.findings:
        _tell(each, out)
    problems, warnings = count(found.problems, "problem"), count(found.warnings, "warning")
    out.line()
    out.line(f"{problems}, {warnings}")
    return exits.DONE if is_sound else exits.FAILED


def _tell(finding: CheckupFindingView, out: Output) -> None:
    out.line(f"{finding.state:<8}  {finding.area:<11}  {finding.message}")
    if finding.remedy:
        out.line(f"{'':<23}{finding.remedy}")
