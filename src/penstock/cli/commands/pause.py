"""`penstock pause` and `penstock resume`: a source or a run stands still, and goes on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.parser import Commands, add_command, add_json, add_reason
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app import Project

PAUSE = """\
Start nothing more of a source or run until you resume it. Running work finishes. The schedules of a paused
source continue, and its runs wait."""
PAUSE_EXAMPLES = """\
  penstock pause acme.com --reason "they are moving"
  penstock pause 12"""
RESUME = """\
Continue a paused source or run. --from-checkpoint finishes a run that ended partial, failed or cancelled: a
new run of the same kind does what is left, and nothing that succeeded is done again."""
RESUME_EXAMPLES = """\
  penstock resume acme.com
  penstock resume 12 --reason "the disk has room again"
  penstock resume 12 --from-checkpoint"""


def register(commands: Commands) -> None:
    pausing = add_command(commands, "pause", PAUSE, PAUSE_EXAMPLES)
    pausing.set_defaults(run=pause)
    resuming = add_command(commands, "resume", RESUME, RESUME_EXAMPLES)
    resuming.set_defaults(run=resume)
    for parser in (pausing, resuming):
        parser.add_argument("target", metavar="SOURCE|RUN", help="a source, or a run's number")
        add_reason(parser)
        add_json(parser)
    resuming.add_argument(
        "--from-checkpoint",
        action="store_true",
        help="finish an ended run in a new run",
    )


def pause(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened, run_or_source

    with opened(args) as project:
        target = run_or_source(project, args.target)
        is_new = (
            project.runs.pause(target, reason=args.reason)
            if isinstance(target, int)
            else project.sources.pause(target, reason=args.reason)
        )
        what = _named(target)
        said = (
            f"{what} is paused; penstock resume {target}"
            if is_new
            else f"{what} was paused already"
        )
        _tell(project, args, target, "paused", said, is_new)
    return 0


def resume(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened, run_or_source

    with opened(args) as project:
        target = run_or_source(project, args.target)
        if args.from_checkpoint:
            return _continue(project, args, target)
        is_new = (
            project.runs.resume(target, reason=args.reason)
            if isinstance(target, int)
            else project.sources.resume(target, reason=args.reason)
        )
        what = _named(target)
        said = f"{what} is resumed" if is_new else f"{what} was not paused"
        _tell(project, args, target, "resumed", said, is_new)
    return 0


def _continue(project: Project, args: argparse.Namespace, target: int | str) -> int:
    from penstock.cli.render.act_results import tell_run
    from penstock.cli.render.wording import count

    if not isinstance(target, int):
        raise UsageError(
            "--from-checkpoint takes up a run, not a source",
            f"penstock runs --source {target} lists its runs",
        )
    run = project.runs.continue_from(target, reason=args.reason)
    left = count(run.counts["queued"], "job")
    said = f"run {run.id} of {run.source} does what run {target} has left: {left} queued"
    tell_run(project, args, run, said, is_new=True)
    return 0


def _tell(
    project: Project,
    args: argparse.Namespace,
    target: int | str,
    state: str,
    said: str,
    is_new: bool,
) -> None:
    from penstock.cli.render.act_results import tell_run, tell_source

    if isinstance(target, int):
        tell_run(project, args, project.runs.get(target), said, is_new=is_new)
    else:
        tell_source(project, args, project.source(target).key, state, said, is_new=is_new)


def _named(target: int | str) -> str:
    return f"run {target}" if isinstance(target, int) else target
