"""`penstock db rename`: let the database follow a project that has a new name."""

from __future__ import annotations

import argparse
from contextlib import closing

from penstock.cli import exits
from penstock.cli.asking import add_yes, confirm
from penstock.cli.output import Output
from penstock.cli.parser import Commands, add_command, add_json

DESCRIPTION = """\
A database holds one project, and knows its name. When you have changed `project:` in penstock.yaml, this
writes the new name into the database; until then every other command is refused. Refused while anything
works on the database."""
EXAMPLES = """\
  penstock db rename
  penstock db rename --yes"""


def register(verbs: Commands) -> None:
    parser = add_command(verbs, "rename", "follow a renamed project", DESCRIPTION, EXAMPLES)
    add_yes(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.cli.opening import opened, require_database
    from penstock.project import default_actor
    from penstock.store.copying import refuse_working
    from penstock.store.opening import open_end
    from penstock.store.project_name import name_in, rename

    with opened(args) as project:
        require_database(project)
        settings = project.settings
        with closing(open_end(settings.store, settings.root, project.clock)) as end:
            before = name_in(end.db)
            if before != settings.project:
                refuse_working(end)
                confirm(
                    args, f"Rename {before!r} at {settings.store_name} to {settings.project!r}?"
                )
                rename(end.db, settings.project, default_actor())
    _tell(args, settings.store_name, before, settings.project)
    return exits.DONE


def _tell(args: argparse.Namespace, place: str, before: str | None, name: str) -> None:
    out: Output = args.out
    if args.json:
        out.json({"store": place, "before": before, "project": name})
    elif before == name:
        out.line(f"{place} holds the project {name!r} already")
    else:
        out.line(f"{place} holds the project {name!r} now; it was called {before!r}")
