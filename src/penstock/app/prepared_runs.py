"""Prepared runs: made, or found again under the key that an orchestrator has for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.app.views.runs import Started, run_view
from penstock.errors import Refused, UsageError

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.project.run_starter import Asked
    from penstock.store.rows import RunRow

BACKFILL = "backfill"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a prepared run is asked for."""

    key: str | None
    kind: str | None
    between: tuple[str, str] | None
    asked: Asked
    actor: str | None
    reason: str


def prepare_run(project: Nouns, source: str, wanted: Prepared) -> Started:
    found = project.source(source)
    _refuse_half(wanted)
    about = (wanted.actor, wanted.reason)
    if wanted.between is not None:
        options = project.backfill_options(source, *wanted.between)
        row, is_new = project.prepare_backfill(source, wanted.key, options, *about)
    else:
        row, is_new = project.prepare_run(source, wanted.key, wanted.kind, *about, wanted.asked)
    if not is_new:
        _refuse_other(row, wanted, found.usual_kind)
    return Started(source=found.key, run=run_view(row, project.connection.now()), is_new=is_new)


def _refuse_half(wanted: Prepared) -> None:
    is_backfill = wanted.kind == BACKFILL
    if wanted.between is not None and not is_backfill and wanted.kind is not None:
        raise UsageError(f"a run of kind {wanted.kind} has no range of days", code="no_range")
    if wanted.between is None and is_backfill:
        raise UsageError(
            "a backfill needs the days that it covers",
            "between=(FIRST, LAST)",
            code="range_missing",
        )


def _refuse_other(row: RunRow, wanted: Prepared, usual: str) -> None:
    """The run of a key must not quietly be another one than what is asked for now."""
    kind = BACKFILL if wanted.between is not None else wanted.kind or usual
    asked = (kind, wanted.asked.params, wanted.asked.pages)
    if asked != (row.kind, row.options.params, row.options.pages):
        raise Refused(
            f"run {row.id} was prepared under this key as another one: kind, params or pages differ",
            "another key makes another run",
            code="run_differs",
        )
