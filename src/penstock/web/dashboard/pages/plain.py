"""Pages that are one list: workers, budgets, hooks, canaries and events."""

from __future__ import annotations

from typing import Any

from penstock.web.dashboard.burn_down import burn_downs
from penstock.web.dashboard.page import ROWS, Visit


def read_workers(visit: Visit) -> dict[str, Any]:
    workers = visit.project.workers
    return {
        "workers": [*workers.each()],
        "leaders": workers.leaders(),
        "stale": workers.stale(),
        "not_loaded": workers.not_loaded(),
        "breakers": visit.project.breakers.list(limit=ROWS).items,
    }


def read_budgets(visit: Visit) -> dict[str, Any]:
    source = visit.text("source")
    page = visit.project.budgets.list(source=source, cursor=visit.text("cursor"), limit=ROWS)
    return {
        "budgets": page.items,
        "charts": burn_downs(visit.project, page.items, visit.project.now()),
        "source": source,
        "next": visit.following(page.next),
    }


def read_hooks(visit: Visit) -> dict[str, Any]:
    undelivered = visit.is_on("undelivered")
    page = visit.project.hooks.list(
        undelivered=undelivered, cursor=visit.text("cursor"), limit=ROWS
    )
    return {
        "deliveries": page.items,
        "undelivered": undelivered,
        "next": visit.following(page.next),
    }


def read_canaries(visit: Visit) -> dict[str, Any]:
    page = visit.project.canaries.list(cursor=visit.text("cursor"), limit=ROWS)
    return {"canaries": page.items, "next": visit.following(page.next)}


def read_events(visit: Visit) -> dict[str, Any]:
    source, run, kind = visit.text("source"), visit.number("run"), visit.text("kind")
    page = visit.project.journal.list(
        source=source, run=run, kind=kind, cursor=visit.text("cursor"), limit=ROWS
    )
    return {
        "events": page.items,
        "source": source,
        "run": run,
        "kind": kind,
        "next": visit.following(page.next),
        # One look goes through a part of the journal, where what is wanted is rare in it.
        "is_partial": page.next is not None and len(page.items) < ROWS,
    }
