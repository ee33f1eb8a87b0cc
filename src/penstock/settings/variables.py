"""Which environment variables penstock.yaml uses, and where: by their names, whether they are set or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.settings.document import Entry
from penstock.settings.environment import variables_in
from penstock.settings.load import read_layers


def variables_by_path(
    file: Path, environment: str | None
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The path of each key whose text has variables, with their names in the order they stand."""
    return dict(_walk(read_layers(file, environment), ()))


def _walk(entry: Entry, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    if isinstance(entry.value, dict):
        for name, inner in entry.value.items():
            yield from _walk(inner, (*path, name))
    elif isinstance(entry.value, list):
        for index, inner in enumerate(entry.value):
            yield from _walk(inner, (*path, str(index)))
    elif isinstance(entry.value, str) and (names := variables_in(entry.value)):
        yield path, names
