"""The addresses of the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import BaseRoute, Route

from penstock.web.dashboard.acts import do_act, show_act
from penstock.web.dashboard.page import CELLS, page
from penstock.web.dashboard.pages import (
    alerts,
    audit,
    cells,
    configuration,
    job,
    overview,
    plain,
    quarantine,
    records,
    releases,
    run,
    runbooks,
    runs,
    schedules,
    search,
    sites,
    source,
    sources,
)
from penstock.web.dashboard.snapshots import download
from penstock.web.threads import CELL, in_thread_reading

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from penstock.app import Project


async def download_page(request: Request) -> Response:
    """A fetched page as a file."""
    snapshot = request.path_params["snapshot"]

    def read(project: Project) -> Response:
        return download(project.pages.read(project.pages.get(snapshot)), f"snapshot-{snapshot}")

    return await in_thread_reading(request, read)


# Each cell has these.
PAGES: list[Route] = [
    Route("/", page("overview.html", overview.read)),
    Route("/search", page("search.html", search.read)),
    Route("/sources", page("sources.html", sources.read)),
    Route("/sources/{source:path}", page("source.html", source.read)),
    Route("/configuration", page("configuration.html", configuration.read)),
    Route("/runs", page("runs.html", runs.read)),
    # The difference of a replay is made when somebody first asks for it.
    Route("/runs/{run:int}", page("run.html", run.read, writes=True)),
    Route("/jobs/{job:int}", page("job.html", job.read)),
    Route("/jobs/{job:int}/pages/{snapshot:int}", page("page.html", job.read_page)),
    Route("/snapshots/{snapshot:int}", download_page),
    Route("/records", page("records.html", records.read)),
    Route("/record", page("record.html", records.read_record)),
    Route("/records/{collection:path}", page("collection.html", records.read_collection)),
    Route("/sites", page("sites.html", sites.read)),
    Route("/sites/{domain}/proposals/{proposal}", page("proposal.html", sites.read_proposal)),
    Route("/quarantine", page("quarantine.html", quarantine.read)),
    Route("/quarantine/jobs", page("entries.html", quarantine.read_entries)),
    Route("/schedules", page("schedules.html", schedules.read)),
    Route("/workers", page("workers.html", plain.read_workers)),
    Route("/budgets", page("budgets.html", plain.read_budgets)),
    Route("/hooks", page("hooks.html", plain.read_hooks)),
    Route("/releases", page("releases.html", releases.read)),
    Route("/releases/{release}", page("release.html", releases.read_release)),
    Route("/releases/{release}/diff", page("release_diff.html", releases.read_diff)),
    Route("/canaries", page("canaries.html", plain.read_canaries)),
    Route("/events", page("events.html", plain.read_events)),
    Route("/alerts", page("alerts.html", alerts.read)),
    Route("/alerts/{alert:int}", page("alert.html", alerts.read_alert)),
    Route("/runbooks", page("runbooks.html", runbooks.read)),
    Route("/runbooks/{runbook}", page("runbook.html", runbooks.read_runbook)),
    Route("/audit", page("audit.html", audit.read)),
]
ROUTES: list[BaseRoute] = [
    Route("/cells", page("cells.html", cells.read)),
    Route("/cells/sources", page("cells_sources.html", cells.read_sources)),
    Route("/cells/runs", page("cells_runs.html", cells.read_runs)),
    Route("/cells/alerts", page("cells_alerts.html", cells.read_alerts)),
    Route("/cells/search", page("cells_search.html", cells.read_search)),
    *(Route(f"{CELLS}{{{CELL}}}{each.path}", each.endpoint) for each in PAGES),
    *PAGES,
    Route("/acts/{act}", show_act, methods=["GET"]),
    Route("/acts/{act}", do_act, methods=["POST"]),
]
