"""`penstock shadow`: a release on the pages of a live run, and what it would change."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.commands.differences import add_difference, finish, refuse_html, show
from penstock.cli.commands.release import add_from, release_of
from penstock.cli.parser import Commands, add_command, add_reason, whole_number
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.views.canaries import ShadowView

DESCRIPTION = """\
Run a source as always, and have another release process the same pages: live traffic once, both logics. What
the release saves is staged and shown as a difference, record by record, as a replay's is. The shadow is a run
of its own, a replay: its number takes `penstock replay RUN --commit` or --drop. The release is loaded in a
process of its own, from its own files."""
EXAMPLES = """\
  penstock shadow acme.com --release 3f9a52c07d11
  penstock shadow acme.com --release 3f9a52 --run 12    of a run that is there already: nothing is fetched
  penstock shadow acme.com --from staging               of what staging runs
  penstock shadow acme.com --release 3f9a52 --detach    penstock up does the work
  penstock replay 14 --commit                           apply what shadow 14 has staged

exit codes: as `penstock run`, for the live run and the shadow"""
AGAIN = "to continue: the same command, or penstock up"


def register(commands: Commands) -> None:
    parser = add_command(commands, "shadow", DESCRIPTION, EXAMPLES)
    parser.add_argument("source", metavar="SOURCE", help="the source to run")
    parser.add_argument(
        "--release",
        metavar="R",
        help="the release, by its id or the beginning of it",
    )
    add_from(parser)
    parser.add_argument("--kind", metavar="KIND", help="full or incremental, as `penstock run`")
    parser.add_argument(
        "--run",
        dest="run_id",
        type=whole_number,
        metavar="RUN",
        help="shadow this run instead of a new one",
    )
    parser.add_argument("--detach", action="store_true", help="only queue it, do not wait")
    add_difference(parser)
    add_reason(parser)
    parser.set_defaults(run=run, commit=False, drop=False, diff=True)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    refuse_html(args)
    if args.html and args.detach:
        raise UsageError("--html shows a difference; --detach does not wait for one")
    with opened(args) as project:
        begun = project.shadows.start(
            args.source, release_of(project, args), args.kind, run=args.run_id, reason=args.reason
        )
        if args.detach:
            _tell_queued(begun, args)
            return exits.DONE
        if not begun.is_new and not args.json:
            args.out.note(f"shadow {begun.shadow.id} of run {begun.live.id} was begun before")
        runs = [each.id for each in (begun.live, begun.shadow) if not each.is_ended]
        if runs and not finish(project, runs, AGAIN, args.out):
            return exits.INTERRUPTED
        live, shadow = project.runs.get(begun.live.id), project.runs.get(begun.shadow.id)
        if shadow.state == "cancelled":
            args.out.line(f"shadow {shadow.id} was cancelled")
            return exits.of_runs([live.state, shadow.state])
        show(project, shadow, args)
    return exits.of_runs([live.state, shadow.state])


def _tell_queued(begun: ShadowView, args: argparse.Namespace) -> None:
    if args.json:
        args.out.json(begun.as_json())
        return
    args.out.line(f"run {begun.live.id} of {begun.live.source} is {begun.live.state}")
    args.out.line(f"shadow {begun.shadow.id} follows it with release {begun.release[:12]}")
    args.out.note(f"when it has ended: penstock replay {begun.shadow.id} --diff")
