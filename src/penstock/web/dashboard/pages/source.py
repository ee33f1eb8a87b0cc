"""One source: how it does over its runs, what keeps it from starting, what it costs, what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.web.dashboard.burn_down import burn_downs
from penstock.web.dashboard.coverage import run_days
from penstock.web.dashboard.figures import quality, source_charts
from penstock.web.dashboard.page import Visit

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.runs import RunDetail, RunView
    from penstock.app.views.sources import SourceDetail

RUNS, EVENTS, COVERED, ALERTS = 15, 10, 200, 5


class Step(NamedTuple):
    """One step of the funnel: how many came this far, of how many, and what became of the others."""

    name: str
    reached: int
    most: int
    others: list[tuple[str, int]]


def read(visit: Visit) -> dict[str, Any]:
    project = visit.project
    source = project.sources.get(visit.path["source"])
    now = project.now()
    runs = project.runs.list(source.key, limit=COVERED).items
    last = _last_ended(project, runs)
    budgets = [*project.budgets.each(source=source.key)]
    return {
        "source": source,
        "outlook": next(iter(project.outlook([source.key])), None)
        if source.is_configured or source.lifecycle != "active"
        else None,
        "next_run": project.sources.next_run(source.key),
        "runs": runs[:RUNS],
        "last": last,
        "funnel": [] if last is None else funnel(last),
        "charts": source_charts(project, source.key),
        "quality": quality(project, source.key, now),
        "coverage": run_days(runs, now),
        "budgets": budgets,
        "burn_downs": burn_downs(project, budgets, now),
        **_alerted(project, source.key),
        **_onboarded(project, source),
        "pipelines": pipeline_history(runs),
        **_configured(project, source),
        "events": project.journal.of_source(source.key, limit=EVENTS),
    }


def _onboarded(project: Project, source: SourceDetail) -> dict[str, Any]:
    """Where it stands and why; of a source that was never proposed, where nobody has to be, nothing."""
    seen = project.sources.onboarding(source.key)
    if seen.changed_at is None and source.lifecycle == "active":
        return {"onboarding": None, "compliance": None, "trials": []}
    return {
        "onboarding": seen,
        "compliance": project.sources.compliance(source.key),
        "trials": project.sources.trials(source.key),
    }


def _alerted(project: Project, source: str) -> dict[str, Any]:
    """Its alerts that stand, and how the structure of its pages changed when an alert last compared them."""
    found = project.alerts.list(state="all", source=source, limit=ALERTS).items
    compared = (project.alerts.get(each.id) for each in found)
    drift = next((each for each in compared if each.structure is not None), None)
    return {"alerts": [each for each in found if each.state != "resolved"], "drift": drift}


def pipeline_history(runs: Sequence[RunView]) -> list[RunView]:
    """The first run of each version of the pipeline, newest first; from the newest runs alone."""
    found: list[RunView] = []
    for run in reversed(runs):
        if not found or found[-1].pipeline_version != run.pipeline_version:
            found.append(run)
    return found[::-1]


def _last_ended(project: Project, runs: list[RunView]) -> RunDetail | None:
    for each in runs:
        if each.is_ended and each.kind not in ("replay", "probe") and not each.is_undo:
            return project.runs.detail(each.id)
    return None


def funnel(run: RunDetail) -> list[Step]:
    """How many pages and candidates of a run came how far."""
    pages, candidates = run.account.pages, run.account.candidates
    most = max(pages.discovered, candidates.candidates, 1)
    sound = candidates.candidates - candidates.dropped - candidates.failed
    steps = [
        ("discover", pages.discovered, {"cancelled": pages.cancelled, "open": pages.open}),
        ("extract", pages.extracted, {"skipped": pages.skipped, "failed": pages.failed}),
        ("normalize", candidates.candidates, {"dropped": candidates.dropped}),
        ("score", sound, {"failed": candidates.failed, "rejected": candidates.rejected}),
        ("persist", candidates.accepted, {"duplicate": candidates.duplicate}),
    ]
    return [
        Step(name, number, most, [(label, n) for label, n in others.items() if n])
        for name, number, others in steps
    ]


def _configured(project: Project, source: SourceDetail) -> dict[str, Any]:
    """When it starts, how its schedules were changed, and how far it has come."""
    if not source.is_configured:
        return {"schedules": None, "versions": [], "checkpoints": []}
    return {
        "schedules": project.schedules.explain(source.key, ticks=10),
        "versions": project.schedules.versions(source.key, limit=20).items,
        "checkpoints": project.checkpoints.list(source.key, limit=20).items,
    }
