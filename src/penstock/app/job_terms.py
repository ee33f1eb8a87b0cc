"""What a job is performed under: its timeout, its retry class and the budgets that it counts against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.app.budgets import accounts
from penstock.app.views.jobs import TermsView, terms_view
from penstock.engine.worker.stage_config import timeout_of
from penstock.gates.budget import amount_words, words
from penstock.jobs.retry import choose_retry

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.gates.budget import BudgetUsage
    from penstock.store.rows import JobRow

# A longer one is none: the job goes on until it is stopped.
ENDLESS_S = 365 * 86_400.0


def terms_of(project: Nouns, row: JobRow) -> TermsView | None:
    """By the run's own plan and by what penstock.yaml says now; nothing of the project is imported.

    None if its source is configured no more, or its stage was never in its run's plan.
    """
    settings = project.settings.sources.get(row.source)
    stage = project.connection.runs.plan(row.run_id).stage(row.stage)
    if settings is None or stage is None:
        return None
    timeout_s = timeout_of(stage, settings)
    retry = choose_retry(project.retries, stage.pipeline_retry, settings.retry, stage.retry)
    return terms_view(
        None if timeout_s > ENDLESS_S else timeout_s,
        retry,
        [(each, words(each.bound), _left(each)) for each in _budgets(project, row)],
    )


def _budgets(project: Nouns, row: JobRow) -> list[BudgetUsage]:
    now = project.now()
    lasting = accounts(project, now, row.source)
    shared = [each for each in lasting if not each.bound.scope.startswith("run:")]
    return [*shared, *accounts(project, now, row.source, row.run_id)]


def _left(account: BudgetUsage) -> str:
    return f"{amount_words(account.bound.measure, account.left)} left"
