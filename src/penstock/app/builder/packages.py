"""The package of a job: whether it is whole, what it came to, and writing it again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.app.views.builder import TargetView
from penstock.builder.job import Job
from penstock.builder.package.folder import CHECKSUMS, LINK
from penstock.builder.steps.package import exported, joined
from penstock.builder.steps.place import finished_collection, runs_collection
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.app.nouns import Nouns


def what_is_wrong(folder: Path) -> str:
    """Why the package is not whole; empty if it is what its checksums say."""
    try:
        lines = (folder / CHECKSUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return f"{folder} has no {CHECKSUMS}"
    for line in lines:
        digest, _, name = line.partition("  ")
        if _digest(folder / name) != digest:
            return f"{folder / name} is not what was written"
    return "" if lines else f"{folder / CHECKSUMS} is empty"


def files_of(folder: Path) -> list[str]:
    """The files of a package, in order."""
    return sorted(str(file) for file in folder.iterdir()) if folder.is_dir() else []


def folder_of(root: Path, job: Job) -> Path:
    return root / job.output.dir / LINK


def report_of(project: Nouns, job: Job, run: int) -> dict[str, Any]:
    """What the run remembers of its package; nothing before it has one."""
    try:
        found = project.records.get(runs_collection(job), str(run), include_private=True)
    except UsageError:
        return {}
    return dict(found.data)


def kpis_of(report: dict[str, Any], job: Job) -> list[TargetView]:
    """The targets, met or not. The usual ones are shown; those that the job names count."""
    return [
        TargetView(**each, is_asked=each["name"] in job.kpi_targets)
        for each in report.get("kpis", ())
    ]


def write_again(project: Nouns, job: Job, run: int, root: Path) -> None:
    """Write the package of a run from what the store has; its companies are as the run left them."""
    finished = {
        each.key
        for each in _every(project, finished_collection(job))
        if each.data.get("run") == run
    }
    every = _every(project, job.output.collection)
    companies = [each.data for each in every if each.key in finished]
    exported(root, job, list(joined(job, companies)), report_of(project, job, run).get("rows", 0))


def _every(project: Nouns, collection: str) -> Iterator[Any]:
    return project.records.each(collection, include_private=True)


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""
