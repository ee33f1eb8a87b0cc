"""`penstock db rename`: let the database follow a project that has a new name."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.confirmation import add_confirm, confirm
from penstock.cli.parser import Commands, add_json, add_reason, add_verb
from penstock.cli.render.output import Output

if TYPE_CHECKING:
    from penstock.app.views.store import RenameView

PRODUCTION = "production"
DESCRIPTION = """\
A database belongs to one project in one environment, by name. After you changed `project:` in penstock.yaml
or gave it to another environment (--env), this command writes the new names into the database; until
then every other command is refused. Refused while anything works on the database."""
EXAMPLES = """\
  penstock db rename
  penstock db rename --yes"""


def register(verbs: Commands) -> None:
    parser = add_verb(verbs, "rename", "follow a renamed project", DESCRIPTION, EXAMPLES)
    add_confirm(parser)
    add_reason(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.lookup import opened

    with opened(args) as project:
        found = project.store.rename(dry_run=True)
        if found.is_new:
            # What is taken away from production is as grave as what is done there.
            if found.environment_before == PRODUCTION:
                args.guarded = PRODUCTION
            question = f"Rename {_old(found)} at {found.store} to {_new(found)}?"
            confirm(args, question, "store.rename")
            found = project.store.rename(reason=args.reason)
    _tell(found, args)
    return exits.DONE


def _tell(renamed: RenameView, args: argparse.Namespace) -> None:
    out: Output = args.out
    if args.json:
        out.json(renamed.as_json())
    elif not renamed.is_new:
        out.line(f"{renamed.store} holds the project {_new(renamed)} already")
    else:
        now = f"{renamed.store} holds the project {_new(renamed)} now"
        out.line(f"{now}; it was called {_old(renamed)}")


def _old(renamed: RenameView) -> str:
    environment = renamed.environment_before
    return f"{renamed.before!r}{_of(environment) if environment != renamed.environment else ''}"


def _new(renamed: RenameView) -> str:
    environment = renamed.environment
    return f"{renamed.project!r}{_of(environment) if environment != renamed.environment_before else ''}"


def _of(environment: str | None) -> str:
    return f" ({environment})" if environment else ""
