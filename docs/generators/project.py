"""docs/python-reference.md: the verbs of a project, and of each of its nouns.

A noun that is added to `Project` is on the page when `make reference` has run again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from docs.generators import errors, views
from docs.generators.signatures import about, block, first_line, signature
from docs.generators.verbs import (
    aliases,
    class_of,
    configuration,
    nouns,
    of_project,
    verbs,
)
from penstock import Project

HEAD = """\
# Python reference

<!-- Written by `make reference` from signatures and docstrings; a test holds it equal. -->

Every verb of a project. The guide with examples is [Python](python.md). What verbs return is in
[Python views](python-views.md), what they raise in [Python errors](python-errors.md), what a step uses in
[Python pipelines](python-pipelines.md).

## Conventions

| parameter | meaning |
|---|---|
| `actor` | who does it, for the journal; by default, the account that runs the program |
| `reason` | why, for the journal |
| `dry_run` | check and count only; change nothing |
| `cursor` | where a page of a list starts: the `next` of the page before |
| `limit` | how many items a page has, at most 1000 |
| `source` | the name of a source, in any spelling |
| `run`, `job`, `reject`, `delivery` | its number |

A `Time` is a float, in seconds since the epoch; in JSON it is text in UTC. A list verb returns a `Page` with
`items` and `next`, which is `None` at the end of the list. It raises `bad_cursor` for a cursor of another
list and `bad_limit` for a limit below 1. Any verb can raise a `StoreError`; other codes are listed below it.
"""
OF_EVERY_LIST = {"bad_cursor", "bad_limit"}


def page() -> str:
    parts = [HEAD, *_project(), *_nouns(), *_configuration(), *_aliases()]
    return "\n".join(parts).rstrip() + "\n"


def _project() -> Iterator[str]:
    yield f"## Project\n\n{about(Project)}\n"
    yield "| noun | what it is | verbs |"
    yield "|---|---|---|"
    for name in nouns():
        listed = ", ".join(f"[`{verb}`](#{name}{verb})" for verb in verbs(class_of(name)))
        yield f"| [`project.{name}`](#project{name}) | {_line(name)} | {listed} |"
    yield ""
    for name, verb in of_project().items():
        prefix = "Project" if name in ("load", "open") else "project"
        yield from _verb(f"{prefix}.{name}", verb, errors.of_verb(Project, verb))


def _nouns() -> Iterator[str]:
    for name in nouns():
        kind = class_of(name)
        yield f"## project.{name}\n\n{_line(name)}\n"
        for verb, function in verbs(kind).items():
            yield from _verb(f"{name}.{verb}", function, errors.of_verb(kind, function))


def _line(noun: str) -> str:
    return first_line(inspect.getattr_static(Project, noun).func)


def _verb(name: str, function: Callable[..., Any], codes: Iterable[str] = ()) -> Iterator[str]:
    yield f"### {name}\n"
    yield block(signature(name, function))
    yield f"{about(function)}\n"
    if returned := ", ".join(views.links_in(function)):
        yield f"Returns: {returned}\n"
    if listed := ", ".join(f"`{code}`" for code in codes if code not in OF_EVERY_LIST):
        yield f"Error codes: {listed}\n"


def _configuration() -> Iterator[str]:
    yield (
        "## Configuration\n\n"
        "Functions of `penstock.app.config`; none of them opens a database. The values of an open project\n"
        "are `project.settings`. The keys are in [Configuration](configuration.md).\n"
    )
    for each in configuration():
        yield from _verb(f"config.{each.__name__}", each)


def _aliases() -> Iterator[str]:
    yield "## Verbs of earlier releases\n\nThey go with the next release.\n"
    yield "| verb | now |\n|---|---|"
    yield from (f"| `project.{name}` | {text} |" for name, text in aliases().items())
