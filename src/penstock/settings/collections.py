"""`collections` of penstock.yaml: what records must look like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from penstock.settings.declaration import Keys, about, decode
from penstock.settings.document import Entry, join
from penstock.settings.values import CollectionSettings

LARGEST_BYTES = 1_000_000


class CollectionKeys(Keys, frozen=True):
    """What is said of one collection."""

    schema: Annotated[
        str,
        about(
            "a file with a JSON Schema, beside this one; records that do not fit it are rejected; see "
            "[records.md](records.md#schemas)"
        ),
    ]


def read_collections(entry: Entry, path: str) -> dict[str, tuple[Entry, str]]:
    """The file of each collection's schema, with where it is named."""
    if not isinstance(entry.value, dict):
        raise entry.error(path, "must be a mapping of collections to their settings")
    return {
        name: (inner, decode(CollectionKeys, inner, join(path, name)).schema)
        for name, inner in entry.value.items()
    }


def load_collections(
    named: dict[str, tuple[Entry, str]], root: Path
) -> dict[str, CollectionSettings]:
    """Read the files of schemas; a project without a schema that it names is no project."""
    return {name: _load(name, entry, root / file) for name, (entry, file) in named.items()}


def _load(name: str, entry: Entry, file: Path) -> CollectionSettings:
    path = join("collections", name) + ".schema"
    try:
        with file.open("rb") as opened:
            text = opened.read(LARGEST_BYTES + 1)
        schema = json.loads(text)
    except OSError as error:
        raise entry.error(path, f"can't read {file.name}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise entry.error(path, f"{file.name} is no JSON: {str(error)[:100]}") from None
    if len(text) > LARGEST_BYTES:
        raise entry.error(path, f"{file.name} is larger than {LARGEST_BYTES // 1_000_000} MB")
    if not isinstance(schema, dict):
        raise entry.error(path, f"{file.name} must hold a JSON object")
    return CollectionSettings(schema, file)
