"""`penstock mcp`: the project for a language model's client, over stdin and stdout."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command
from penstock.errors import UsageError

DESCRIPTION = """\
Serve one client of the Model Context Protocol over stdin and stdout: the client starts this command itself.
It may look at what a `viewer` may see; with --allow operator (or admin) it may also act, each time with a
reason and after a dry run. Needs the extra `mcp`. `penstock web` serves the same at /mcp, with tokens."""
EXAMPLES = """\
  penstock mcp --project /srv/shop-watch
  penstock mcp --project /srv/shop-watch --allow operator"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "mcp", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--allow",
        choices=("viewer", "operator", "admin"),
        default="viewer",
        help="what the client may do (viewer: only look)",
    )
    parser.set_defaults(run=run)


def refuse_missing(what: str) -> None:
    """Before anything is opened: the SDK must be installed."""
    if find_spec("mcp") is None:
        raise UsageError(
            f"{what} needs the MCP SDK, which is not installed",
            "pip install 'penstock[mcp]'",
            code="extra_missing",
        )


def run(args: argparse.Namespace) -> int:
    refuse_missing("penstock mcp")
    from penstock.app.verbs.roles import Role
    from penstock.cli.lookup import opened
    from penstock.mcp.stdio import run_stdio

    with opened(args) as project:
        run_stdio(project, Role(args.allow))
    return exits.DONE
