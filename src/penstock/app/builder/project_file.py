"""The project of a job: a penstock.yaml in its folder, made of job.yaml and the command line.

Each command makes it again and writes it only if it says something new, so that all commands of `penstock`
work on the job's runs: `penstock status --project OUT`. Variables stay variables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.app.builder.choices import Choices
from penstock.app.builder.job import BuilderJob, read_job
from penstock.app.step_graphs import BUILDER
from penstock.app.text_files import replace_text
from penstock.builder.job import Job, job_of, refuse_lacking
from penstock.errors import ConfigError, PenstockError, UsageError
from penstock.pipeline.selection import overlaid
from penstock.private_files import FILE_MODE
from penstock.settings import FILE_NAME
from penstock.settings.document import Entry
from penstock.settings.environment import Substitution
from penstock.settings.load import FileReading
from penstock.settings.problems import Problems
from penstock.settings.section import plain
from penstock.settings.structs import entry_at, nearest_entry, read_struct

STORE = "PENSTOCK_BUILDER_STORE"
MADE_BY = "# Written by the builder from"
HEADER = f"{MADE_BY} {{}}. Change the job, not this file: it is written again.\n"
# A site that fails is one company of many: it must not slow down all of them.
USUAL = {"limits": {"adaptive": False}}
# Packages lie in the job's folder itself.
OUTPUT = {"dir": "."}


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """What the penstock.yaml of a job is to hold."""

    job: BuilderJob
    choices: Choices
    outdir: Path

    @property
    def path(self) -> Path:
        return self.outdir / FILE_NAME

    def document(self) -> Entry:
        """The file as entries, which know where in job.yaml they come from."""
        project: dict[str, Any] = {"project": self.job.name}
        if os.environ.get(STORE):
            project["store"] = f"${{{STORE}}}"
        if ram_mb := self.choices.budgets(self.job.keys).ram_mb:
            project["worker"] = {"memory_mb": ram_mb}
        top = _laid(self.job.section("penstock"), self._entry(project))
        return _laid(top, self._entry({"sources": {self.job.name: self._source()}}))

    def _source(self) -> Entry:
        budgets = self.choices.budgets(self.job.keys)
        written = self.job.section("source")
        made: dict[str, Any] = {
            "pipeline": BUILDER,
            "profile": self.choices.profile_of(self.job.keys),
            "params": _laid(self._entry({"output": OUTPUT}), self._entry(self.job.params())),
            "budget": {
                measure: _bounds(entry_at(written, f"budget.{measure}") if written else None, text)
                for measure, text in (
                    ("requests", f"{budgets.max_http_requests}/run"),
                    ("bytes", f"{budgets.max_http_bytes}B/run"),
                )
                if not text.startswith("0")
            },
        }
        if self.choices.concurrency is not None:
            made["limits"] = {"concurrency": self.choices.concurrency}
        return _laid(_laid(self._entry(USUAL), written or self._entry({})), self._entry(made))

    def _entry(self, value: Any, file: str = "") -> Entry:
        """A value that is not written anywhere, as if it stood in job.yaml."""
        if isinstance(value, Entry):
            return value
        here = replace(self.job.written, line=0, file=file or self.job.shown)
        if isinstance(value, Mapping):
            inner = {name: self._entry(each, file) for name, each in value.items()}
            return replace(here, value=inner)
        if isinstance(value, (list, tuple)):
            return replace(here, value=[self._entry(each, file) for each in value])
        return replace(here, value=value)

    def check(self) -> None:
        """Refuse what is wrong, with its place in job.yaml."""
        self._refuse_own_keys()
        substituted = Substitution(os.environ).apply(self.document())
        try:
            FileReading(self.path, None, Problems()).settings(substituted)
        except ConfigError as error:
            raise self._of_job(error) from None
        params = nearest_entry(substituted, f"sources.{self.job.name}.params")
        selection = self.choices.selection(self.job.keys)
        config = selection.config
        over = self._entry(config, f"{self.job.shown} with its profile and --set")
        problems = Problems()
        problems.read(_laid(params, over), lambda each: read_struct(Job, each))
        problems.refuse()
        job = job_of(overlaid(plain(params), config))
        refuse_lacking(job, {each.name for each in selection.steps})

    def _refuse_own_keys(self) -> None:
        for section, keys in (
            ("source", ("pipeline", "connector", "profile", "params", "schedule")),
            ("penstock", ("project", "sources", "defaults", "collections")),
        ):
            found = self.job.section(section)
            written = found.value if found is not None and isinstance(found.value, dict) else {}
            for key in keys:
                if key in written:
                    raise written[key].error(f"{section}.{key}", "is made of the job; leave it out")

    def _of_job(self, error: ConfigError) -> ConfigError:
        """The error with keys as they stand in the job."""
        own = f"sources.{self.job.name}."
        said = [each.replace(own, "source.") for each in (error.message, *error.mistakes)]
        made = ConfigError(said[0], error.hint.replace(own, "source."))
        made.mistakes = tuple(said[1:])
        return made

    def text(self) -> str:
        body = json.dumps(plain(self.document()), indent=2, ensure_ascii=False)
        return HEADER.format(json.dumps(str(self.job.file))) + body + "\n"

    def is_written(self) -> bool:
        """Whether the folder has exactly this project."""
        try:
            return self.path.read_text(encoding="utf-8") == self.text()
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise UsageError(
                f"--outdir {self.outdir} is no folder", "name another one: it is made if need be"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{self.path} can't be read: {error}") from None

    def refuse_foreign(self) -> None:
        """A project that somebody wrote is not overwritten."""
        if not self.path.exists() or self.path.read_text("utf-8", "replace").startswith(MADE_BY):
            return
        raise UsageError(
            f"{self.path} is a project of its own", "choose another --outdir", code="outdir_taken"
        )

    def write(self) -> None:
        try:
            self.outdir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--outdir {self.outdir}: {error.strerror}") from None
        replace_text(self.path, self.text(), FILE_MODE)


def is_on_postgres(job: Path, more: Mapping[str, str]) -> bool | None:
    """Whether the steps of a job share a Postgres database; None where that can't be seen here.

    `more` are variables beside those of the environment.
    """
    environ = {**os.environ, **more}
    store = environ.get(STORE) or _store_of(job, environ)
    # What an engine will put there is not known yet.
    return None if store is None or "{{" in store else store.startswith("postgres")


def _store_of(job: Path, environ: Mapping[str, str]) -> str | None:
    """The store that a job names, empty if it names none; None if the job can't be read."""
    try:
        written = Substitution(environ).apply(read_job(job, environ).written)
    except PenstockError:
        return None
    store = entry_at(written, "penstock.store")
    return str(store.value) if store is not None else ""


def _bounds(written: Entry | None, text: str) -> str | list[Any]:
    """A budget of each run, beside those that the job has for days and months."""
    if written is None:
        return text
    return [*(written.value if isinstance(written.value, list) else [written]), text]


def _laid(below: Entry | None, above: Entry) -> Entry:
    """Two mappings as one, the upper one's values over the lower one's."""
    if below is None or not (isinstance(below.value, dict) and isinstance(above.value, dict)):
        return above
    made = dict(below.value)
    for name, inner in above.value.items():
        made[name] = _laid(made.get(name), inner)
    return replace(below, value=made)
