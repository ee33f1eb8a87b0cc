"""Asking before something that can't be taken back."""

from __future__ import annotations

import argparse
import sys

from penstock.app.guard import is_grave, refuse_other_name
from penstock.cli.render.output import Output
from penstock.errors import Refused


def add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def add_confirm(parser: argparse.ArgumentParser) -> None:
    """For what can't be taken back: `--yes`, and in production the environment's name."""
    add_yes(parser)
    parser.add_argument(
        "--confirm", metavar="ENV", default="", help="environment, which production asks for"
    )


def confirm(args: argparse.Namespace, question: str, verb: str = "") -> None:
    """Go on only if the operator agrees; without a terminal only `--yes` agrees.

    In production a verb that can't be taken back needs the environment's name instead.
    """
    if ask_for_name(args, question, verb) or args.yes:
        return
    out: Output = args.out
    if not sys.stdin.isatty():
        raise Refused(f"{question} There is no terminal to answer in", "say --yes if you mean it")
    out.stderr.write(out.tidy(question) + " [y/N] ")
    out.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("nothing was changed")
    return


def ask_for_name(args: argparse.Namespace, question: str, verb: str) -> bool:
    """In production, refuse a verb that can't be taken back unless its name is typed.

    Answers whether that was asked.
    """
    if not getattr(args, "guarded", "") or not is_grave(verb):
        return False
    out: Output = args.out
    typed = args.confirm
    if not typed and not args.yes and sys.stdin.isatty():
        out.stderr.write(
            out.tidy(f"{question} This is {args.guarded}: type its name".strip()) + ": "
        )
        out.stderr.flush()
        typed = sys.stdin.readline().strip()
    refuse_other_name(args.guarded, typed)
    return True
