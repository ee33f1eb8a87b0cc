"""One run: what became of its pages and candidates, its attempts over time, its events and its failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from penstock.web.dashboard.coverage import backfill_days
from penstock.web.dashboard.page import Visit
from penstock.web.dashboard.words import moment, span

if TYPE_CHECKING:
    from penstock.app import Project
    from penstock.app.views.jobs import JobView
    from penstock.app.views.journal import EventView
    from penstock.app.views.runs import RunDetail

EVENTS, JOBS, CHANGES = 25, 25, 20
# The timeline shows the jobs of so many of the newest events, and no more of them than a screen has lines.
LOOKED_AT, LINES = 400, 30
WIDTH = 600.0
ENDS = {
    "job.succeeded": "good",
    "job.skipped": "soft",
    "job.retry_scheduled": "warn",
    "job.throttled": "warn",
    "job.snoozed": "soft",
    "job.quarantined": "bad",
    "job.cancelled": "soft",
}


class Attempt(NamedTuple):
    """One attempt, as a bar."""

    x: float
    width: float
    tone: str
    title: str


class Line(NamedTuple):
    """The attempts of one job."""

    job: int
    label: str
    title: str
    attempts: list[Attempt]


class Timeline(NamedTuple):
    """The attempts of the jobs that were tried last, between two moments."""

    start: float
    end: float
    stages: dict[str, tuple[float, float]]
    lines: list[Line]


def read(visit: Visit) -> dict[str, Any]:
    project, run_id = visit.project, visit.path["run"]
    run = project.runs.detail(run_id)
    failed = project.jobs.list(run=run_id, states=["quarantined"], limit=JOBS)
    return {
        "run": run,
        "failed": failed.items,
        "has_more_failed": failed.next is not None,
        "stages": project.runs.stages(run_id),
        "timeline": timeline(project, run_id),
        "events": project.journal.trail(run_id, limit=EVENTS),
        "diff": _difference(project, run),
        "calendar": backfill_days(project, run),
        "balances": balances(run),
    }


def _difference(project: Project, run: RunDetail) -> Any:
    """What a replay that is not decided yet would change."""
    if run.replay is None or not run.replay.is_staged or not run.is_ended:
        return None
    return project.replays.diff(run.id, CHANGES)


def balances(run: RunDetail) -> list[tuple[str, int, list[tuple[str, int]], int]]:
    """The counts that have to add up: a name, the total, its parts, and what is missing."""
    pages, candidates = run.account.pages, run.account.candidates
    of_pages = ("extracted", "skipped", "failed", "cancelled", "open")
    of_candidates = (
        *("accepted", "rejected", "duplicate", "dropped", "failed", "passed"),
        *("cancelled", "open"),
    )
    return [
        ("pages", pages.discovered, _parts(pages, of_pages), pages.unaccounted),
        (
            "candidates",
            candidates.candidates,
            _parts(candidates, of_candidates),
            candidates.unaccounted,
        ),
    ]


def _parts(counted: Any, names: Sequence[str]) -> list[tuple[str, int]]:
    return [(name, getattr(counted, name)) for name in names if getattr(counted, name)]


def timeline(project: Project, run: int) -> Timeline | None:
    """The attempts of the jobs that the newest events are about."""
    events = [*reversed(project.journal.trail(run, kind="job", limit=LOOKED_AT))]
    tried = _attempts(events)
    if not tried:
        return None
    start = min(began for ends in tried.values() for began, _, _ in ends)
    end = max(ended for ends in tried.values() for _, ended, _ in ends)
    chosen = sorted([*tried][-LINES:])
    known = {job: project.jobs.get(job) for job in chosen}
    lines = [_line(known[job], tried[job], start, end) for job in chosen]
    return Timeline(start, end, _spans(known, lines), lines)


def _spans(known: Mapping[int, JobView], lines: Sequence[Line]) -> dict[str, tuple[float, float]]:
    """From where to where each stage stands in the timeline: its beginning and its width."""
    found: dict[str, tuple[float, float]] = {}
    for line in lines:
        stage = known[line.job].stage
        first, last = found.get(stage, (WIDTH, 0.0))
        ends = [bar.x + bar.width for bar in line.attempts]
        found[stage] = min([first, *(bar.x for bar in line.attempts)]), max([last, *ends])
    return {stage: (first, max(last - first, 2.0)) for stage, (first, last) in found.items()}


def _attempts(events: Iterable[EventView]) -> dict[int, list[tuple[float, float, str]]]:
    """When each attempt of each job began and ended, and as what."""
    begun: dict[tuple[int, int], float] = {}
    found: dict[int, list[tuple[float, float, str]]] = {}
    for event in events:
        job, attempt = event.job_id or 0, event.attempt or 0
        if event.kind == "job.started":
            begun[job, attempt] = event.at
        elif event.kind in ENDS and (job, attempt) in begun:
            found.setdefault(job, []).append((begun.pop((job, attempt)), event.at, event.kind))
    for (job, _), at in begun.items():
        found.setdefault(job, []).append((at, at, "job.started"))
    return found


def _line(job: JobView, ends: Iterable[tuple[float, float, str]], start: float, end: float) -> Line:
    scale = WIDTH / ((end - start) or 1.0)
    bars = []
    for began, ended, kind in ends:
        word = kind.partition(".")[2].replace("_", " ")
        title = f"{moment(began)}, {span(ended - began)}: {word}"
        width = max((ended - began) * scale, 2.0)
        bars.append(Attempt((began - start) * scale, width, ENDS.get(kind, "calm"), title))
    return Line(job.id, f"{job.stage} {short_key(job.key)}", f"{job.stage} {job.key}", bars)


def short_key(key: str) -> str:
    """Of an address, what tells it from others of the same host."""
    parts = urlsplit(key) if key.startswith(("http://", "https://")) else None
    if parts is None:
        return key
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
