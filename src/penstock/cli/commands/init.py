"""`penstock init`: a project to begin with."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from penstock.cli import exits
from penstock.cli.parser import Commands, add_command
from penstock.cli.render.output import Output
from penstock.errors import Refused, UsageError

CONFIG = "penstock.yaml"
SCHEMA = "penstock.schema.json"
GITIGNORE = ".gitignore"
# The name that the template has.
PLACEHOLDER = "my-project"
# What YAML reads as something else than text.
NOT_TEXT = ("true", "false", "null")
DESCRIPTION = """\
Write penstock.yaml, products.py (a first pipeline of twenty lines), .gitignore, and penstock.schema.json, by
which editors complete and check penstock.yaml. A file that exists already is never overwritten."""
EXAMPLES = """\
  penstock init              a project in this folder
  penstock init shop-watch   a project in ./shop-watch"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "init", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "dir", nargs="?", type=Path, default=Path(), metavar="DIR", help="the folder (this one)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the first project, all of it or none; a .gitignore or schema that is there is kept."""
    out: Output = args.out
    folder: Path = args.dir
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, not a folder")
    name = project_name(folder)
    texts = _texts(name)
    there = {name for name in texts if (folder / name).exists()}
    for name in sorted(there - {GITIGNORE, SCHEMA}):
        raise Refused(
            f"{folder / name} exists already; nothing was written",
            "choose another folder: penstock init DIR",
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in texts.keys() - there:
        (folder / name).write_text(texts[name], encoding="utf-8")
    for line in _report(folder, sorted(texts.keys() - there), keeps_gitignore=GITIGNORE in there):
        out.line(line)
    return exits.DONE


def _texts(name: str) -> dict[str, str]:
    """Each file of a first project with this name."""
    from penstock.app import config
    from penstock.demo.folder import template

    texts = {_file_name(each): _named(text, name) for each, text in template("first")}
    texts[CONFIG] = config.modeline(SCHEMA) + texts[CONFIG]
    return {**texts, SCHEMA: config.schema_text()}


def project_name(folder: Path) -> str:
    """The folder's own name; a project needs one that fits a line."""
    name = folder.absolute().resolve().name.strip()
    return name if name and name.isprintable() else PLACEHOLDER


def _named(text: str, name: str) -> str:
    """The template with this name in place of its own; in quotes where it is no plain word of YAML."""
    is_plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", name) and name.lower() not in NOT_TEXT
    # `$${` is how a file says `${` without meaning a variable.
    escaped = name.replace("${", "$${")
    written = name if is_plain else json.dumps(escaped, ensure_ascii=False)
    named = text.replace(f"project: {PLACEHOLDER}\n", f"project: {written}\n")
    return named.replace(f'"{PLACEHOLDER} (', f'"{name if is_plain else PLACEHOLDER} (')


def _file_name(template_name: str) -> str:
    # Kept without its dot in the package, where a .gitignore would hide files from the build.
    return GITIGNORE if template_name == "gitignore" else template_name


def _report(folder: Path, written: list[str], keeps_gitignore: bool) -> list[str]:
    kept = "Your .gitignore was kept; let it ignore penstock.db*, snapshots/ and .env."
    return [
        f"Wrote {', '.join(str(folder / name) for name in written)}.",
        *([kept] if keeps_gitignore else []),
        "",
        f"In {folder / 'penstock.yaml'}, put your site in place of example.com. Then:",
        *([] if folder == Path() else [f"  cd {folder}"]),
        "  penstock run example.com",
        "  penstock records product",
    ]
