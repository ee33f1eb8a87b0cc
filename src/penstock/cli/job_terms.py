"""What a job is performed under: its timeout, its retry class and the budgets that it counts against."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from penstock.cli.wording import count, duration

if TYPE_CHECKING:
    from penstock.gates.budget import Account
    from penstock.jobs.retry import RetryClass
    from penstock.project import Project
    from penstock.store.rows import JobRow

ENDLESS_S = 365 * 86_400.0


@dataclass(frozen=True, slots=True)
class Terms:
    """By the run's own plan and by what penstock.yaml says now; nothing of the project is imported."""

    timeout_s: float
    retry: RetryClass
    budgets: list[Account]

    def fields(self, tries: int) -> list[tuple[str, str]]:
        from penstock.gates.budget import words

        endless = "none: it goes on until it is stopped"
        retry = self.retry
        budgets = [f"{words(each.bound)}, {_left(each)}" for each in self.budgets]
        return [
            (
                "timeout",
                endless if self.timeout_s > ENDLESS_S else f"{duration(self.timeout_s)} an attempt",
            ),
            ("retry class", f"{retry.name}: {_tries(retry)}, {tries} spent; {_waits(retry)}"),
            *(("budget", text) for text in budgets or ["none"]),
        ]

    def shape(self) -> dict[str, Any]:
        return {
            "timeout_s": None if self.timeout_s > ENDLESS_S else self.timeout_s,
            "retry": asdict(self.retry),
            "budgets": [
                {
                    "scope": each.bound.scope,
                    "measure": each.bound.measure,
                    "period": each.bound.period,
                    "bound": each.bound.amount,
                    "used": each.used,
                    "left": each.left,
                }
                for each in self.budgets
            ],
        }


def terms_of(project: Project, row: JobRow) -> Terms | None:
    """None if its source is configured no more, or its stage was never in its run's plan."""
    from penstock.app.budgets import accounts
    from penstock.engine.worker.stage_config import timeout_of
    from penstock.jobs.retry import choose_retry

    settings = project.settings.sources.get(row.source)
    stage = project.store.run_plan(row.run_id).stage(row.stage)
    if settings is None or stage is None:
        return None
    now = project.store.now()
    lasting = accounts(project, now, row.source)
    of_run = accounts(project, now, row.source, row.run_id)
    shared = [each for each in lasting if not each.bound.scope.startswith("run:")]
    return Terms(
        timeout_of(stage, settings),
        choose_retry(project.retries, stage.pipeline_retry, settings.retry, stage.retry),
        [*shared, *of_run],
    )


def _tries(retry: RetryClass) -> str:
    return count(retry.tries, "try", "tries")


def _waits(retry: RetryClass) -> str:
    return f"waits {duration(retry.base_s)} at first, {duration(retry.cap_s)} at most"


def _left(account: Account) -> str:
    from penstock.gates.budget import amount_words

    return f"{amount_words(account.bound.measure, account.left)} left"
