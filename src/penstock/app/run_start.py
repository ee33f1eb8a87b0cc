"""Starting runs: what is refused, and what goes on instead of being started a second time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from penstock.app.refusals import Stopped
from penstock.app.unfinished import unfinished_run, unfinished_runs
from penstock.app.views.runs import LeftOut, NoneCanRun, Started, StartedMany, run_view
from penstock.errors import ConfigError, PenstockError, PipelineError, Refused, UsageError
from penstock.jobs.run import RunKind
from penstock.project.run_starter import Asked

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.onboardings import OnboardingRow
    from penstock.store.rows import RunRow

# Of more sources than these, the active runs of all are looked through at once.
ASKED_ONE_BY_ONE = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """What runs are asked for, whatever their source. Without a kind, each has the source's usual one."""

    kind: str | None = None
    is_new: bool = False
    is_draft: bool = False
    is_awaited: bool = False
    asked: Asked = field(default_factory=Asked)
    actor: str | None = None
    reason: str = ""

    @property
    def may_join(self) -> bool:
        return not self.is_new and not self.is_draft

    def differs_from(self, run: RunRow) -> bool:
        """Whether a run that goes on was asked for with other params or another number of pages."""
        params, pages = self.asked.params, self.asked.pages
        is_told_more = bool(params) or pages is not None
        return is_told_more and (params, pages) != (run.options.params, run.options.pages)


def _is_of(kind: str, run: RunRow) -> bool:
    return run.kind == kind


class RunStart:
    """One act of starting runs, of one source or of many."""

    def __init__(self, project: Nouns, wanted: Wanted) -> None:
        self._project = project
        self._wanted = wanted

    def of(self, names: Sequence[str], dry_run: bool) -> list[Started]:
        """A run of each of these sources; all is checked before anything is started."""
        keys = list(dict.fromkeys(self._project.source(name).key for name in names))
        for key in keys:
            self._refuse_kind(key)
        return self._started(keys, dry_run)

    def of_all(self, dry_run: bool) -> StartedMany:
        """A run of every source that can have one."""
        sources = self._project.settings.sources
        if not sources:
            raise UsageError(f"{self._project.settings.file.name} has no sources", code="no_source")
        known = {row.source: row for row in self._project.connection.onboardings.all()}
        errors = {key: self._error_of(key, known) for key in sources}
        may = [key for key, error in errors.items() if error is None]
        left_out = [LeftOut(key, error) for key, error in errors.items() if error is not None]
        if not may:
            raise NoneCanRun(self._wanted.kind or "full", left_out)
        return StartedMany(self._started(may, dry_run), left_out)

    def _error_of(self, key: str, known: Mapping[str, OnboardingRow]) -> PenstockError | None:
        """Why a source is left out. Code that can't be loaded at all is an error of the whole command."""
        source = self._project.source(key)
        if source.unset:
            return ConfigError(f"{source.unset[0].name} is not set", code="variable_unset")
        self._project.graph(source)
        try:
            self._refuse_kind(key, known)
        except (Refused, PipelineError) as error:
            return error
        return None

    def _refuse_kind(self, key: str, known: Mapping[str, OnboardingRow] | None = None) -> None:
        """A degraded source runs probes only; a pipeline that has nothing to do in such a run says so."""
        source, kind = self._project.source(key), self._kind(key)
        self._project.refuse_run(key, kind, known)
        self._project.graph(source).plan(source.priority, RunKind(kind))

    def _kind(self, key: str) -> str:
        return self._wanted.kind or self._project.source(key).usual_kind

    def _started(self, keys: Sequence[str], dry_run: bool) -> list[Started]:
        unfinished = self._unfinished(keys)
        stopped = Stopped(self._project) if self._wanted.is_awaited else None
        for key in keys:
            if stopped is not None:
                stopped.refuse(key, unfinished.get(key))
            self._refuse_other(key, unfinished.get(key))
        if dry_run:
            return [self._view(key, unfinished.get(key), key not in unfinished) for key in keys]
        return [self._begun(key, unfinished.get(key)) for key in keys]

    def _unfinished(self, keys: Sequence[str]) -> dict[str, RunRow]:
        """For each source the run to go on with, if there is one."""
        if not self._wanted.may_join:
            return {}
        _ = self._project.source_ids  # a source that is new in the file becomes known to the store
        store = self._project.connection
        found: dict[str, RunRow] = {}
        if len(keys) > ASKED_ONE_BY_ONE:
            kinds = {key: self._kind(key) for key in keys}
            for row in unfinished_runs(store):
                if row.kind == kinds.get(row.source) and not row.for_drains:
                    found.setdefault(row.source, row)
            return found
        for key in keys:
            if (run := unfinished_run(store, key, partial(_is_of, self._kind(key)))) is not None:
                found[key] = run
        return found

    def _begun(self, key: str, unfinished: RunRow | None) -> Started:
        if unfinished is not None:
            return self._view(key, unfinished, is_new=False)
        wanted = self._wanted
        about = (key, self._kind(key), wanted.actor, wanted.reason)
        if not wanted.may_join:
            row = self._project.start_run(*about, is_draft=wanted.is_draft, asked=wanted.asked)
            return self._view(key, row, is_new=True)
        # However many ask at once, one run is started.
        row, is_new = self._project.start_or_join(*about, wanted.asked)
        if not is_new:
            self._refuse_other(key, row)
        return self._view(key, row, is_new)

    def _refuse_other(self, key: str, run: RunRow | None) -> None:
        """Going on with a run must not quietly drop what is asked for now."""
        if run is not None and self._wanted.differs_from(run):
            raise Refused(
                f"run {run.id} of {key} has not ended yet and was started with other params or pages",
                "new=True starts another run beside it",
                code="run_differs",
            )

    def _view(self, key: str, row: RunRow | None, is_new: bool) -> Started:
        run = None if row is None else run_view(row, self._project.connection.now())
        return Started(source=key, run=run, is_new=is_new)
