"""One job: its attempts, its error, its item, the page it was given, its parent and its children."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import Refused, UsageError
from penstock.web.dashboard.page import Visit
from penstock.web.dashboard.snapshots import shown_page

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.jobs import JobView

EVENTS, LINES, CHILDREN = 30, 100, 20


def read(visit: Visit) -> dict[str, Any]:
    project, job_id = visit.project, visit.path["job"]
    job = project.jobs.detail(job_id)
    timeline = project.jobs.timeline(job_id)
    return {
        "job": job,
        "run": project.runs.get(job.run_id),
        "timeline": timeline,
        "parent": None if job.parent_id is None else _parent(project, job.parent_id),
        "children": project.jobs.children(job_id, CHILDREN) if timeline.children else [],
        "events": project.journal.list(job=job_id, limit=EVENTS).items,
        "lines": project.logs.list(job=job_id, limit=LINES).items[::-1],
    }


def _parent(project: Project, job: int) -> JobView | None:
    """The job that enqueued this one; None if it is no longer kept."""
    try:
        return project.jobs.get(job)
    except UsageError:
        return None


def read_page(visit: Visit) -> dict[str, Any]:
    """A page that a job fetched, to be looked at and never executed."""
    project, job_id, wanted = visit.project, visit.path["job"], visit.path["snapshot"]
    job = project.jobs.get(job_id)
    try:
        found = project.pages.list(job_id, limit=100)
    except Refused:
        found = []
    for each in found:
        if each.id == wanted:
            return {"job": job, "snapshot": each, "body": shown_page(project.pages.read(each))}
    raise UsageError(f"job {job_id} has no page {wanted}", code="no_page")
