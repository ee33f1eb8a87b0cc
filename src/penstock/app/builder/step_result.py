"""Performing steps of a run, and what became of each: the status, why, and the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.app.builder.budgets import budget_views
from penstock.app.builder.guard import Guard
from penstock.app.builder.packages import (
    files_of,
    folder_of,
    kpis_of,
    report_of,
    what_is_wrong,
    write_again,
)
from penstock.app.views.builder import (
    BUDGET_EXCEEDED,
    FAIL,
    OK,
    SKIPPED,
    WARN,
    BuilderStepView,
    JobBudgetView,
    TargetView,
)
from penstock.builder.job import Job
from penstock.builder.job_file import Budgets
from penstock.builder.registry import builder
from penstock.clock import iso
from penstock.counting import count

if TYPE_CHECKING:
    from penstock.app.project import Project
    from penstock.app.views.drains import DrainView

LAST = next(name for name, step in builder.steps.items() if step.is_final)
BUDGET = "budget"
ENDED = ("succeeded", "skipped", "quarantined", "cancelled")
RAISE = "raise it and continue with --resume"


@dataclass(frozen=True, slots=True)
class Performed:
    """The run whose steps are performed, and what counts for them."""

    project: Project
    run: int
    job: str
    profile: str
    params: Job
    budgets: Budgets
    tell: Callable[[str], None]

    @property
    def root(self) -> Path:
        return self.project.settings.root


class StepResults:
    """The steps of one run: perform them, and say what became of each."""

    def __init__(self, about: Performed) -> None:
        self._about = about
        row = about.project.require_run(about.run)
        self._guard = Guard(about.budgets, row.created_at, about.project.now())

    def perform_step(
        self, step: str, *, resume: bool = False, shard: tuple[int, int] = (1, 1)
    ) -> BuilderStepView:
        """Perform one step, unless it is done or there is no time left for it."""
        found = self._of_stage(step)
        if found.is_closed and found.state == "ok":
            return self._done_before(found)
        if self._is_late():
            return self._view(found, BUDGET_EXCEEDED, self._late_words())
        view = self._about.project.drains.perform(
            self._about.run,
            step,
            shard=shard,
            retry_failed=resume,
            deadline_s=self._guard.left_s,
            on_progress=lambda _: self._guard.look(),
            tell=self._about.tell,
            stopping=self._guard.stopping,
        )
        return self._judged(view)

    def perform_all(
        self,
        *,
        resume: bool,
        anyway: bool,
        on_step: Callable[[BuilderStepView], None],
    ) -> Sequence[BuilderStepView]:
        """Perform all steps; items go through them without waiting for each other."""
        told: dict[str, BuilderStepView] = {}
        before = {each.step: each.counts for each in self._stages() if each.is_closed}

        def tell(view: DrainView) -> None:
            if not anyway and any(each.status == FAIL for each in told.values()):
                return
            is_old = view.state == "ok" and before.get(view.step) == view.counts
            made = self._done_before(view) if is_old else self._judged(view)
            told[view.step] = made
            on_step(made)
            if made.status == FAIL and not anyway:
                self._guard.stopping.set()

        if self._is_late():
            views = [
                self._view(each, BUDGET_EXCEEDED, self._late_words()) for each in self._stages()
            ]
            on_step(views[0])
            return views[:1]
        views_now = self._about.project.drains.perform_run(
            self._about.run,
            retry_failed=resume,
            deadline_s=self._guard.left_s,
            on_stage=tell,
            on_progress=self._guard.look,
            tell=self._about.tell,
            stopping=self._guard.stopping,
        )
        for view in views_now:
            if view.step not in told:
                tell(view)
        return list(told.values())

    def status_of(self, step: str) -> tuple[str, str]:
        """What became of a step so far, and why; '' while it is open."""
        found = self._of_stage(step)
        if not found.is_closed:
            return "", ""
        made = self._judged(found)
        return made.status, made.reason

    def _stages(self) -> list[DrainView]:
        return [
            self._of_stage(each.name) for each in self._about.project.drains.stages(self._about.run)
        ]

    def _of_stage(self, step: str) -> DrainView:
        return self._about.project.drains.look(self._about.run, step)

    def _is_late(self) -> bool:
        return self._guard.left_s is not None and self._guard.left_s <= 0

    def _late_words(self) -> str:
        row = self._about.project.require_run(self._about.run)
        over = f"run {row.id} began at {iso(row.created_at)}, and its time is over"
        return f"time_budget_min of {self._about.budgets.time_budget_min:g}: {over}; {RAISE}"

    def _done_before(self, view: DrainView) -> BuilderStepView:
        """A step that is committed; a package that was changed since is written again."""
        if view.step != LAST:
            return self._view(view, SKIPPED, "resume: it is done in the store", done=0)
        wrong = what_is_wrong(self._folder)
        if not wrong:
            return self._view(view, SKIPPED, "resume: it is done, and its files are whole", done=0)
        write_again(self._about.project, self._about.params, self._about.run, self._about.root)
        return self._view(view, OK, f"written again: {wrong}", outputs=files_of(self._folder))

    def _judged(self, view: DrainView) -> BuilderStepView:
        """The status of a step from what its drain came to."""
        if not view.is_closed:
            return self._open(view)
        if self._spent(view):
            return self._view(view, BUDGET_EXCEEDED, self._spent(view))
        if view.state == "failed":
            return self._view(
                view, FAIL, view.errors[0].error if view.errors else "all of it failed"
            )
        if view.state == "skipped":
            why = "what it comes after failed, or a budget had no room for all of it"
            return self._view(view, SKIPPED, why, is_blocked=True)
        if view.step == LAST and (wrong := what_is_wrong(self._folder)):
            return self._view(view, FAIL, wrong)
        if view.state == "partial":
            number = view.counts["quarantined"]
            return self._view(view, WARN, f"{count(number, 'item')} in quarantine")
        if not sum(view.counts.values()):
            return self._view(view, SKIPPED, "it received no items")
        return self._view(view, OK, outputs=self._outputs(view.step))

    def _open(self, view: DrainView) -> BuilderStepView:
        if view.ended == "deadline":
            self._guard.ran_out()
        if self._guard.exceeded == "ram_mb":
            words = (
                f"ram_mb: {self._guard.peak_mb:,.0f} MB of {self._about.budgets.ram_mb:,}; {RAISE}"
            )
            return self._view(view, BUDGET_EXCEEDED, words)
        if self._guard.exceeded:
            return self._view(view, BUDGET_EXCEEDED, self._late_words())
        return self._view(view, SKIPPED, f"interrupted: {view.waits_for}", is_stopped=True)

    def _spent(self, view: DrainView) -> str:
        """Which budget had no room for items of this step, and when it resets; empty if none."""
        spent = [each for each in view.errors if each.kind == BUDGET]
        if not spent:
            return ""
        exhausted = [each for each in self._budgets() if each.is_exhausted]
        number = sum(each.jobs for each in spent)
        names = "; ".join(_words(each) for each in exhausted) or spent[0].error
        resets = min((each.resets_at for each in exhausted if each.resets_at), default=None)
        when = f"it resets at {iso(resets)}" if resets else f"it does not reset: {RAISE}"
        return f"{names}: {count(number, 'item')} of {view.step} had no room; {when}"

    def _budgets(self) -> list[JobBudgetView]:
        project, run = self._about.project, self._about.run
        row = project.require_run(run)
        return budget_views(project, row, self._about.budgets, self._guard.peak_mb)

    @property
    def _folder(self) -> Path:
        return folder_of(self._about.root, self._about.params)

    def _outputs(self, step: str) -> list[str]:
        return files_of(self._folder) if step == LAST else []

    def _kpis(self, step: str) -> list[TargetView]:
        if step != LAST:
            return []
        project, params = self._about.project, self._about.params
        return kpis_of(report_of(project, params, self._about.run), params)

    def _view(
        self,
        view: DrainView,
        status: str,
        reason: str = "",
        *,
        done: int | None = None,
        outputs: Sequence[str] = (),
        is_stopped: bool = False,
        is_blocked: bool = False,
    ) -> BuilderStepView:
        ended = sum(view.done[name] for name in ENDED)
        return BuilderStepView(
            job=self._about.job,
            profile=self._about.profile,
            run=self._about.run,
            step=view.step,
            status=status,
            reason=reason,
            seconds=view.seconds,
            counts={name: number for name, number in view.counts.items() if number},
            done=max(0, ended) if done is None else done,
            outputs=list(outputs),
            budgets=self._budgets(),
            kpis=self._kpis(view.step) if status in (OK, WARN, SKIPPED) else [],
            errors=view.errors,
            is_stopped=is_stopped,
            is_blocked=is_blocked,
        )


def _words(budget: JobBudgetView) -> str:
    return f"{budget.name} of {budget.bound:,.0f}"
