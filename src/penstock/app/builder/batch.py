"""A batch: one job over many items, or many jobs, each in a folder of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from penstock.app.builder.builder import Builder
from penstock.app.builder.choices import Choices
from penstock.app.builder.job import read_job
from penstock.app.views.builder import BatchItemView, BuilderStepView
from penstock.errors import PenstockError, UsageError

SUCCESS, FAILED, BUDGET_EXCEEDED, KPI_MISSED, ERROR = (
    "SUCCESS",
    "FAILED",
    "BUDGET_EXCEEDED",
    "KPI_MISSED",
    "ERROR",
)
STOPPED = "STOPPED"
NAF = "filters.naf_include"
_NO_FOLDER = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One job of a batch."""

    name: str
    job: Path
    changes: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Letters, digits, dots and dashes, so that no item leaves the batch's folder."""
        return _NO_FOLDER.sub("-", self.name).strip("-.") or "item"


def items_of(
    template: Path | None, nafs: Iterable[str], each: str | None, jobs: Iterable[Path]
) -> list[BatchItem]:
    """The items: the template for each code and each value, and each job file as it is."""
    nafs = list(nafs)
    if (nafs or each) and template is None:
        raise UsageError("a batch over codes or values needs a template", "--template job.yaml")
    found = [BatchItem(file.stem, file) for file in jobs]
    if template is not None:
        found += [BatchItem(code, template, (f"{NAF}={json.dumps([code])}",)) for code in nafs]
        found += [BatchItem(text, template, (change,)) for text, change in _values(each)]
    if not found:
        raise UsageError("a batch of nothing", "--naf CODE …, --each KEY=VALUE,…, or --jobs FILE …")
    _refuse_same(found)
    return found


def job_files(folder: Path) -> list[Path]:
    """The job files of a folder, in order."""
    found = sorted(file for ending in ("*.yaml", "*.yml") for file in folder.glob(ending))
    if not found:
        raise UsageError(f"{folder} has no job files (*.yaml)")
    return found


def run_batch(
    items: Sequence[BatchItem],
    outdir: Path,
    choices: Choices,
    *,
    resume: bool = False,
    stops: bool = False,
    on_item: Callable[[BatchItemView], None] = lambda view: None,
    on_step: Callable[[BuilderStepView], None] = lambda view: None,
) -> list[BatchItemView]:
    """Perform each job, one after the other; a failure is that job's own, unless it `stops` the batch."""
    done = []
    for item in items:
        view = _performed(item, outdir, choices, resume, on_step)
        on_item(view)
        done.append(view)
        if view.status == STOPPED or (stops and view.status != SUCCESS):
            break
    return done


def _performed(
    item: BatchItem,
    outdir: Path,
    choices: Choices,
    resume: bool,
    on_step: Callable[[BuilderStepView], None],
) -> BatchItemView:
    began_at = perf_counter()
    folder = outdir / item.folder
    job, views, status, reason = item.job.stem, [], ERROR, ""
    try:
        over = replace(choices, changes=(*choices.changes, *item.changes))
        with Builder(read_job(item.job), folder, over) as builder:
            job = builder.job.name
            views = list(builder.run_profile(resume=resume, on_step=on_step))
        status, reason = _verdict(views)
    except PenstockError as error:
        reason = error.message
    return BatchItemView(
        item=item.name,
        job=job,
        outdir=str(folder),
        status=status,
        reason=reason,
        seconds=round(perf_counter() - began_at, 3),
        steps={view.step: view.status for view in views},
    )


def _verdict(views: Sequence[BuilderStepView]) -> tuple[str, str]:
    for status, verdict in (("FAIL", FAILED), ("BUDGET_EXCEEDED", BUDGET_EXCEEDED)):
        for view in views:
            if view.status == status:
                return verdict, f"{view.step}: {view.reason}"
    if any(view.is_stopped for view in views):
        return STOPPED, "interrupted"
    if missed := [kpi.name for view in views for kpi in view.missed]:
        return KPI_MISSED, ", ".join(missed)
    blocked = [view.step for view in views if view.is_blocked]
    return (FAILED, f"{blocked[0]} was not run") if blocked else (SUCCESS, "")


def _values(each: str | None) -> Iterator[tuple[str, str]]:
    """`country=US,CA` as one change of the job for each value."""
    if each is None:
        return
    key, equals, values = each.partition("=")
    if not equals or not key or not all(values.split(",")):
        raise UsageError(f"--each {each!r:.60}: write it as country=US,CA")
    for value in values.split(","):
        yield value, f"{key}={value}"


def _refuse_same(items: Sequence[BatchItem]) -> None:
    seen: dict[str, str] = {}
    for item in items:
        if item.folder in seen:
            raise UsageError(f"{item.name!r} and {seen[item.folder]!r} would share a folder")
        seen[item.folder] = item.name
