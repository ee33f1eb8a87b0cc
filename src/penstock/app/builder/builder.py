"""A job in a folder: its steps, one by one or all at once, on the run of this configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from penstock.app.builder.budgets import budget_views, unused_budgets
from penstock.app.builder.choices import Choices
from penstock.app.builder.configured_runs import ConfiguredRuns
from penstock.app.builder.job import BuilderJob, read_job
from penstock.app.builder.project_file import ProjectFile
from penstock.app.builder.step_result import Performed, StepResults
from penstock.app.entry import open_project, protect_files
from penstock.app.step_graphs import selection_view
from penstock.app.views.builder import BuilderPlanView, BuilderStepView, PlannedStepView
from penstock.builder.job import Job, job_of
from penstock.builder.registry import builder
from penstock.errors import AlreadyRunning, Refused, UsageError, nearest
from penstock.pipeline.selection import ChosenStep

if TYPE_CHECKING:
    from penstock.app.project import Project
    from penstock.app.views.drains import DrainStage
    from penstock.app.views.step_graphs import StepGraphView

Tell = Callable[[str], None]
# Overlays are of projects that people write; a job's has none.
ENVIRONMENT = "PENSTOCK_ENV"


def say_nothing(_: str) -> None:
    """Where nobody listens."""


class Builder:
    """A job.yaml with what the command line says over it, and the project in its folder.

    It is a context manager; nothing is written before a step is performed. `run` is the one to go on with,
    if that is not the newest.
    """

    def __init__(
        self,
        job: BuilderJob,
        outdir: Path,
        choices: Choices | None = None,
        tell: Tell | None = None,
        run: int | None = None,
    ) -> None:
        self.job = job
        self.choices = choices or Choices()
        self.outdir = outdir.absolute()
        self._tell = tell or say_nothing
        self._file = ProjectFile(job, self.choices, self.outdir)
        self._run = run
        self._project: Project | None = None
        self.selection = self.choices.selection(job.keys)
        self._file.check()

    @classmethod
    def open(
        cls,
        job: Path | str,
        outdir: Path | str,
        choices: Choices | None = None,
        tell: Tell | None = None,
    ) -> Self:
        """The job in this file, or in the job.yaml of this folder."""
        return cls(read_job(Path(job)), Path(outdir), choices, tell)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._project is not None:
            self._project.close()

    @property
    def project(self) -> Project:
        """The project in the folder, written if it is not there as the job is now."""
        if self._project is None:
            self._file.refuse_foreign()
            if not self._file.is_written():
                self._refuse_while_working()
                self._file.write()
            self._project = self._open()
        return self._project

    @property
    def params(self) -> Job:
        """What the steps read: the job, the profile over it, the command line over both."""
        project = self.project
        source = project.source(self.job.name)
        from penstock.pipeline.version import params_of

        return job_of(params_of(project.graph(source), source))

    def graph(self) -> StepGraphView:
        """The steps of the profile, and why each is in."""
        return selection_view(self.selection)

    def plan(self, *, resume: bool = False, step: str | None = None) -> BuilderPlanView:
        """What a command would do. Nothing is written, and nothing is asked for."""
        steps = self.selection.steps if step is None else [self._chosen(step)]
        run, stages = None, dict[str, "DrainStage"]()
        budgets = unused_budgets(self.choices.budgets(self.job.keys))
        if resume and self._file.is_written() and self._has_store():
            runs = self._runs()
            run = runs.newest()
            if run is not None:
                stages = {each.name: each for each in self.project.drains.stages(run.id)}
                budgets = budget_views(self.project, run, self.choices.budgets(self.job.keys), 0.0)
        return BuilderPlanView(
            job=self.job.name,
            profile=self.choices.profile_name(self.job.keys),
            outdir=str(self.outdir),
            run=None if run is None else run.id,
            steps=[_planned(each, stages.get(each.name)) for each in steps],
            budgets=budgets,
            sample=self.choices.sample,
        )

    def run_step(
        self,
        step: str,
        *,
        resume: bool = False,
        anyway: bool = False,
        shard: tuple[int, int] = (1, 1),
    ) -> BuilderStepView:
        """Perform one step of the run of this configuration.

        With `resume`, of the newest such run: what is committed is skipped, what failed is tried again.
        Without, of a new one, unless the newest has not come to this step yet. `anyway`: although a step
        before it failed.
        """
        if step in builder.steps and step not in {each.name for each in self.selection.steps}:
            return self._disabled(step)
        chosen = self._chosen(step)
        runs = self._runs()
        run = runs.of_step(chosen, resume=resume)
        if not anyway:
            self._refuse_after_failure(run, chosen)
        try:
            return self._results(run).perform_step(step, resume=resume, shard=shard)
        except Refused as error:
            if error.code != "upstream_open":
                raise
            hint = "run what comes before first, with the same job, profile and options"
            raise Refused(error.message, hint, code="upstream_open") from None

    def run_profile(
        self,
        *,
        resume: bool = False,
        anyway: bool = False,
        on_step: Callable[[BuilderStepView], None] = lambda view: None,
    ) -> Sequence[BuilderStepView]:
        """Perform all steps of the run of this configuration, at once; a new run, unless it is to be resumed.

        It ends with the first step that failed, unless `anyway`.
        """
        run = self._runs().of_profile(resume=resume)
        return self._results(run).perform_all(resume=resume, anyway=anyway, on_step=on_step)

    def _results(self, run: int) -> StepResults:
        about = Performed(
            project=self.project,
            run=run,
            job=self.job.name,
            profile=self.choices.profile_name(self.job.keys),
            params=self.params,
            budgets=self.choices.budgets(self.job.keys),
            tell=self._tell,
        )
        return StepResults(about)

    def _runs(self) -> ConfiguredRuns:
        steps = [each.name for each in self.selection.steps]
        return ConfiguredRuns(self.project, self.job.name, self.choices.sample, steps, self._run)

    def _chosen(self, step: str) -> ChosenStep:
        for each in self.selection.steps:
            if each.name == step:
                return each
        hint = nearest(step, builder.steps)
        raise UsageError(f"there is no step {step!r}", hint, code="no_step")

    def _disabled(self, step: str) -> BuilderStepView:
        profile = self.choices.profile_name(self.job.keys)
        return BuilderStepView(
            job=self.job.name,
            profile=profile,
            run=None,
            step=step,
            status="SKIPPED",
            reason=f"profile {profile}: {self.selection.left_out[step]}",
            seconds=0.0,
            counts={},
            done=0,
            outputs=[],
            budgets=[],
            kpis=[],
            errors=(),
        )

    def _refuse_after_failure(self, run: int, step: ChosenStep) -> None:
        """What comes after a failure would make a dataset of what is left."""
        results = self._results(run)
        for name in self._before(step):
            status, reason = results.status_of(name)
            if status in ("FAIL", "BUDGET_EXCEEDED"):
                raise Refused(
                    f"{step.name} comes after {name}, which is {status} in run {run}: {reason}",
                    f"run {name} again with --resume, or continue with --continue-on-error",
                    code="upstream_failed",
                )

    def _before(self, step: ChosenStep) -> Iterator[str]:
        """All that it comes after, the nearest first."""
        by_name = {each.name: each for each in self.selection.steps}
        waiting, seen = list(step.after), set[str]()
        while waiting:
            name = waiting.pop(0)
            if name not in seen:
                seen.add(name)
                waiting += by_name[name].after
                yield name

    def _has_store(self) -> bool:
        with self._open() as project:
            return project.settings.is_on_postgres or project.settings.store_file.exists()

    def _open(self) -> Project:
        with suppress(KeyError):
            del os.environ[ENVIRONMENT]
        project = open_project(self.outdir)
        protect_files(project)
        return project

    def _refuse_while_working(self) -> None:
        """A configuration is not taken away from those who work with it."""
        if not self._file.path.exists():
            return
        with self._open() as before:
            if not (before.settings.is_on_postgres or before.settings.store_file.exists()):
                return
            host = os.uname().nodename
            if any(each.is_alive and each.host == host for each in before.workers.each()):
                raise AlreadyRunning(
                    f"another configuration of this job is at work in {self.outdir}",
                    "wait for its end, or choose another --outdir",
                    code="other_configuration",
                )


def _planned(chosen: ChosenStep, stage: DrainStage | None) -> PlannedStepView:
    counts = {} if stage is None else {name: each for name, each in stage.counts.items() if each}
    would = "run"
    if stage is not None and stage.counts["quarantined"]:
        would = "retry"
    elif stage is not None and stage.state == "closed":
        would = "skip"
    elif counts and set(counts) != {"queued"}:
        would = "continue"
    return PlannedStepView(
        step=chosen.name,
        phase=chosen.step.phase,
        after=list(chosen.after),
        is_network=chosen.step.is_network,
        would=would,
        counts=counts,
    )
