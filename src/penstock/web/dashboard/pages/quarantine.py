"""Quarantine: failed jobs grouped by their cause, to release or discard many at once."""

from __future__ import annotations

from typing import Any

from penstock.app.views.quarantine import EntryFilter
from penstock.web.dashboard.page import ROWS, Visit


def read(visit: Visit) -> dict[str, Any]:
    project, source = visit.project, visit.text("source")
    causes = project.quarantine.causes(source, cursor=visit.text("cursor"), limit=ROWS)
    return {
        "causes": causes.items,
        "source": source,
        "total": project.overview().quarantined,
        "next": visit.following(causes.next),
    }


def read_entries(visit: Visit) -> dict[str, Any]:
    project = visit.project
    wanted = EntryFilter(
        source=visit.text("source"),
        run_id=visit.number("run_id"),
        kind=visit.text("kind"),
        cause=visit.text("cause"),
        stage=visit.text("stage"),
    )
    page = project.quarantine.list(wanted, cursor=visit.text("cursor"), limit=ROWS)
    chosen = {
        name: getattr(wanted, name) for name in ("source", "run_id", "kind", "cause", "stage")
    }
    return {
        "wanted": wanted,
        "chosen": {name: value for name, value in chosen.items() if value is not None},
        "entries": page.items,
        "nothing": "" if page.items else project.quarantine.nothing(wanted),
        "next": visit.following(page.next),
    }
