"""Steps of the builder's jobs as front ends see them: what became of each, and what would be done."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.app.views.runs import RunCauseView
from penstock.app.views.view import Content, Time, View

OK, SKIPPED, WARN, FAIL, BUDGET_EXCEEDED = "OK", "SKIPPED", "WARN", "FAIL", "BUDGET_EXCEEDED"


class JobBudgetView(View, frozen=True, kw_only=True):
    """One budget of a job: what is used of it. A `bound` of None is no bound; `resets_at` None is never."""

    name: str
    bound: float | None
    used: float
    percent: float | None
    is_exhausted: bool
    resets_at: Time | None


class TargetView(View, frozen=True, kw_only=True):
    """A target of the dataset. `is_asked`: it counts for the exit code."""

    name: str
    target: float
    value: float | None
    is_met: bool
    is_asked: bool


class BuilderStepView(View, frozen=True, kw_only=True):
    """What became of a step: OK, SKIPPED, WARN (some of its items are in quarantine), FAIL, BUDGET_EXCEEDED.

    `reason` says why. `counts` are its jobs by state, `done` those that this command ended; `outputs` are the
    files that it wrote. `kpis` are of the last step only. `is_stopped`: it was interrupted. `is_blocked`:
    what it comes after is not done, or failed.
    """

    job: str
    profile: str
    run: int | None
    step: str
    status: str
    reason: Content[str]
    seconds: float
    counts: dict[str, int]
    done: int
    outputs: list[str]
    budgets: list[JobBudgetView]
    kpis: list[TargetView]
    errors: tuple[RunCauseView, ...]
    is_stopped: bool = False
    is_blocked: bool = False

    @property
    def missed(self) -> list[TargetView]:
        return [each for each in self.kpis if each.is_asked and not each.is_met]

    def as_json(self) -> dict[str, Any]:
        made = super().as_json()
        return {**made, "all_kpis_met": not self.missed} if self.kpis else made


class PlannedStepView(View, frozen=True, kw_only=True):
    """What a command would do with a step: `run`, `continue`, `retry` what failed, or `skip` it."""

    step: str
    phase: str
    after: list[str]
    is_network: bool
    would: str
    counts: dict[str, int]


class BuilderPlanView(View, frozen=True, kw_only=True):
    """What a command would do. `run` is the run that would go on; None is a new one."""

    job: str
    profile: str
    outdir: str
    run: int | None
    steps: list[PlannedStepView]
    budgets: list[JobBudgetView]
    sample: int | None


class BatchItemView(View, frozen=True, kw_only=True):
    """One job of a batch, and what became of it: SUCCESS, FAILED, BUDGET_EXCEEDED or ERROR."""

    item: str
    job: str
    outdir: str
    status: str
    reason: Content[str]
    seconds: float
    steps: dict[str, str] = msgspec.field(default_factory=dict)


class FieldTruthView(View, frozen=True, kw_only=True):
    """One field of a dataset: how much of what it says is true, and how much of what is true it says."""

    field: str
    precision: float
    recall: float


class DatasetTruthView(View, frozen=True, kw_only=True):
    """A dataset beside what is known to be true. Shares are from 0 to 1.

    `precision` is the share of its companies that are true and there once, `recall` the share of the true
    companies that it has, `coverage` the share of all true values that it has right.
    """

    companies: int
    expected: int
    duplicates: int
    unknown: int
    precision: float
    recall: float
    coverage: float
    fields: list[FieldTruthView]
