"""`penstock connectors`: what can be read without code of one's own, and how to begin a new one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_json, add_verb

if TYPE_CHECKING:
    from penstock.app.views.connectors import ConnectorDetail
    from penstock.cli.render.output import Output

ABOUT = """\
A connector reads one kind of place without code of yours: `connector: files` in a source, with keys of its
own. Some come with Penstock, others are added by installed packages."""
EXAMPLES = """\
  penstock connectors
  penstock connectors --json
  penstock connectors show files
  penstock connectors new wiki"""
LIST = "List every connector, with the extra that it needs and whether that is installed."
SHOW = "One connector: its keys with their defaults, and the shortest source that works."
NEW = """\
Write a package with a new connector: its code, its tests with the conformance suite, and the entry point by
which Penstock finds it once it is installed."""


def register(commands: Commands) -> None:
    parser = add_command(commands, "connectors", ABOUT, EXAMPLES)
    add_json(parser)
    parser.set_defaults(run=show_all)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    listing = add_verb(verbs, "list", "every connector", LIST, "  penstock connectors list --json")
    add_json(listing)
    listing.set_defaults(run=show_all)
    showing = add_verb(verbs, "show", "one connector", SHOW, "  penstock connectors show files")
    showing.add_argument("name", metavar="NAME", help="the connector")
    add_json(showing)
    showing.set_defaults(run=show)
    making = add_verb(
        verbs, "new", "write a package for a new one", NEW, "  penstock connectors new wiki"
    )
    making.add_argument("name", metavar="NAME", help="what sources will call it")
    making.add_argument(
        "--dir", type=Path, default=Path(), metavar="DIR", help="where to put it (here)"
    )
    making.set_defaults(run=new)


def show_all(args: argparse.Namespace) -> int:
    from penstock.app import connectors

    found = connectors.each()
    if args.json:
        args.out.json_list([each.as_json() for each in found])
        return exits.DONE
    rows = [
        (each.name, each.summary, each.extra or "", "yes" if each.installed else "no")
        for each in found
    ]
    args.out.table(("connector", "reads", "extra", "installed"), rows)
    return exits.DONE


def show(args: argparse.Namespace) -> int:
    from penstock.app import connectors

    found = connectors.get(args.name)
    if args.json:
        args.out.json(found.as_json())
    else:
        _tell(found, args.out)
    return exits.DONE


def _tell(found: ConnectorDetail, out: Output) -> None:
    out.line(f"{found.name}: {found.summary}")
    out.line()
    out.line(found.about)
    out.line()
    out.line("sources:")
    out.line(f"  my-{found.name}:")
    for key, value in found.example.items():
        out.line(f"    {key}: {out.as_json(value) if not isinstance(value, str) else value}")
    out.line()
    for each in found.keys:
        out.line(f"  {each.key} ({each.default})")
        out.line(f"      {each.about}")
    if not found.installed and found.extra:
        out.note(f"it is not installed: pip install 'penstock[{found.extra}]'")


def new(args: argparse.Namespace) -> int:
    from penstock.app import connectors

    written = connectors.write_template(args.name, args.dir)
    folder = written[0].parent
    for file in written:
        args.out.line(f"Wrote {file}")
    args.out.line()
    args.out.line(f"Then: pip install -e {folder} && pytest {folder}")
    return exits.DONE
