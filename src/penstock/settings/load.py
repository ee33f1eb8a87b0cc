"""From a project folder to Settings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.errors import ConfigError, nearest
from penstock.settings.address import parse_store, secrets_in
from penstock.settings.budget import (
    BUDGET_KEYS,
    COST_KEYS,
    read_budget,
    read_cost,
    read_hosts,
)
from penstock.settings.changes import with_changes
from penstock.settings.document import Entry, display_name, join, read_document
from penstock.settings.environment import Substitution, overlay
from penstock.settings.hooks import TRIGGER_KEYS, read_hooks, read_trigger
from penstock.settings.place import parse_snapshots
from penstock.settings.retries import read_retries
from penstock.settings.section import Section
from penstock.settings.source import read_source
from penstock.settings.units import normalise_source, parse_duration
from penstock.settings.values import RETRY_NAMES, Retention, Settings, WorkerSettings
from penstock.settings.waiting import refuse_circles

FILE_NAME = "penstock.yaml"
TOP_KEYS = (
    "project",
    "store",
    "worker",
    "retention",
    "retries",
    "snapshots",
    "budget",
    "cost",
    "hosts",
    "hooks",
    "trigger",
    "sources",
)
WORKER_KEYS = ("count", "slots", "threads", "processes", "cpu", "memory_mb", "grace")
RETENTION_KEYS = ("jobs", "events", "versions", "snapshots", "quarantine", "rejects", "staged")
_ENVIRONMENT = re.compile(r"[A-Za-z0-9_-]{1,64}")


def find_project(start: Path) -> Path:
    """The nearest penstock.yaml at or above this folder."""
    start = start.absolute()
    for folder in (start, *start.parents):
        file = folder / FILE_NAME
        if os.path.exists(file):  # unlike Path.exists, False where we may not look
            return file
    raise ConfigError(
        f"there is no {FILE_NAME} in {start} or above it",
        "`penstock init` makes a project; `--project DIR` names one",
    )


def load_settings(
    path: Path | str,
    environment: str | None = None,
    environ: Mapping[str, str] = os.environ,
    changes: Sequence[str] = (),
) -> Settings:
    """The settings of the project whose penstock.yaml, or whose folder, this is.

    The environment is the one named here, else PENSTOCK_ENV, else none. One that has no overlay
    file is refused: a mistyped name must not run a project with another environment's settings. `changes`
    are laid over both: `acme.com.schedule.every=6h`.
    """
    file = _project_file(Path(path).absolute())
    environment = environment or environ.get("PENSTOCK_ENV") or None
    document = read_layers(file, environment)
    document = with_changes(document, changes)
    substitution = Substitution(environ)
    document = substitution.apply(document)
    settings = _settings(Section(document, "", TOP_KEYS), file, environment)
    # A password that stands in the address itself is no less a secret than one from the environment.
    secrets = substitution.secrets | secrets_in(settings.store)
    return replace(settings, secrets=frozenset(secrets))


def read_layers(file: Path, environment: str | None) -> Entry:
    """The file with its overlay laid over it, and nothing of the environment in it yet."""
    document = _with_normal_sources(read_document(file))
    if environment is None:
        return document
    top = _with_normal_sources(read_document(_overlay_file(file, environment)))
    return overlay(document, top)


def _project_file(path: Path) -> Path:
    file = path / FILE_NAME if os.path.isdir(path) and path.name != FILE_NAME else path
    if not os.path.exists(file):
        raise ConfigError(
            f"{display_name(file)}: there is no such file", "`penstock init` makes a project"
        )
    return file


def _overlay_file(file: Path, environment: str) -> Path:
    if not _ENVIRONMENT.fullmatch(environment):
        raise ConfigError(f"{environment!r:.40} can't be the name of an environment")
    found = file.with_name(f"{file.stem}.{environment}{file.suffix}")
    if not os.path.exists(found):
        names = [each.stem.removeprefix(f"{file.stem}.") for each in _overlays(file)]
        tail = nearest(environment, names) or "there are no overlays"
        raise ConfigError(
            f"{display_name(found)}: there is no such file for the environment "
            f"{environment!r}, {tail}"
        )
    return found


def _overlays(file: Path) -> list[Path]:
    return sorted(file.parent.glob(f"{file.stem}.*{file.suffix}"))


def _with_normal_sources(document: Entry) -> Entry:
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
        key = _source_key(name, entry, path)
        if key in normal:
            raise entry.error(path, f"is the same source as {spelled[key]!r} ({key})")
        spelled[key] = name
        normal[key] = entry
    return replace(document, value={**document.value, "sources": replace(sources, value=normal)})


def _source_key(name: str, entry: Entry, path: str) -> str:
    try:
        return normalise_source(name)
    except ConfigError as error:
        raise entry.error(path, error.message) from None


def _settings(top: Section, file: Path, environment: str | None) -> Settings:
    root = file.parent
    retries = read_retries(top)
    names = (*RETRY_NAMES, *retries)
    sources = _mapping(top, "sources")
    read = {key: read_source(key, entry, names) for key, entry in sources.items()}
    refuse_circles(sources, read)
    return Settings(
        root=root,
        file=file,
        project=top.text("project", root.name or "penstock"),
        store=_store(top),
        environment=environment,
        worker=_worker(top.section("worker", WORKER_KEYS)),
        retention=_retention(top.section("retention", RETENTION_KEYS)),
        snapshots=_snapshots(top, root),
        budget=read_budget(top.section("budget", BUDGET_KEYS)),
        cost=read_cost(top.section("cost", COST_KEYS)),
        hosts=read_hosts(top.get("hosts")),
        retries=retries,
        hooks=read_hooks(top),
        trigger=read_trigger(top.section("trigger", TRIGGER_KEYS)),
        sources=read,
    )


def _mapping(top: Section, name: str) -> dict[str, Entry]:
    entry = top.get(name)
    if entry is None:
        return {}
    if not isinstance(entry.value, dict):
        raise top.error(name, "must be a mapping of source names to their settings")
    return entry.value


def _store(top: Section) -> str:
    text = top.text("store", "sqlite:penstock.db")
    try:
        return parse_store(text)
    except ConfigError as error:
        raise top.error("store", error.message) from None


def _snapshots(top: Section, root: Path) -> Path | str:
    text = top.text("snapshots", "snapshots")
    try:
        return parse_snapshots(text, root)
    except ConfigError as error:
        raise top.error("snapshots", error.message) from None


def _worker(section: Section) -> WorkerSettings:
    usual = WorkerSettings()
    return WorkerSettings(
        count=section.whole("count", usual.count, high=1_000),
        slots=section.whole("slots", usual.slots, high=100_000),
        threads=section.whole("threads", usual.threads, high=1_000),
        processes=section.whole("processes", usual.processes, low=0, high=1_000),
        cpu=section.number("cpu", usual.cpu, low=0.1, high=10_000),
        memory_mb=section.whole("memory_mb", usual.memory_mb, high=100_000_000),
        grace_s=section.duration("grace", usual.grace_s, parse_duration),
    )


def _retention(section: Section) -> Retention:
    usual = Retention()

    def kept(name: str, default: float) -> float:
        return section.duration(name, default, parse_duration, low=1.0)

    return Retention(
        jobs_s=kept("jobs", usual.jobs_s),
        events_s=kept("events", usual.events_s),
        versions_s=kept("versions", usual.versions_s),
        snapshots_s=kept("snapshots", usual.snapshots_s),
        quarantine_s=kept("quarantine", usual.quarantine_s),
        rejects_s=kept("rejects", usual.rejects_s),
        staged_s=kept("staged", usual.staged_s),
    )
