"""`penstock init`: a project to begin with."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from penstock.cli import exits
from penstock.cli.bridge_files import BRIDGES, bridge_file, bridge_hint
from penstock.cli.parser import Commands, add_command
from penstock.cli.render.output import Output
from penstock.errors import Refused, UsageError

CONFIG = "penstock.yaml"
SCHEMA = "penstock.schema.json"
GITIGNORE = ".gitignore"
# What the template reads, and the name that it has.
FIRST_SOURCE = "example.com"
PLACEHOLDER = "my-project"
# What YAML reads as something else than text.
NOT_TEXT = ("true", "false", "null")
# Templates by their names: the folder of each, and what to type first.
FIRST = "first"
TEMPLATES = {
    FIRST: ("first", ("penstock run example.com", "penstock records product")),
    "site-agents": (
        "site_agents",
        (
            "penstock run example.com/mapper",
            "penstock run example.com/validator",
            "penstock run example.com",
            "penstock records items",
            "penstock up                # all of it by its schedules",
        ),
    ),
}
DESCRIPTION = """\
Write penstock.yaml, products.py (a first pipeline of twenty lines), .gitignore, and penstock.schema.json, by
which editors complete and check penstock.yaml. A file that exists already is never overwritten.

With --template site-agents the project has agents that learn a site, check it and extract records by it, with
their schedules, and needs no code.

With --bridge also a file in orchestration/, by which an orchestrator runs the pipeline of the first source.
In a project that is there already, nothing else is written."""
EXAMPLES = """\
  penstock init              a project in this folder
  penstock init shop-watch   a project in ./shop-watch
  penstock init shop-watch --template site-agents
  penstock init --bridge dagster   this project's pipeline as a job of Dagster"""


def register(commands: Commands) -> None:
    parser = add_command(commands, "init", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "dir", nargs="?", type=Path, default=Path(), metavar="DIR", help="the folder (this one)"
    )
    parser.add_argument(
        "--template", choices=sorted(TEMPLATES), default=FIRST, help=f"what to begin with ({FIRST})"
    )
    parser.add_argument(
        "--bridge",
        choices=sorted(BRIDGES),
        action="append",
        default=[],
        metavar="ENGINE",
        help=f"also a file for {', '.join(sorted(BRIDGES))} (repeatable)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the first project, all of it or none; a .gitignore or schema that is there is kept."""
    out: Output = args.out
    folder: Path = args.dir
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, not a folder")
    if args.bridge and (folder / CONFIG).exists():
        return _add_bridges(folder, args.bridge, out)
    name = project_name(folder)
    if args.template != FIRST and args.bridge:
        raise UsageError(f"--bridge is for the template {FIRST}")
    texts = {**_texts(name, args.template), **_bridges(args.bridge, FIRST_SOURCE)}
    there = {name for name in texts if (folder / name).exists()}
    for name in sorted(there - {GITIGNORE, SCHEMA}):
        raise Refused(
            f"{folder / name} exists already; nothing was written",
            "choose another folder: penstock init DIR",
        )
    _write(folder, {name: texts[name] for name in texts.keys() - there})
    written = sorted(texts.keys() - there)
    for line in _report(folder, written, args.template, keeps_gitignore=GITIGNORE in there):
        out.line(line)
    for bridge in args.bridge:
        out.line(f"  {bridge_hint(bridge)}")
    return exits.DONE


def _write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def _add_bridges(folder: Path, bridges: list[str], out: Output) -> int:
    """Files for orchestrators in a project that is there: all of them or none."""
    from penstock.app.entry import open_project

    sources = list(open_project(folder).settings.sources)
    if not sources:
        raise Refused(
            f"{folder / CONFIG} has no sources, so there is no pipeline to run",
            "add one first: penstock add URL",
        )
    texts = _bridges(bridges, sources[0])
    for name in sorted(name for name in texts if (folder / name).exists()):
        raise Refused(f"{folder / name} exists already; nothing was written")
    _write(folder, texts)
    out.line(f"Wrote {', '.join(str(folder / name) for name in sorted(texts))}, for {sources[0]}.")
    out.line("")
    out.line("Install the orchestrator beside Penstock (docs/bridges). Then:")
    for bridge in dict.fromkeys(bridges):
        out.line(f"  {bridge_hint(bridge)}")
    return exits.DONE


def _bridges(bridges: list[str], source: str) -> dict[str, str]:
    found = (bridge_file(bridge, source) for bridge in bridges)
    return {str(path): text for path, text in found}


def _texts(name: str, chosen: str) -> dict[str, str]:
    """Each file of a first project with this name, by a template."""
    from penstock.app import config
    from penstock.demo.folder import template

    texts = {_file_name(each): _named(text, name) for each, text in template(TEMPLATES[chosen][0])}
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


def _report(folder: Path, written: list[str], chosen: str, *, keeps_gitignore: bool) -> list[str]:
    kept = "Your .gitignore was kept; let it ignore penstock.db*, snapshots/ and .env."
    return [
        f"Wrote {', '.join(str(folder / name) for name in written)}.",
        *([kept] if keeps_gitignore else []),
        "",
        f"In {folder / 'penstock.yaml'}, put your site in place of example.com. Then:",
        *([] if folder == Path() else [f"  cd {folder}"]),
        *(f"  {each}" for each in TEMPLATES[chosen][1]),
    ]
