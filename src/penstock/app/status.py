"""The status: a project at one moment, from maintained counters; quick however much has happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.app.next_runs import next_runs
from penstock.app.outlook import host_hours
from penstock.app.views.alerts import alert_view
from penstock.app.views.overview import overview_view
from penstock.app.views.runs import run_view
from penstock.app.views.schedules import CadenceView, cadence_view
from penstock.app.views.sources import breach_view, hold_view, source_view
from penstock.app.views.status import StatusView, undecided_view
from penstock.store.alert_rows import AlertFilter

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns
    from penstock.store.store import Store

# How many active runs and next runs are named, and how many broken promises at most.
SHOWN, BREACHES = 20, 1000
STANDING, ALERTS = AlertFilter(standing_only=True), 100


def status(project: Nouns, with_outlook: bool) -> StatusView:
    """All of it, asked for once."""
    store, settings = project.connection, project.settings
    now, sources = store.now(), store.sources.all()
    staged_s = settings.retention.staged_s
    return StatusView(
        project=settings.project,
        environment=settings.environment,
        now=now,
        overview=overview_view(store.overview()),
        release=project.releases.running(),
        workers=list(project.workers.each()),
        scheduler=project.workers.scheduler(),
        runs=[run_view(row, now) for row in store.runs.newest(active_only=True, limit=SHOWN)],
        sources=[source_view(row) for row in sources],
        closed_hosts=store.hosts.closed(),
        hosts_outside=host_hours(project, now),
        breakers=[each for each in project.breakers.each() if each.state != "closed"],
        exhausted_budgets=list(project.budgets.exhausted()),
        holds=[hold_view(row) for row in store.sources.holds()],
        breaches=[
            breach_view(row) for row in store.promises.breaches(open_only=True, limit=BREACHES)
        ],
        undecided=[undecided_view(each, staged_s) for each in store.replays.undecided()],
        stale_workers=list(project.workers.stale()),
        not_loaded=list(project.workers.not_loaded()),
        alerts=[alert_view(row) for row in store.alerts.newest(STANDING, ALERTS)],
        outlooks={each.source: each for each in project.outlook()} if with_outlook else {},
        given_up=_given_up(store),
        next_runs=next_runs(settings.sources, sources, now, SHOWN),
    )


def _given_up(store: Store) -> list[CadenceView]:
    """The sources that `cadence: auto` has paused, by name."""
    # Not through `project.schedules`: that imports all that plans, and status has to start at once.
    rows = sorted(store.cadences.all(), key=lambda row: row.source)
    return [cadence_view(row) for row in rows if row.level == "paused"]
