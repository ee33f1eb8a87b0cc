"""Quarantine: failed jobs grouped by their cause, to release or discard many at once."""

from __future__ import annotations

from typing import Any

from penstock.app.views.quarantine import EntryFilter, GroupView
from penstock.web.dashboard.page import ROWS, Visit


def read(visit: Visit) -> dict[str, Any]:
    project, source = visit.project, visit.text("source")
    groups = project.quarantine.groups(source, limit=ROWS)
    return {
        "groups": [(each, _only(each)) for each in groups],
        "source": source,
        "total": sum(each.jobs for each in groups) if source else project.overview().quarantined,
        "is_cut": len(groups) == ROWS,
    }


def _only(group: GroupView) -> dict[str, str]:
    """The filter that finds the entries of a group."""
    told = {"cause": group.cause} if group.cause else {"kind": group.kind}
    return {"source": group.source, **told}


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
