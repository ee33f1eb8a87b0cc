"""Commands of the shell stand in `cli` and in one list below it: a browser has no use for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import penstock
from penstock import Project
from penstock.cli.command_list import LISTED
from penstock.cli.remedies import BY_CODE, BY_VERB
from penstock.shell import COMMANDS

ROOT = Path(penstock.__file__).parent
SHELL_LINE = re.compile(rf"\bpenstock ({'|'.join(LISTED)})\b")
# The dashboard shows the command beside the button that does the same.
FRONT_ENDS = ("cli", "web")
# Files, pages and messages that are made for a shell or about it: a message of an alert has no buttons, and
# the dashboard shows the command of each act beside its button.
ABOUT_THE_SHELL = (
    "app/doctor",
    "app/verbs/act_words.py",
    "engine/alerting",
    "exporters",
    "journal/reference.py",
    # It starts the shipped commands, and says which of them failed.
    "prove",
    # pytest is a front end too, and it runs in a shell.
    "pytest_plugin.py",
    "shell.py",
)
# Descriptions of keys of penstock.yaml, for its schema and its page.
DESCRIPTIONS = (
    "settings/alerts.py",
    "settings/hooks.py",
    "settings/project.py",
    "settings/retention.py",
    "settings/schedule.py",
)
# Hints that programs may know by their words: each goes when its words have been deprecated for a release.
OLD_HINTS = (
    "app/jobs.py",
    "project/opened.py",
    "settings/load.py",
    "store/postgres/database.py",
    "store/postgres/migrate.py",
    "store/project_name.py",
    "store/schema.py",
)
EXCEPTIONS = (*FRONT_ENDS, *ABOUT_THE_SHELL, *DESCRIPTIONS, *OLD_HINTS)


def texts(file: Path) -> Iterator[str]:
    """The strings of a module that are no docstrings, each part of an f-string by itself."""
    tree = ast.parse(file.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def modules_with_commands() -> set[str]:
    return {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        if any(SHELL_LINE.search(text) for text in texts(file))
    }


def is_excepted(module: str) -> bool:
    return any(module == each or module.startswith(f"{each}/") for each in EXCEPTIONS)


def test_no_module_below_the_command_line_knows_a_command() -> None:
    found = modules_with_commands()

    assert {module for module in found if not is_excepted(module)} == set()
    for each in EXCEPTIONS:
        assert any(module == each or module.startswith(f"{each}/") for module in found), each


def test_every_remedy_is_a_verb_of_a_project() -> None:
    named = re.compile(r'Remedy\(\s*"([a-z_.]+)"')
    used = {verb for file in ROOT.rglob("*.py") for verb in named.findall(file.read_text("utf-8"))}
    phrased = {*COMMANDS, *BY_VERB, *(verb for _, verb in BY_CODE if verb)}

    with_verbs = {verb for verb in used | phrased if "." in verb}
    missing = {verb for verb in with_verbs if not _is_verb(verb)}
    assert missing == set()


def _is_verb(verb: str) -> bool:
    noun, name = verb.split(".")
    made = attrgetter(noun)(Project).func.__annotations__["return"]
    return hasattr(_class_of(str(made)), name)


def _class_of(name: str) -> type:
    from penstock.app import nouns

    source = Path(nouns.__file__).read_text("utf-8")
    [module] = re.findall(rf"^    from (\S+) import {name}$", source, re.MULTILINE)
    found: type = getattr(__import__(module, fromlist=[name]), name)
    return found
