"""`penstock pause` and `penstock resume`: a source or a run stands still, and goes on."""

from __future__ import annotations

import argparse

from penstock.cli.parser import Commands, add_command, add_reason

PAUSE = """\
Start nothing more of a source or of a run until it is resumed. What is running goes on to its end;
a paused source's schedule goes on too, and its runs wait."""
PAUSE_EXAMPLES = """\
  penstock pause acme.com --reason "they are moving"
  penstock pause 12"""
RESUME = "Let a paused source or run go on where it was."
RESUME_EXAMPLES = """\
  penstock resume acme.com
  penstock resume 12 --reason "the disk has room again" """


def register(commands: Commands) -> None:
    pausing = add_command(commands, "pause", "hold a source or a run", PAUSE, PAUSE_EXAMPLES)
    pausing.set_defaults(run=pause)
    resuming = add_command(commands, "resume", "let it go on", RESUME, RESUME_EXAMPLES)
    resuming.set_defaults(run=resume)
    for parser in (pausing, resuming):
        parser.add_argument("target", metavar="SOURCE|RUN", help="a source, or a run's number")
        add_reason(parser)


def pause(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, run_or_source

    with opened(args) as project:
        target = run_or_source(project, args.target)
        is_new = project.pause(target, reason=args.reason)
    what = _named(target)
    args.out.line(
        f"{what} is paused; penstock resume {target}" if is_new else f"{what} was paused already"
    )
    return 0


def resume(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, run_or_source

    with opened(args) as project:
        target = run_or_source(project, args.target)
        is_new = project.resume(target, reason=args.reason)
    what = _named(target)
    args.out.line(f"{what} goes on" if is_new else f"{what} was not paused")
    return 0


def _named(target: int | str) -> str:
    return f"run {target}" if isinstance(target, int) else target
