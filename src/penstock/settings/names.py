"""The names of the sources in penstock.yaml, read without its variables and without any code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from penstock.settings.load import FILE_NAME, find_project, read_layers


def source_names(
    place: Path | None, environment: str | None, environ: Mapping[str, str] = os.environ
) -> list[str]:
    """Of the project at this place, or of the nearest one; ConfigError if its file can't be read."""
    found = find_project(Path.cwd()) if place is None else place.absolute()
    file = found / FILE_NAME if found.is_dir() else found
    top = read_layers(file, environment or environ.get("PENSTOCK_ENV") or None).value
    sources = top.get("sources") if isinstance(top, dict) else None
    return list(sources.value) if sources is not None and isinstance(sources.value, dict) else []
