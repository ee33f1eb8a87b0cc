"""Which run a step belongs to: by what the store knows of this configuration, not by files.

The configuration of a run is the version that it was begun with (job, profile, command line, and the code of
the steps) and its sample. Budgets are no part of it: whoever raises one goes on with the same run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import Refused
from penstock.jobs.run import RunKind, RunState

if TYPE_CHECKING:
    from penstock.app.project import Project
    from penstock.pipeline.selection import ChosenStep
    from penstock.store.rows import RunRow

LOOKED_AT = 1000
KIND = RunKind.FULL


@dataclass(frozen=True, slots=True)
class ConfiguredRuns:
    """The runs of one configuration of a job."""

    project: Project
    source: str
    sample: int | None
    steps: Sequence[str]
    # The one that is meant, if that is not the newest.
    run: int | None = None

    def newest(self) -> RunRow | None:
        """The newest run of this configuration that nobody has cancelled; or the one that is meant."""
        # Before the store is opened: what is wrong with the steps is told first.
        version = self.project.version(self.source)
        key = self.project.source_key(self.source)
        if self.run is not None:
            return self._meant(self.run, key, version)
        for row in self.project.connection.runs.newest(key, limit=LOOKED_AT):
            if self._is_ours(row, key, version):
                return row
        return None

    def _meant(self, run: int, key: str | None, version: str) -> RunRow:
        row = self.project.require_run(run)
        if not self._is_ours(row, key, version):
            raise Refused(
                f"run {run} has another configuration, or was cancelled",
                "only the same job, profile, options and code can resume it",
                code="other_configuration",
            )
        return row

    def _is_ours(self, row: RunRow, key: str | None, version: str) -> bool:
        is_prepared = row.for_drains and row.kind == KIND and row.source == key
        is_same = (row.pipeline_version, row.options.pages) == (version, self.sample)
        return is_prepared and is_same and not _is_given_up(row)

    def of_profile(self, *, resume: bool) -> int:
        """The run to go on with, or a new one."""
        newest = self.newest()
        return newest.id if resume and newest is not None else self._begin(newest)

    def of_step(self, step: ChosenStep, *, resume: bool) -> int:
        """The run that has this step to do, or with `resume` the newest one.

        Only what nothing comes before begins a run: what is gathered from nothing would be an empty dataset.
        """
        newest = self.newest()
        if newest is not None and (resume or not self._has_begun(newest, step.name)):
            return newest.id
        if not step.after:
            return self._begin(newest)
        first = ", ".join(step.after)
        if newest is None:
            raise Refused(
                f"{step.name} comes after {first}, and no run of this configuration has done that",
                f"run {step.after[0]} first, with the same job, profile and options",
                code="upstream_open",
            )
        raise Refused(
            f"{step.name} was begun in run {newest.id} of this configuration",
            f"--resume continues it; a new run starts with the first step ({first})",
            code="step_begun",
        )

    def _has_begun(self, run: RunRow, step: str) -> bool:
        """Whether any of its jobs was started, or it had nothing to do."""
        if run.is_ended:
            return True
        [stage] = [each for each in self.project.drains.stages(run.id) if each.name == step]
        return stage.state == "closed" or any(
            number for state, number in stage.counts.items() if state != "queued"
        )

    def _begin(self, newest: RunRow | None) -> int:
        """A new run. Processes that begin it at once, knowing of the same newest one, begin one."""
        version = self.project.version(self.source)
        key = f"builder {version} {self.sample or 'all'} after {0 if newest is None else newest.id}"
        begun = self.project.runs.prepare(
            self.source, KIND.value, key=key, pages=self.sample, reason="a step of the builder"
        )
        if begun.run is None:
            raise Refused(f"no run of {self.source} could be begun")
        return begun.run.id


def _is_given_up(row: RunRow) -> bool:
    # A run whose required step failed ends cancelled too, but has jobs in quarantine to go on with.
    return row.state == RunState.CANCELLED and not row.quarantined
