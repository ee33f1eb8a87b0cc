"""Which pages go into a corpus: of every kind that a source has some, chosen by a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from penstock.errors import Refused, Remedy, UsageError
from penstock.http.browser.options import SCREENSHOT
from penstock.project import Project
from penstock.store.jobs import JobFilter
from penstock.store.rows import JobRow, SnapshotRow

LOOKED_AT = 5000
MOST_PAGES_OF_A_JOB = 50
ENDED = ("succeeded", "skipped", "quarantined")


def sampled(project: Project, source: str, wanted: int, seed: int, run: int | None) -> list[JobRow]:
    """Jobs of pages by chance; the kinds take turns, so that rare ones are there too."""
    # One that nothing ran of yet is not known to the database.
    project.connection.sources.ensure([source])
    rows = project.connection.jobs.find(JobFilter(run_id=run, source=source, limit=LOOKED_AT))
    kinds: dict[tuple[str, str, str], list[JobRow]] = {}
    seen = set()
    for job in rows:
        if job.unit == "page" and job.state in ENDED and (job.stage, job.key) not in seen:
            seen.add((job.stage, job.key))
            kinds.setdefault((job.stage, job.state, shape_of(job.key)), []).append(job)
    if not kinds:
        raise Refused(
            f"{source} has no ended page jobs" + (f" in run {run}" if run is not None else ""),
            "run the source first: a corpus is made of pages that were stored",
            code="golden_no_pages",
            remedy=Remedy("runs.start", source),
        )
    rng = random.Random(seed)
    queues = [kinds[kind] for kind in sorted(kinds)]
    for queue in queues:
        rng.shuffle(queue)
    chosen: list[JobRow] = []
    while len(chosen) < wanted and any(queues):
        for queue in queues:
            # What was never fetched, such as what robots.txt denies, has no page to keep.
            while queue and not pages_of(project, queue[-1]):
                queue.pop()
            if queue and len(chosen) < wanted:
                chosen.append(queue.pop())
    return chosen


def at_addresses(project: Project, source: str, urls: Sequence[str]) -> list[JobRow]:
    """The newest job of this source that fetched each of these addresses."""
    return [_at(project, source, url) for url in urls]


def _at(project: Project, source: str, url: str) -> JobRow:
    for page in project.connection.snapshots.at(url, 100):
        job = project.connection.jobs.get(page.job_id)
        if job is not None and job.source == source and job.unit == "page":
            return job
    raise UsageError(
        f"no page job of {source} has stored {url}",
        "look at what is stored of it first",
        code="no_page_of_source",
    )


def pages_of(project: Project, job: JobRow) -> list[SnapshotRow]:
    """What a job fetched, the first first; each address once."""
    found = project.connection.snapshots.of_job(job.id, MOST_PAGES_OF_A_JOB)
    newest: dict[str, SnapshotRow] = {}
    for page in found:
        # Where it fetched nothing, these are the pages that its item came from.
        if page.job_id == job.id and not page.url.startswith(SCREENSHOT):
            newest.setdefault(page.url, page)
    return sorted(newest.values(), key=lambda page: page.id)


def shape_of(key: str) -> str:
    """Where a page belongs, by its address: `/p/17` and `/p/18` are of one kind, `/news/a` is of another."""
    path = urlsplit(key).path if "/" in key else key
    parts = [part for part in path.split("/") if part]
    first = re.sub(r"\d+", "#", parts[0]) if len(parts) > 1 else ""
    return f"{first}/{len(parts)}"
