"""Every runbook, by name."""

from __future__ import annotations

from penstock.runbooks.backlog_growth import BACKLOG_GROWTH
from penstock.runbooks.budget_running_out import BUDGET_RUNNING_OUT
from penstock.runbooks.database_down import DATABASE_DOWN
from penstock.runbooks.delivery_failed import DELIVERY_FAILED
from penstock.runbooks.duplicate_explosion import DUPLICATE_EXPLOSION
from penstock.runbooks.low_quality import LOW_QUALITY
from penstock.runbooks.runbook import Runbook
from penstock.runbooks.schedule_missed import SCHEDULE_MISSED
from penstock.runbooks.source_broke import SOURCE_BROKE
from penstock.runbooks.store_full import STORE_FULL
from penstock.runbooks.workers_dead import WORKERS_DEAD

RUNBOOKS: dict[str, Runbook] = {
    each.name: each
    for each in (
        SOURCE_BROKE,
        DATABASE_DOWN,
        BACKLOG_GROWTH,
        DUPLICATE_EXPLOSION,
        LOW_QUALITY,
        SCHEDULE_MISSED,
        BUDGET_RUNNING_OUT,
        WORKERS_DEAD,
        STORE_FULL,
        DELIVERY_FAILED,
    )
}
