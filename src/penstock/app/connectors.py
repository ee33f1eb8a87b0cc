"""Connectors: which there are, what their keys are, and a package to begin a new one with.

No project and no database is needed for it.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from penstock.app.views.connectors import ConnectorDetail, ConnectorKeyView, ConnectorView
from penstock.connectors import Connector
from penstock.errors import ConfigError, Refused, UsageError
from penstock.settings.connector import connector_names, find_connector
from penstock.settings.declaration import Key, Keys, keys_of
from penstock.settings.reference import default_words
from penstock.settings.schema import plain_words

# The files of a package, and where each is kept here: not as code, which nobody would mean to run.
TEMPLATE = {
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    "%PACKAGE%/__init__.py": "package.py.txt",
    "tests/test_%NAME%.py": "tests.py.txt",
}


def each() -> list[ConnectorView]:
    """Every connector that can be named; one that can't be loaded says why in place of its summary."""
    return [_view(name) for name in connector_names()]


def get(name: str) -> ConnectorDetail:
    """One connector with its keys."""
    found = _found(name)
    return ConnectorDetail(
        name=name,
        summary=found.summary,
        extra=found.extra or None,
        installed=not found.missing_modules(),
        about=inspect.cleandoc(found.__doc__ or ""),
        deletions=found.deletions,
        concurrency=found.concurrency,
        retry=found.retry,
        keys=list(_keys(found.Settings)),
        example={"connector": name, **found.example()},
    )


def write_template(name: str, folder: Path) -> list[Path]:
    """Write a package with a connector of this name and its tests into a folder; refused if it is there."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name) or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} can't be the name of a connector",
            "lower-case letters, digits and _, such as wiki",
        )
    if name in connector_names():
        raise Refused(f"there is a connector {name} already", "choose another name")
    target = folder / f"penstock-{name.replace('_', '-')}"
    if target.exists():
        raise Refused(f"{target} is there already; nothing was written", "choose another --dir")
    written = []
    for path, text in _template(name):
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        written.append(file)
    return written


def _template(name: str) -> list[tuple[str, str]]:
    """Each file of a package, with the name in place of the template's own."""
    folder = files("penstock.connectors") / "template"
    words = {"NAME": name, "PACKAGE": f"penstock_{name}", "CLASS": name.title().replace("_", "")}
    found = []
    for path, kept in TEMPLATE.items():
        text = (folder / kept).read_text("utf-8")
        for word, value in words.items():
            text, path = text.replace(f"%{word}%", value), path.replace(f"%{word}%", value)
        found.append((path, text))
    return found


def _found(name: str) -> type[Connector[Any]]:
    try:
        found: type[Connector[Any]] = find_connector(name)
    except ConfigError as error:
        raise UsageError(error.message, code="no_connector") from error
    return found


def _view(name: str) -> ConnectorView:
    try:
        found = _found(name)
    except UsageError as error:
        return ConnectorView(name=name, summary=error.message, extra=None, installed=False)
    is_installed = not found.missing_modules()
    return ConnectorView(
        name=name, summary=found.summary, extra=found.extra or None, installed=is_installed
    )


def _keys(section: type[Keys], prefix: str = "") -> Iterator[ConnectorKeyView]:
    """The keys of a section, and then those of its sections, with their whole names."""
    for key in keys_of(section):
        yield _key(key, prefix)
    for key in keys_of(section):
        if key.section is not None:
            yield from _keys(key.section, f"{prefix}{key.name}.")


def _key(key: Key, prefix: str) -> ConnectorKeyView:
    return ConnectorKeyView(
        key=prefix + key.name,
        about=plain_words(key.description).replace("`", ""),
        default=default_words(key).replace("`", ""),
        is_required=key.is_required,
    )
