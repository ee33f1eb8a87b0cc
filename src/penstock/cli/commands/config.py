"""`penstock config`: whether penstock.yaml is right, what it comes to, and its schema for editors."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command, add_json, add_verb
from penstock.cli.render.output import Output
from penstock.cli.render.wording import count
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.views.config import MistakeView, ValueView

CONFIG = "Check penstock.yaml, show the merged values, or write its schema for an editor."
CONFIG_EXAMPLES = """\
  penstock config check
  penstock config show acme.com --env prod
  penstock config schema --output penstock.schema.json"""
CHECK = """\
Read penstock.yaml with its overlay and variables, import the pipelines of all sources, and print every
mistake with its line. No database is opened and nothing is started. A variable that is not set is a
warning, and so is a database connection that may not be encrypted.

Exit codes: 0 nothing is wrong, 2 there are mistakes (with --strict, or warnings)."""
CHECK_EXAMPLES = """\
  penstock config check
  penstock config check --env prod --strict
  penstock config check --json"""
SHOW = """\
The configuration with its overlay and defaults merged, a line for each key, and where its value comes from:
a line of a file, or Penstock's own default. Text with variables is shown as it is written, secrets as ***."""
SHOW_EXAMPLES = """\
  penstock config show
  penstock config show worker
  penstock config show acme.com --env prod
  penstock config show --written --json"""
SCHEMA = """\
Print the JSON Schema of penstock.yaml and of its overlays. An editor with a YAML language server completes
and checks a file whose first line is `# yaml-language-server: $schema=penstock.schema.json`; `penstock init`
writes both."""
SCHEMA_EXAMPLES = """\
  penstock config schema
  penstock config schema --output penstock.schema.json"""


def register(commands: Commands) -> None:
    parser = add_command(
        commands,
        "config",
        CONFIG,
        CONFIG_EXAMPLES,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs", required=True)
    checking = add_verb(verbs, "check", "print every mistake", CHECK, CHECK_EXAMPLES)
    checking.add_argument("--strict", action="store_true", help="treat warnings as mistakes")
    add_json(checking)
    checking.set_defaults(run=check)
    showing = add_verb(verbs, "show", "every value and its origin", SHOW, SHOW_EXAMPLES)
    showing.add_argument(
        "key", nargs="?", default="", metavar="KEY", help="only this key, section or source (all)"
    )
    showing.add_argument("--written", action="store_true", help="leave out Penstock's own defaults")
    add_json(showing)
    showing.set_defaults(run=show)
    writing = add_verb(verbs, "schema", "the JSON Schema", SCHEMA, SCHEMA_EXAMPLES)
    writing.add_argument("--output", type=Path, metavar="FILE", help="write it to a file")
    writing.set_defaults(run=schema)


def check(args: argparse.Namespace) -> int:
    from penstock.app import config

    out: Output = args.out
    found = config.check(args.project, args.env)
    out.secrets = found.secrets
    is_sound = found.sound and not (args.strict and found.warnings)
    if args.json:
        out.json({**found.as_json(), "sound": is_sound})
        return exits.DONE if is_sound else exits.USAGE
    for each in found.mistakes:
        _tell(each, out)
    for each in found.warnings:
        out.note(f"{'' if args.strict else 'warning: '}{each.message}")
    if is_sound:
        sources, imported = count(found.sources, "source"), count(found.pipelines, "pipeline")
        out.line(f"No mistakes found: {sources}, {imported} imported.")
        return exits.DONE
    number = len(found.mistakes) + (len(found.warnings) if args.strict else 0)
    out.error(f"found {count(number, 'mistake')}")
    return exits.USAGE


def _tell(mistake: MistakeView, out: Output) -> None:
    out.note(mistake.message)
    if mistake.hint:
        out.note(f"  {mistake.hint}")


def show(args: argparse.Namespace) -> int:
    from penstock.app import config

    out: Output = args.out
    found = config.show(args.project, args.env, args.key)
    out.secrets = found.secrets
    values = [each for each in found.values if not (args.written and each.origin == "default")]
    if not values and args.key:
        raise UsageError(f"there is no key or source {args.key!r}", "penstock config show has all")
    if args.json:
        shown = found.as_json()
        out.json({**shown, "values": [each.as_json() for each in values]})
        return exits.DONE
    for warning in found.warnings:
        out.note(f"penstock: {warning}")
    out.table(("key", "value", "from"), (_row(each) for each in values))
    return exits.DONE


def _row(value: ValueView) -> tuple[str, str, str]:
    text = value.value if isinstance(value.value, str) else json.dumps(value.value)
    if isinstance(value.value, float):
        text = f"{value.value:g}"
    if value.origin == "default":
        return value.key, value.note or ("none" if value.value is None else text), "default"
    return value.key, text, _origin(value)


def _origin(value: ValueView) -> str:
    where = f"{value.file}:{value.line}"
    if value.origin == "defaults":
        where = f"defaults, {where}"
    if value.variables:
        where += f", with {' and '.join(f'${{{name}}}' for name in value.variables)}"
    return where


def schema(args: argparse.Namespace) -> int:
    from penstock.app import config

    if args.output is None:
        args.out.stdout.write(config.schema_text())
        return exits.DONE
    args.output.write_text(config.schema_text(), encoding="utf-8")
    args.out.line(f"Wrote {args.output}.")
    return exits.DONE
