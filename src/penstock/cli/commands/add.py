"""`penstock add`: from an address or a folder to a source that works."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli import exits
from penstock.cli.commands.probe import tell_facts, tell_samples
from penstock.cli.parser import Commands, add_command, add_json
from penstock.errors import ConfigError, Refused, UsageError

if TYPE_CHECKING:
    from penstock.app.new_source import Wish
    from penstock.app.views.connectors import AddedView
    from penstock.cli.render.output import Output

DESCRIPTION = """\
Look at an address, a folder or a file, let the connectors recognise what it is (`penstock connectors`
lists them), read a sample of it, and write a source with the right connector into penstock.yaml.
Comments and all other lines stay as they are; a folder without a penstock.yaml gets one. Nothing is written
if the sample can't be read. In a terminal it asks for what is missing, and before it writes."""
EXAMPLES = """\
  penstock add acme.com
  penstock add https://acme.com/feed.xml --name news
  penstock add ./notes --set 'include=["*.md"]'
  penstock add http://intranet.example/feed --set fetch.allow_private=true
  penstock add acme.com --dry-run --json
  penstock add --demo feed"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "add", DESCRIPTION, EXAMPLES)
    parser.add_argument("target", nargs="?", default="", metavar="URL|FOLDER", help="what to read")
    parser.add_argument("--name", default="", metavar="NAME", help="name of the source")
    parser.add_argument(
        "--connector", default="", metavar="NAME", help="do not guess: use this one"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of the source, such as key=id or fetch.timeout=5s (repeatable)",
    )
    parser.add_argument(
        "--demo", default="", metavar="CONNECTOR", help="add demo data of a connector"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the sample, write nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from penstock.app import new_source

    asks = sys.stdin.isatty() and not (args.yes or args.json or args.dry_run)
    wish = new_source.Wish(args.target, args.name, args.connector, args.demo, _keys(args.set))
    if asks and not args.demo:
        wish = _completed(wish, args.out)
    if not (wish.target or wish.demo or wish.connector):
        raise UsageError("add what? A URL or a folder", "penstock add acme.com")
    folder = _folder(args.project)
    proposal = new_source.propose(folder, wish)
    if asks and not wish.name:
        proposal = new_source.renamed(proposal, _asked(args.out, "Name", proposal.name))
    found = new_source.add(folder, proposal, dry_run=args.dry_run or asks)
    if args.json:
        args.out.json(found.as_json())
        return exits.DONE
    _tell(found, args.out)
    if asks:
        _ask(args.out)
        found = new_source.add(folder, proposal)
    if found.is_written:
        args.out.line(f"Wrote {found.source} into {folder / 'penstock.yaml'}. Then:")
        args.out.line(f"  penstock run {found.source}")
        args.out.line(f"  penstock records {found.keys.get('collection', found.source)}")
    return exits.DONE


def _folder(named: str | None) -> Path:
    """The project that is meant; without one, this folder becomes one."""
    from penstock.app import config

    if named is not None:
        return Path(named)
    try:
        return config.find().parent
    except ConfigError as error:
        if error.code != "no_project":
            raise
        return Path.cwd()


def _keys(said: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in said:
        name, equals, text = each.partition("=")
        *sections, last = name.split(".")
        if not equals or not last or not all(sections):
            raise UsageError(f"--set {each!r} is not KEY=VALUE")
        into = found
        for section in sections:
            into = into.setdefault(section, {})
            if not isinstance(into, dict):
                raise UsageError(f"--set {each!r}: {section} has a value already")
        into[last] = _value(text)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _completed(wish: Wish, out: Output) -> Wish:
    """Ask for what is missing: what to read, and the keys that a named connector needs."""
    from penstock.app import connectors

    known = connectors.each()
    if not (wish.target or wish.connector):
        for each in known:
            out.note(f"  {each.name:<10} {each.summary}")
        said = _asked(out, "Read what? A URL, a folder, or a connector of this list")
        is_named = said in {each.name for each in known}
        wish = replace(wish, connector=said) if is_named else replace(wish, target=said)
    if not wish.connector or wish.target:
        return wish
    keys = dict(wish.keys)
    for key in connectors.get(wish.connector).keys:
        if key.is_required and key.key not in keys:
            keys[key.key] = _value(_asked(out, f"{key.key} ({key.about})"))
    return replace(wish, keys=keys)


def _asked(out: Output, question: str, usual: str = "") -> str:
    """One line from the terminal; nothing means the usual."""
    out.stderr.write(f"{question} [{usual}]: " if usual else f"{question}: ")
    out.stderr.flush()
    return sys.stdin.readline().strip() or usual


def _ask(out: Output) -> None:
    if _asked(out, "Write it? [Y/n]").lower() not in ("", "y", "yes"):
        raise Refused("nothing was written")


def _tell(found: AddedView, out: Output) -> None:
    out.line(f"{found.source}: {found.why}, read by the connector {found.connector}")
    for key, value in found.keys.items():
        out.line(f"  {key}: {value if isinstance(value, str) else out.as_json(value)}")
    tell_facts(found.facts, out)
    out.line()
    tell_samples(found.samples, out)
    out.line()
