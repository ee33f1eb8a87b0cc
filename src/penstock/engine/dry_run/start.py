"""Where a dry run begins: the stage and the item, from an address or from a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.errors import Refused, Remedy, UsageError, nearest
from penstock.pipeline.graph import Graph, Stage
from penstock.project import Project
from penstock.settings import SourceSettings

_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class Start:
    """Where a dry run begins: a stage, and the job whose item it is given."""

    stage: Stage
    key: str
    item: bytes
    snapshot: int | None = None


def start_of(
    project: Project, source: SourceSettings, graph: Graph, target: str, name: str | None, item: Any
) -> Start:
    if target.isdecimal():
        return _start_at_job(project, source, graph, int(target))
    stage = _stage(graph, name)
    if item is not None:
        return Start(stage, target, _encode(item))
    job_id = project.connection.jobs.last_of(known_id(project, source.key), stage.name, target)
    known = None if job_id is None else project.connection.jobs.detail(job_id).item
    return Start(stage, target, known.encode() if known else _encode({"url": target}))


def _start_at_job(project: Project, source: SourceSettings, graph: Graph, job_id: int) -> Start:
    job = project.require_job(job_id)
    if job.source != source.key:
        raise UsageError(f"job {job_id} belongs to {job.source}, not to {source.key}")
    stage = graph.stage(job.stage)
    if stage is None or stage.unit == "run":
        raise Refused(
            f"job {job_id} is of stage {job.stage}, which is no page or candidate step now",
            code="job_not_of_a_page",
            remedy=Remedy("pages.try_", source.key),
        )
    pages = project.connection.snapshots.of_job(job_id, 1)
    found = project.connection.jobs.detail(job_id).item
    return Start(stage, job.key, (found or "null").encode(), pages[0].id if pages else None)


def _stage(graph: Graph, name: str | None) -> Stage:
    pages = [
        s for s in graph.stages if s.unit == "page" and not s.is_gather and not s.takes_windows
    ]
    if name is not None:
        found = next((s for s in graph.stages if name in s.steps and s.unit != "run"), None)
        if found is None:
            known = [s.name for s in graph.stages if s.unit != "run"]
            raise UsageError(f"the pipeline has no page step {name!r}", nearest(name, known))
        return found
    if not pages:
        raise Refused(
            f"pipeline {graph.name!r} has no page step to try",
            "a run of kind probe takes one item through the whole pipeline",
            code="no_page_step",
        )
    return pages[0]


def known_id(project: Project, key: str) -> int:
    """The source's number; 0 where it never ran, because a dry run does not make it known."""
    return next((row.id for row in project.connection.sources.all() if row.key == key), 0)
