"""A job.yaml, read and checked: every mistake at once, each with its file, line and key."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.builder.job import job_of
from penstock.builder.job_file import PARAMS, JobFile
from penstock.errors import ConfigError, UsageError
from penstock.settings.document import Entry, read_document
from penstock.settings.environment import Substitution
from penstock.settings.problems import Problems
from penstock.settings.structs import nearest_entry, read_struct, struct_schema

FILE_NAME = "job.yaml"
SCHEMA_NAME = "job.schema.json"
_PLACE = re.compile(r"job: ([\w.\[\]]+?):? (?=\S)")
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class BuilderJob:
    """A job and the file that it is from. In `written`, variables stand as `${NAME}`; they are no secrets."""

    file: Path
    keys: JobFile
    written: Entry
    secrets: frozenset[str]

    @property
    def name(self) -> str:
        """Of its project and source."""
        return (self.keys.name or _NO_NAME.sub("-", self.file.stem).strip("-") or "job").lower()

    @property
    def shown(self) -> str:
        """The file as a person would name it."""
        return self.written.file

    def section(self, name: str) -> Entry | None:
        """What stands under a key at its top, as it is written."""
        return self.written.value.get(name) if isinstance(self.written.value, dict) else None

    def params(self) -> dict[str, Entry]:
        """What the steps read, with the paths of files as they are from anywhere."""
        found = {name: entry for name in PARAMS if (entry := self.section(name)) is not None}
        return {name: self._from_anywhere(name, entry) for name, entry in found.items()}

    def _from_anywhere(self, name: str, entry: Entry) -> Entry:
        match name:
            case "dumps":
                return self._each(entry, "path")
            case "serp" if self.keys.serp.provider == "index":
                return _changed(entry, "url", self._path)
        return entry

    def _each(self, entry: Entry, key: str) -> Entry:
        if not isinstance(entry.value, list):
            return entry
        return replace(entry, value=[_changed(each, key, self._path) for each in entry.value])

    def _path(self, entry: Entry) -> Entry:
        text = entry.value
        if not isinstance(text, str) or "://" in text or text.startswith("${"):
            return entry
        return replace(entry, value=os.path.normpath(self.file.parent / text))


def read_job(file: Path, environ: Mapping[str, str] = os.environ) -> BuilderJob:
    """The job in this file, with the variables of the environment; or all that is wrong with it."""
    file = _file(file).absolute()
    early = Problems()
    document = _without_nothing(read_document(file, early.add))
    substitution = Substitution(environ)
    substituted = substitution.apply(document)
    if substitution.unset:
        raise ConfigError(substitution.unset[0].words, "set it in the environment")
    problems = Problems(early)
    keys = problems.read(substituted, lambda entry: read_struct(JobFile, entry))
    if keys is not None:
        _refuse_contradictions(substituted, problems)
    problems.refuse()
    if keys is None:
        raise ConfigError(f"{file} can't be read")
    return BuilderJob(file, keys, document, frozenset(substitution.secrets))


def job_schema() -> dict[str, Any]:
    """The JSON Schema of job.yaml."""
    return struct_schema(JobFile, FILE_NAME)


def _file(file: Path) -> Path:
    return file / FILE_NAME if file.is_dir() else file


def _changed(entry: Entry, key: str, change: Callable[[Entry], Entry]) -> Entry:
    if not isinstance(entry.value, dict) or key not in entry.value:
        return entry
    return replace(entry, value={**entry.value, key: change(entry.value[key])})


def _without_nothing(entry: Entry) -> Entry:
    """A key without a value counts as not written."""
    if isinstance(entry.value, dict):
        kept = {name: each for name, each in entry.value.items() if each.value is not None}
        return replace(entry, value={name: _without_nothing(each) for name, each in kept.items()})
    if isinstance(entry.value, list):
        return replace(entry, value=[_without_nothing(each) for each in entry.value])
    return entry


def _refuse_contradictions(document: Entry, problems: Problems) -> None:
    """What the steps would refuse of a job that is well formed."""
    from penstock.settings.section import plain

    params = {name: value for name, value in plain(document).items() if name in PARAMS}
    try:
        job_of(params)
    except ConfigError as error:
        found = _PLACE.match(error.message)
        place = found[1] if found else ""
        at = nearest_entry(document, place)
        said = error.message[found.end() :] if found else error.message
        problems.add(at.error(place, said))
    for number, endpoint in enumerate(params.get("api", {}).get("endpoints", ())):
        if "://" not in endpoint["url"]:
            place = f"api.endpoints[{number}].url"
            problems.add(
                nearest_entry(document, place).error(
                    place, "must be an address; a file with JSON is one of `dumps`"
                )
            )


def refuse_project(project: str | None) -> None:
    """A job has a project of its own."""
    if project is not None:
        raise UsageError(
            "a job has a project of its own, in --outdir",
            "another database: `penstock: {store: …}` in the job, or PENSTOCK_BUILDER_STORE",
            code="job_has_project",
        )
