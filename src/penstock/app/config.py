"""The configuration: whether it is sound, what holds where, and its schema. No database is opened for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.app.views.config import CheckView, ConfigView, MistakeView, value_view
from penstock.errors import ConfigError, UsageError
from penstock.settings import Settings, find_project, load_settings
from penstock.settings.document import Entry, display_name
from penstock.settings.load import read_layers
from penstock.settings.schema import json_schema, modeline
from penstock.settings.unset import HINT, warnings_about

__all__ = ["check", "find", "modeline", "schema", "schema_text", "show"]

if TYPE_CHECKING:
    from penstock.settings.unset import Unset


def check(place: Path | str | None = None, environment: str | None = None) -> CheckView:
    """Read the configuration, import the pipelines of all sources, and list every mistake.

    A variable that is not set is a warning, because other machines may set it. Pipelines are imported anyway.
    """
    found = find(place)
    try:
        settings = load_settings(found, environment)
    except ConfigError as error:
        mistakes = [_mistake(each) for each in error.found or (error,)]
        return CheckView(sound=False, mistakes=mistakes, warnings=[], sources=0, pipelines=0)
    broken = list(_broken_pipelines(settings))
    return CheckView(
        sound=not broken,
        mistakes=broken,
        warnings=_warnings(settings),
        sources=len(settings.sources),
        pipelines=len({source.code for source in settings.sources.values()}),
        secrets=settings.secrets,
    )


def show(
    place: Path | str | None = None, environment: str | None = None, key: str = ""
) -> ConfigView:
    """The merged configuration, and where each value comes from; or one key or source of it."""
    from penstock.settings.origins import values_of

    settings, values = values_of(find(place), environment)
    return ConfigView(
        file=display_name(settings.file),
        environment=settings.environment,
        values=[value_view(each) for each in values if _is_meant(each.key, key)],
        warnings=list(settings.warnings),
        secrets=settings.secrets,
    )


def schema() -> dict[str, Any]:
    """The JSON Schema of penstock.yaml and of its overlays."""
    return json_schema()


def schema_text() -> str:
    """The same as the text of a file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def find(place: Path | str | None = None) -> Path:
    """The folder that is meant: this one, or the nearest with a penstock.yaml, here or above."""
    return find_project(Path.cwd()) if place is None else Path(place)


def _is_meant(key: str, wanted: str) -> bool:
    tops = ("", "sources.", "hosts.")
    return not wanted or any(
        key == top + wanted or key.startswith((f"{top}{wanted}.", f"{top}{wanted}["))
        for top in tops
    )


def _mistake(error: ConfigError) -> MistakeView:
    entry = error.entry if isinstance(error.entry, Entry) else None
    return MistakeView(
        kind="setting",
        message=error.message,
        file=entry.file if entry else None,
        line=(entry.line or None) if entry else None,
        key=error.key or None,
        hint=error.hint,
    )


def _broken_pipelines(settings: Settings) -> Iterator[MistakeView]:
    from penstock.project.opened import Opened

    # Their code can be looked at without the variables that running them needs.
    project = Opened(replace(settings, unset=()))
    document = read_layers(settings.file, settings.environment)
    told: set[str] = set()
    for key, source in settings.sources.items():
        if not source.code or source.code in told or "${" in source.code:
            continue
        told.add(source.code)
        try:
            project.graph(replace(source, unset=()))
        except UsageError as error:
            yield _broken(error, _pipeline_entry(document, key), key)


def _broken(error: UsageError, entry: Entry, source: str) -> MistakeView:
    key = f"sources.{source}.pipeline"
    _, _, problem = error.message.partition(f"{key}: ")
    return MistakeView(
        kind="pipeline",
        message=f"{entry.where}{entry.home or key}: {problem or error.message}",
        file=entry.file,
        line=entry.line or None,
        key=entry.home or key,
        hint=error.hint,
    )


def _pipeline_entry(document: Entry, source: str) -> Entry:
    entry = document
    for name in ("sources", source, "pipeline"):
        below = entry.value.get(name) if isinstance(entry.value, dict) else None
        entry = below or entry
    return entry


def _warnings(settings: Settings) -> list[MistakeView]:
    of_sources = [each for source in settings.sources.values() for each in source.unset]
    unset: Sequence[Unset] = [*settings.unset, *of_sources]
    about_unset = warnings_about(unset)
    others = [text for text in settings.warnings if text not in about_unset]
    return [
        *(MistakeView(kind="setting", message=text) for text in others),
        *(_unset(each) for each in unset),
    ]


def _unset(unset: Unset) -> MistakeView:
    file, _, line = unset.where.removesuffix(": ").rpartition(":")
    return MistakeView(
        kind="variable",
        message=unset.words,
        file=file or None,
        line=int(line) if line.isdecimal() else None,
        key=unset.path,
        hint=HINT,
    )
