"""`penstock help`: what `--help` shows, for those who ask in words."""

from __future__ import annotations

import argparse
import contextlib

from penstock.cli.parser import Commands, add_command

DESCRIPTION = "All commands in groups, or everything about one of them. The same as --help."
EXAMPLES = """\
  penstock help
  penstock help run
  penstock help quarantine list"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "help", DESCRIPTION, EXAMPLES)
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="which command")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.entry import parser_for

    words = [*args.words, "--help"]
    # argparse prints it, and then wants to end the process.
    with contextlib.redirect_stdout(args.out.stdout), contextlib.suppress(SystemExit):
        parser_for(words).parse_args(words)
    return 0
