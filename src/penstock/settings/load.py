"""From a project folder to Settings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.errors import ConfigError, nearest
from penstock.settings.address import is_unprotected, parse_store, secrets_in
from penstock.settings.budget import (
    BUDGET_KEYS,
    COST_KEYS,
    read_budget,
    read_cost,
    read_hosts,
)
from penstock.settings.changes import with_changes
from penstock.settings.defaults import with_defaults
from penstock.settings.document import Entry, Tell, display_name, join, raise_it, read_document
from penstock.settings.dotenv import read_dotenv
from penstock.settings.environment import Substitution, overlay, unset_paths, without_unset
from penstock.settings.hooks import TRIGGER_KEYS, read_hooks, read_trigger
from penstock.settings.place import parse_snapshots
from penstock.settings.problems import Problems
from penstock.settings.retries import read_retries
from penstock.settings.secrets import SECRET_NAME
from penstock.settings.section import Section, describe, text_of
from penstock.settings.source import read_source
from penstock.settings.trust import refuse_foreign
from penstock.settings.units import normalise_source, parse_duration
from penstock.settings.unset import NEEDED_TO_LOOK, Unset, refuse_unset, warnings_about
from penstock.settings.values import (
    RETRY_NAMES,
    Retention,
    Settings,
    SourceSettings,
    WorkerSettings,
)
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
    "defaults",
    "sources",
)
WORKER_KEYS = ("count", "slots", "threads", "processes", "cpu", "memory_mb", "grace", "pass_env")
RETENTION_KEYS = (
    "jobs",
    "runs",
    "events",
    "versions",
    "snapshots",
    "quarantine",
    "rejects",
    "staged",
    "logs",
)
# A source without a pipeline is still read, so that the rest of what is wrong with it is told too.
STAND_INS = {"pipeline": "missing:missing"}
UNPROTECTED = (
    "store: nothing says that the connection to the database is encrypted; add ?sslmode=verify-full"
)
_ENVIRONMENT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_VARIABLE = re.compile(r"[A-Za-z0-9_*]{1,200}")


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
    dotenv = read_dotenv(file.parent)
    environ = {**dotenv.values, **environ}
    environment = environment or environ.get("PENSTOCK_ENV") or None
    early = Problems()
    document = read_layers(file, environment, early.add)
    document = with_changes(document, changes)
    substitution = Substitution(environ)
    document = substitution.apply(document)
    unset = substitution.unset
    refuse_unset([each for each in unset if each.section in NEEDED_TO_LOOK])
    settings = _tolerant(document, unset, Reading(file, environment, early))
    # A password that stands in the address itself is no less a secret than one from the environment.
    secrets = substitution.secrets | secrets_in(settings.store) | _secret(dotenv.values)
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


def _secret(values: Mapping[str, str]) -> set[str]:
    """What `.env` sets for others than penstock.yaml is a secret where its name says so."""
    return {value for name, value in values.items() if SECRET_NAME.search(name)}


@dataclass(frozen=True, slots=True)
class Reading:
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


def _tolerant(document: Entry, unset: Sequence[Unset], reading: Reading) -> Settings:
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


def read_layers(file: Path, environment: str | None, tell: Tell = raise_it) -> Entry:
    """The file with its overlay over it and its defaults under its sources, and no variables in it yet."""
    document = _with_normal_sources(read_document(file, tell), tell)
    if environment is None:
        return with_defaults(document)
    top = read_document(_overlay_file(file, environment), tell)
    return with_defaults(overlay(document, _with_normal_sources(top, tell)))


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


def _settings(document: Entry, reading: Reading, problems: Problems) -> Settings:
    top, root = Section(document, "", TOP_KEYS), reading.file.parent
    retries = read_retries(top)
    names = (*RETRY_NAMES, *retries)
    sources = _mapping(top, "sources")
    read = _sources(sources, names, problems)
    if len(read) == len(sources):
        refuse_circles(sources, read)
    return Settings(
        root=root,
        file=reading.file,
        project=top.text("project", root.name or "penstock"),
        store=_store(top),
        environment=reading.environment,
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
        pass_env=_pass_env(section),
    )


def _pass_env(section: Section) -> tuple[str, ...]:
    entry = section.get("pass_env")
    if entry is None:
        return ()
    if not isinstance(entry.value, list):
        raise section.error("pass_env", f"must be a list of names, not {describe(entry)}")
    path, found = join(section.path, "pass_env"), []
    for inner in entry.value:
        name = text_of(inner, path)
        if not _VARIABLE.fullmatch(name):
            raise inner.error(path, "needs names of variables such as MODEL_DIR or AWS_*")
        found.append(name)
    return tuple(found)


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
        logs_s=kept("logs", usual.logs_s),
        runs_s=kept("runs", usual.runs_s),
    )
