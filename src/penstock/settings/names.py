"""What penstock.yaml names: its sources and its database, read without any code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from penstock.settings.address import SQLITE, parse_store
from penstock.settings.document import Entry
from penstock.settings.dotenv import read_dotenv
from penstock.settings.environment import Substitution
from penstock.settings.load import FILE_NAME, find_project, read_layers

USUAL_STORE = f"{SQLITE}penstock.db"


def source_names(
    place: Path | None, environment: str | None, environ: Mapping[str, str] = os.environ
) -> list[str]:
    """Of the project at this place, or of the nearest one; ConfigError if its file can't be read."""
    _, top, _ = _read(place, environment, environ)
    sources = top.get("sources")
    return list(sources.value) if sources is not None and isinstance(sources.value, dict) else []


def store_address(
    place: Path | None, environment: str | None, environ: Mapping[str, str] = os.environ
) -> tuple[str, Path]:
    """The address of the project's database, and the folder that a file's name is relative to."""
    folder, top, variables = _read(place, environment, environ)
    if "store" not in top:
        return USUAL_STORE, folder
    written = Substitution(variables).apply(top["store"], "store").value
    return parse_store(str(written)), folder


def _read(
    place: Path | None, environment: str | None, environ: Mapping[str, str]
) -> tuple[Path, dict[str, Entry], Mapping[str, str]]:
    """The folder, what stands at the top of the file, and the variables."""
    found = find_project(Path.cwd()) if place is None else place.absolute()
    file = found / FILE_NAME if found.is_dir() else found
    variables = {**read_dotenv(file.parent).values, **environ}
    top = read_layers(file, environment or variables.get("PENSTOCK_ENV") or None).value
    return file.parent, top if isinstance(top, dict) else {}, variables
