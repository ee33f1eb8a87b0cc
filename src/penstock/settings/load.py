"""From a project folder to Settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import ConfigError, nearest
from penstock.settings.address import is_unprotected, secrets_in
from penstock.settings.alerts import refuse_unknown_sources
from penstock.settings.cells import VARIABLE as CELL_VARIABLE
from penstock.settings.cells import cells_of, chosen_cell
from penstock.settings.changes import with_changes
from penstock.settings.collections import load_collections
from penstock.settings.declaration import decode
from penstock.settings.defaults import with_defaults
from penstock.settings.document import (
    Entry,
    Tell,
    display_name,
    join,
    raise_it,
    read_document,
    read_value,
)
from penstock.settings.dotenv import read_dotenv
from penstock.settings.environment import Substitution, overlay, unset_paths, without_unset
from penstock.settings.problems import Problems
from penstock.settings.project import TOP_KEYS, ProjectKeys
from penstock.settings.release import LOCAL
from penstock.settings.release import NAME as ENVIRONMENT_NAME
from penstock.settings.retention import RETENTION_KEYS
from penstock.settings.schedule_values import SCHEDULE_DUE
from penstock.settings.secrets import SECRET_NAME
from penstock.settings.section import Section
from penstock.settings.snapshot_address import parse_snapshots
from penstock.settings.source import read_source
from penstock.settings.source_order import refuse_circles
from penstock.settings.trust import refuse_foreign
from penstock.settings.units import normalise_source
from penstock.settings.unset import NEEDED_TO_LOOK, Unset, refuse_unset, warnings_about
from penstock.settings.values import RETRY_NAMES, Settings, SourceSettings
from penstock.settings.worker import WORKER_KEYS

__all__ = [
    "FILE_NAME",
    "RETENTION_KEYS",
    "TOP_KEYS",
    "WORKER_KEYS",
    "environments_of",
    "find_project",
    "in_cell",
    "load_settings",
    "overlay_file",
    "read_layers",
    "with_overlay",
]

FILE_NAME = "penstock.yaml"
# A source without a pipeline is still read, so that the rest of what is wrong with it is told too.
STAND_INS = {"pipeline": "missing:missing"}
UNPROTECTED = "store: the connection to the database may not be encrypted; add ?sslmode=verify-full"


def find_project(start: Path) -> Path:
    """The nearest penstock.yaml at or above this folder; refused where others could have put it there."""
    start = start.absolute()
    for folder in (start, *start.parents):
        file = folder / FILE_NAME
        if os.path.exists(file):  # unlike Path.exists, False where we may not look
            refuse_foreign(file)
            return file
    raise ConfigError(
        f"there is no {FILE_NAME} in {start} or above it",
        "make a project, or name the folder of one",
        code="no_project",
    )


def load_settings(
    path: Path | str,
    environment: str | None = None,
    environ: Mapping[str, str] = os.environ,
    changes: Sequence[str] = (),
    more: Mapping[str, Mapping[str, Any]] | None = None,
    without: Collection[str] = (),
    cell: str | None = None,
) -> Settings:
    """The settings of the project whose penstock.yaml, or whose folder, this is.

    The environment is the one named here, else PENSTOCK_ENV, else none. One that has no overlay
    file is refused: a mistyped name must not run a project with another environment's settings; `local` is
    what a project is without one, and needs no file. `changes`
    are laid over both: `acme.com.schedule.every=6h`. `more` are sources that the file does not have yet.
    Keys at the top that are `without` count as not written. The cell is the one named here, else
    PENSTOCK_CELL, else `main`.
    """
    file = _project_file(Path(path).absolute())
    dotenv = read_dotenv(file.parent)
    environ = {**dotenv.values, **environ}
    environment = with_overlay(file, environment or environ.get("PENSTOCK_ENV"))
    early = Problems()
    document = read_layers(file, environment, early.add, more)
    document = with_changes(_without(document, without), changes)
    substitution = Substitution(environ)
    document = substitution.apply(document)
    unset = substitution.unset
    refuse_unset([each for each in unset if each.section in NEEDED_TO_LOOK])
    settings = _tolerant(document, unset, FileReading(file, environment, early))
    settings = in_cell(settings, cell or environ.get(CELL_VARIABLE))
    # A password that stands in the address itself is no less a secret than one from the environment.
    stores = {settings.store, *(each.store for each in settings.cells.values())}
    in_stores = {secret for store in stores for secret in secrets_in(store)}
    secrets = substitution.secrets | in_stores | _secret(dotenv.values)
    return replace(
        settings,
        secrets=frozenset(secrets),
        sources=_with_unset(settings.sources, unset),
        unset=tuple(each for each in unset if not each.source),
        warnings=(
            *dotenv.warnings,
            *([UNPROTECTED] if is_unprotected(settings.store, environ) else []),
            *warnings_about(unset),
        ),
    )


def in_cell(settings: Settings, name: str | None) -> Settings:
    """The settings as the cell of this name has them: with its database, and its snapshots."""
    cell = chosen_cell(settings.cells, name or None)
    if cell is None:
        return settings
    return replace(settings, cell=cell, store=cell.store, snapshots=cell.snapshots)


def _without(document: Entry, names: Collection[str]) -> Entry:
    if not names or not isinstance(document.value, dict):
        return document
    kept = {name: entry for name, entry in document.value.items() if name not in names}
    return replace(document, value=kept)


def _secret(values: Mapping[str, str]) -> set[str]:
    """What `.env` sets for others than penstock.yaml is a secret where its name says so."""
    return {value for name, value in values.items() if SECRET_NAME.search(name)}


@dataclass(frozen=True, slots=True)
class FileReading:
    """Which file is read, for which environment, and what is known to be wrong before its keys are read."""

    file: Path
    environment: str | None
    early: Problems

    def settings(self, document: Entry) -> Settings:
        """The settings; or everything that is wrong, raised at once."""
        problems = Problems(self.early)
        settings = problems.read(document, lambda entry: _settings(entry, self, problems))
        problems.refuse()
        if settings is None:
            raise ConfigError(f"{display_name(self.file)} can't be read")
        return settings


def _tolerant(document: Entry, unset: Sequence[Unset], reading: FileReading) -> Settings:
    """The settings as far as they can be read: what needs variables that are not set counts as not written.

    Where a section makes no sense without them, the whole section does.
    """
    sections = {each.section for each in unset if not each.source}
    try:
        return reading.settings(_top(document, sections, without_unset))
    except ConfigError:
        if not sections:
            raise
    try:
        return reading.settings(_top(document, sections, lambda _: None))
    except ConfigError:
        refuse_unset([each for each in unset if each.section in sections])
        raise


def _top(
    document: Entry, sections: Collection[str], change: Callable[[Entry], Entry | None]
) -> Entry:
    if not sections or not isinstance(document.value, dict):
        return document
    changed = {
        name: change(entry) if name in sections else entry for name, entry in document.value.items()
    }
    kept = {name: entry for name, entry in changed.items() if entry is not None}
    return replace(document, value=kept)


def _with_unset(
    sources: Mapping[str, SourceSettings], unset: Sequence[Unset]
) -> dict[str, SourceSettings]:
    found = dict(sources)
    for key in {each.source for each in unset if each.source}:
        needs = tuple(each for each in unset if each.source == key)
        found[key] = replace(found[key], unset=needs)
    return found


def read_layers(
    file: Path,
    environment: str | None,
    tell: Tell = raise_it,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> Entry:
    """The file with its overlay over it and its defaults under its sources, and no variables in it yet."""
    document = _with_normal_sources(read_document(file, tell), tell)
    if more:
        document = _with_more(document, more)
    if environment is None:
        return with_defaults(document)
    top = read_document(overlay_file(file, environment), tell)
    return with_defaults(overlay(document, _with_normal_sources(top, tell)))


def _with_more(document: Entry, more: Mapping[str, Mapping[str, Any]]) -> Entry:
    """The file as it would be with these sources in it; they are named where their lines would be."""
    top = document.value if isinstance(document.value, dict) else {}
    found = top.get("sources")
    known = found.value if found is not None and isinstance(found.value, dict) else {}
    new = {
        key: read_value(yaml.safe_dump(dict(keys), sort_keys=False), f"proposal of {key}")
        for key, keys in more.items()
    }
    sources = Entry({**known, **new}, document.file, document.line)
    return replace(document, value={**top, "sources": sources})


def _project_file(path: Path) -> Path:
    file = path / FILE_NAME if os.path.isdir(path) and path.name != FILE_NAME else path
    if not os.path.exists(file):
        raise ConfigError(
            f"{display_name(file)}: there is no such file", "`penstock init` makes a project"
        )
    return file


def with_overlay(file: Path, environment: str | None) -> str | None:
    """The environment whose overlay is read; None without one."""
    if environment == LOCAL and LOCAL not in environments_of(file):
        return None
    return environment or None


def environments_of(file: Path) -> list[str]:
    """The environments that have an overlay beside this penstock.yaml."""
    names = [each.name[len(file.stem) + 1 : -len(file.suffix)] for each in _overlays(file)]
    return [name for name in names if ENVIRONMENT_NAME.fullmatch(name)]


def overlay_file(file: Path, environment: str) -> Path:
    if not ENVIRONMENT_NAME.fullmatch(environment):
        raise ConfigError(f"{environment!r:.40} can't be the name of an environment")
    found = file.with_name(f"{file.stem}.{environment}{file.suffix}")
    if not os.path.exists(found):
        tail = nearest(environment, environments_of(file)) or "there are no overlays"
        raise ConfigError(
            f"{display_name(found)}: there is no such file for the environment "
            f"{environment!r}, {tail}"
        )
    return found


def _overlays(file: Path) -> list[Path]:
    return sorted(file.parent.glob(f"{file.stem}.*{file.suffix}"))


def _with_normal_sources(document: Entry, tell: Tell) -> Entry:
    # Before the overlay is laid on top: both files may spell the same source differently.
    if not isinstance(document.value, dict):
        return document
    sources = document.value.get("sources")
    if sources is None or not isinstance(sources.value, dict):
        return document
    spelled: dict[str, str] = {}
    normal: dict[str, Entry] = {}
    for name, entry in sources.value.items():
        path = join("sources", name)
        key = _source_key(name, entry, path, tell)
        if key in normal:
            tell(entry.error(path, f"is the same source as {spelled[key]!r} ({key})"))
        elif key is not None:
            spelled[key] = name
            normal[key] = entry
    return replace(document, value={**document.value, "sources": replace(sources, value=normal)})


def _source_key(name: str, entry: Entry, path: str, tell: Tell) -> str | None:
    try:
        return normalise_source(name)
    except ConfigError as error:
        tell(entry.error(path, error.message))
        return None


def _settings(document: Entry, reading: FileReading, problems: Problems) -> Settings:
    at, root = Section(document, "", TOP_KEYS), reading.file.parent
    keys: ProjectKeys = decode(ProjectKeys, document, "")
    sources = keys.sources
    read = _sources(sources, (*RETRY_NAMES, *keys.retries), problems)
    if len(read) == len(sources):
        refuse_circles(sources, read)
    collections = load_collections(keys.collections, root)
    schemas = {name: each.schema for name, each in collections.items()}
    if keys.timers == "external":
        read = {key: _started_elsewhere(each) for key, each in read.items()}
    refuse_unknown_sources(at.get("alerts"), "alerts", sources)
    snapshots = _snapshots(keys.snapshots, at, root)
    return Settings(
        root=root,
        file=reading.file,
        project=keys.project or root.name or "penstock",
        store=keys.store,
        environment=reading.environment,
        worker=keys.worker,
        retention=keys.retention,
        snapshots=snapshots,
        cells=cells_of(keys.cells, keys.store, snapshots, root),
        budget=keys.budget,
        cost=keys.cost,
        hosts=keys.hosts,
        retries=keys.retries,
        hooks=keys.hooks,
        alerts=keys.alerts,
        alert_rules=keys.alert_rules,
        release=keys.release,
        promotion=keys.promotion,
        timers=keys.timers,
        trigger=keys.trigger,
        tracing=keys.tracing,
        log=keys.log,
        metrics=keys.metrics,
        onboarding=keys.onboarding,
        collections=collections,
        sources={key: replace(each, schemas=schemas) for key, each in read.items()}
        if schemas
        else read,
    )


def _started_elsewhere(source: SourceSettings) -> SourceSettings:
    """What another scheduler can't express stays with this one."""
    due = (f"{SCHEDULE_DUE} of {source.key}",)
    schedules = tuple(
        replace(each, is_external=True, signals=due) if each.is_by_time_alone else each
        for each in source.schedules
    )
    return replace(source, schedules=schedules)


def _snapshots(text: str, at: Section, root: Path) -> Path | str:
    try:
        return parse_snapshots(text, root)
    except ConfigError as error:
        raise at.error("snapshots", error.message) from None


def _sources(
    sources: Mapping[str, Entry], retries: Collection[str], problems: Problems
) -> dict[str, SourceSettings]:
    """Those that are sound; what is wrong with the others is kept."""
    found = {}
    for key, entry in sources.items():
        source = _source(key, entry, retries, problems)
        if source is not None:
            found[key] = source
    return found


def _source(
    key: str, entry: Entry, retries: Collection[str], problems: Problems
) -> SourceSettings | None:
    """The source, as far as it can be read where variables are not set; None if it has a mistake."""
    unset = unset_paths(entry)
    known = without_unset(entry) if unset else entry
    source = problems.read(
        known, lambda each: read_source(key, each, retries), STAND_INS, without=unset
    )
    if source is not None or problems or not unset:
        return source
    pipeline = known.value.get("pipeline") if isinstance(known.value, dict) else None
    return SourceSettings(key, str(pipeline.value) if pipeline is not None else "")
