"""The schema of a project's database: what is missing, and bringing it up to date."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from penstock.app.views.store import (
    AppliedView,
    MigratedView,
    MigrationPlanView,
    applied_view,
    plan_view,
)
from penstock.store.schema import Schema, refuse_in_the_way

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns


def plan(project: Nouns) -> MigrationPlanView:
    """What a migration would do."""
    with closing(project.open_schema()) as schema:
        return plan_view(project.settings.store_name, schema.plan(), schema.schema)


def migrate(
    project: Nouns,
    is_dry: bool,
    on_progress: Callable[[AppliedView], None],
    actor: str,
    reason: str,
) -> MigratedView:
    """Apply what is missing, unless a worker needs what it takes away."""
    with closing(project.open_schema()) as schema:
        wanted = schema.plan()
        for each in wanted.pending:
            refuse_in_the_way(each, wanted.in_the_way(each))
        is_wanted = bool(wanted.pending or wanted.leftovers) and not is_dry
        applied = _apply(schema, on_progress, actor, reason) if is_wanted else []
        return MigratedView(
            store=project.settings.store_name,
            dropped=schema.clear_leftovers() if is_wanted else [],
            applied=applied,
            schema=schema.plan().state.number,
        )


def _apply(
    schema: Schema, on_progress: Callable[[AppliedView], None], actor: str, reason: str
) -> list[AppliedView]:
    applied = []
    for done in schema.migrate(actor, reason):
        applied.append(applied_view(done))
        on_progress(applied[-1])
    return applied
