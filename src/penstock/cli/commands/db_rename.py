"""`penstock db rename`: let the database follow a project that has a new name."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.confirmation import add_yes, confirm
from penstock.cli.parser import Commands, add_json, add_reason, add_verb
from penstock.cli.render.output import Output

if TYPE_CHECKING:
    from penstock.app.views.store import RenameView

DESCRIPTION = """\
A database belongs to one project, by name. After you changed `project:` in penstock.yaml, this command writes
the new name into the database; until then every other command is refused. Refused while anything
works on the database."""
EXAMPLES = """\
  penstock db rename
  penstock db rename --yes"""


def register(verbs: Commands) -> None:
    parser = add_verb(verbs, "rename", "follow a renamed project", DESCRIPTION, EXAMPLES)
    add_yes(parser)
    add_reason(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.store.rename(dry_run=True)
        if found.before != found.project:
            confirm(args, f"Rename {found.before!r} at {found.store} to {found.project!r}?")
            found = project.store.rename(reason=args.reason)
    _tell(found, args)
    return exits.DONE


def _tell(renamed: RenameView, args: argparse.Namespace) -> None:
    out: Output = args.out
    if args.json:
        out.json(renamed.as_json())
    elif renamed.before == renamed.project:
        out.line(f"{renamed.store} holds the project {renamed.project!r} already")
    else:
        now = f"{renamed.store} holds the project {renamed.project!r} now"
        out.line(f"{now}; it was called {renamed.before!r}")
