"""Asking before something that can't be taken back."""

from __future__ import annotations

import argparse
import sys

from penstock.cli.render.output import Output
from penstock.errors import Refused


def add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def confirm(args: argparse.Namespace, question: str) -> None:
    """Go on only if the operator agrees; without a terminal only `--yes` agrees."""
    if args.yes:
        return
    out: Output = args.out
    if not sys.stdin.isatty():
        raise Refused(f"{question} There is no terminal to answer in", "say --yes if you mean it")
    out.stderr.write(out.tidy(question) + " [y/N] ")
    out.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("nothing was changed")
